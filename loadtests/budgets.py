"""The budgets of ``budgets.toml`` held against a run's result."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

BUDGETS = Path(__file__).with_name("budgets.toml")


class Judged(NamedTuple):
    """One budget and what was measured."""

    what: str
    measured: float
    bound: str
    kept: bool
    aim: bool
    """Without a say in the run's success."""

    @property
    def verdict(self) -> str:
        """One word."""
        if self.aim:
            return "met" if self.kept else "missed"
        return "ok" if self.kept else "BROKEN"


def judge(result: Mapping[str, Any], path: Path = BUDGETS) -> list[Judged]:
    """Each budget against the figure that it names."""
    judged = []
    for budget in tomllib.loads(path.read_text(encoding="utf-8"))["budget"]:
        measured: Any = result
        for name in budget["figure"].split("."):
            measured = measured[name]
        low, high = budget.get("at_least"), budget.get("at_most")
        kept = (low is None or measured >= low) and (high is None or measured <= high)
        bound = f">= {low:g}" if high is None else f"<= {high:g}"
        judged.append(Judged(budget["what"], float(measured), bound, kept, budget.get("aim", False)))
    return judged


def table(judged: Sequence[Judged]) -> str:
    """The budgets as lines of text."""
    width = max(len(row.what) for row in judged)
    return "\n".join(f"{row.what:<{width}}  {row.measured:>10.3f}  {row.bound:>8}  {row.verdict}" for row in judged)
