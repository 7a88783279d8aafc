"""Every refusal is a problem document whose type this service describes."""

import logging
from typing import Any

import msgspec
import pytest
from httpx import Response
from litestar.testing import TestClient

from service.api.problems import STATUS_OF
from service.domain.errors import SizingError
from service.text import CATALOGS

MEMBERS = {"type", "title", "status", "detail", "instance", "errors"}
BODY = {"letter": "a", "input_tokens": 1}


def checked(client: TestClient, response: Response, status: int, code: str) -> dict[str, Any]:
    """The problem of a response, after holding its shape against RFC 9457 and the description of its type."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-language"] == "en"
    assert response.headers["x-request-id"]
    problem: dict[str, Any] = response.json()
    assert set(problem) == MEMBERS
    assert problem["status"] == status
    assert problem["type"] == f"/problems/{code}"
    for error in problem["errors"]:
        assert set(error) == {"code", "pointer", "message", "suggestions"}
        assert client.get(f"/problems/{error['code']}").status_code == 200
    described = client.get(problem["type"]).json()
    assert described["title"] == problem["title"]
    return problem


def test_unknown_paths_suggest_the_closest(client: TestClient) -> None:
    problem = checked(client, client.get("/v1/leters"), 404, "not_found")
    assert problem["errors"][0]["suggestions"][0] == "/v1/letters"
    assert problem["instance"] == "/v1/leters"


@pytest.mark.parametrize("path", ["/%ff%fe", "/%00", "/a b", "/'\"<>", "/" + "x" * 3000, "//", "/v1/letters/../.."])
def test_strange_paths_are_answered(client: TestClient, path: str) -> None:
    checked(client, client.get(path), 404, "not_found")


def test_wrong_methods_name_the_right_ones(client: TestClient) -> None:
    problem = checked(client, client.get("/v1/orders"), 405, "method_not_allowed")
    assert problem["errors"][0]["suggestions"] == ["OPTIONS", "POST"]
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        response = client.request(method, "/v1/letters")
        checked(client, response, 405, "method_not_allowed")
        assert response.headers["allow"] == "GET, HEAD, OPTIONS"


def test_options_and_head_are_answered(client: TestClient) -> None:
    response = client.options("/v1/letters")
    assert (response.status_code, response.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    head, got = client.head("/v1/letters"), client.get("/v1/letters")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]
    assert head.headers["content-length"] == str(len(got.content))
    assert client.head("/v1/orders").status_code == 405


def test_unknown_ids_are_404_in_a_path_and_422_in_a_body(client: TestClient) -> None:
    problem = checked(client, client.get("/v1/letters/q"), 404, "unknown_id")
    assert problem["errors"][0]["suggestions"] == ["a"]
    problem = checked(client, client.post("/v1/orders", json=BODY | {"letter": "q"}), 422, "unknown_id")
    assert problem["errors"][0] == {
        "code": "unknown_id",
        "pointer": "/letter",
        "message": "There is no problem of this name.",
        "suggestions": ["a", "b"],
    }


def test_impossible_combinations_are_422(client: TestClient) -> None:
    body = BODY | {"kind": "batch", "users": {"registered": 1}}
    problem = checked(client, client.post("/v1/orders", json=body), 422, "impossible_combination")
    assert problem["errors"][0]["pointer"] == "/users"


def test_unknown_query_parameters_are_422(client: TestClient) -> None:
    response = client.post("/v1/orders?explian=true&x=1", json=BODY)
    problem = checked(client, response, 422, "unknown_query_parameter")
    assert [(e["pointer"], e["suggestions"]) for e in problem["errors"]] == [("?explian", ["explain"]), ("?x", [])]
    checked(client, client.get("/health/live?x"), 422, "unknown_query_parameter")


def test_an_unexpected_error_shows_nothing_but_is_logged(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "service.errors"):
        response = client.post("/v1/orders", json=BODY | {"letter": "boom"}, headers={"x-request-id": "mine-1"})
    problem = checked(client, response, 500, "internal")
    assert "secret" not in response.text
    assert "mine-1" in problem["detail"]
    assert "a secret of the service" in caplog.text


def test_every_code_is_described(client: TestClient) -> None:
    listed = client.get("/problems").json()
    assert {kind["code"] for kind in listed["items"]} == set(STATUS_OF)
    assert listed["total"] == len(STATUS_OF)
    for kind in listed["items"]:
        assert client.get(kind["type"]).json() == kind
        assert f"problem_{kind['code']}_title" in CATALOGS["en"]
        assert f"problem_{kind['code']}_about" in CATALOGS["en"]
    checked(client, client.get("/problems/unknown"), 404, "unknown_id")


def test_every_mistake_of_the_domain_has_a_description() -> None:
    kinds = SizingError.__subclasses__()
    assert kinds
    assert {kind.code for kind in kinds} <= STATUS_OF.keys()


def test_a_host_that_is_none_is_a_problem(client: TestClient) -> None:
    checked(client, client.get("/health/live", headers={"host": "a b"}), 400, "bad_request")


def test_too_many_parameters_are_a_problem(client: TestClient) -> None:
    checked(client, client.get("/v1/letters?" + "&".join("starts=a" for _ in range(200))), 400, "bad_request")


def test_problem_documents_hold_no_number_that_json_lacks(client: TestClient) -> None:
    response = client.post(
        "/v1/orders", content=b'{"rate": -1e308, "input_tokens": 99999999999999999999, "letter": ""}'
    )
    assert response.status_code == 415
    response = client.post(
        "/v1/orders",
        content=b'{"rate": -1e308, "input_tokens": 99999999999999999999, "letter": ""}',
        headers={"content-type": "application/json"},
    )
    assert len(msgspec.json.decode(response.content)["errors"]) == 3
