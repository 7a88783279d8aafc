"""The documents are true: what they name exists, and the README's answers are the service's own.

``PYTHONPATH=. python tests/test_documents.py`` writes the README's answers anew, keeping which fields they show.
"""

import json
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from litestar.testing import TestClient

from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
HIDDEN = re.compile(r"(^|/)[._]")
FILES = [path for path in ROOT.rglob("*") if not HIDDEN.search(path.relative_to(ROOT).as_posix())]
DOCUMENTS = sorted(path for path in FILES if path.name == "README.md")
NAMES = frozenset(path.name for path in FILES)
FOLDERS = frozenset(path.name for path in ROOT.iterdir() if path.is_dir()) | {".", ".."}
OWN_SUFFIXES = (".py", ".sh", ".html", ".toml")
"""A bare name with another ending may be somebody else's: ``config.json``."""

FENCE = re.compile(r"^```\w*\n.*?^```$", re.MULTILINE | re.DOTALL)
ANSWERED = re.compile(r"(?P<call>```sh\ncurl [^`]*```\n```json\n)(?P<answer>.*?)(?=```)", re.DOTALL)
WIDTH = 130


def section(title: str) -> str:
    """One part of the README, from its heading to the next."""
    return README.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def named_paths(document: Path) -> Iterator[str]:
    """Targets of links, and what looks like a path of this repository in code spans and commands."""
    text = document.read_text()
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"\w+:", target):
            yield target
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    commands = [line for block in FENCE.findall(text) if block.startswith("```sh") for line in block.splitlines()[1:-1]]
    for word in " ".join(spans + commands).split():
        path = word.strip(",;:").split("=")[-1]
        first, *further = path.split("/")
        if (
            path.endswith(OWN_SUFFIXES)
            if not further
            else first in FOLDERS or (first and (document.parent / first).is_dir())
        ):
            yield path


def exists(path: str, document: Path) -> bool:
    """Whether a path is there, seen from the document or from the root; ``<name>`` and ``*`` stand for any name."""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}", "*", path).rstrip("/")
    if "*" in pattern:
        return any(True for folder in (ROOT, document.parent) for _ in folder.glob(pattern))
    bare = "/" not in path and path in NAMES
    return bare or (document.parent / pattern).exists() or (ROOT / pattern).exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    assert [path for path in named_paths(document) if not exists(path, document)] == []


def test_paths_are_found_in_documents() -> None:
    assert len(DOCUMENTS) >= 15
    assert {"deploy/run.sh", "loadtests/run.py", "service/catalog/data"} <= set(named_paths(README))
    assert not exists("service/missing.py", README)
    assert not exists("service/<missing>.none", README)


def test_the_top_folders_have_a_document() -> None:
    folders = [README.parent / name for name in FOLDERS if not HIDDEN.match(name)]
    assert [folder.name for folder in folders if not (folder / "README.md").is_file()] == []


def served_operations() -> dict[str, dict[str, Any]]:
    paths = json.loads((ROOT / "openapi" / "openapi.json").read_text())["paths"]
    return {f"{method.upper()} {path}": found for path, methods in paths.items() for method, found in methods.items()}


def test_the_table_of_endpoints_is_complete() -> None:
    assert set(re.findall(r"`((?:GET|POST|PUT|DELETE) [^`]+)`", section("Endpoints"))) == set(served_operations())


def test_what_is_not_there_yet_is_not_there(api: Any) -> None:  # noqa: ANN401 - the fixture of conftest.py
    missing = section("Limits and traps").split("- Not there yet:")[1]
    names = {re.sub(r"\W+true|\W", "", name.replace("-", "_")) for name in re.findall(r"`([^`]+)`", missing)}
    operations = served_operations()
    there = {word.replace("-", "_") for operation in operations for word in re.split(r"[ /]", operation)}
    there |= {parameter["name"] for found in operations.values() for parameter in found.get("parameters", [])}
    command = next(line for line in commands() if "/recommendations" in line)
    there |= set(answer_of(api.client, call_of(command)))
    assert names
    assert names & there == set()


