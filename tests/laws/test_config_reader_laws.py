"""Whatever a config holds, the reader gives a sane architecture or says what is wrong with which key."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.catalog.hf import ConfigError, architecture_from_config
from service.catalog.hf.traits import TRAITS
from service.catalog.models import ModelFile
from service.domain.architecture import Architecture

FOLDER = Path(__file__).parents[2] / "service" / "catalog" / "data" / "models"
CONFIGS = [
    row.config
    for path in sorted(FOLDER.glob("*.json"))
    for row in msgspec.json.decode(path.read_bytes(), type=ModelFile).models
]
KEYS = sorted({key for config in CONFIGS for key in config})

HOSTILE: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "float32", "fp8", "M*-E", "LLLG", "1,2,,999999999999", "x" * 400, "\ud800"]),
    st.lists(st.one_of(st.integers(-2, 200), st.text(max_size=8), st.none()), max_size=8),
    st.dictionaries(
        st.sampled_from(KEYS), st.one_of(st.integers(-2, 10**12), st.none(), st.text(max_size=4)), max_size=4
    ),
)


def check(config: dict[str, Any]) -> None:
    fault: ConfigError | None = None
    try:
        is_sane(architecture_from_config(config))
    except ConfigError as error:
        fault = error
    if fault is not None:
        assert fault.pointer.startswith("/")
        assert fault.message.code.startswith("config_key")


def is_sane(architecture: Architecture) -> None:
    counts = msgspec.structs.astuple(architecture.parameters)
    assert all(isinstance(count, int) and 0 <= count < 2**100 for count in counts)
    assert 1 <= architecture.layers <= 2_000
    assert architecture.query_heads >= 1
    assert architecture.kv_heads >= 1
    assert architecture.vocab_size >= 1
    assert architecture.max_position_embeddings >= 1
    for cache in architecture.cache:
        assert cache.layers >= 1
        assert min(cache.elements_per_head, cache.window_tokens, cache.state_bytes, cache.extra_bytes_per_token) >= 0
    msgspec.json.encode(architecture)


@given(st.dictionaries(st.sampled_from(KEYS), HOSTILE, max_size=12))
@settings(max_examples=300, deadline=None)
def test_arbitrary_values_under_known_keys(config: dict[str, Any]) -> None:
    check(config)


@given(st.sampled_from(CONFIGS), st.dictionaries(st.sampled_from(KEYS), HOSTILE, min_size=1, max_size=3), st.booleans())
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_real_configs_with_a_few_values_spoilt(config: dict[str, object], spoilt: dict[str, Any], inside: bool) -> None:  # noqa: FBT001 - drawn
    text = config.get("text_config")
    if inside and isinstance(text, dict):
        check({**config, "text_config": {**text, **spoilt}})
    else:
        check({**config, **spoilt})


@given(st.sampled_from(CONFIGS), st.data())
@settings(max_examples=300, deadline=None)
def test_real_configs_with_a_key_missing(config: dict[str, object], data: st.DataObject) -> None:
    missing = data.draw(st.sampled_from(sorted(config)))
    check({key: value for key, value in config.items() if key != missing})


@given(
    st.sampled_from([*sorted(TRAITS), "never_heard_of"]),
    st.fixed_dictionaries(
        {
            "hidden_size": st.integers(1, 16_384),
            "num_hidden_layers": st.integers(1, 120),
            "num_attention_heads": st.integers(1, 128),
            "vocab_size": st.integers(1, 300_000),
            "intermediate_size": st.integers(1, 65_536),
        },
        optional={
            "num_key_value_heads": st.integers(1, 128),
            "head_dim": st.integers(1, 512),
            "num_experts": st.integers(0, 512),
            "num_experts_per_tok": st.integers(1, 8),
            "sliding_window": st.integers(0, 200_000),
            "kv_lora_rank": st.integers(0, 1_024),
            "max_position_embeddings": st.integers(1, 10**6),
            "tie_word_embeddings": st.booleans(),
        },
    ),
)
@settings(max_examples=200, deadline=None)
def test_plausible_configs_of_any_type(model_type: str, config: dict[str, Any]) -> None:
    check({"model_type": model_type, **config})


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 4))
def test_layers_add_up(layers: int, width: int, factor: int) -> None:
    """Parameters of the layers grow with their number, embeddings do not."""

    def counted(number: int) -> Architecture:
        config = {
            "model_type": "llama", "hidden_size": 64 * width, "num_hidden_layers": number, "num_attention_heads": width,
            "intermediate_size": 128 * width, "vocab_size": 1_000, "max_position_embeddings": 2_048,
        }  # fmt: skip
        return architecture_from_config(config)

    one, many = counted(layers), counted(layers * factor)
    assert many.parameters.attention == factor * one.parameters.attention
    assert many.parameters.dense_mlp == factor * one.parameters.dense_mlp
    assert many.parameters.embedding == one.parameters.embedding
    assert many.cache[0].layers == factor * one.cache[0].layers


@pytest.mark.parametrize("config", CONFIGS[::7], ids=str)
def test_reading_is_pure(config: dict[str, object]) -> None:
    before = json.dumps(config)
    assert architecture_from_config(config) == architecture_from_config(json.loads(before))
    assert json.dumps(config) == before
