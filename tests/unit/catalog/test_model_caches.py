"""What known models cache per token and per sequence, as engines print it or the notes derive it."""

from pathlib import Path

import pytest

from service.catalog.models import load_models

MODELS = load_models(Path(__file__).parents[3] / "service" / "catalog" / "data" / "models")


def cached_bytes(id_: str, element_bytes: float) -> tuple[float, float, float]:
    """Per token of a long sequence, of all full windows, of all states."""
    growing = windows = states = 0.0
    for cache in MODELS[id_].architecture.cache:
        token = cache.layers * (cache.kv_heads * cache.elements_per_head * element_bytes + cache.extra_bytes_per_token)
        if cache.kind in {"full", "latent"}:
            growing += token
        elif cache.kind in {"sliding", "chunked"}:
            windows += token * cache.window_tokens
        states += cache.layers * cache.state_bytes
    return growing, windows, states


@pytest.mark.parametrize(
    ("id_", "per_token", "windows", "states"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072, 0, 0),
        ("Qwen/Qwen3-30B-A3B", 98_304, 0, 0),
        ("Qwen/Qwen2-7B-Instruct", 57_344, 0, 0),
        ("zai-org/GLM-4.7", 376_832, 0, 0),
        ("deepseek-ai/DeepSeek-V3", 70_272, 0, 0),
        ("moonshotai/Kimi-K2-Instruct", 70_272, 0, 0),
        ("moonshotai/Kimi-VL-A3B-Instruct", 31_104, 0, 0),
        ("google/gemma-3-27b-it", 81_920, 436_207_616, 0),
        ("google/gemma-4-31B-it", 81_920, 838_860_800, 0),
        ("openai/gpt-oss-120b", 36_864, 4_718_592, 0),
        ("XiaomiMiMo/MiMo-V2-Flash", 9 * 2_560, 39 * 5_120 * 128, 0),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 12 * 4_096, 36 * 4_096 * 8_192, 0),
        ("meta-llama/Llama-3.2-90B-Vision-Instruct", 327_680, 0, 0),
        ("Qwen/Qwen3.5-27B", 65_536, 0, 153_944_064),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", 8_192, 0, 170_229_760),
        ("moonshotai/Kimi-K3", 27_648, 0, 449_372_160),
        ("ai21labs/Jamba-v0.1", 16_384, 0, 28 * (8_192 * 16 * 2 + 8_192 * 3 * 2)),
        ("LiquidAI/LFM2-1.2B", 6 * 2_048, 0, 10 * 2 * 2_048 * 2),
        ("mistralai/Mistral-7B-Instruct-v0.1", 0, 32 * 4_096 * 4_096, 0),
        ("mistralai/Mistral-7B-Instruct-v0.2", 131_072, 0, 0),
        ("Qwen/Qwen2.5-7B-Instruct", 57_344, 0, 0),
        ("deepseek-ai/DeepSeek-V3.2", 61 * (1_152 + 132), 0, 0),
        ("zai-org/GLM-5.2", 78 * 1_152 + 21 * 132, 0, 0),
    ],
)
def test_sixteen_bit_caches(id_: str, per_token: int, windows: int, states: int) -> None:
    assert cached_bytes(id_, 2.0) == (per_token, windows, states)


def test_deepseek_v4_grows_slowly() -> None:
    """fp8: 3.1 kB a token for Flash, 4.4 for Pro (AIC deepseek_v4.py)."""
    assert cached_bytes("deepseek-ai/DeepSeek-V4-Flash", 1.0)[0] == 21 * (128 + 16) + 20 * 4
    assert cached_bytes("deepseek-ai/DeepSeek-V4-Pro", 1.0)[0] == 30 * (128 + 16) + 31 * 4


def test_shared_caches_are_counted_once() -> None:
    """Gemma 4 E2B: 20 of 35 layers read earlier keys and values."""
    assert sum(cache.layers for cache in MODELS["google/gemma-4-E2B-it"].architecture.cache) == 15


def test_state_precision_follows_the_config() -> None:
    """vLLM grew attention blocks to 672 tokens for Nemotron-Nano-9B-v2: a 16-bit state fits, an fp32 one would not."""
    architecture = MODELS["nvidia/NVIDIA-Nemotron-Nano-9B-v2"].architecture
    state = next(cache.state_bytes for cache in architecture.cache if cache.kind == "state")
    page = 8 * 256 * 2
    assert 656 * page < state <= 672 * page


def test_whisper_caches_its_source_and_output() -> None:
    architecture = MODELS["openai/whisper-large-v3"].architecture
    assert architecture.role == "encoder_decoder"
    assert [(cache.kind, cache.window_tokens) for cache in architecture.cache] == [("full", 0), ("cross", 1_500)]
    assert architecture.max_position_embeddings == 448


def test_encoders_cache_nothing() -> None:
    for id_ in ("BAAI/bge-m3", "intfloat/multilingual-e5-large-instruct", "answerdotai/ModernBERT-base"):
        architecture = MODELS[id_].architecture
        assert architecture.role == "encoder"
        assert architecture.cache == ()


def test_searched_networks_are_summed_layer_by_layer() -> None:
    architecture = MODELS["nvidia/Llama-3_3-Nemotron-Super-49B-v1"].architecture
    assert architecture.layers == 80
    assert sum(cache.layers for cache in architecture.cache) == 49
