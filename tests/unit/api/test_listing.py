"""Lists: pages, cursors, revisions, tags."""

from typing import Any

import pytest
from litestar.testing import TestClient

from service.api.conditional import entity_tag, matches
from service.api.revisions import Revisions


def test_a_list_has_items_total_and_cursor(client: TestClient) -> None:
    listed = client.get("/v1/letters").json()
    assert [item["id"] for item in listed["items"]] == ["a", "b", "boom", "c/1", "dd", "de"]
    assert (listed["total"], listed["next_cursor"]) == (6, None)
    assert listed["provenance"]["catalog_revision"] == "rev-1"


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 500])
def test_pages_add_up_to_the_list(client: TestClient, limit: int) -> None:
    found: list[str] = []
    params: dict[str, Any] = {"limit": limit}
    while True:
        listed = client.get("/v1/letters", params=params).json()
        assert 1 <= len(listed["items"]) <= limit
        assert listed["total"] == 6
        found += [item["id"] for item in listed["items"]]
        if listed["next_cursor"] is None:
            break
        params["cursor"] = listed["next_cursor"]
    assert found == ["a", "b", "boom", "c/1", "dd", "de"]


@pytest.mark.parametrize(("limit", "code"), [("0", "out_of_range"), ("501", "out_of_range"), ("x", "wrong_type")])
def test_limits_are_checked(client: TestClient, limit: str, code: str) -> None:
    response = client.get("/v1/letters", params={"limit": limit})
    assert response.status_code == 422
    assert [(e["code"], e["pointer"]) for e in response.json()["errors"]] == [(code, "?limit")]


def test_parameters_that_are_lists_may_be_repeated_others_not(client: TestClient) -> None:
    assert client.get("/v1/letters?starts=a&starts=d").json()["total"] == 3
    response = client.get("/v1/letters?limit=1&limit=2")
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "?limit"


def test_a_cursor_keeps_its_revision(client: TestClient, revisions: Revisions[Any]) -> None:
    first = client.get("/v1/letters?limit=5").json()
    newer = type(revisions.current)("rev-2", ("z",))
    revisions.publish(newer)
    second = client.get("/v1/letters", params={"limit": 5, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in second["items"]] == ["de"]
    assert second["provenance"]["catalog_revision"] == "rev-1"
    assert client.get("/v1/letters").json()["total"] == 1
    revisions.publish(type(newer)("rev-3", ("z",)))
    gone = client.get("/v1/letters", params={"limit": 5, "cursor": first["next_cursor"]})
    assert gone.status_code == 410
    assert gone.json()["type"] == "/problems/revision_gone"
    assert client.get("/v1/letters?catalog_revision=rev-1").status_code == 410
    assert client.get("/v1/letters?catalog_revision=rev-2").status_code == 200


@pytest.mark.parametrize("cursor", ["", "x", "====", "bm90IGpzb24", "WyJhIiwiYiIsMV0", "é", "WyJyZXYtMSIsImEiLC0xXQ"])
def test_foreign_cursors_are_refused(client: TestClient, cursor: str) -> None:
    response = client.get("/v1/letters", params={"cursor": cursor})
    assert response.status_code in {410, 422}
    assert response.json()["errors"][0]["code"] in {"invalid_value", "revision_gone"}


def test_a_cursor_fits_only_its_filters_and_revision(client: TestClient) -> None:
    cursor = client.get("/v1/letters?limit=1&starts=d").json()["next_cursor"]
    assert client.get("/v1/letters", params={"cursor": cursor, "starts": "d"}).status_code == 200
    assert client.get("/v1/letters", params={"cursor": cursor}).status_code == 422
    response = client.get("/v1/letters", params={"cursor": cursor, "starts": "d", "catalog_revision": "rev-0"})
    assert response.json()["errors"][0]["code"] == "impossible_combination"


@pytest.mark.parametrize("path", ["/v1/letters/c/1", "/v1/letters/c%2F1"])
def test_ids_may_hold_slashes(client: TestClient, path: str) -> None:
    assert client.get(path).json() == {"id": "c/1"}


def test_a_current_copy_is_a_304(client: TestClient) -> None:
    for path in ("/v1/letters", "/v1/letters/a", "/openapi.json", "/docs", "/problems"):
        first = client.get(path)
        again = client.get(path, headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["cache-control"] == "no-cache"
        assert "content-type" not in again.headers
        assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


def test_tags_compare_as_the_standard_says() -> None:
    tag = entity_tag(b"body")
    assert tag == entity_tag(b"body") != entity_tag(b"other")
    assert matches("*", tag)
    assert matches(f"W/{tag}", tag)
    assert not matches(tag.strip('"'), tag)
    assert not matches("", tag)
