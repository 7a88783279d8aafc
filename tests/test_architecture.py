"""The import direction, the purity of the domain and the size of files, as rules that fail the build."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "service"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = ("domain", "catalog", "store", "hub", "api")
"""Each layer may import itself and those before it."""

PURE_IMPORTS = frozenset({
    "bisect", "collections", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "itertools", "math",
    "msgspec", "numpy", "re", "service", "statistics", "string", "typing",
})  # fmt: skip
"""All that the domain may import: no I/O, no clock, no environment, no logging."""

MOST_LINES = 400


def imports_of(path: Path) -> set[str]:
    """Dotted names that a module imports, wherever in it the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def layer_of(dotted: str) -> str | None:
    """Layer of ``service.<layer>...``, or None for the composition root and other packages."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "service" and parts[1] in LAYERS else None


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_inwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0]
    if own not in LAYERS:
        return
    allowed = LAYERS[: LAYERS.index(own) + 1]
    for dotted in imports_of(path):
        layer = layer_of(dotted)
        assert layer is None or layer in allowed, f"{own} imports {dotted}"
        assert not dotted.startswith(("service.app", "service.settings")) or own not in {"domain", "catalog"}, dotted


@pytest.mark.parametrize("path", sorted((PACKAGE / "domain").rglob("*.py")), ids=lambda p: p.name)
def test_the_domain_is_pure(path: Path) -> None:
    for dotted in imports_of(path):
        top = dotted.split(".", maxsplit=1)[0]
        assert top in PURE_IMPORTS, f"the domain imports {dotted}"
        if top == "service":
            assert layer_of(dotted) in {"domain", None}, dotted
    source = path.read_text()
    for clock in ("datetime.now", "date.today", "utcnow", "time.time"):
        assert clock not in source, f"{path.name} reads the clock"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_hold_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES
