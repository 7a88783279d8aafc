"""Every message of the code has its sentence, every sentence its message, and their values match."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.domain.message import Message
from service.text import CATALOGS, LANGUAGES, negotiate, render
from service.text.catalogs import read_catalog
from service.text.rendering import number

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted((ROOT / "service").rglob("*.py"))
DATA = sorted((ROOT / "service" / "catalog").rglob("*.json"))
ENGLISH = CATALOGS["en"]


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def message_calls() -> Iterator[tuple[str, ast.Call]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Message"
                and node.args
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def pattern_of(node: ast.JoinedStr) -> str:
    """An f-string as a regular expression."""
    return "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in node.values)


def test_every_message_of_the_code_has_its_sentence_and_values() -> None:
    seen = 0
    wrong: list[str] = []
    for place, call in message_calls():
        code = call.args[0]
        if isinstance(code, ast.JoinedStr):
            if not any(re.fullmatch(pattern_of(code), key) for key in ENGLISH):
                wrong.append(f"{place}: nothing matches {pattern_of(code)}")
            continue
        if not isinstance(code, ast.Constant):
            continue
        seen += 1
        if code.value not in ENGLISH:
            wrong.append(f"{place}: {code.value} has no sentence")
            continue
        given = call.args[1] if len(call.args) > 1 else ast.Dict([], [])
        if isinstance(given, ast.Dict) and all(isinstance(key, ast.Constant) for key in given.keys):
            names = {key.value for key in given.keys if isinstance(key, ast.Constant)}
            if names != fields_of(ENGLISH[code.value]):
                wrong.append(f"{place}: {code.value} is given {names}, says {fields_of(ENGLISH[code.value])}")
    assert seen > 20
    assert not wrong, "\n".join(wrong)


def test_no_sentence_is_unused() -> None:
    words: set[str] = set()
    patterns: set[str] = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            elif isinstance(node, ast.JoinedStr) and re.search(r"[a-z]{3}", pattern_of(node)):
                patterns.add(pattern_of(node))
    for path in DATA:
        words.update(re.findall(r'"([a-z0-9_]+)"', path.read_text()))
    used = re.compile("|".join(f"(?:{pattern})" for pattern in sorted(patterns)))
    assert not [code for code in ENGLISH if code not in words and not used.fullmatch(code)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_languages_have_the_same_codes_and_values(language: str) -> None:
    catalog = CATALOGS[language]
    assert catalog.keys() == ENGLISH.keys()
    for code, template in catalog.items():
        assert fields_of(template) == fields_of(ENGLISH[code]), code
        assert re.fullmatch(r"[a-z0-9_]+", code)
        assert all(name.isidentifier() for name in fields_of(template)), code


def test_a_code_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": "1"}')
    (tmp_path / "b.json").write_text('{"x": "2"}')
    with pytest.raises(ValueError, match=r"b\.json: already in another file: x"):
        read_catalog(tmp_path)
    (tmp_path / "b.json").write_text('{"y": {}}')
    with pytest.raises(ValueError, match=r"b\.json"):
        read_catalog(tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (-1234, "-1,234"),
        (0.5, "0.5"),
        (1 / 3, "0.3333"),
        (999.96, "1,000"),
        (1234.5, "1,234"),
        (80e9, "80,000,000,000"),
        (0.00001234, "0.00001234"),
        (0.0, "0"),
        (float("inf"), "-"),
        (float("nan"), "-"),
    ],
)
def test_numbers_are_written_for_reading(value: float, text: str) -> None:
    assert number(value) == text


def test_a_message_may_hold_a_message() -> None:
    inner = Message("fault_at_least", {"limit": 1000})
    assert render(Message("fault_many", {"count": 2, "first": inner}), "en") == (
        "2 faults were found. First: Must be at least 1,000."
    )


def test_braces_of_a_caller_are_only_text() -> None:
    assert render(Message("fault_unknown_field", {"field": "{limit}"}), "en") == "Unknown field {limit}."


def test_what_is_missing_shows_the_code() -> None:
    assert render(Message("no_such_code"), "en") == "no_such_code"
    assert render(Message("fault_at_least"), "en") == "fault_at_least"


@pytest.mark.parametrize(
    "header", [None, "", "en", "en-GB,fr;q=0.9", "fr, *;q=0.1", "en;q=x", "q=1;;,", "x" * 5000, "en;q=9", "en;q=0"]
)
def test_english_is_always_at_hand(header: str | None) -> None:
    assert negotiate(header) == "en"
