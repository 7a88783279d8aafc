"""The committed OpenAPI document is the one that the service serves."""

from pathlib import Path

import msgspec

from service.api.document import openapi_document, operations_of
from service.api.examples import read_examples
from service.app import create_app
from service.settings import read_settings

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
