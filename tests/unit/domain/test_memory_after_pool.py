"""What a version or a card changes: what comes after the pool, the older of two engines, encoders, padded experts."""

from pathlib import Path

import pytest

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.models import load_models
from service.catalog.quantizations import load_quantizations
from service.domain.assembly import assemble
from service.domain.deployment import Layout
from service.domain.engine import EngineRequest
from service.domain.kv_cache import served_kv_format
from service.domain.units import GIB
from service.domain.vram_budget import VramBudget, vram_budget

DATA = Path("service/catalog/data")
ENGINES = load_engines(DATA / "engines")
CARDS = load_accelerators(DATA / "accelerators")
FORMATS = load_quantizations(DATA / "quantizations.json")
MODELS = load_models(DATA / "models")


def budget(model: str, gpu: str, request: EngineRequest, tensor: float = 1.0, weights: str | None = None) -> VramBudget:
    """The answer for a catalog model."""
    architecture = MODELS[model].architecture
    subject, _ = assemble(
        model,
        architecture,
        CARDS[gpu],
        Layout(tensor=tensor),
        FORMATS[weights or architecture.checkpoint_format],
        FORMATS[served_kv_format(architecture, "auto")],
        behaviour(ENGINES[request.name], request.version),
        request,
    )
    return vram_budget(subject)


@pytest.mark.parametrize(
    ("fraction", "seqs", "reason"),
    [(0.95, None, "out_of_memory_at_load"), (0.9, None, None), (0.95, 256, None)],
)
def test_warm_up_needs_what_the_budget_leaves(fraction: float, seqs: int | None, reason: str | None) -> None:
    request = EngineRequest(version="0.19.0", max_model_len=8192, gpu_memory_utilization=fraction, max_num_seqs=seqs)
    found = budget("openai/gpt-oss-20b", "h100-sxm-80gb", request)
    assert found.reason_code == reason
    assert bool(found.remedies) == (reason is not None)


def test_graphs_inside_the_budget_leave_room() -> None:
    request = EngineRequest(version="0.25.0", max_model_len=8192, gpu_memory_utilization=0.95)
    assert budget("openai/gpt-oss-20b", "h100-sxm-80gb", request).verdict == "starts"


def test_cards_below_the_capability_run_the_older_engine() -> None:
    request = EngineRequest(version="0.9.2", max_model_len=16_384)
    fields = {row.field: row.value for row in budget_assumptions("t4-16gb", request)}
    assert fields["/engine/max_num_batched_tokens"] == 16_384
    fields = {row.field: row.value for row in budget_assumptions("l4-24gb", request)}
    assert fields["/engine/max_num_batched_tokens"] == 2048


def budget_assumptions(gpu: str, request: EngineRequest) -> tuple[object, ...]:
    """Defaults taken on a card."""
    architecture = MODELS["meta-llama/Llama-3.1-8B-Instruct"].architecture
    return assemble(
        "org/model",
        architecture,
        CARDS[gpu],
        Layout(),
        FORMATS["bf16"],
        FORMATS["bf16"],
        behaviour(ENGINES["vllm"], request.version),
        request,
    )[1]


def test_unchunked_prefill_profiles_the_whole_context() -> None:
    """Llama-3.1-8B on MI300X with 0.9.2 printed an activation peak of 14.63 GiB."""
    found = budget(
        "meta-llama/Llama-3.1-8B-Instruct", "mi300x-192gb", EngineRequest(version="0.9.2", max_model_len=131_072)
    )
    assert found.per_gpu.activation_gib == pytest.approx(14.63, rel=0.01)


def test_each_profiled_sequence_brings_an_image() -> None:
    """Llama-3.2-11B-Vision ran out of memory in the profiling run with 256 sequences; few of them start."""
    model, gpu = "meta-llama/Llama-3.2-11B-Vision-Instruct", "a10-24gb"
    many = EngineRequest(version="0.6.2", max_model_len=1024, max_num_seqs=256)
    few = EngineRequest(version="0.6.2", max_model_len=1024, max_num_seqs=8)
    assert budget(model, gpu, many, tensor=2.0).reason_code == "no_room_for_kv"
    assert budget(model, gpu, few, tensor=2.0).verdict == "starts"


@pytest.mark.parametrize(
    ("version", "gpu", "printed_gib"),
    [("0.10.1", "h100-sxm-80gb", 65.97), ("0.14.1", "h100-sxm-80gb", 64.38), ("0.14.1", "b200-sxm-180gb", 65.97)],
)
def test_padding_of_mxfp4_experts_goes_by_version_and_card(version: str, gpu: str, printed_gib: float) -> None:
    found = budget("openai/gpt-oss-120b", gpu, EngineRequest(version=version, max_model_len=8192))
    assert found.per_gpu.weights_gib == pytest.approx(printed_gib, rel=0.005)


def test_linear_scaling_lengthens_rotary_tables() -> None:
    """Gemma-3-4B: a table of 1,048,576 x 256 for full layers and one of 131,072 x 256 for windows, 16-bit."""
    found = budget("google/gemma-3-4b-it", "h100-sxm-80gb", EngineRequest(version="0.19.0", max_model_len=8192))
    assert found.weights["rotary_tables"] == (1_048_576 + 131_072) * 256 * 2
    assert found.per_gpu.weights_gib == pytest.approx(8.54, rel=0.005)


def test_compressed_groups_take_whole_slabs() -> None:
    """DeepSeek-V4-Flash on 8 x B200 held 20.43 requests of 1 M tokens at 0.92."""
    found = budget("deepseek-ai/DeepSeek-V4-Flash", "b200-sxm-180gb", EngineRequest(version="0.25.0"), tensor=8.0)
    assert found.kv_cache.request_bytes > 5 * GIB


def test_the_interval_follows_the_class_of_logs() -> None:
    """Two thousandths of the card where many logs of the release agree; wide for engines with few."""
    request = EngineRequest(version="0.19.0", max_model_len=8192)
    narrow = budget("meta-llama/Llama-3.1-8B-Instruct", "h100-sxm-80gb", request).kv_cache
    wide = budget("meta-llama/Llama-3.1-8B-Instruct", "h100-sxm-80gb", EngineRequest(name="sglang")).kv_cache
    assert narrow.interval.basis == "calibrated"
    assert narrow.interval.high - narrow.interval.low < 0.02 * narrow.capacity_tokens
    assert wide.interval.basis == "analytic"
    assert wide.interval.high - wide.interval.low > 0.1 * wide.capacity_tokens


def test_shared_memory_is_warned_of() -> None:
    found = budget("meta-llama/Llama-3.1-8B-Instruct", "gb10-dgx-spark-128gb", EngineRequest(max_model_len=8192))
    assert "unified_memory_profiled" in {risk.code for risk in found.warnings}
