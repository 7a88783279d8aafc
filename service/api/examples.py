"""Request and response pairs that documentation, tests and load tests share: ``openapi/examples/<name>.json``.

In a checkout they stand at the top level; a built package carries them beside this file.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
from litestar import Litestar
from litestar.testing import TestClient

_FOLDERS = (Path(__file__).parent / "examples", Path(__file__).parents[2] / "openapi" / "examples")


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of an operation and its answer."""

    operation: str
    """Operation id, e.g. ``estimate_vram_budget``."""
    summary: str
    request: dict[str, object] | None = None
    """The body."""
    parameters: dict[str, str | int | float | bool] = {}
    """Path and query parameters."""
    status: int = 200
    response: dict[str, object] | None = None
    """The answer, written by a run of the service, never by hand."""


@cache
def read_examples() -> dict[str, Example]:
    """Every example by its file's name."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    if folder is None:
        return {}
    return {path.stem: msgspec.json.decode(path.read_bytes(), type=Example) for path in sorted(folder.glob("*.json"))}


def write_answers(app: Litestar, folder: Path) -> Iterator[Path]:
    """Ask ``app`` every example of a folder, in process, and write the answers into the files; yields each path."""
    paths = {
        route_handler.opt["operation"].name: route_handler.opt["operation"].path
        for route in app.routes
        for route_handler in getattr(route, "route_handlers", ())
        if "operation" in route_handler.opt
    }
    with TestClient(app) as client:
        for path in sorted(folder.glob("*.json")):
            example = msgspec.json.decode(path.read_bytes(), type=Example)
            answer = client.post(paths[example.operation], json=example.request, params=example.parameters)
            answered = msgspec.structs.replace(example, status=answer.status_code, response=answer.json())
            path.write_bytes(msgspec.json.format(msgspec.json.encode(answered), indent=2) + b"\n")
            yield path
