"""The offer loader: what it refuses, with file and place, and what it derives."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import service.catalog
from service.catalog.offers import load_offers
from service.domain.errors import CatalogError
from service.domain.offer import Offer

DATA = Path(service.catalog.__file__).parent / "data"
Load: TypeAlias = Callable[[dict[str, Any]], tuple[Offer, ...]]
ROW = {"sku": "l4", "gpu": "l4-24gb", "gpu_name": "L4", "price": 0.8}


def document(**row: object) -> dict[str, Any]:
    return {
        "provider": "seller",
        "format": 1,
        "defaults": {"source": "page"},
        "regions": {"FIN-01": {"country": "FI"}},
        "sources": {"page": {"source": "https://example.com", "evidence": "official_docs", "as_of": "2026-05"}},
        "offers": [{**ROW, **row}],
    }


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_load(content: dict[str, Any]) -> tuple[Offer, ...]:
        (tmp_path / "seller.json").write_text(json.dumps(content))
        return load_offers(tmp_path)

    return write_and_load


def test_defaults_and_derived_fields(load: Load) -> None:
    (offer,) = load(document(region="FIN-01", earlier=[["2026-04-02", 0.9]]))
    assert offer.id == "seller/l4/fin-01/on_demand"
    assert (offer.instance_type, offer.gpus, offer.tenancy) == ("l4", 1, "dedicated")
    assert (offer.country, offer.continent) == ("FI", "europe")
    assert offer.as_of == "2026-05-01"
    assert offer.flags == ("day_unknown",)
    assert [(e.as_of, e.price_usd_per_hour) for e in offer.earlier_prices] == [("2026-04-02", 0.9)]


def test_what_is_missing_is_flagged(load: Load) -> None:
    content = document(price=None, candidates=["l4-24gb", "l40-48gb"])
    content["sources"]["page"]["as_of"] = None
    (offer,) = load(content)
    assert set(offer.flags) == {"quote_required", "undated", "gpu_ambiguous"}
    assert offer.hours_per_month_used is None


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"colour": "red"}, "colour"),
        ({"price": 0}, r"offers\[0\].price"),
        ({"price": -1.0}, r"offers\[0\].price"),
        ({"fraction": 1.5}, r"offers\[0\].fraction"),
        ({"gpus": 0}, r"offers\[0\].gpus"),
        ({"term": "forever"}, r"offers\[0\].term"),
        ({"sku": "Has Space"}, r"offers\[0\].sku"),
        ({"flags": ["nice"]}, r"offers\[0\].flags"),
        ({"source": "nowhere"}, r"offers/0 \(l4\): source: nowhere"),
        ({"region": "mars"}, r"offers/0 \(l4\): region: mars"),
        ({"currency": "EUR"}, r"offers/0 \(l4\): currency: EUR"),
        ({"sizes": [2]}, r"offers/0 \(l4\): sizes"),
        ({"per": "gpu_hour", "sizes": [1]}, r"offers/0 \(l4\): sizes"),
    ],
)
def test_faults_name_file_and_place(load: Load, row: dict[str, object], told: str) -> None:
    with pytest.raises(CatalogError, match=rf"seller\.json.*{told}"):
        load(document(**row))


def test_faults_of_the_head(load: Load, tmp_path: Path) -> None:
    for change, told in (
        ({"provider": "other"}, "provider: other"),
        ({"format": 2}, "format"),
        ({"regions": {"x": {"country": "XX"}}}, "regions/x: country: XX"),
        ({"regions": {"x": {"continent": "atlantis"}}}, "regions/x: continent: atlantis"),
    ):
        with pytest.raises(CatalogError, match=told):
            load({**document(), **change})
    (tmp_path / "seller.json").write_text("{")
    with pytest.raises(CatalogError, match=r"seller\.json"):
        load_offers(tmp_path)


def test_an_id_may_be_used_once(load: Load) -> None:
    content = document()
    content["offers"] *= 2
    with pytest.raises(CatalogError, match="seller/l4/any/on_demand: id used twice"):
        load(content)


def test_all_files_load_fast() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        load_offers(DATA / "offers")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.06
