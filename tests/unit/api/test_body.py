"""Bodies: what is read, what is refused, and with which words."""

import msgspec
import pytest
from httpx import Response
from litestar.testing import TestClient

from service.api.body import BODY_LIMIT_BYTES, DEEPEST_NESTING

GOOD = {"letter": "a", "input_tokens": 10}


def post(client: TestClient, body: object, path: str = "/v1/orders", **headers: str) -> Response:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return client.post(path, content=raw, headers={"content-type": "application/json"} | headers)


def faults_of(response: Response) -> list[tuple[str, str]]:
    assert response.headers["content-type"] == "application/problem+json"
    return [(error["code"], error["pointer"]) for error in response.json()["errors"]]


def test_a_good_body_is_answered_with_its_provenance(client: TestClient) -> None:
    response = post(client, GOOD)
    assert response.status_code == 200
    assert response.json() == {
        "letter": "a",
        "input_tokens": 10,
        "rate": 1.0,
        "explained": False,
        "note": "Must be at least 1,234.",
        "provenance": {
            "catalog_revision": "rev-1",
            "profile_revision": "profiles-1",
            "service_version": response.json()["provenance"]["service_version"],
            "evaluated_on": "2026-12-01",
        },
    }
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-language"] == "en"
    assert response.headers["vary"] == "accept-language"
    assert "etag" not in response.headers


def test_the_caller_may_fix_the_day(client: TestClient) -> None:
    assert post(client, GOOD | {"evaluated_on": "2026-01-31"}).json()["provenance"]["evaluated_on"] == "2026-01-31"
    assert faults_of(post(client, GOOD | {"evaluated_on": "tomorrow"})) == [("invalid_value", "/evaluated_on")]


@pytest.mark.parametrize("number", [b"256", b"256.0", b"2.56e2", b"25600e-2"])
def test_whole_numbers_may_be_written_as_floats(client: TestClient, number: bytes) -> None:
    response = post(client, b'{"letter": "a", "input_tokens": ' + number + b"}")
    assert response.status_code == 200
    assert response.json()["input_tokens"] == 256


@pytest.mark.parametrize("value", ["10", 10.5, True, None, [10], {}])
def test_nothing_is_converted(client: TestClient, value: object) -> None:
    response = post(client, {"letter": "a", "input_tokens": value})
    assert response.status_code == 422
    assert faults_of(response) == [("wrong_type", "/input_tokens")]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b"hello", "not_json"),
        (b'{"letter": "a", "input_tokens": NaN}', "not_json"),
        (b'{"letter": "a", "input_tokens": Infinity}', "not_json"),
        (b'{"letter": "\xff", "input_tokens": 1}', "not_json"),
        (b'{"letter": "\\ud800", "input_tokens": 1}', "not_json"),
        (b"\xef\xbb\xbf{}", "not_json"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "too_deep"),
        (b"[" * (DEEPEST_NESTING + 1) + b"]" * (DEEPEST_NESTING + 1), "too_deep"),
    ],
)
def test_what_is_not_json_is_a_400(client: TestClient, raw: bytes, code: str) -> None:
    response = post(client, raw)
    assert response.status_code == 400
    assert faults_of(response) == [(code, "")]


def test_an_empty_body_is_a_400_even_without_media_type(client: TestClient) -> None:
    response = client.post("/v1/orders")
    assert response.status_code == 400
    assert faults_of(response) == [("not_json", "")]


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * DEEPEST_NESTING + b"]" * DEEPEST_NESTING,
        b'{"letter": "' + b"[" * 200 + b'", "input_tokens": 1}',
        b'{"letter": "a", "input_tokens": 1, "parts": [' + b"{}," * 200 + b"{}]}",
    ],
)
def test_depth_is_counted_not_brackets(client: TestClient, raw: bytes) -> None:
    assert post(client, raw).status_code == 422


