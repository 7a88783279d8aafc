"""The provider files: all by name, every attribute known with a source or unknown, names resolve, faults are told."""

import json
from pathlib import Path

import pytest

import service.catalog
from service.catalog.providers import closest_providers, load_providers, resolve_provider
from service.domain.errors import CatalogError
from service.domain.offer import PROVIDER_ATTRIBUTES
from service.domain.provider_questions import questions
from service.text.catalogs import CATALOGS

DATA = Path(service.catalog.__file__).parent / "data"
PROVIDERS = load_providers(DATA / "providers")
BY_ID = {provider.id: provider for provider in PROVIDERS}
MINIMAL = {"id": "seller", "name": "Seller", "status": "priced"}


def test_all_providers_are_there_by_name() -> None:
    named = (
        "runpod vast-ai gpu-mart raksmart cherry-servers dedixlab vultr aws gcp azure oci lambda nebius coreweave "
        "crusoe hyperstack verda digitalocean scaleway ovh hetzner tensordock"
    )
    assert set(named.split()) <= BY_ID.keys()
    assert [provider.id for provider in PROVIDERS] == sorted(BY_ID)


def test_status_of_those_without_usable_prices() -> None:
    unusable = {provider.id: provider.status for provider in PROVIDERS if provider.status != "priced"}
    assert unusable == {
        "raksmart": "quote_required",
        "cherry-servers": "gpu_not_proven",
        "dedixlab": "unproven",
    }


def test_every_attribute_is_known_with_a_source_or_asked() -> None:
    for provider in PROVIDERS:
        assert tuple(provider.attributes) == PROVIDER_ATTRIBUTES
        asked = {message.code for message in questions(provider)}
        for name, attribute in provider.attributes.items():
            if attribute.value == "unknown":
                assert f"ask_{name}" in asked
            else:
                assert attribute.source, (provider.id, name)
                assert attribute.evidence, (provider.id, name)
        for message in questions(provider):
            assert provider.name in CATALOGS["en"][message.code].format(**message.params)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("vast", "vast-ai"),
        ("Vast.AI", "vast-ai"),
        ("LambdaLabs", "lambda"),
        ("Lambda Labs", "lambda"),
        ("cherry", "cherry-servers"),
        ("Cherry Servers", "cherry-servers"),
        ("OVHcloud", "ovh"),
        ("RAK smart", "raksmart"),
        ("gpu_mart", "gpu-mart"),
        ("Google Cloud", "gcp"),
        ("Amazon Web Services", "aws"),
        ("datacrunch", "verda"),
        ("nobody", None),
    ],
)
def test_names_resolve(name: str, provider: str | None) -> None:
    assert resolve_provider(name, PROVIDERS) == provider


def test_the_closest_names_are_suggested() -> None:
    assert closest_providers("runpodd", PROVIDERS)[0] == "runpod"
    assert closest_providers("hyper-stak", PROVIDERS)[0] == "hyperstack"
    assert closest_providers("zzzzzzzz", PROVIDERS) == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"colour": "red"}, "colour: no such member"),
        ({"status": "good"}, "status"),
        ({"id": "other"}, "id: other"),
        ({"attributes": {"mood": {"value": "good"}}}, "attributes/mood: no such attribute"),
        ({"attributes": {"backup": {"value": "daily"}}}, "attributes/backup: a known value needs"),
        ({"stale_after_days": "30"}, "stale_after_days"),
    ],
)
def test_faults_name_file_and_place(tmp_path: Path, change: dict[str, object], told: str) -> None:
    (tmp_path / "seller.json").write_text(json.dumps({**MINIMAL, **change}))
    with pytest.raises(CatalogError, match=rf"seller\.json.*{told}"):
        load_providers(tmp_path)


def test_two_providers_may_not_share_a_name(tmp_path: Path) -> None:
    (tmp_path / "seller.json").write_text(json.dumps(MINIMAL))
    (tmp_path / "shop.json").write_text(json.dumps({**MINIMAL, "id": "shop", "name": "Shop", "aliases": ["SELLER"]}))
    with pytest.raises(CatalogError, match=r"shop\.json: aliases: seller also names seller"):
        load_providers(tmp_path)
