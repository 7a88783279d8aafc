"""Predicted memory against what engines printed at start-up.

``data/memory_cases.json`` holds figures of public start-up logs and issue threads, each with its source. Coefficients
of the engine files were fitted on the ``FITTED`` cases; the others are held out. ``memory_scorecard.py`` writes the page of all
errors, misses included.
"""

import json
import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.model_names import resolve_model
from service.catalog.models import load_models
from service.catalog.quantizations import load_quantizations
from service.domain.assembly import assemble
from service.domain.deployment import Layout
from service.domain.engine import EngineRequest, Speculative
from service.domain.kv_cache import served_kv_format
from service.domain.units import GIB
from service.domain.vram_budget import VramBudget, vram_budget

CATALOG = Path("service/catalog/data")
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "memory_cases.json").read_text())
FITTED = "llmd-planner-v0190"
"""Cases whose logs the activation, graph and non-torch coefficients were fitted on begin with this."""

LAST_V0 = "0.7.3"
"""Runs of vLLM 0.8 that were told to use the V0 engine are sized as the last release without another."""

UNIFORM = frozenset({"full", "latent"})

PARTS = {
    "weights": ("weights_gib_per_gpu", lambda budget: budget.per_gpu.weights_gib),
    "activation": ("activation_peak_gib", lambda budget: budget.per_gpu.activation_gib),
    "kv_cache": ("kv_cache_gib_per_gpu", lambda budget: budget.per_gpu.kv_cache_gib),
    "tokens": ("kv_tokens", lambda budget: budget.kv_cache.capacity_tokens),
    "concurrency": ("max_concurrency", lambda budget: budget.kv_cache.max_concurrency),
}


class Scored(msgspec.Struct, frozen=True):
    """One case with its prediction."""

    case: dict[str, Any]
    budget: VramBudget
    uniform: bool

    def error(self, part: str) -> float | None:
        """Relative error of one part; None where the case does not print it."""
        field, read = PARTS[part]
        printed = self.case["observed"].get(field)
        return None if not printed or printed < 0 else read(self.budget) / printed - 1.0

    @property
    def capacity_error(self) -> float | None:
        """Error of what the engine prints as capacity: tokens, or concurrency where kinds of layers share the pool."""
        return self.error("tokens" if self.uniform else "concurrency")


@cache
def catalogs() -> tuple[Any, ...]:
    return (
        load_engines(CATALOG / "engines"),
        load_accelerators(CATALOG / "accelerators"),
        load_quantizations(CATALOG / "quantizations.json"),
        load_models(CATALOG / "models"),
    )


def predict(case: dict[str, Any]) -> Scored | None:
    """The budget that the service gives for a case; None where the model is not in the catalog."""
    engines, cards, formats, models = catalogs()
    match = resolve_model(case["model"], models)
    if match is None:
        return None
    architecture = match.model.architecture
    weights = formats[case.get("weights") or match.weights or architecture.checkpoint_format]
    if weights.id == "fp32":
        architecture = msgspec.structs.replace(architecture, dtype="fp32")
    tokens = case.get("speculative_tokens")
    version = LAST_V0 if case.get("engine_core") == "V0" else case.get("version") or case.get("version_inferred")
    subject, assumed = assemble(
        case["model"],
        architecture,
        cards[case["gpu"]],
        Layout(
            tensor=float(case["tensor"]),
            pipeline=float(case["pipeline"]),
            data=float(case["data"]),
            expert=float(case["expert"]),
        ),
        weights,
        formats[served_kv_format(architecture, case["kv_cache"])],
        behaviour(engines[case["engine"]], version),
        EngineRequest(
            name=case["engine"],
            version=version,
            gpu_memory_utilization=case.get("memory_fraction"),
            max_model_len=case.get("max_model_len"),
            max_num_seqs=case.get("max_num_seqs"),
            max_num_batched_tokens=case.get("max_num_batched_tokens"),
            enforce_eager=case["enforce_eager"],
            block_size=case.get("block_size"),
            cpu_offload_bytes=case.get("cpu_offload_gib", 0) * GIB,
            hybrid_kv_cache=case.get("hybrid_kv_cache", True),
            speculative=None if tokens is None else Speculative(method="mtp", tokens=tokens),
        ),
    )
    uniform = {group.kind for group in architecture.cache} <= UNIFORM
    return Scored(case=case, budget=vram_budget(subject, assumptions=assumed), uniform=uniform)


@cache
def scored() -> tuple[Scored, ...]:
    return tuple(found for case in CASES if (found := predict(case)) is not None)


def known_version() -> list[Scored]:
    """vLLM cases that start and say their version: what a default would have to guess is not scored."""
    return [
        each
        for each in scored()
        if each.case["engine"] == "vllm" and "version" in each.case and "does_not_fit" not in each.case["outcome"]
    ]


def errors(found: Iterable[Scored], part: str) -> list[float]:
    return [abs(error) for each in found if (error := each.error(part)) is not None]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(math.ceil(share * len(values)), len(values)) - 1]


def held_out() -> list[Scored]:
    return [each for each in known_version() if not each.case["id"].startswith(FITTED)]


def fitted() -> list[Scored]:
    return [each for each in known_version() if each.case["id"].startswith(FITTED)]


def test_most_cases_are_scored() -> None:
    assert len(scored()) >= 100


def test_weights() -> None:
    found = errors(known_version(), "weights")
    assert len(found) >= 50
    assert median(found) <= 0.005
    assert quantile(found, 0.8) <= 0.03


def test_activation_of_fitted_logs() -> None:
    found = errors(fitted(), "activation")
    assert len(found) >= 35
    assert mean(found) <= 0.03


def test_capacity_of_fitted_logs() -> None:
    found = [abs(error) for each in fitted() if (error := each.capacity_error) is not None]
    assert len(found) >= 35
    assert median(found) <= 0.005
    assert mean(found) <= 0.02


def test_capacity_of_held_out_logs() -> None:
    found = [abs(error) for each in held_out() if (error := each.capacity_error) is not None]
    assert len(found) >= 10
    assert median(found) <= 0.03
