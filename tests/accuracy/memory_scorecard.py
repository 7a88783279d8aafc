"""Write the scorecard of the memory answer: ``PYTHONPATH=. python tests/accuracy/memory_scorecard.py``.

With ``--residuals`` it prints instead the classes of residuals that the engine files hold.
"""

import importlib.util
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
from types import ModuleType
from typing import Any, TypeAlias

from packaging.version import Version

from service.catalog.engines import leading_version

HERE = Path(__file__).parent
PAGE = HERE / "memory_scorecard.md"
AS_OF = "2026-12-01"
MISS = 0.06
"""A capacity further off than this is listed."""
SMALLEST_CELL = 4

Scored: TypeAlias = Any
"""``test_memory.Scored``; the module is loaded by its path."""


def _load(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


residuals = _load("memory_residuals")
cases = _load("test_memory")


def version(each: Scored) -> str:
    """Version printed, or inferred from the date of the report."""
    return str(each.case.get("version") or each.case.get("version_inferred"))


def scored_capacity() -> list[tuple[Scored, float]]:
    """Every case that starts and prints tokens or concurrency, with its error (layers kept on the host left out)."""
    return [
        (each, error)
        for each in cases.scored()
        if each.case["outcome"] in {"starts", "oom_at_runtime"} and "layers_on_gpu" not in each.case
        if (error := each.capacity_error) is not None
    ]


def found_residuals() -> list[Any]:
    """Pool errors of every start that prints tokens, concurrency or the pool, as shares of one accelerator's memory."""
    found = []
    for each in cases.scored():
        case = each.case
        if case["outcome"] not in {"starts", "oom_at_runtime"} or "layers_on_gpu" in case:
            continue
        error = each.capacity_error
        error = each.error("kv_cache") if error is None else error
        card = each.budget.per_gpu
        if error is None or card.kv_cache_bytes == 0:
            continue
        found.append(
            residuals.Residual(
                model=case["model"],
                engine=case["engine"],
                band=band(case["engine"], version(each)),
                layers="uniform" if each.uniform else "hybrid",
                accelerators="several" if case["tensor"] * case["pipeline"] * case["data"] > 1 else "one",
                share=abs(error / (1.0 + error)) * card.kv_cache_bytes / card.total_bytes,
            )
        )
    return found


def band(engine: str, text: str) -> int:
    """Index of the version band."""
    edges = residuals.BANDS[engine]
    known = leading_version(text)
    if known is None:
        return len(edges) - 2
    return max(place for place, edge in enumerate(edges[:-1]) if edge is None or Version(known) >= Version(edge))


def band_name(engine: str, place: int) -> str:
    """The band as text."""
    edges = residuals.BANDS[engine]
    first, last = edges[place], edges[place + 1]
    if first is None and last is None:
        return "all"
    return f"< {last}" if first is None else f">= {first}" if last is None else f"{first} to {last}"


def gpu_class(each: Scored) -> str:
    """Card family and size, without its form."""
    return "-".join(part for part in each.case["gpu"].split("-") if part not in {"sxm", "pcie", "sxm2", "sxm4"})


def cells() -> dict[tuple[str, str, str], list[float]]:
    """Absolute capacity errors by engine, version band and card."""
    table: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each, error in scored_capacity():
        engine = each.case["engine"]
        table[engine, band_name(engine, band(engine, version(each))), gpu_class(each)].append(abs(error))
    return dict(table)


USES = (
    ("all", "all"),
    ("fitted", "fitted"),
    ("informed a rule", "informed"),
    ("untouched", "untouched"),
    ("untouched, version printed", "version"),
)


def _use(each: Scored) -> str:
    """What a case was used for."""
    if each.case["id"].startswith(cases.FITTED):
        return "fitted"
    return "informed" if each.case.get("informs") else "untouched"


def _counts(each: Scored, part: str) -> bool:
    if part == "version":
        return _use(each) == "untouched" and "version" in each.case
    return part in {"all", _use(each)}


def _refused(each: Scored) -> bool:
    return each.case["outcome"] in {"does_not_fit", "oom_at_load"}


def verdicts() -> tuple[list[Scored], list[Scored]]:
    """Cases whose verdict is right, and those whose is wrong."""
    right, wrong = [], []
    for each in cases.scored():
        if "layers_on_gpu" in each.case:
            continue
        (right if (each.budget.verdict == "does_not_fit") == _refused(each) else wrong).append(each)
    return right, wrong


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _summary(name: str, values: Sequence[float]) -> str:
    if not values:
        return f"| {name} | 0 | | | | |"
    within = mean(value <= MISS for value in values)
    return (
        f"| {name} | {len(values)} | {_percent(median(values))} | {_percent(mean(values))} "
        f"| {_percent(residuals.quantile(values))} | {within:.0%} |"
    )


def _errors(part: str, group: Iterable[Scored]) -> list[float]:
    return [abs(error) for each in group if (error := each.error(part)) is not None]


def _cell_means(table: dict[tuple[str, str, str], list[float]]) -> str:
    every = _percent(mean(mean(values) for values in table.values()))
    large = _percent(mean(mean(values) for values in table.values() if len(values) >= SMALLEST_CELL))
    return f"Mean over {len(table)} cells: {every}; over the cells of {SMALLEST_CELL} rows and more: {large}."


def _verdict_counts(right: Sequence[Scored], wrong: Sequence[Scored]) -> str:
    every = len(right) + len(wrong)
    unfit = [each for each in (*right, *wrong) if _refused(each)]
    refused = sum(each in right for each in unfit)
    untouched = [each for each in (*right, *wrong) if _use(each) == "untouched"]
    unfit_untouched = [each for each in unfit if each in untouched]
    return (
        f"Right: {len(right)} of {every} ({len(right) / every:.1%}); of the untouched "
        f"{sum(each in right for each in untouched)} of {len(untouched)}. "
        f"Refused of those that do not fit: {refused} of {len(unfit)}; of the untouched "
        f"{sum(each in right for each in unfit_untouched)} of {len(unfit_untouched)}."
    )


def page() -> str:
    """The page."""
    capacity = scored_capacity()
    table = cells()
    right, wrong = verdicts()
    shown = [
        each for each in cases.scored() if "layers_on_gpu" not in each.case and each.case["outcome"] != "does_not_fit"
    ]
    lines = [
        "# Memory scorecard",
        "",
        f"{len(cases.CASES)} public start-up logs and reports (`data/memory_cases.json`), {len(cases.scored())} of models in",
        "the catalog. Errors are of what the service answers for the launch settings of each case; what a case does not",
        "state takes the engine's default. Versions that a report does not name are inferred from its date.",
        "Speculative decoding without a number of tokens counts as one. Runs with layers kept on the host are left out.",
        "Written by `PYTHONPATH=. python tests/accuracy/memory_scorecard.py`.",
        "",
        "## KV capacity",
        "",
        "Tokens; requests at once for models whose layers share a pool. Fitted: the logs that coefficients come from. Informed a",
        "rule: cases that a rule, its version or a default was read from. Untouched: all others.",
        "",
        "| cases | n | median | mean | 90 % | within 6 % |",
        "|---|---:|---:|---:|---:|---:|",
        *(_summary(name, [abs(error) for each, error in capacity if _counts(each, part)]) for name, part in USES),
        "",
        "### By engine, version band and card",
        "",
        "| engine | versions | card | n | median | mean |",
        "|---|---|---|---:|---:|---:|",
        *(
            f"| {engine} | {versions} | {card} | {len(values)} | {_percent(median(values))} | {_percent(mean(values))} |"
            for (engine, versions, card), values in sorted(table.items())
        ),
        "",
        _cell_means(table),
        "",
        "## Parts",
        "",
        "| part | n | median | mean | 90 % | within 6 % |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            _summary(f"{part}, {name}", _errors(part, group))
            for part in ("weights", "activation", "kv_cache")
            for name in ("fitted", "informed", "untouched")
            for group in ([each for each in shown if _use(each) == name],)
        ),
        "",
        f"Weights within 2 %: {mean(error <= 0.02 for error in _errors('weights', shown)):.0%}.",
        "",
        "## Verdicts",
        "",
        _verdict_counts(right, wrong),
        "",
        "| wrong | engine | case | printed | answered |",
        "|---|---|---|---|---|",
        *(
            f"| {each.case['model']} on {each.case['gpu']} | {each.case['engine']} {version(each)} "
            f"| [{each.case['id']}]({each.case['source']}) | {each.case['outcome']} "
            f"| {each.budget.verdict} {each.budget.reason_code or ''} |"
            for each in wrong
        ),
        "",
        "## Intervals",
        "",
        *_intervals(),
        "",
        "## Capacities that are more than 6 % off",
        "",
        "| error | model | engine | card | case |",
        "|---:|---|---|---|---|",
        *(
            f"| {error:+.1%} | {each.case['model']} | {each.case['engine']} {version(each)} | {each.case['gpu']} "
            f"x {each.case['tensor'] * each.case['pipeline'] * each.case['data']} | [{each.case['id']}]({each.case['source']}) |"
            for each, error in sorted(capacity, key=lambda row: -abs(row[1]))
            if abs(error) > MISS
        ),
        "",
    ]
    return "\n".join(lines)


