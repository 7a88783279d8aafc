"""Parameter counts of the configs against the hub's element counts."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from service.catalog.models import ModelFile, load_models

FOLDER = Path(__file__).parents[3] / "service" / "catalog" / "data" / "models"
MODELS = load_models(FOLDER)
ROWS = {
    row.id: row
    for path in FOLDER.glob("*.json")
    for row in msgspec.json.decode(path.read_bytes(), type=ModelFile).models
}
COUNTED = [id_ for id_, row in ROWS.items() if row.total_parameters is not None]

STORED_TWICE = {
    "Qwen/Qwen3-0.6B": 1, "Qwen/Qwen3-1.7B": 1, "tiiuae/falcon-7b-instruct": 1, "tiiuae/falcon-180B-chat": 1,
    "deepseek-ai/DeepSeek-V3": 2, "deepseek-ai/DeepSeek-R1": 2, "deepseek-ai/DeepSeek-V3-0324": 2,
    "deepseek-ai/DeepSeek-V3.1": 2, "deepseek-ai/DeepSeek-R1-0528": 2, "nvidia/DeepSeek-V3.1-NVFP4": 2,
    "deepseek-ai/DeepSeek-V3.2": 2, "zai-org/GLM-4.7-Flash": 2, "zai-org/GLM-4.5-Air": 2, "zai-org/GLM-4.5": 2,
    "zai-org/GLM-4.7": 2, "inclusionAI/Ling-3.0-flash": 2, "stepfun-ai/Step-3.5-Flash": 3,
    "stepfun-ai/Step-3.7-Flash": 3, "stepfun-ai/Step-3.7-Flash-FP8": 3,
}  # fmt: skip
"""Copies of the embedding or head that checkpoints store beside the shared one: tied heads (Qwen3, Falcon), and those
of drafting layers (DeepSeek, GLM, Ling, Step), which engines share when they load."""

REASONS = {
    "BAAI/bge-m3": (0.0019, "the count of keras-hub leaves the pooler out"),
    "inclusionAI/Ling-3.0-flash": (0.0011, "partial: class defaults of transformers"),
}
"""Rows farther than 0.1 % from the hub after those copies, with the reason."""


def residual(id_: str) -> float:
    model, row = MODELS[id_], ROWS[id_]
    counts = model.architecture.parameters
    copies = STORED_TWICE.get(id_, 0) * model.architecture.vocab_size * model.architecture.hidden_size
    assert row.total_parameters is not None
    return (counts.total + counts.mtp + copies) / row.total_parameters - 1.0


@pytest.mark.parametrize("id_", COUNTED)
def test_a_count_is_the_hubs_within_a_thousandth(id_: str) -> None:
    allowed, _ = REASONS.get(id_, (0.001, ""))
    assert abs(residual(id_)) <= allowed


def test_nearly_all_counts_are_exact() -> None:
    own = [id_ for id_ in COUNTED if not ROWS[id_].beyond_config]
    bands = Counter(min(limit for limit in (1e-5, 1e-4, 1e-3, 1e-2) if abs(residual(id_)) <= limit) for id_ in own)
    assert len(own) > 330
    assert bands[1e-5] > 0.85 * len(own)
    assert bands[1e-5] + bands[1e-4] > 0.97 * len(own)


def test_what_a_config_leaves_out_is_small_and_explained() -> None:
    beyond = {id_: row for id_, row in ROWS.items() if row.beyond_config}
    for id_, row in beyond.items():
        assert row.note is not None, id_
        assert min(row.beyond_config.values()) > 0, id_
    text_only = [id_ for id_, row in beyond.items() if set(row.beyond_config) != {"vision"}]
    assert len(text_only) <= 8


@pytest.mark.parametrize(
    ("id_", "billions"),
    [
        ("deepseek-ai/DeepSeek-V3", 36.6),
        ("Qwen/Qwen3-30B-A3B", 3.04),
        ("openai/gpt-oss-120b", 5.13),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 12.7),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 16.1),
        ("moonshotai/Kimi-K2-Instruct", 32.0),
        ("meta-llama/Llama-3.1-8B-Instruct", 7.5),
    ],
)
def test_parameters_that_one_token_multiplies(id_: str, billions: float) -> None:
    """Embedding look-up and towers excluded; only the chosen ones of the routed experts."""
    architecture = MODELS[id_].architecture
    p = architecture.parameters
    chosen = p.routed_experts * architecture.experts_per_token / max(architecture.experts, 1)
    mixers = p.attention + p.attention_replicated + p.state_mixer
    active = (p.lm_head or p.embedding) + mixers + p.dense_mlp + chosen + p.shared_experts + p.router + p.norms
    assert active / 1e9 == pytest.approx(billions, rel=0.01)
