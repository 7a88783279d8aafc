"""The engine files: every field in every version, and any text finds its band."""

from pathlib import Path

import msgspec
import pytest

from service.catalog.engines import behaviour, leading_version, load_engines
from service.domain.errors import CatalogError

FOLDER = Path("service/catalog/data/engines")
ENGINES = load_engines(FOLDER)


def test_all_four_engines_are_there() -> None:
    assert set(ENGINES) == {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.19.0", "0.19.0"),
        ("v0.8.5.post1", "0.8.5.post1"),
        ("0.19.2rc1.dev134+gfe9c3d6c5", "0.19.2rc1.dev134"),
        ("0.26.1rc1.dev608+g99a10304d", "0.26.1rc1.dev608"),
        ("b5636", "5636"),
        (" 0.10.2 (docker)", "0.10.2"),
        ("nightly", None),
        ("dev", None),
        ("0.1.dev1+gda1daf40b", None),
        ("0.0.0", None),
    ],
)
def test_the_leading_version_of_any_text(text: str, version: str | None) -> None:
    assert leading_version(text) == version


def test_values_follow_the_version() -> None:
    vllm = ENGINES["vllm"]
    assert behaviour(vllm, "0.20.2").memory_fraction == 0.9
    assert behaviour(vllm, "0.22.1").memory_fraction == 0.92
    assert behaviour(vllm, "0.16.0").sampler_bytes_per_logit > 2 * behaviour(vllm, "0.17.0").sampler_bytes_per_logit
    assert not behaviour(vllm, "0.19.0").graphs_in_budget
    assert behaviour(vllm, "0.19.2rc1.dev134+gfe9c3d6c5").graphs_in_budget
    assert behaviour(vllm, "0.8.5").cache_rule == "uniform_blocks"
    assert behaviour(ENGINES["llama.cpp"], "b4625").latent_as_heads
    assert not behaviour(ENGINES["llama.cpp"], "b5894").latent_as_heads


def test_no_version_is_the_newest() -> None:
    for table in ENGINES.values():
        assert behaviour(table).version == behaviour(table, "no such version").version
    assert behaviour(ENGINES["llama.cpp"]).version.startswith("b")


def test_every_row_has_a_source_and_a_date() -> None:
    for table in ENGINES.values():
        for row in (*table.file.behaviour, *table.file.support):
            assert row.source.startswith("https://")
            assert len(row.as_of.split("-")) == 3


def changed(tmp_path: Path, **change: object) -> Path:
    content = msgspec.json.decode((FOLDER / "vllm.json").read_bytes())
    content["behaviour"][0].update(change)
    (tmp_path / "vllm.json").write_bytes(msgspec.json.encode(content))
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        {"field": "no_such_field"},
        {"field": "block_size"},
        {"from": "0.5.0"},
        {"value": "no_such_rule"},
        {"evidence": "hearsay"},
        {"extra": 1},
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(CatalogError, match=r"vllm\.json"):
        load_engines(changed(tmp_path, **change))
