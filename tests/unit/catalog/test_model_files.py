"""Every row of the model files: it parses, is sane, and has its source."""

import re
import time
from pathlib import Path

import msgspec
import pytest

from service.catalog.hf.unquantized_classes import ALWAYS_KEPT
from service.catalog.models import Model, ModelFile, dense_stand_in, load_models, with_parameters
from service.catalog.quantizations import load_quantizations
from service.domain.errors import CatalogError

DATA = Path(__file__).parents[3] / "service" / "catalog" / "data"
FOLDER = DATA / "models"
MODELS = load_models(FOLDER)
EMPTY_CONFIG = '{"id": "a/b", "config": {}, "config_basis": "recalled", "source": "s"}'


def test_the_catalog_is_large_and_small_enough() -> None:
    assert len(MODELS) >= 380
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 450_000


def test_loading_is_fast() -> None:
    started = time.perf_counter()
    load_models(FOLDER)
    assert time.perf_counter() - started < 1.0  # 0.08 s alone on a core


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_is_named_after_its_family_and_dated(path: Path) -> None:
    file = msgspec.json.decode(path.read_bytes(), type=ModelFile)
    assert file.family == path.stem
    assert re.fullmatch(r"2026-\d\d-\d\d", file.as_of)
    assert len(file.models) == len({row.id.lower() for row in file.models})


def test_ids_are_unique_without_case() -> None:
    assert len({id_.lower() for id_ in MODELS}) == len(MODELS)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.id)
def test_a_row_is_sane(model: Model) -> None:
    architecture = model.architecture
    counts = architecture.parameters
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", model.id)
    assert len(model.source) > 5
    assert model.release is None or re.fullmatch(r"20[12]\d-\d\d", model.release)
    assert model.note is not None or not model.partial
    assert 1e7 < counts.total < 4e12
    assert min(msgspec.structs.astuple(counts)) >= 0
    assert 256 <= model.context_window <= 11_000_000
    assert (architecture.experts > 0) == (architecture.moe_layers > 0)
    assert architecture.experts_per_token <= architecture.experts
    assert architecture.intermediate_size > 0
    if architecture.role == "encoder":
        assert not architecture.cache
    else:
        assert architecture.cache
    for cache in architecture.cache:
        assert 0 < cache.layers <= 2 * architecture.layers
        if cache.kind == "state":
            assert 1_000 < cache.state_bytes < 100_000_000
        else:
            assert cache.kv_heads >= 1
            assert 1 <= cache.elements_per_head <= 2_048
            assert cache.score_dim > 0
            assert (cache.window_tokens > 0) == (cache.kind in {"sliding", "chunked", "cross"})


def test_checkpoint_formats_are_ids_of_the_quantization_catalog() -> None:
    known = load_quantizations(DATA / "quantizations.json")
    for model in MODELS.values():
        architecture = model.architecture
        assert architecture.checkpoint_format in known, model.id
        assert architecture.dtype in {"bf16", "fp16"}, model.id
        assert architecture.checkpoint_kv_cache in {None, "fp8"}, model.id


@pytest.mark.parametrize(
    ("id_", "weights", "kv_cache", "kept"),
    [
        ("deepseek-ai/DeepSeek-V3", "fp8-block", None, None),
        ("Qwen/Qwen3-30B-A3B-FP8", "fp8-block", None, {*ALWAYS_KEPT, "lm_head"}),
        ("mistralai/Devstral-2-123B-Instruct-2512", "fp8", None, {*ALWAYS_KEPT, "lm_head", "vision"}),
        ("openai/gpt-oss-120b", "mxfp4", None, None),
        ("nvidia/GLM-5.1-NVFP4", "nvfp4", "fp8", None),
        ("nvidia/Gemma-4-31B-IT-NVFP4", "nvfp4", "fp8", None),
        ("moonshotai/Kimi-K2.5", "int4-g32", None, None),
        ("moonshotai/Kimi-K3", "mxfp4", None, None),
        ("zai-org/GLM-5-FP8", "fp8-block", None, None),
        ("nvidia/Qwen3-235B-A22B-NVFP4", "nvfp4", "fp8", {*ALWAYS_KEPT, "lm_head"}),
    ],
)  # fmt: skip
def test_formats_of_published_checkpoints(id_: str, weights: str, kv_cache: str | None, kept: set[str] | None) -> None:
    architecture = MODELS[id_].architecture
    assert architecture.checkpoint_format == weights
    assert architecture.checkpoint_kv_cache == kv_cache
    if kept is not None:
        assert set(architecture.unquantized or ()) == kept


