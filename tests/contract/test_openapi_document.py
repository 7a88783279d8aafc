"""The committed OpenAPI document is the one that the service serves."""

from pathlib import Path

import msgspec
import pytest

from service.api.document import openapi_document, operations_of
from service.api.examples import read_examples
from service.api.problems import STATUS_OF
from service.app import create_app
from service.domain.message import Message
from service.settings import read_settings
from service.text import render

COMMITTED = Path(__file__).resolve().parents[2] / "openapi" / "openapi.json"


def test_the_committed_document_is_current() -> None:
    document = openapi_document(create_app(read_settings({})))
    assert msgspec.json.decode(COMMITTED.read_bytes()) == document, (
        "export it: python -m service openapi > openapi/openapi.json"
    )


def test_every_example_belongs_to_an_operation() -> None:
    shown = {
        (name, declared.name) for declared in operations_of(create_app(read_settings({}))) for name in declared.examples
    }
    assert {(name, example.operation) for name, example in read_examples().items()} == shown


DOCUMENT = msgspec.json.decode(COMMITTED.read_bytes())
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_with_a_body_shows_one_and_its_answer(name: str) -> None:
    operation = OPERATIONS[name]
    if name.startswith("GET "):
        assert "requestBody" not in operation
        return
    shown = operation["requestBody"]["content"]["application/json"]["examples"]
    answers = operation["responses"]["200"]["content"]["application/json"]["examples"]
    assert shown
    assert shown.keys() == answers.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_refusal_is_documented_as_a_problem(name: str) -> None:
    responses = OPERATIONS[name]["responses"]
    refusals = {status: answer for status, answer in responses.items() if status[0] in "45"}
    assert {"400", "414", "422"} <= refusals.keys()
    for status, answer in refusals.items():
        if name == "GET /health/ready" and status == "503":  # the same document as with 200
            continue
        assert answer == {"$ref": f"#/components/responses/Problem{status}"}
    components = msgspec.json.decode(COMMITTED.read_bytes())["components"]
    for status in refusals:
        if f"Problem{status}" in components["responses"]:
            described = components["responses"][f"Problem{status}"]
            assert described["content"].keys() == {"application/problem+json"}
            assert described["content"]["application/problem+json"]["schema"] == {
                "$ref": "#/components/schemas/Problem"
            }


def test_every_code_of_a_problem_has_a_page_in_words() -> None:
    for code in STATUS_OF:
        for part in ("title", "about"):
            message = Message(f"problem_{code}_{part}")
            assert render(message, "en") != message.code
