"""The answer of a VRAM budget: every way not to fit, remedies that were tried, the line that starts it."""

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from samples import LLAMA_8B, LLAMA_70B

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.quantizations import load_quantizations
from service.domain.architecture import Architecture
from service.domain.deployment import Card, Deployment, Layout
from service.domain.engine import EngineName, EngineRequest, Lora, Speculative
from service.domain.engine_settings import resolve_settings
from service.domain.kv_cache import served_kv_format
from service.domain.launch import quote
from service.domain.message import Message
from service.domain.remedies import Proposals
from service.domain.subject import Subject
from service.domain.units import GIB
from service.domain.vram_budget import VramBudget, vram_budget
from service.domain.weights import precision
from service.domain.workload_fit import Asked

DATA = Path("service/catalog/data")
ENGINES = load_engines(DATA / "engines")
FORMATS = load_quantizations(DATA / "quantizations.json")
CARDS = load_accelerators(DATA / "accelerators")
TEXTS = json.loads(Path("service/text/en/memory.json").read_text())

ENCODER = msgspec.structs.replace(LLAMA_8B, model_type="bert", role="encoder", cache=(), max_position_embeddings=512)
PROPOSALS = Proposals(
    weights=(FORMATS["fp8"], FORMATS["awq-int4"]),
    kv_caches=(FORMATS["fp8"],),
    larger_cards=tuple(CARDS[name] for name in ("h200-sxm-141gb",) if name in CARDS),
)


def subject(
    architecture: Architecture,
    gpu: str = "h100-sxm-80gb",
    request: EngineRequest | None = None,
    *,
    layout: Layout | None = None,
    formats: tuple[str, str] = ("bf16", "auto"),
) -> Subject:
    request = request or EngineRequest(version="0.19.0")
    accelerator = CARDS[gpu]
    rules = behaviour(ENGINES[request.name], request.version)
    weights, kv_cache = FORMATS[formats[0]], FORMATS[served_kv_format(architecture, formats[1])]
    settings, _ = resolve_settings(request, architecture, accelerator, layout or Layout(), rules)
    return Subject(
        model="org/model",
        architecture=architecture,
        accelerator=accelerator,
        weights=weights,
        kv_cache=kv_cache,
        behaviour=rules,
        deployment=Deployment(
            layout=layout or Layout(),
            card=Card(
                usable_memory_bytes=float(accelerator.usable_memory_bytes),
                bandwidth_bytes_per_s=accelerator.memory_bandwidth_gb_per_s * 1e9,
                weight_flops_per_s=1e15,
                flops_per_s=1e15,
                link_bytes_per_s=accelerator.interconnect.gb_per_s_per_direction * 1e9,
            ),
            precision=precision(architecture, weights, kv_cache),
            settings=settings,
        ),
    )


def adds_up(budget: VramBudget) -> bool:
    card = budget.per_gpu
    parts = card.weights_bytes + card.activation_bytes + card.cuda_graph_bytes + card.non_torch_bytes
    whole = parts + card.kv_cache_bytes + card.unused_bytes == card.total_bytes
    return whole and sum(budget.weights.values()) == card.weights_bytes


