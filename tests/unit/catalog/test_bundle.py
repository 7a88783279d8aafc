"""A catalog as one sequence of bytes: the same revision comes out, and nothing but catalog files goes in."""

import msgspec
import pytest

from service.catalog.bundle import bundle_of, snapshot_of
from service.catalog.snapshot import PACKAGED, Snapshot
from service.domain.errors import CatalogError


def test_a_bundle_holds_the_whole_catalog(snapshot: Snapshot) -> None:
    bundle = bundle_of(PACKAGED)
    assert bundle == bundle_of(PACKAGED)
    again = snapshot_of(bundle)
    assert again.catalog_revision == snapshot.catalog_revision
    assert again.profile_revision == snapshot.profile_revision
    assert again.offers == snapshot.offers
    assert again.models.keys() == snapshot.models.keys()


@pytest.mark.parametrize("bundle", [b"", b"{", b"[]", b'{"a.json": 1}', b"\xff\xfe", b'{"a": {"b": "c"}}'])
def test_what_is_no_bundle_is_refused(bundle: bytes) -> None:
    with pytest.raises(CatalogError, match="not a catalog bundle"):
        snapshot_of(bundle)


@pytest.mark.parametrize(
    "path", ["/etc/x.json", "../x.json", "a/../../x.json", "offers/x.txt", "x", "C:\\x.json/../..", "", ".json/.."]
)
def test_a_bundle_writes_nowhere_else(path: str) -> None:
    with pytest.raises(CatalogError, match="may not hold"):
        snapshot_of(msgspec.json.encode({path: "{}"}))


def test_a_bundle_has_a_bounded_number_of_files() -> None:
    with pytest.raises(CatalogError, match="2001 files"):
        snapshot_of(msgspec.json.encode({f"{n}.json": "" for n in range(2001)}))


def test_a_broken_file_of_a_bundle_is_named() -> None:
    files = msgspec.json.decode(bundle_of(PACKAGED), type=dict[str, str])
    files["offers/lambda.json"] = "{"
    with pytest.raises(CatalogError, match=r"lambda\.json"):
        snapshot_of(msgspec.json.encode(files))
    del files["quantizations.json"]
    with pytest.raises(CatalogError, match=r"quantizations\.json|lambda\.json"):
        snapshot_of(msgspec.json.encode(files))
