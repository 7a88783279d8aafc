"""The OpenAPI document says what the decoder does."""

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from litestar.testing import TestClient

from service.api.documentation import PAGE_POLICY


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_every_operation_is_documented_once(document: dict[str, Any]) -> None:
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    assert {"place_order", "list_letters", "read_letter", "is_alive", "is_ready", "read_openapi"} <= set(ids)
    assert all(operation["summary"] for operation in operations)
    assert {tag for operation in operations for tag in operation["tags"]} <= {tag["name"] for tag in document["tags"]}
    assert document["openapi"] == "3.1.0"


def test_schemas_carry_bounds_descriptions_and_closedness(document: dict[str, Any]) -> None:
    order = document["components"]["schemas"]["Order"]
    assert order["additionalProperties"] is False
    assert order["description"] == "What is asked for."
    assert order["properties"]["input_tokens"] == {"type": "integer", "minimum": 1, "maximum": 10_000_000}
    assert order["properties"]["rate"]["description"] == "Requests per second."
    assert order["properties"]["weights"]["items"] == {"type": "number", "minimum": 0}
    assert "LetterPage" in document["components"]["schemas"]
    assert "OrderQuery" not in document["components"]["schemas"]


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        node: Any = document
        for step in reference.split("/"):
            node = node[step]


def test_parameters_are_documented_from_the_query_record(document: dict[str, Any]) -> None:
    parameters = {p["name"]: p for p in document["paths"]["/v1/letters"]["get"]["parameters"]}
    assert set(parameters) == {"limit", "cursor", "catalog_revision", "starts"}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}
    assert parameters["cursor"]["schema"] == {"type": "string", "maxLength": 500}
    assert parameters["starts"]["schema"]["type"] == "array"
    (by_id,) = document["paths"]["/v1/letters/{id}"]["get"]["parameters"]
    assert (by_id["in"], by_id["required"]) == ("path", True)


def test_errors_follow_from_the_signature(document: dict[str, Any]) -> None:
    responses = document["paths"]["/v1/orders"]["post"]["responses"]
    assert set(responses) == {"200", "400", "410", "413", "414", "415", "422", "503"}
    of_letter = document["paths"]["/v1/letters/{id}"]["get"]["responses"]
    assert set(of_letter) == {"200", "304", "400", "404", "414", "422", "503"}
    problem = document["components"]["responses"]["Problem422"]
    assert set(problem["content"]) == {"application/problem+json"}


@pytest.mark.parametrize(
    "body",
    [
        {"letter": "a", "input_tokens": 1},
        {"letter": "a", "input_tokens": 1.0, "rate": 2, "users": None, "length": {"registered": 3}},
        {"letter": "a"},
        {"letter": "a", "input_tokens": 0},
        {"letter": "", "input_tokens": 1},
        {"letter": "a", "input_tokens": 1, "more": 1},
        {"letter": "a", "input_tokens": 1, "rate": 0},
        {"letter": "a", "input_tokens": 1, "weights": [-1]},
        {"letter": "a", "input_tokens": 1, "users": {"registered": 1, "x": 1}},
        {"letter": "a", "input_tokens": 1, "labels": {"x": "y"}},
        {"letter": "a", "input_tokens": "1"},
        {"letter": "a", "input_tokens": True},
    ],
)
def test_schema_and_decoder_agree(client: TestClient, document: dict[str, Any], body: dict[str, Any]) -> None:
    schema = {"$ref": "#/components/schemas/Order", "components": document["components"]}
    accepted = client.post("/v1/orders", json=body).status_code == 200
    assert accepted == jsonschema_rs.is_valid(schema, body)


def test_answers_match_their_schema(client: TestClient, document: dict[str, Any]) -> None:
    def valid(name: str, value: object) -> bool:
        return jsonschema_rs.is_valid(
            {"$ref": f"#/components/schemas/{name}", "components": document["components"]}, value
        )

    assert valid("Ordered", client.post("/v1/orders", json={"letter": "a", "input_tokens": 1}).json())
    assert valid("LetterPage", client.get("/v1/letters?limit=2").json())
    assert valid("Problem", client.get("/v1/letters/q").json())
    assert valid("ProblemKinds", client.get("/problems").json())
    assert valid("Readiness", client.get("/health/ready").json())


def test_the_docs_page_needs_nothing_from_outside(client: TestClient) -> None:
    response = client.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert not re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", response.text)
    assert not re.findall(r"\s(?:style|on\w+)=\"", response.text)