@pytest.mark.parametrize(
    ("number", "pointer"),
    [(b"1e999", ""), (b"9" * 5000, ""), (b"9" * 400, "/rate"), (b"-1e300", "/rate"), (b"0", "/rate")],
)
def test_numbers_beyond_range_are_faults(client: TestClient, number: bytes, pointer: str) -> None:
    response = post(client, b'{"letter": "a", "input_tokens": 1, "rate": ' + number + b"}")
    assert response.status_code == 422
    assert faults_of(response) == [("out_of_range", pointer)]


def test_the_last_of_two_equal_keys_wins(client: TestClient) -> None:
    assert post(client, b'{"letter": "zz", "letter": "b", "input_tokens": 1}').json()["letter"] == "b"


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=UTF-8", "Application/JSON", "application/vnd.x+json"]
)
def test_json_media_types_are_accepted(client: TestClient, media_type: str) -> None:
    assert post(client, GOOD, **{"content-type": media_type}).status_code == 200


@pytest.mark.parametrize(
    "media_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=utf-16"],
)
def test_other_media_types_are_a_415(client: TestClient, media_type: str) -> None:
    response = post(client, GOOD, **{"content-type": media_type})
    assert response.status_code == 415
    assert faults_of(response) == [("unsupported_media_type", "")]
    assert response.headers["accept"] == "application/json"


def test_encoded_bodies_are_a_415(client: TestClient) -> None:
    assert post(client, GOOD, **{"content-encoding": "gzip"}).status_code == 415
    assert post(client, GOOD, **{"content-encoding": "identity"}).status_code == 200


def test_bodies_beyond_the_limit_are_a_413(client: TestClient) -> None:
    response = post(client, b" " * (BODY_LIMIT_BYTES + 1))
    assert response.status_code == 413
    assert faults_of(response) == [("too_large", "")]
    assert "1,048,576" in response.json()["detail"]


def test_the_limit_holds_for_chunked_bodies_and_by_route(client: TestClient) -> None:
    response = client.post("/v1/small", content=iter([b'{"id": "', b"x" * 60, b'"}']))
    assert response.status_code == 413
    assert post(client, {"id": "x"}, "/v1/small").status_code == 200


def test_all_faults_of_a_body_come_together(client: TestClient) -> None:
    body = {
        "leter": "a",
        "input_tokens": 0,
        "rate": "fast",
        "users": {"registered": 1.5, "active_share": 2, "who/knows~": 1},
        "length": {"active_share": True},
        "kind": "batsh",
        "weights": [1, -1, "x"],
        "parts": [{"registered": 1}, {}, 3],
        "labels": {"a": 1, "b": "2"},
    }
    response = post(client, body)
    assert response.status_code == 422
    assert sorted(faults_of(response)) == sorted(
        [
            ("unknown_field", "/leter"),
            ("missing_field", "/letter"),
            ("out_of_range", "/input_tokens"),
            ("wrong_type", "/rate"),
            ("wrong_type", "/users/registered"),
            ("out_of_range", "/users/active_share"),
            ("unknown_field", "/users/who~1knows~0"),
            ("wrong_type", "/length/active_share"),
            ("missing_field", "/length/registered"),
            ("invalid_value", "/kind"),
            ("out_of_range", "/weights/1"),
            ("wrong_type", "/weights/2"),
            ("missing_field", "/parts/1/registered"),
            ("wrong_type", "/parts/2"),
            ("wrong_type", "/labels/b"),
        ]
    )
    problem = response.json()
    assert problem["type"] == "/problems/invalid_request"
    assert problem["detail"].startswith("15 faults were found. First: ")
    by_pointer = {error["pointer"]: error for error in problem["errors"]}
    assert by_pointer["/leter"]["suggestions"][0] == "letter"
    assert by_pointer["/kind"]["suggestions"] == ["batch"]
    assert by_pointer["/rate"]["message"] == "Expected number; got string."


def test_a_hostile_body_gets_a_short_answer(client: TestClient) -> None:
    body = {f"field{i}" * 8: i for i in range(2_000)} | {"x" * 100_000: 1}
    response = post(client, body)
    assert response.status_code == 422
    assert len(response.json()["errors"]) == 50
    assert len(response.content) < 20_000
