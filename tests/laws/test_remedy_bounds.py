"""A change that is passed over as no remedy would not have been one; and the search for the longest context is exact."""

import random
from datetime import date

import pytest

from service.api.call import Call
from service.api.deployments import read_deployment
from service.api.resolve import Gathered
from service.api.wire import Parallelism, VramBudgetRequest
from service.catalog.snapshot import Snapshot, load_snapshot
from service.domain.engine import EngineRequest
from service.domain.numeric import as_float
from service.domain.remedies import Proposals, _changes
from service.domain.remedy_bounds import cannot_help
from service.domain.subject import Subject
from service.domain.verdict import longest_context, request_bytes, weigh


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return load_snapshot()


@pytest.fixture(scope="module")
def deployments(snapshot: Snapshot) -> list[tuple[Subject, Proposals]]:
    """Deployments of every kind of trouble: any model, card, format, layout and engine."""
    dice = random.Random(7)
    models, cards = sorted(snapshot.models), sorted(snapshot.accelerators)
    call = Call(snapshot, "en", date(2026, 12, 1), "/v1/vram-budgets")
    placed = []
    for _ in range(250):
        body = VramBudgetRequest(
            model=dice.choice(models),
            gpu=dice.choice(cards),
            weights=dice.choice([None, None, "bf16", "fp8", "awq-int4"]),
            kv_cache=dice.choice(["auto", "fp8"]),
            parallelism=Parallelism(tensor=dice.choice([1, 2, 3, 8]), pipeline=dice.choice([1, 1, 2])),
            engine=EngineRequest(
                name=dice.choice(["vllm", "vllm", "sglang", "tensorrt-llm", "llama.cpp"]),
                max_model_len=dice.choice([None, 5000, 40_000]),
                cpu_offload_bytes=dice.choice([0, 0, 10 << 30]),
            ),
        )
        found = read_deployment(body, call, Gathered())
        placed.append((found.subject, found.proposals))
    return placed


def test_what_cannot_help_does_not_help(deployments: list[tuple[Subject, Proposals]]) -> None:
    passed_over = 0
    for subject, proposals in deployments:
        outcome = weigh(subject)
        for change in _changes(subject, outcome, None, proposals):
            if cannot_help(subject, outcome, change.subject):
                passed_over += 1
                assert weigh(change.subject).reason_code is not None, (change.code, change.patch)
    assert passed_over > 1000


def test_the_longest_context_is_the_longest(deployments: list[tuple[Subject, Proposals]]) -> None:
    found = 0
    for subject, _ in deployments:
        if not subject.architecture.cache:
            continue
        most = int(as_float(subject.deployment.settings.max_model_len))
        for pool_bytes in (0.0, 1e8, 4e9):
            for sequences, resident in ((1, False), (1, True), (16, True)):
                longest = longest_context(subject, pool_bytes, sequences, resident=resident)
                at, beyond = (
                    request_bytes(subject, pool_bytes, tokens, resident=resident) * sequences
                    for tokens in (longest, longest + 1)
                )
                assert longest == 0 or at <= pool_bytes
                assert longest == most or beyond > pool_bytes
                found += 0 < longest < most
    assert found > 100