def _intervals() -> list[str]:
    found = residuals.held_out_coverage(found_residuals())
    groups: dict[tuple[object, ...], list[tuple[float, float, bool]]] = defaultdict(list)
    for each, row, inside in found:
        groups[each.engine, row.band, row.layers, row.accelerators, row.own].append((each.share, row.share, inside))
    lines = [
        "90 % intervals as a share of one accelerator's memory, each log against classes fitted on other models' logs.",
        "",
        "| class | n | held | half-width | median error | ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for (engine, place, layers, accelerators, own), values in sorted(groups.items(), key=str):
        name = f"{engine}, {'all versions' if place is None else band_name(str(engine), int(str(place)))}"
        name += f", {layers} layers, {accelerators} accelerators" + ("" if own else " (all engines' logs)")
        width, middle = median(value[1] for value in values), median(value[0] for value in values)
        ratio = f"{width / middle:.1f}" if middle else ""
        lines.append(
            f"| {name} | {len(values)} | {mean(value[2] for value in values):.0%} "
            f"| {_percent(width)} | {_percent(middle)} | {ratio} |"
        )
    lines += ["", f"All: {mean(inside for _, _, inside in found):.1%} of {len(found)} held."]
    return lines


def main() -> None:
    """Write the page, or print the residual classes."""
    if "--residuals" in sys.argv:
        for engine in residuals.BANDS:
            print(engine)  # noqa: T201
            for row in residuals.file_rows(found_residuals(), engine, AS_OF):
                print("  " + json.dumps(row) + ",")  # noqa: T201
        return
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
