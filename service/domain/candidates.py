"""Candidates of a search: fleet rows x weight formats, as one deployment of arrays, and what has become of each.

Every candidate ends at a stage: the first bound that it broke, with limit and value, or ``ALIVE``. Stages are ordered by how
far a candidate came, so that an accelerator can say how close its best one was.
"""

from functools import lru_cache
from typing import cast, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.architecture import Architecture
from service.domain.assembly import draft_bytes_on_rank
from service.domain.columns import stacked, take
from service.domain.deployment import Card, Deployment, EngineSettings, Layout, Precision
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.engine_settings import resolve_settings, settings_class
from service.domain.fleet import Fleet, IntArray, format_support
from service.domain.numeric import FloatArray
from service.domain.quantization import Quantization
from service.domain.recommendation import RejectionCode

ALIVE = 99

STAGES: tuple[RejectionCode, ...] = get_args(RejectionCode)
"""Reasons in the order of how far a candidate came; a candidate's stage is an index into this."""
STAGE: dict[str, int] = {code: position for position, code in enumerate(STAGES)}


class WeightChoice(msgspec.Struct, frozen=True):
    """A weight format that the search considers."""

    quantization: Quantization
    precision: Precision
    checkpoint: str | None = None
    """Repository that publishes the model in this format, where it is not the one asked for."""
    architecture: Architecture | None = None
    """Of that repository: the same tensors, stored in other formats."""
    checkpoint_bytes: float | None = None
    """Its size, where known."""
    instead_of: int | None = None
    """Position of the choice that this one stands in for on cards that cannot run that (fp16 for bf16)."""
    native_only: bool = False
    """Only on cards whose matrix units compute in it: an engine's own fp8 is no gain elsewhere."""


class Fate(msgspec.Struct, frozen=True, eq=False):
    """What became of each candidate."""

    stage: NDArray[np.int64]
    limit: FloatArray
    value: FloatArray

    def reject(self, rows: IntArray, code: RejectionCode, limit: object = np.nan, value: object = np.nan) -> None:
        """Record that candidates ``rows`` broke a bound (the arrays are this search's own)."""
        self.stage[rows] = STAGE[code]
        self.limit[rows] = cast("float", limit)
        self.value[rows] = cast("float", value)

    @property
    def alive(self) -> IntArray:
        """Candidates that broke no bound so far."""
        return np.flatnonzero(self.stage == ALIVE)


class Candidates(msgspec.Struct, frozen=True, eq=False):
    """All candidates of one search; one element a candidate."""

    accelerator: IntArray
    choice: IntArray
    deployment: Deployment
    fate: Fate

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(self.accelerator.size)


def candidates(  # noqa: PLR0913 - what a candidate is made of
    fleet: Fleet,
    choices: tuple[WeightChoice, ...],
    architecture: Architecture,
    behaviour: EngineBehaviour,
    engine: EngineRequest,
    allowed: NDArray[np.bool_],
    support: NDArray[np.int64],
    draft: Architecture | None = None,
) -> Candidates:
    """Every fleet row with every weight choice; those that no engine would load are rejected at once.

    ``allowed``: accelerators that the caller lets in. ``support`` (weight choices x accelerators): stage of the engine's
    refusal, ``ALIVE`` where there is none.
    """
    rows = np.tile(np.arange(fleet.rows), len(choices))
    choice = np.repeat(np.arange(len(choices)), fleet.rows)
    accelerator = fleet.accelerator[rows]
    formats = [format_support(fleet, one.quantization.id) for one in choices]
    flops = np.stack([table.weight_flops_per_s for table in formats])
    useful = np.stack([table.native | (not one.native_only) for one, table in zip(choices, formats, strict=True)])
    # Later assignments win, so the earliest reason is written last.
    stage = support[choice, accelerator]
    if not architecture.experts:
        stage = np.where(
            (stage == ALIVE) & ((fleet.expert[rows] > 0.0) | (fleet.data[rows] > 1.0)), STAGE["layout_illegal"], stage
        )
    stage[~useful[choice, accelerator]] = STAGE["weights_format_unsupported"]
    stage[~allowed[accelerator]] = STAGE["not_allowed"]
    fate = Fate(stage=stage, limit=np.full(rows.size, np.nan), value=np.full(rows.size, np.nan))
    deployment = Deployment(
        layout=Layout(
            tensor=fleet.tensor[rows], pipeline=fleet.pipeline[rows], data=fleet.data[rows], expert=fleet.expert[rows]
        ),
        card=Card(
            usable_memory_bytes=fleet.usable_memory_bytes[rows],
            bandwidth_bytes_per_s=fleet.bandwidth_bytes_per_s[rows],
            weight_flops_per_s=flops[choice, accelerator],
            flops_per_s=fleet.flops_per_s[rows],
            link_bytes_per_s=fleet.link_bytes_per_s[rows],
        ),
        precision=_precision(choices, choice),
        settings=take(_settings(fleet, architecture, behaviour, engine, draft), rows),
    )
    return Candidates(accelerator=accelerator, choice=choice, deployment=deployment, fate=fate)


def _precision(choices: tuple[WeightChoice, ...], choice: IntArray) -> Precision:
    """Bytes per parameter of each candidate, from those of its weight choice."""
    if len(choices) == 1:
        return choices[0].precision
    return take(stacked([one.precision for one in choices]), choice)


def _settings(
    fleet: Fleet,
    architecture: Architecture,
    behaviour: EngineBehaviour,
    engine: EngineRequest,
    draft: Architecture | None,
) -> EngineSettings:
    """Launch settings of every fleet row: resolved once for each class of rows that the defaults tell apart."""
    by_layout = engine.lora is not None or draft is not None or behaviour.fraction_rule != "given"
    which, samples = _settings_classes(fleet, behaviour, by_layout=by_layout)
    resolved = []
    for row in samples:
        layout = Layout(tensor=float(fleet.tensor[row]), pipeline=float(fleet.pipeline[row]))
        card = fleet.accelerators[fleet.accelerator[row]]
        drafted = draft_bytes_on_rank(draft, layout)
        resolved.append(resolve_settings(engine, architecture, card, layout, behaviour, drafted)[0])
    return take(stacked(resolved), which)


@lru_cache(maxsize=64)
def _settings_classes(fleet: Fleet, behaviour: EngineBehaviour, *, by_layout: bool) -> tuple[IntArray, tuple[int, ...]]:
    """Class of each fleet row, and one row of each class, by all that ``resolve_settings`` reads of card and layout.

    ``by_layout``: it reads the layout too, for adapters, a draft, or a fraction that depends on ranks.
    """
    seen: dict[tuple[object, ...], int] = {}
    samples: list[int] = []
    which = np.empty(fleet.rows, dtype=np.intp)
    for row in range(fleet.rows):
        accelerator = fleet.accelerators[fleet.accelerator[row]]
        card = settings_class(accelerator, behaviour)
        layout = (float(fleet.tensor[row]), float(fleet.pipeline[row])) if by_layout else None
        key = (card, layout)
        if key not in seen:
            seen[key] = len(samples)
            samples.append(row)
        which[row] = seen[key]
    return which, tuple(samples)
