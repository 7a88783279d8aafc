"""Where offers stand: continents, the European Union, and the names of places."""

import msgspec
import pytest

from service.domain.geography import CONTINENT_OF, EEA_MEMBERS, EU_MEMBERS, stands_in, stays_in_eu
from service.domain.offer import Offer

OFFER = Offer(
    id="a/b/any/on_demand",
    provider="a",
    instance_type="b",
    gpu="l4-24gb",
    gpus=1,
    tenancy="dedicated",
    term="on_demand",
    evidence="official_docs",
    source="https://example.com",
)


def at(region: str | None = None, country: str | None = None, continent: str | None = None) -> Offer:
    return msgspec.structs.replace(OFFER, region=region, country=country, continent=continent)


def test_every_country_has_one_continent() -> None:
    assert len(CONTINENT_OF) == 249
    assert len(EU_MEMBERS) == 27
    assert set(CONTINENT_OF) >= EEA_MEMBERS


@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (at("FIN-01", "FI", "europe"), True),
        (at("NORWAY-1", "NO", "europe"), False),
        (at("us-east-1", "US", "north_america"), False),
        (at("EU", None, "europe"), True),
        (at("GRA/BHS"), None),
        (at(None, None, "europe"), None),
        (at("NA", None, "north_america"), False),
        (at(), None),
    ],
)
def test_eu_residency(offer: Offer, *, expected: bool | None) -> None:
    assert stays_in_eu(offer) is expected


@pytest.mark.parametrize(
    ("offer", "place", "expected"),
    [
        (at("europe-west4", "NL", "europe"), "Europe West4", True),
        (at("europe-west4", "NL", "europe"), "nl", True),
        (at("europe-west4", "NL", "europe"), "EEA", True),
        (at("NORWAY-1", "NO", "europe"), "eea", True),
        (at("NORWAY-1", "NO", "europe"), "eu", False),
        (at("NA", None, "north_america"), "North America", True),
        (at("EU", None, "europe"), "europe", True),
        (at(), "europe", False),
        (at(), "eu", False),
    ],
)
def test_places_by_any_of_their_names(offer: Offer, place: str, *, expected: bool) -> None:
    assert stands_in(offer, place) is expected
