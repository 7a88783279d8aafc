"""The deployment that a body describes: catalog entries looked up, defaults filled in and listed."""

from typing import TypeVar

import msgspec

from service.api.call import Call
from service.api.resolve import (
    Gathered,
    NamedModel,
    catalog_model,
    read_behaviour,
    read_gpu,
    read_kv_cache,
    read_model,
    read_weights,
)
from service.api.wire import DeploymentPart, Parallelism
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.assembly import assemble
from service.domain.deployment import Layout
from service.domain.engine import EngineRequest
from service.domain.remedies import Proposals
from service.domain.subject import Subject


class Placed(msgspec.Struct, frozen=True):
    """A deployment ready to be evaluated."""

    subject: Subject
    engine: EngineRequest
    assumptions: tuple[Assumed, ...]
    proposals: Proposals


REMEDY_WEIGHTS = ("fp8", "awq-int4", "nvfp4")
"""Formats that remedies may propose, in order of least harm."""
REMEDY_KV_CACHES = ("fp8",)


T = TypeVar("T")


def needed(value: T | None) -> T:
    """A value that is there unless its fault has been gathered, and then ``check`` has raised before this is asked."""
    if value is None:
        msg = "a member was used before its faults were checked"
        raise RuntimeError(msg)
    return value


def read_deployment(body: DeploymentPart, call: Call[Snapshot], gathered: Gathered) -> Placed:
    """Everything that ``body`` names.

    Raises:
        Refusal: unknown ids and contradictions, with those already ``gathered``, all reported together (422).

    """
    snapshot = call.snapshot
    model = read_model(body.model, snapshot, gathered, call.hub)
    accelerator = read_gpu(body.gpu, snapshot, gathered)
    weights = kv_cache = None
    if model is not None:
        weights = read_weights(body.weights, model, snapshot, gathered, accelerator)
        kv_cache = read_kv_cache(body.kv_cache, model, snapshot, gathered)
    engine = body.engine or EngineRequest()
    draft = read_draft(engine, snapshot, gathered)
    gathered.check()
    served = needed(model)
    subject, settled = assemble(
        served.id,
        served.architecture,
        needed(accelerator),
        layout_of(body.parallelism or Parallelism()),
        needed(weights),
        needed(kv_cache),
        read_behaviour(engine, snapshot),
        engine,
        served.checkpoint_bytes,
        draft,
    )
    return Placed(
        subject=subject,
        engine=engine,
        assumptions=(*gathered.assumptions, *settled),
        proposals=proposals_for(subject, snapshot),
    )


def layout_of(parallelism: Parallelism) -> Layout:
    """The layout in the domain's numbers."""
    return Layout(
        tensor=float(parallelism.tensor),
        pipeline=float(parallelism.pipeline),
        data=float(parallelism.data),
        expert=1.0 if parallelism.expert else 0.0,
    )


def read_draft(engine: EngineRequest, snapshot: Snapshot, gathered: Gathered) -> Architecture | None:
    """Architecture of the draft model that speculative decoding names, if any."""
    name = None if engine.speculative is None else engine.speculative.draft_model
    if name is None:
        return None
    pointer = "/engine/speculative/draft_model"
    draft: NamedModel | None = gathered.attempt(lambda: catalog_model(name, pointer, snapshot, gathered))
    return None if draft is None else draft.architecture


def proposals_for(subject: Subject, snapshot: Snapshot) -> Proposals:
    """What remedies may propose: thinner formats, and larger cards of the same vendor that are widely sold."""
    formats = snapshot.quantizations
    return Proposals(
        weights=tuple(formats[name] for name in REMEDY_WEIGHTS),
        kv_caches=tuple(formats[name] for name in REMEDY_KV_CACHES),
        larger_cards=snapshot.widely_sold.get(subject.accelerator.vendor, ()),
    )