def test_the_table_of_settings_is_complete() -> None:
    read = set(re.findall(r'read\("([A-Z_]+)"', (ROOT / "service" / "settings.py").read_text()))
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", section("Configuration"), re.MULTILINE)) == read


def commands() -> list[str]:
    """The curl commands of the README."""
    return re.findall(r"^curl [^`]*", README.read_text(), re.MULTILINE)


class Call(NamedTuple):
    """A request that the README shows."""

    path: str
    body: dict[str, Any] | None


def call_of(command: str) -> Call:
    words = shlex.split(command)
    address = next(word for word in words if word.startswith("http://127.0.0.1:8000/"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    return Call(address.removeprefix("http://127.0.0.1:8000"), body)


def answer_of(client: TestClient[Any], call: Call) -> Any:  # noqa: ANN401 - JSON
    response = client.get(call.path) if call.body is None else client.post(call.path, json=call.body)
    assert response.status_code == 200, f"{call.path}: {response.text}"
    return response.json()


def abridged(shown: Any, real: Any) -> Any:  # noqa: ANN401 - JSON
    """The fields and items of ``real`` that ``shown`` shows, with numbers as people read them."""
    match shown, real:
        case dict(), dict():
            return {name: abridged(value, real[name]) for name, value in shown.items()}
        case list(), list():
            by_provider = {item["provider"]: item for item in real if isinstance(item, dict) and "provider" in item}
            return [
                abridged(item, by_provider[item["provider"]] if by_provider else real[place])
                for place, item in enumerate(shown)
            ]
        case _, dict() | list():
            return abridged(real, real)
        case _, float() if abs(real) >= 1000 or real.is_integer():
            return round(real)
        case _, float():
            return float(f"{real:.4g}")
    return real


def pretty(value: Any, depth: int = 0) -> str:  # noqa: ANN401 - JSON
    """JSON in as few lines as fit the width."""
    line = json.dumps(value, ensure_ascii=False)
    if depth + len(line) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    if isinstance(value, list):
        ends, parts = "[]", [pretty(item, depth + 1) for item in value]
    else:
        ends, parts = "{}", [f"{json.dumps(name)}: {pretty(item, depth + 1)}" for name, item in value.items()]
    lines = [parts[0]]
    for part in parts[1:]:
        joined = f"{lines[-1]}, {part}"
        if "\n" in joined or depth + len(joined) >= WIDTH:
            lines.append(part)
        else:
            lines[-1] = joined
    return ends[0] + f",\n{' ' * (depth + 1)}".join(lines) + ends[1]


def rewritten(text: str, ask: Callable[[Call], Any]) -> str:
    """The README with the service's answers in place of those it shows."""

    def answered(found: re.Match[str]) -> str:
        command = found["call"].split("\n", 1)[1].split("```")[0]
        return found["call"] + pretty(abridged(json.loads(found["answer"]), ask(call_of(command)))) + "\n"

    return ANSWERED.sub(answered, text)


def test_every_request_of_the_readme_is_answered(api: Any) -> None:  # noqa: ANN401
    assert len(commands()) >= 5
    for command in commands():
        answer_of(api.client, call_of(command))


def test_the_answers_of_the_readme_are_the_service_s_own(api: Any) -> None:  # noqa: ANN401
    text = README.read_text()
    assert len(ANSWERED.findall(text)) == 5
    assert rewritten(text, lambda call: answer_of(api.client, call)) == text, (
        "write them anew: PYTHONPATH=. python tests/test_documents.py"
    )


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as folder,
        TestClient(create_app(Settings(store_path=Path(folder) / "store.sqlite"))) as client,
    ):
        README.write_text(rewritten(README.read_text(), lambda call: answer_of(client, call)))