def test_a_deployment_that_starts() -> None:
    budget = vram_budget(subject(LLAMA_8B), Asked(8192, 32))
    assert budget.verdict == "starts"
    assert budget.reason_code is None
    assert budget.remedies == ()
    assert adds_up(budget)
    assert budget.kv_cache.interval.low < budget.kv_cache.capacity_tokens < budget.kv_cache.interval.high
    assert budget.workload_fit is not None
    assert budget.workload_fit.fits
    assert budget.workload_fit.required_tokens == 8192 * 32
    at_once = budget.workload_fit.max_concurrency_at_context
    assert at_once == budget.kv_cache.capacity_tokens // 8192
    assert budget.workload_fit.max_context_at_concurrency * 32 <= budget.kv_cache.capacity_tokens


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (subject(LLAMA_70B), "weights_exceed_memory"),
        (subject(LLAMA_8B, "t4-16gb", formats=("fp16", "fp16")), "weights_exceed_memory"),
        (subject(LLAMA_8B, "l4-24gb", EngineRequest(version="0.19.0", gpu_memory_utilization=0.68)), "no_room_for_kv"),
        (
            subject(LLAMA_8B, "l4-24gb", EngineRequest(version="0.19.0", gpu_memory_utilization=1.0)),
            "free_memory_below_budget",
        ),
        (subject(LLAMA_8B, "l4-24gb"), "context_does_not_fit"),
        (subject(LLAMA_8B, request=EngineRequest(kv_cache_memory_bytes=70 * GIB)), "no_room_for_kv"),
        (subject(LLAMA_8B, layout=Layout(tensor=3.0)), "layout_illegal"),
        (subject(LLAMA_8B, layout=Layout(pipeline=64.0)), "layout_illegal"),
        (subject(LLAMA_8B, "mi300x-192gb", EngineRequest(name="tensorrt-llm")), "engine_unsupported"),
        (
            subject(msgspec.structs.replace(LLAMA_8B, model_type="gpt_oss"), request=EngineRequest(version="0.8.5")),
            "engine_unsupported",
        ),
        (
            subject(LLAMA_8B, formats=("awq-int4", "auto"), request=EngineRequest(name="llama.cpp")),
            "weights_format_unsupported",
        ),
        (subject(LLAMA_8B, formats=("bf16", "gguf-q8-0")), "kv_format_unsupported"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_way_not_to_fit(asked: Subject, reason: str) -> None:
    budget = vram_budget(asked)
    assert budget.verdict == "does_not_fit"
    assert budget.reason_code == reason
    assert budget.reason is not None
    assert adds_up(budget)
    assert budget.reason.code in TEXTS


def test_the_longest_context_starts_and_the_next_does_not() -> None:
    short = vram_budget(subject(LLAMA_8B, "l4-24gb"))
    assert short.longest_context is not None
    for length, verdict in ((short.longest_context, "starts"), (short.longest_context + 16, "does_not_fit")):
        request = EngineRequest(version="0.19.0", max_model_len=length)
        assert vram_budget(subject(LLAMA_8B, "l4-24gb", request)).verdict == verdict


@pytest.mark.parametrize(
    "asked",
    [
        subject(LLAMA_8B, "l4-24gb"),
        subject(LLAMA_70B),
        subject(LLAMA_8B, "l4-24gb", EngineRequest(version="0.19.0", gpu_memory_utilization=0.7, max_model_len=4096)),
    ],
    ids=["context", "weights", "pool"],
)
def test_every_remedy_was_tried(asked: Subject) -> None:
    budget = vram_budget(asked, None, PROPOSALS)
    assert budget.remedies
    for remedy in budget.remedies:
        assert msgspec.json.encode(remedy.patch)
        assert remedy.max_concurrency >= 1.0
        assert remedy.message.code in TEXTS
        request = msgspec.convert(remedy.patch.get("engine", {}), EngineRequest)
        settings = {
            name: value for name in request.__struct_fields__ if (value := getattr(request, name)) and name != "name"
        }
        formats = (str(remedy.patch.get("weights", "bf16")), str(remedy.patch.get("kv_cache", "auto")))
        parallelism = remedy.patch.get("parallelism", {})
        assert isinstance(parallelism, dict)
        own = asked.deployment.settings
        given = {"gpu_memory_utilization": own.memory_fraction, "max_model_len": int(own.max_model_len)} | settings
        again = subject(
            asked.architecture,
            str(remedy.patch.get("gpu", asked.accelerator.id)),
            msgspec.structs.replace(EngineRequest(version="0.19.0"), **given),
            layout=Layout(tensor=float(parallelism.get("tensor", 1.0))),
            formats=formats,
        )
        assert vram_budget(again).verdict == "starts", remedy


def test_remedies_serve_the_asked_workload() -> None:
    asked = Asked(context_tokens=8192, concurrent_sequences=100)
    budget = vram_budget(
        subject(LLAMA_8B, request=EngineRequest(version="0.19.0", max_model_len=8192)), asked, PROPOSALS
    )
    assert budget.verdict == "starts"
    assert budget.workload_fit is not None
    assert budget.workload_fit.shortfall_sequences > 0
    codes = [remedy.code for remedy in budget.remedies]
    assert "quantize_kv_cache" in codes
    assert "raise_tensor_parallel" in codes
    assert codes.index("quantize_kv_cache") < codes.index("raise_tensor_parallel")


@pytest.mark.parametrize(
    ("engine", "program"),
    [("vllm", "vllm"), ("sglang", "python"), ("tensorrt-llm", "trtllm-serve"), ("llama.cpp", "llama-server")],
)
def test_the_launch_line_is_one_shell_command(engine: EngineName, program: str) -> None:
    asked = msgspec.structs.replace(
        subject(LLAMA_8B, request=EngineRequest(name=engine, max_model_len=8192), layout=Layout(tensor=2.0)),
        model="org/name; rm -rf 'x'",
    )
    line = vram_budget(asked).launch
    assert shlex.split(line.command) == list(line.args)
    assert line.args[0] == program
    assert "8192" in line.args


def test_adapters_and_drafts_reach_the_launch_line() -> None:
    request = EngineRequest(version="0.19.0", lora=Lora(max_rank=32), speculative=Speculative(method="mtp", tokens=3))
    asked = msgspec.structs.replace(subject(LLAMA_8B, request=request), request=request)
    line = vram_budget(asked).launch
    assert shlex.split(line.command) == list(line.args)
    assert "--enable-lora" in line.args
    given = json.loads(line.args[line.args.index("--speculative-config") + 1])
    assert given == {"method": "mtp", "num_speculative_tokens": 3}


@pytest.mark.parametrize("word", ["plain/word-1.0", "two words", "it's", "$HOME", "", "a`b`", 'say "x"'])
def test_quoting_keeps_a_word_whole(word: str) -> None:
    assert shlex.split(quote(word)) == [word]


def test_an_encoder_has_no_pool() -> None:
    budget = vram_budget(subject(ENCODER))
    assert budget.verdict == "starts"
    assert budget.per_gpu.kv_cache_bytes == 0
    assert budget.kv_cache.capacity_tokens == 0
    assert adds_up(budget)


def test_adapters_and_drafts_count_as_weights() -> None:
    plain = vram_budget(subject(LLAMA_8B))
    request = EngineRequest(version="0.19.0", lora=Lora(max_loras=4, max_rank=64), speculative=Speculative(tokens=3))
    more = vram_budget(subject(LLAMA_8B, request=request))
    # 4 adapters x rank 64 x 32 layers x 2 bytes x (4 projections of 4096 + 4096 or 1024, 3 of 4096 + 14336)
    assert more.weights["adapters"] == 4 * 64 * 32 * 2 * (2 * 8192 + 2 * 5120 + 3 * 18_432)
    assert more.per_gpu.weights_bytes == plain.per_gpu.weights_bytes + more.weights["adapters"]
    assert adds_up(more)


def test_offloaded_weights_leave_the_card() -> None:
    budget = vram_budget(subject(LLAMA_8B, request=EngineRequest(version="0.19.0", cpu_offload_bytes=4 * GIB)))
    assert budget.weights["in_host_memory"] == -4 * GIB
    assert adds_up(budget)


def test_every_default_is_listed() -> None:
    request = EngineRequest()
    rules = behaviour(ENGINES["vllm"])
    _, assumed = resolve_settings(request, LLAMA_8B, CARDS["a100-sxm-80gb"], Layout(), rules)
    values = {each.field: each.value for each in assumed}
    assert values["/engine/version"] == rules.version
    assert values["/engine/max_model_len"] == 131_072
    assert values["/engine/max_num_seqs"] == 256
    assert values["/engine/max_num_batched_tokens"] == 2048
    assert values["/engine/gpu_memory_utilization"] == 0.92
    _, large = resolve_settings(request, LLAMA_8B, CARDS["h100-sxm-80gb"], Layout(), rules)
    assert {each.value for each in large} >= {1024, 8192}
    given = msgspec.structs.replace(
        request,
        version=rules.version,
        max_model_len=1,
        max_num_seqs=1,
        max_num_batched_tokens=1,
        gpu_memory_utilization=0.5,
    )
    assert resolve_settings(given, LLAMA_8B, CARDS["h100-sxm-80gb"], Layout(), rules)[1] == ()


def test_sglang_starts_below_the_context_and_says_so() -> None:
    budget = vram_budget(subject(LLAMA_8B, "l4-24gb", EngineRequest(name="sglang", version="0.5.5")))
    assert budget.verdict == "starts"
    assert "pool_below_context" in {risk.code for risk in budget.warnings}


def test_every_message_of_the_domain_has_its_sentence() -> None:
    sources = "".join(
        Path("service/domain", name).read_text()
        for name in (
            "legal_layout.py",
            "engine_support.py",
            "verdict.py",
            "memory_risks.py",
            "remedies.py",
            "engine_settings.py",
        )
    )
    used = set(re.findall(r'Message\(\s*"(\w+)"', sources)) | set(re.findall(r'_risk\("(\w+)"', sources))
    used |= set(re.findall(r'_Check\("(\w+)"', sources))
    assert used <= set(TEXTS)
    assert isinstance(vram_budget(subject(LLAMA_70B)).reason, Message)
