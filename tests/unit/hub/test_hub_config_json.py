"""Configs that strangers write."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.hub.config_json import parse_config


def test_numbers_that_json_does_not_have_are_none() -> None:
    text = b'{"time_step_limit": [0.0, Infinity], "a": NaN, "b": -Infinity, "c": 1e999, "d": 1e-3, "e": 12}'
    assert parse_config(text) == {"time_step_limit": [0.0, None], "a": None, "b": None, "c": None, "d": 0.001, "e": 12}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        b'"text"',
        b"<html>",
        b'{"a": \xff}',
        b'{"a": "\\ud800"}',
        b'{"n": ' + b"9" * 30 + b"}",
        b'{"n": ' + b"9" * 5000 + b"}",
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_what_no_reader_could_handle_is_no_config(text: bytes) -> None:
    assert parse_config(text) is None


@settings(derandomize=True, database=None)
@given(st.dictionaries(st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text() | st.floats()))
def test_what_is_read_can_be_kept(config: dict[str, object]) -> None:
    parsed = parse_config(json.dumps(config).encode())
    if parsed is not None:
        assert msgspec.json.decode(msgspec.json.encode(parsed)) == parsed
