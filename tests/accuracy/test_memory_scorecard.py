"""The scorecard's figures, as bounds: verdicts, capacities, coverage of the intervals, and that the page is current."""

import importlib.util
import json
import sys
from pathlib import Path
from statistics import mean, median
from types import ModuleType

HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


card = _load("memory_scorecard")
ENGINES = Path("service/catalog/data/engines")


def test_the_page_is_current() -> None:
    again = "write it: PYTHONPATH=. python tests/accuracy/memory_scorecard.py"
    assert card.PAGE.read_text() == card.page(), again


def test_the_engine_files_hold_the_residuals() -> None:
    found = card.found_residuals()
    for engine in card.residuals.BANDS:
        written = json.loads((ENGINES / f"{engine}.json").read_text())["residuals"]
        again = card.residuals.file_rows(found, engine, card.AS_OF)
        assert len(written) == len(again), engine
        for old, new in zip(written, again, strict=True):
            assert old | {"share_of_memory": 0} == new | {"share_of_memory": 0}, engine
            assert abs(old["share_of_memory"] - new["share_of_memory"]) <= 0.2 * new["share_of_memory"], engine


def test_capacity() -> None:
    found = [abs(error) for _, error in card.scored_capacity()]
    assert len(found) >= 75
    assert median(found) <= 0.02
    assert mean(error <= 0.06 for error in found) >= 0.85


def test_verdicts() -> None:
    right, wrong = card.verdicts()
    assert len(right) / (len(right) + len(wrong)) >= 0.95
    starts = [each for each in (*right, *wrong) if each.case["outcome"] == "starts"]
    assert mean(each in right for each in starts) >= 0.97
    unfit = [each for each in (*right, *wrong) if each.case["outcome"] in {"does_not_fit", "oom_at_load"}]
    assert mean(each in right for each in unfit) >= 0.75


def test_memory_that_runs_out_later_is_a_warning() -> None:
    later = [each for each in card.cases.scored() if each.case["outcome"] == "oom_at_runtime"]
    assert later
    for each in later:
        assert each.budget.verdict == "starts"
        assert each.budget.warnings


def test_what_comes_after_the_pool_is_named() -> None:
    """gpt-oss-20b at 0.95 failed in the sampler's warm-up on one and two cards; at 0.9 it starts."""
    codes = {
        (each.case["tensor"], each.case["memory_fraction"]): each.budget.reason_code
        for each in card.cases.scored()
        if each.case["model"] == "openai/gpt-oss-20b" and each.case.get("version") == "0.19.0"
    }
    assert codes == {(1, 0.95): "out_of_memory_at_load", (2, 0.95): "out_of_memory_at_load", (2, 0.9): None}


def test_intervals_hold_logs_of_models_they_were_not_fitted_on() -> None:
    found = card.residuals.held_out_coverage(card.found_residuals())
    assert 0.85 <= mean(inside for _, _, inside in found) <= 0.97