def test_what_releases_leave_in_16_bits() -> None:
    kept = {id_: set(MODELS[id_].architecture.unquantized or ()) for id_ in MODELS}
    assert "attention" in kept["openai/gpt-oss-20b"]
    assert "routed_experts" not in kept["openai/gpt-oss-20b"]
    assert {"attention", "shared_experts"} <= kept["nvidia/GLM-5.2-NVFP4"]
    assert {"attention", "shared_experts", "dense_mlp", "vision"} <= kept["moonshotai/Kimi-K3"]
    assert "shared_experts" not in kept["nvidia/Kimi-K2.5-NVFP4"]
    assert "dense_mlp" in kept["nvidia/Gemma-4-26B-A4B-NVFP4"]
    assert "attention" not in kept["zai-org/GLM-5-FP8"]


def test_classes_stored_in_a_format_of_their_own() -> None:
    mixed = {id_: dict(MODELS[id_].architecture.stored_bits) for id_ in MODELS}
    assert mixed["deepseek-ai/DeepSeek-V4-Flash"] == {"routed_experts": 4.25}
    assert mixed["nvidia/Qwen3.6-27B-NVFP4"]["state_mixer"] == 8.0
    assert mixed["nvidia/MiniMax-M3-NVFP4"]["attention"] == 8.25
    assert mixed["meta-llama/Llama-3.1-8B"] == {}


def test_base_models_are_in_the_catalog() -> None:
    bases = [model for model in MODELS.values() if model.base_model is not None]
    assert len(bases) > 20
    for model in bases:
        base = MODELS[model.base_model or ""]
        assert base.architecture.layers == model.architecture.layers


def test_a_size_alone_gets_a_dense_stand_in() -> None:
    architecture = dense_stand_in(7_000_000_000, MODELS)
    assert architecture.parameters.total == 7_000_000_000
    assert architecture.model_type == "mistral"
    assert not architecture.experts
    assert {"layers", "hidden_size", "cache"} <= set(architecture.estimated)
    assert "parameters" not in architecture.estimated


@pytest.mark.parametrize("parameters", [1, 17, 999_999_937, 10**13])
def test_any_size_is_met_exactly(parameters: int) -> None:
    assert dense_stand_in(parameters, MODELS).parameters.total == parameters
    for id_ in ("deepseek-ai/DeepSeek-V3", "google/gemma-4-E2B-it"):
        counts = with_parameters(MODELS[id_].architecture, parameters).parameters
        assert counts.total == parameters
        assert min(msgspec.structs.astuple(counts)) >= 0


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[]", "x.json"),
        ('{"family": "x", "as_of": "2026-12-01", "models": [{"id": "a/b"}]}', "config"),
        (f'{{"family": "x", "as_of": "2026-12-01", "models": [{EMPTY_CONFIG}]}}', "/models/0"),
        ('{"family": "x", "as_of": "2026-12-01", "models": [], "more": 1}', "more"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CatalogError, match=re.escape(named)):
        load_models(tmp_path)


def test_an_unknown_base_model_is_named(tmp_path: Path) -> None:
    row = (FOLDER / "smollm.json").read_text().replace('"config_basis"', '"base_model": "a/nowhere", "config_basis"', 1)
    (tmp_path / "smollm.json").write_text(row)
    with pytest.raises(CatalogError, match="a/nowhere"):
        load_models(tmp_path)
