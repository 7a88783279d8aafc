"""Request ids, access log, metrics, security headers, health."""

import logging
from typing import Any

import orjson
import pytest
from litestar.testing import TestClient

from service.api.revisions import Revisions
from service.log import JsonLines

BODY = {"letter": "a", "input_tokens": 1}


def test_a_request_keeps_a_harmless_id_and_gets_one_otherwise(client: TestClient) -> None:
    assert client.get("/health/live", headers={"x-request-id": "abc.DEF_1-2"}).headers["x-request-id"] == "abc.DEF_1-2"
    made = [
        client.get("/health/live", headers={"x-request-id": bad}).headers["x-request-id"] for bad in ("a b", "x" * 65)
    ]
    assert len(set(made)) == 2
    assert all(len(name) == 16 for name in made)


@pytest.mark.parametrize("path", ["/v1/letters", "/health/live", "/nope", "/docs"])
def test_every_answer_has_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_the_access_log_has_a_line_without_query_and_body(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "service.access"):
        client.post("/v1/orders?explain=true", json=BODY, headers={"x-request-id": "r-1"})
    (record,) = [record for record in caplog.records if record.name == "service.access"]
    line = orjson.loads(JsonLines().format(record))
    assert line["level"] == "info"
    assert {k: line[k] for k in ("request_id", "method", "route", "path", "status")} == {
        "request_id": "r-1",
        "method": "POST",
        "route": "/v1/orders",
        "path": "/v1/orders",
        "status": 200,
    }
    assert line["duration_ms"] > 0
    assert line["sent_bytes"] > 0
    assert "explain" not in str(line)


def metric(text: str, sample: str) -> float:
    found = [line for line in text.splitlines() if line.startswith(sample + " ")]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


def test_requests_are_counted_by_route_not_by_path(client: TestClient) -> None:
    for path in ("/v1/letters/a", "/v1/letters/b", "/v1/letters/q", "/no/1", "/no/2"):
        client.get(path)
    response = client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = response.text
    assert metric(text, 'http_requests_total{method="GET",route="/v1/letters/{id}",status="200"}') == 2
    assert metric(text, 'http_requests_total{method="GET",route="/v1/letters/{id}",status="404"}') == 1
    assert metric(text, 'http_requests_total{method="GET",route="unmatched",status="404"}') == 2
    assert metric(text, 'http_request_duration_seconds_count{method="GET",route="/v1/letters/{id}"}') == 3
    assert "/no/1" not in text


def test_unknown_methods_do_not_become_labels(client: TestClient) -> None:
    for index in range(3):
        assert client.request(f"BREW{index}", "/health/live").status_code == 405
    assert (
        metric(client.get("/metrics").text, 'http_requests_total{method="other",route="unmatched",status="405"}') == 3
    )


def test_readiness_tells_starting_from_ready(client: TestClient, revisions: Revisions[Any]) -> None:
    assert client.get("/health/live").json() == {"status": "alive"}
    ready = client.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    revisions.__init__()  # type: ignore[misc] - as before the first snapshot
    starting = client.get("/health/ready")
    assert (starting.status_code, starting.json()["status"]) == (503, "starting")
    refused = client.post("/v1/orders", json=BODY)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["type"] == "/problems/unavailable"
    assert client.get("/problems").status_code == 200
