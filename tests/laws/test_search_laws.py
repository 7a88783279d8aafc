"""The search over the whole fleet gives, candidate by candidate and to the bit, what one deployment's own functions give."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from service.catalog.engines import behaviour
from service.catalog.snapshot import Snapshot
from service.domain.assembly import assemble
from service.domain.calibration import profile_for
from service.domain.candidates import ALIVE, STAGES, WeightChoice
from service.domain.columns import at
from service.domain.deployment import Deployment, Layout
from service.domain.engine import EngineName, EngineRequest, Speculative
from service.domain.memory import account, kv_capacity, parts_of
from service.domain.operating_point import most_of
from service.domain.option_answer import share_of
from service.domain.performance import performance, serving_of
from service.domain.question import Question
from service.domain.search import Found, find, memory_stages
from service.domain.slo import bounds, user_time
from service.domain.subject import Subject
from service.domain.units import MS_PER_S
from service.domain.verdict import weigh
from service.domain.weights import precision
from service.domain.work import work
from service.domain.workload import Application, Batch, PercentileTargets, Targets, Traffic

RATE = Traffic(requests_per_second=3.0, input_tokens=1500.0, output_tokens=250.0)
CLIENTS = Traffic(concurrent_requests=96.0, input_tokens=1500.0, output_tokens=250.0)
PILE = Traffic(batch=Batch(requests=50_000.0, deadline_s=7200.0), input_tokens=1500.0, output_tokens=250.0)
TARGETS = Targets(ttft_ms=PercentileTargets(p95=3000.0), tpot_ms=PercentileTargets(p95=80.0))
SEEN = Targets(e2e_ms=PercentileTargets(p99=60_000.0))

Case = tuple[str, tuple[str, ...], Traffic, Targets | None, EngineName, int]
CASES: dict[str, Case] = {
    "dense": ("meta-llama/Llama-3.1-8B-Instruct", ("bf16", "fp8"), RATE, TARGETS, "vllm", 0),
    "dense closed": ("meta-llama/Llama-3.3-70B-Instruct", ("fp8", "awq-int4"), CLIENTS, SEEN, "vllm", 0),
    "experts": ("Qwen/Qwen3-30B-A3B", ("bf16",), RATE, None, "vllm", 0),
    "latent": ("deepseek-ai/DeepSeek-R1", ("fp8-block", "nvfp4"), PILE, None, "vllm", 0),
    "hybrid": ("ibm-granite/granite-4.0-h-small", ("bf16",), CLIENTS, TARGETS, "vllm", 0),
    "window": ("google/gemma-3-27b-it", ("bf16", "fp8"), RATE, TARGETS, "vllm", 3),
    "sglang": ("Qwen/Qwen3-30B-A3B", ("bf16",), RATE, TARGETS, "sglang", 0),
    "tensorrt-llm": ("meta-llama/Llama-3.1-8B-Instruct", ("fp8",), CLIENTS, None, "tensorrt-llm", 0),
    "llama.cpp": ("meta-llama/Llama-3.1-8B-Instruct", ("gguf-q4-k-m",), PILE, None, "llama.cpp", 0),
}


def question_of(case: Case, snapshot: Snapshot) -> Question:
    name, formats, traffic, targets, engine, drafted = case
    model = snapshot.models[name]
    kv_cache = snapshot.quantizations["bf16"]
    speculative = Speculative(method="ngram", tokens=drafted, acceptance_rate=0.6) if drafted else None
    version = behaviour(snapshot.engines[engine]).version
    application = Application(retrieval_ms=100.0, llm_calls_per_request=2.0)
    return Question(
        architecture=model.architecture,
        choices=tuple(
            WeightChoice(q, precision(model.architecture, q, kv_cache))
            for q in (snapshot.quantizations[one] for one in formats)
        ),
        kv_cache=kv_cache,
        behaviour=behaviour(snapshot.engines[engine]),
        engine=EngineRequest(name=engine, version=version, max_model_len=1750, speculative=speculative),
        work=work(traffic, targets, application),
        headroom=0.3,
        spare=1.0,
        allowed=np.ones(len(snapshot.fleet.accelerators), dtype=bool),
        max_gpus=float("inf"),
    )


def subject_of(question: Question, snapshot: Snapshot, accelerator: int, choice: int, layout: Layout) -> Subject:
    return assemble(
        "org/name",
        question.architecture,
        snapshot.fleet.accelerators[accelerator],
        layout,
        question.choices[choice].quantization,
        question.kv_cache,
        question.behaviour,
        question.engine,
    )[0]


@pytest.fixture(scope="module", params=CASES)
def searched(request: pytest.FixtureRequest, snapshot: Snapshot) -> tuple[Question, Traffic, Found]:
    case = CASES[request.param]
    question = question_of(case, snapshot)
    everywhere = np.full(len(snapshot.fleet.accelerators), 64.0)
    return question, case[2], find(question, snapshot.fleet, everywhere, snapshot.profiles)


def sampled(found: Found, most: int) -> Iterator[tuple[int, int, int, Layout]]:
    """Survivors spread over the fleet: position, accelerator, weight choice and layout."""
    for survivor in range(0, found.survivors.size, max(found.survivors.size // most, 1)):
        candidate = int(found.survivors[survivor])
        layout = at(found.deployment.layout, survivor)
        yield (
            survivor,
            int(found.candidates.accelerator[candidate]),
            int(found.candidates.choice[candidate]),
            layout,
        )


def test_memory_is_the_same_to_the_bit(searched: tuple[Question, Traffic, Found], snapshot: Snapshot) -> None:
    question, _, found = searched
    assert found.survivors.size >= 20
    model, engine = question.architecture, question.behaviour
    parts = parts_of(account(model, found.deployment, engine), model, found.deployment, engine)
    capacity = kv_capacity(model, found.deployment, engine, parts)
    for survivor, accelerator, choice, layout in sampled(found, 60):
        subject = subject_of(question, snapshot, accelerator, choice, layout)
        one: Deployment = at(found.deployment, survivor)
        assert msgspec.structs.asdict(one) == msgspec.structs.asdict(subject.deployment)
        outcome = weigh(subject)
        assert outcome.reason_code is None
        assert at(parts, survivor) == outcome.parts
        assert at(capacity, survivor) == outcome.capacity


def test_load_and_latency_are_the_same_to_the_bit(
    searched: tuple[Question, Traffic, Found], snapshot: Snapshot
) -> None:
    question, traffic, found = searched
    calls = 2.0
    asked = question.work
    version = question.behaviour.version
    for survivor, accelerator, choice, layout in sampled(found, 12):
        subject = subject_of(question, snapshot, accelerator, choice, layout)
        outcome = weigh(subject)
        profile = profile_for(
            subject.accelerator, subject.weights, question.behaviour.engine, version, snapshot.profiles
        )
        service = serving_of(subject, outcome, profile, asked, question.engine.speculative)
        assert at(found.most, survivor) == most_of(service, bounds(asked.targets), user_time(asked.application))
        share, replicas = float(found.share[survivor]), at(found.replicas, survivor)
        own = work(share_of(traffic, share, float(replicas.serving), calls), asked.targets, asked.application)
        estimate = performance(subject, outcome, profile, own, question.engine.speculative)
        assert estimate.ttft_ms is not None
        assert estimate.tpot_ms is not None
        assert float(found.ttft_p95_s[survivor]) * MS_PER_S == estimate.ttft_ms.p95
        assert float(found.tpot_p95_s[survivor]) * MS_PER_S == estimate.tpot_ms.p95


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_fails_for_the_same_reason(name: str, snapshot: Snapshot) -> None:
    question = question_of(CASES[name], snapshot)
    fleet = snapshot.fleet
    owners, choices, stages = memory_stages(question, fleet, np.full(len(fleet.accelerators), 64.0))
    seen: set[str | None] = set()
    dense = not question.architecture.experts
    for candidate in range(0, owners.size, 7):
        row = candidate % fleet.rows
        if dense and (fleet.data[row] > 1.0 or fleet.expert[row] > 0.0):
            continue
        layout = Layout(
            tensor=float(fleet.tensor[row]),
            pipeline=float(fleet.pipeline[row]),
            data=float(fleet.data[row]),
            expert=float(fleet.expert[row]),
        )
        assert owners[candidate] == fleet.accelerator[row]
        subject = subject_of(question, snapshot, int(owners[candidate]), int(choices[candidate]), layout)
        reason = weigh(subject).reason_code
        seen.add(reason)
        stage = int(stages[candidate])
        assert (None if stage == ALIVE else STAGES[stage]) == reason, (subject.accelerator.id, layout)
    assert None in seen
    assert len(seen) >= (2 if question.behaviour.engine == "llama.cpp" else 3)
