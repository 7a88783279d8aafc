"""The catalogs as a whole: how much there is, that references lead somewhere, and that a broken file is refused by name."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from service.catalog.snapshot import PACKAGED, Snapshot, load_snapshot
from service.domain.errors import CatalogError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the packaged catalogs to break."""
    copied = tmp_path / "catalog"
    shutil.copytree(PACKAGED, copied)
    return copied


def edit(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_there_is_as_much_as_promised(snapshot: Snapshot) -> None:
    whole = [gpu for gpu in snapshot.accelerators if "/" not in gpu]
    slices = [gpu for gpu in snapshot.accelerators if "/" in gpu]
    assert len(snapshot.models) >= 200
    assert len(whole) >= 90
    assert len(slices) >= 50
    assert len({gpu.partition("/")[0] for gpu in slices}) >= 10, "cards with MIG profiles"
    assert len(snapshot.offers) >= 500
    assert set(snapshot.engines) == {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}
    named = "runpod vast-ai gpu-mart raksmart cherry-servers dedixlab vultr aws gcp azure oci lambda nebius coreweave"
    assert set(named.split()) | {"crusoe", "hyperstack", "verda"} <= snapshot.providers.keys()
    formats = "fp32 bf16 fp16 fp8 fp8-block mxfp8 int8 awq-int4 gptq-int4 gptq-int8 int4 bnb-nf4 bnb-int8 mxfp4 nvfp4"
    assert {*formats.split(), "gguf-q4-k-m"} <= snapshot.quantizations.keys()


def test_references_resolve_across_files(snapshot: Snapshot) -> None:
    for offer in snapshot.offers.values():
        assert offer.provider in snapshot.providers
        assert {offer.gpu, *offer.gpu_candidates} - {None} <= snapshot.accelerators.keys()
    for instance in snapshot.instances:
        assert {instance.gpu, *instance.gpu_candidates} - {None} <= snapshot.accelerators.keys()
    for model in snapshot.models.values():
        assert model.architecture.checkpoint_format in snapshot.quantizations
        assert model.base_model is None or model.base_model in snapshot.models
    for base, published in snapshot.quantized_checkpoints.items():
        assert base in snapshot.models
        assert all(one.id in snapshot.models for one in published)
    for offer, position in zip(snapshot.market.offers, snapshot.market.accelerator.tolist(), strict=True):
        if offer.gpu is not None:
            assert snapshot.fleet.accelerators[position].id == offer.gpu


def test_every_row_has_its_source_and_date_or_says_that_it_has_none(snapshot: Snapshot) -> None:
    for card in snapshot.accelerators.values():
        assert card.sources, card.id
        assert date.fromisoformat(card.as_of), card.id
    for row in (*snapshot.models.values(), *snapshot.quantizations.values()):
        assert row.source, row.id
        date.fromisoformat(row.as_of)
    for provider in snapshot.providers.values():
        assert provider.source, provider.id
        assert provider.as_of is None or re.fullmatch(r"20\d\d-[01]\d(-[0-3]\d)?", provider.as_of), provider.id
        for name, attribute in provider.attributes.items():
            assert attribute.value == "unknown" or (attribute.source and attribute.evidence), (provider.id, name)
    for offer in snapshot.offers.values():
        assert offer.source, offer.id
        assert (offer.as_of is None) == ("undated" in offer.flags), offer.id
        assert (offer.price_usd_per_hour is None) == ("quote_required" in offer.flags), offer.id
        if offer.as_of is not None:
            date.fromisoformat(offer.as_of)
    for table in snapshot.engines.values():
        for support in table.file.support:
            assert support.source
            date.fromisoformat(support.as_of)
    for instance in snapshot.instances:
        assert instance.source


def test_units_are_sane(snapshot: Snapshot) -> None:
    for card in snapshot.accelerators.values():
        assert 0.7 * card.memory_bytes <= card.usable_memory_bytes <= card.memory_bytes
        assert 2**28 <= card.memory_bytes <= 2**40
        assert 5 <= card.memory_bandwidth_gb_per_s <= 30_000, card.id
    for offer in snapshot.offers.values():
        if offer.price_usd_per_hour is not None and offer.gpu is not None:
            assert 0.005 <= offer.price_usd_per_hour / (offer.gpus * offer.gpu_fraction) <= 60, offer.id
    for model in snapshot.models.values():
        assert 1e6 <= model.architecture.parameters.total <= 3e12, model.id


def test_loading_twice_gives_the_same_revision(snapshot: Snapshot, folder: Path) -> None:
    again = load_snapshot(folder)
    assert again.catalog_revision == snapshot.catalog_revision
    assert again.profile_revision == snapshot.profile_revision
    assert len(again.catalog_revision) == 16


def test_a_changed_price_is_another_catalog_revision_and_no_other_profile(snapshot: Snapshot, folder: Path) -> None:
    edit(folder / "offers" / "lambda.json", lambda file: file["offers"][0].update(price=9.99))
    changed = load_snapshot(folder)
    assert changed.catalog_revision != snapshot.catalog_revision
    assert changed.profile_revision == snapshot.profile_revision


def test_a_changed_profile_is_another_profile_revision_and_no_other_catalog(snapshot: Snapshot, folder: Path) -> None:
    path = folder / "profiles" / "spreads.json"
    path.write_text(path.read_text() + "\n")
    changed = load_snapshot(folder)
    assert changed.catalog_revision == snapshot.catalog_revision
    assert changed.profile_revision != snapshot.profile_revision


FILES = [
    "accelerators/nvidia-hopper.json",
    "quantizations.json",
    "providers/runpod.json",
    "offers/runpod.json",
    "models/llama.json",
    "engines/vllm.json",
    "instances.json",
    "profiles/cards.json",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", ["{", '{"format": 99}'], ids=repr)
def test_a_broken_file_is_refused_with_its_name(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(CatalogError, match=Path(name).name.replace(".", r"\.")):
        load_snapshot(folder)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        (
            "offers/lambda.json",
            lambda file: file["offers"][0].update(gpu="h100-of-nobody"),
            r"offers/lambda\.json: lambda/.*: h100-of-nobody is in no file",
        ),
        (
            "instances.json",
            lambda file: file["clouds"]["aws"][0].update(gpu="trainium-99"),
            r"instances\.json: aws/.*: trainium-99 is in no file",
        ),
        (
            "engines/vllm.json",
            lambda file: file["support"].append(
                {"what": "weights", "ids": ["fp3"], "evidence": "docs", "source": "x", "as_of": "2026-12-01"}
            ),
            r"engines/vllm\.json: support: weights: fp3 is in no file",
        ),
    ],
)
def test_a_reference_to_nothing_is_refused(folder: Path, name: str, change: Callable[[Any], None], told: str) -> None:
    edit(folder / name, change)
    with pytest.raises(CatalogError, match=told):
        load_snapshot(folder)


def test_offers_of_a_provider_that_is_no_more_are_refused(folder: Path) -> None:
    (folder / "providers" / "lambda.json").unlink()
    with pytest.raises(CatalogError, match=r"offers/lambda\.json: lambda/.*: lambda is in no file"):
        load_snapshot(folder)


def test_widely_sold_cards_are_ordered_by_memory(snapshot: Snapshot) -> None:
    assert {"NVIDIA", "AMD"} <= snapshot.widely_sold.keys()
    for vendor, cards in snapshot.widely_sold.items():
        assert [card.usable_memory_bytes for card in cards] == sorted(card.usable_memory_bytes for card in cards)
        for card in cards:
            assert card.vendor == vendor
            sold = [o for o in snapshot.offers.values() if o.gpu == card.id and o.price_usd_per_hour is not None]
            assert len(sold) >= 3
