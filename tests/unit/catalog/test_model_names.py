"""Repository names that resolve to a catalog model and a format, and those that must not."""

import time
from pathlib import Path

import pytest

from service.catalog.model_names import closest_models, resolve_model
from service.catalog.models import load_models
from service.catalog.quantizations import load_quantizations

DATA = Path(__file__).parents[3] / "service" / "catalog" / "data"
MODELS = load_models(DATA / "models")


@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
def test_every_id_is_found_in_any_case(spell: type[str]) -> None:
    for id_, model in MODELS.items():
        match = resolve_model(spell(id_), MODELS)
        assert match is not None
        assert match.exact
        assert match.model is model
        assert match.weights is None


@pytest.mark.parametrize(
    ("name", "id_", "weights"),
    [
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "meta-llama/Llama-3.1-8B-Instruct", "bnb-nf4"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", None),
        ("llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", None),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B-Instruct", "int4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "meta-llama/Llama-3.1-8B-Instruct", "int8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a16", "meta-llama/Llama-3.1-8B-Instruct", "gptq-int8"),
        ("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-405B-Instruct", "awq-int4"),
        ("Qwen/Qwen2-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2-72B-Instruct", "gptq-int4"),
        ("Qwen/Qwen2-72B-Instruct-GPTQ-Int8", "Qwen/Qwen2-72B-Instruct", "gptq-int8"),
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B", "fp8-block"),
        ("RedHatAI/Qwen3-8B-FP8-block", "Qwen/Qwen3-8B", "fp8-block"),
        ("nvidia/Qwen3-32B-NVFP4", "Qwen/Qwen3-32B", "nvfp4"),
        ("nvidia/DeepSeek-R1-NVFP4", "deepseek-ai/DeepSeek-R1", "nvfp4"),
        ("unsloth/gpt-oss-20b-GGUF", "openai/gpt-oss-20b", "gguf-q4-k-m"),
        ("bartowski/Llama-3.3-70B-Instruct-Q5_K_M-GGUF", "meta-llama/Llama-3.3-70B-Instruct", "gguf-q5-k-m"),
        ("unsloth/Qwen3.6-27B-UD-Q4_K_XL-GGUF", "Qwen/Qwen3.6-27B", "gguf-q4-k-m"),
        ("mlx-community/Qwen3-8B-4bit", "Qwen/Qwen3-8B", "int4"),
        ("cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit", "moonshotai/Kimi-Linear-48B-A3B-Instruct", "awq-int4"),
        ("casperhansen/deepseek-r1-distill-qwen-14b-awq", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "awq-int4"),
        ("TheBloke/Llama-2-13B-chat-GPTQ", "meta-llama/Llama-2-13b-chat-hf", "gptq-int4"),
        ("google/gemma-4-26B-A4B-it-qat-q4_0-unquantized", "google/gemma-4-26B-A4B-it", None),
        ("failspy/Meta-Llama-3-8B-Instruct-abliterated-v3", "meta-llama/Meta-Llama-3-8B-Instruct", None),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-3.1-8B", None),
        ("cognitivecomputations/dolphin-2.9-llama3-8b", "meta-llama/Meta-Llama-3-8B", None),
        ("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1", None),
        ("ai21labs/AI21-Jamba-1.5-Mini", "ai21labs/AI21-Jamba-Mini-1.5", None),
        ("zhipuai/GLM-5", "zai-org/GLM-5", None),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "deepseek-ai/DeepSeek-V4-Flash", None),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "Qwen/Qwen3-235B-A22B-Instruct-2507", "fp8-block"),
        ("Qwen/Qwen3.6-27B (AutoRound int4)", "Qwen/Qwen3.6-27B", "int4"),
        ("Qwen/Qwen2.5-VL-72B GPTQ-Int4", "Qwen/Qwen2.5-VL-72B-Instruct", "gptq-int4"),
    ],
)
def test_a_name_tells_base_and_format(name: str, id_: str, weights: str | None) -> None:
    match = resolve_model(name, MODELS)
    assert match is not None
    assert (match.model.id, match.weights) == (id_, weights)
    assert not match.exact
    assert match.how.code == ("model_read_as" if weights is None else "model_read_as_format")


@pytest.mark.parametrize(
    "name",
    [
        "", "x", "/", "-", "8b", "instruct", "meta-llama/Llama-3.1-9B", "Mistral 7B (variant not stated)",
        "Llama-7B (llama-bench label)", "nvidia/llama2-70b-DepthPruned", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        "amd/MLPerf-Pruned-Llama-3.1-405B-Instruct (layers 62-103 dropped)", "lmsys/vicuna-7b-v1.5",
        "turboderp/Llama-3.1-8B-Instruct-exl2", "Qwen/Qwen3-VL-9B", "someone/Qwen3-Embedding-Llama-3.1-8B", "a" * 5_000,
        "\x00\ud800", "🦙-8b",
    ],
)  # fmt: skip
def test_a_name_that_tells_neither_is_refused(name: str) -> None:
    assert resolve_model(name, MODELS) is None


def test_formats_told_by_names_are_in_the_quantization_catalog() -> None:
    known = load_quantizations(DATA / "quantizations.json")
    for suffix in (
        "AWQ", "FP8", "FP8-dynamic", "FP8-block", "quantized.w4a16", "quantized.w8a8", "quantized.w8a16", "GPTQ-Int4",
        "GPTQ-Int8", "NVFP4", "MXFP4", "MXFP8", "bnb-4bit", "bnb-8bit", "GGUF", "4bit", "8bit", "int4", "INT8", "bf16",
        "nf4",
        "Q2_K-GGUF", "Q3_K_L-GGUF", "Q3_K_M-GGUF", "Q4_0-GGUF", "Q4_K_S-GGUF", "Q5_K_M-GGUF", "Q6_K-GGUF",
        "Q6_K_L-GGUF",
        "Q8_0-GGUF", "IQ2_XXS-GGUF", "IQ4_NL-GGUF", "TQ1_0-GGUF", "UD-Q2_K_XL-GGUF",
    ):  # fmt: skip
        match = resolve_model(f"someone/Qwen3-14B-{suffix}", MODELS)
        assert match is not None, suffix
        assert match.model.id == "Qwen/Qwen3-14B"
        assert match.weights in known or (match.weights is None and suffix == "bf16"), suffix


def test_the_closest_ids_are_suggested_quickly() -> None:
    assert closest_models("meta-llama/Llama-3.1-9B-Instruct", MODELS)[0] == "meta-llama/Llama-3.1-8B-Instruct"
    assert "Qwen/Qwen3-8B" in closest_models("qwen3 8 b", MODELS)
    assert len(closest_models("", MODELS)) == 5
    assert len(closest_models("zzz", MODELS, 3)) == 3
    started = time.perf_counter()
    for count in range(10):
        closest_models(f"nobody/unknown-{count}b", MODELS)
    assert (time.perf_counter() - started) / 10 < 0.05  # 0.5 ms alone on a core
