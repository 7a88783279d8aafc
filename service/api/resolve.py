"""Names of a body to entries of the catalogs: what is deployed, and what had to be assumed.

Every reader takes a ``Gathered``: faults of several members are collected and reported together.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from service.api.fault import closest, fault_of
from service.api.hub_models import hub_architecture, refuse
from service.api.problems import Refusal
from service.api.wire import AcceleratorSpec, ModelSpec
from service.catalog.engines import behaviour
from service.catalog.gpu_names import closest_gpus, resolve_gpu
from service.catalog.hf import architecture_from_config
from service.catalog.model_names import closest_models, resolve_model
from service.catalog.models import dense_stand_in, with_parameters
from service.catalog.quantizations import AUTO, resolve_quantization
from service.catalog.snapshot import Snapshot
from service.domain.accelerator import Accelerator, Interconnect
from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.errors import ImpossibleCombination, SizingError, UnknownId
from service.domain.kv_cache import served_kv_format
from service.domain.message import Message
from service.domain.offer import Offer
from service.domain.quantization import Quantization, runs_on
from service.hub import HubFailure, HubModel

T = TypeVar("T")

Hub = HubModel | HubFailure | None
"""What a hub told about the body's model, if it was asked."""

USABLE_SHARE = 0.992
"""Median of what torch sees over what the driver reports, over the catalog's cards with both prints."""


class NamedModel(msgspec.Struct, frozen=True):
    """A model with the id that the engine loads it by."""

    id: str
    architecture: Architecture
    weights: str | None = None
    """Format that the repository's name tells, where it differs from the catalog entry's."""
    checkpoint_bytes: float | None = None
    wide: bool = False
    """Only its size is known: intervals are wider."""


class Gathered:
    """Faults and assumptions met while a body is read."""

    def __init__(self) -> None:
        """Start with none."""
        self.errors: list[SizingError] = []
        self.assumptions: list[Assumed] = []

    def attempt(self, read: Callable[[], T]) -> T | None:
        """The value that ``read`` gives, or None after keeping its fault."""
        try:
            return read()
        except SizingError as error:
            self.errors.append(error)
            return None

    def check(self) -> None:
        """Raise what was kept."""
        if self.errors:
            raise Refusal([fault_of(error) for error in self.errors])

    def assume(self, field: str, value: str | float | None, why: Message) -> None:
        """List a default."""
        self.assumptions.append(Assumed(field, value, why))


def read_model(named: str | ModelSpec, snapshot: Snapshot, gathered: Gathered, hub: Hub = None) -> NamedModel | None:
    """The model of a body: a catalog entry by any of its names, what ``hub`` told of it, an inline config, or a size."""
    if isinstance(named, str):
        return gathered.attempt(lambda: catalog_model(named, "/model", snapshot, gathered, hub))
    return gathered.attempt(lambda: _model_of_spec(named, snapshot, gathered, hub))


def catalog_model(name: str, pointer: str, snapshot: Snapshot, gathered: Gathered, hub: Hub = None) -> NamedModel:
    """The catalog entry that a name means, with the format that a repository's name tells; else the hub's."""
    match = resolve_model(name, snapshot.models)
    if match is None:
        suggestions = closest_models(name, snapshot.models)
        if isinstance(hub, HubModel):
            why = Message("model_from_hub", {"id": hub.id, "revision": hub.revision or "unknown"})
            gathered.assume(pointer, hub.id, why)
            size = None if hub.checkpoint_bytes is None else float(hub.checkpoint_bytes)
            return NamedModel(id=hub.id, architecture=hub_architecture(hub), checkpoint_bytes=size)
        if isinstance(hub, HubFailure):
            raise refuse(hub, pointer, suggestions)
        raise UnknownId(pointer, Message("unknown_model", {"id": name[:200]}), suggestions)
    if not match.exact:
        gathered.assume(pointer, match.model.id, match.how)
    return NamedModel(
        id=name if match.weights else match.model.id,
        architecture=match.model.architecture,
        weights=match.weights,
        checkpoint_bytes=None if match.weights else match.model.checkpoint_bytes,
    )


def _model_of_spec(spec: ModelSpec, snapshot: Snapshot, gathered: Gathered, hub: Hub) -> NamedModel:
    if spec.config is not None:
        architecture = _under("/model/config", lambda: architecture_from_config(spec.config or {}))
        for field in architecture.estimated:
            gathered.assume(f"/model/config/{field}", None, Message("assumed_config_field", {"field": field}))
        model = NamedModel(id=spec.id or "model", architecture=architecture)
    elif spec.id is not None:
        model = catalog_model(spec.id, "/model/id", snapshot, gathered, hub)
    elif spec.parameters is not None:
        architecture = dense_stand_in(spec.parameters, snapshot.models)
        why = Message("assumed_dense_architecture", {"like": architecture.model_type, "layers": architecture.layers})
        gathered.assume("/model/config", None, why)
        return NamedModel(
            id="model", architecture=architecture, checkpoint_bytes=_whole(spec.checkpoint_bytes), wide=True
        )
    else:
        raise ImpossibleCombination("/model", Message("model_says_nothing"), ("id", "config", "parameters"))
    if spec.parameters is not None:
        model = msgspec.structs.replace(model, architecture=with_parameters(model.architecture, spec.parameters))
    if spec.checkpoint_bytes is not None:
        model = msgspec.structs.replace(model, checkpoint_bytes=float(spec.checkpoint_bytes))
    return model


def _whole(value: int | None) -> float | None:
    return None if value is None else float(value)


def _under(pointer: str, read: Callable[[], T]) -> T:
    """Run ``read``, whose faults point into the value at ``pointer``."""
    try:
        return read()
    except SizingError as error:
        raise type(error)(pointer + error.pointer, error.message, error.suggestions) from error


def read_gpu(named: str | AcceleratorSpec, snapshot: Snapshot, gathered: Gathered) -> Accelerator | None:
    """The accelerator of a body: a catalog entry by any of its names, or the caller's own figures."""
    if isinstance(named, AcceleratorSpec):
        return gathered.attempt(lambda: _accelerator_of_spec(named, gathered))
    return gathered.attempt(lambda: catalog_gpu(named, "/gpu", snapshot, gathered))


def catalog_gpu(name: str, pointer: str, snapshot: Snapshot, gathered: Gathered) -> Accelerator:
    """The accelerator that a name means; the choice among several is listed."""
    match = resolve_gpu(name, snapshot.gpu_index)
    if match is None:
        raise UnknownId(pointer, Message("unknown_gpu", {"id": name[:200]}), closest_gpus(name, snapshot.gpu_index))
    if not match.exact:
        others = ", ".join(match.candidates[1:6]) or match.id
        code = "gpu_read_as_one_of" if len(match.candidates) > 1 else "gpu_read_as"
        gathered.assume(pointer, match.id, Message(code, {"name": name[:200], "others": others}))
    return snapshot.accelerators[match.id]


def _accelerator_of_spec(spec: AcceleratorSpec, gathered: Gathered) -> Accelerator:
    if not {"bf16", "fp16", "fp32"} & spec.dense_tflops.keys():
        raise ImpossibleCombination("/gpu/dense_tflops", Message("gpu_without_peak"), ("bf16", "fp16", "fp32"))
    usable = spec.usable_memory_bytes
    if usable is None:
        usable = int(spec.memory_bytes * USABLE_SHARE)
        gathered.assume("/gpu/usable_memory_bytes", usable, Message("assumed_usable_memory", {"share": USABLE_SHARE}))
    elif usable > spec.memory_bytes:
        raise ImpossibleCombination("/gpu/usable_memory_bytes", Message("gpu_usable_above_memory"))
    link = spec.interconnect
    if link is None:
        gathered.assume("/gpu/interconnect/kind", "pcie4", Message("assumed_interconnect"))
    return Accelerator(
        id=spec.id,
        vendor=spec.vendor,
        architecture=spec.architecture,
        memory_bytes=spec.memory_bytes,
        usable_memory_bytes=usable,
        memory_bandwidth_gb_per_s=spec.memory_bandwidth_gb_per_s,
        dense_tflops={str(number): peak for number, peak in spec.dense_tflops.items()},
        interconnect=PCIE4 if link is None else Interconnect(link.kind, link.gb_per_s_per_direction),
        max_gpus_per_node=spec.max_gpus_per_node,
        compute_capability=spec.compute_capability,
        memory_label_gb=spec.memory_label_gb,
        memory_type=spec.memory_type,
    )


PCIE4 = Interconnect("pcie4", 31.5)
"""PCIe 4.0 x16, one direction."""


def read_weights(
    name: str | None, model: NamedModel, snapshot: Snapshot, gathered: Gathered, accelerator: Accelerator | None = None
) -> Quantization | None:
    """The weight format of a body; by default what the checkpoint, or the repository's name, says.

    Where ``accelerator`` has no bf16, engines load such a checkpoint as fp16, and so does the default.
    """
    own = model.weights or model.architecture.checkpoint_format
    found = None if name is None else resolve_quantization(name, snapshot.quantization_index)
    if name is not None and (found is None or (found != AUTO and not snapshot.quantizations[found].quantizes)):
        gathered.attempt(lambda: _unknown_format("/weights", name, snapshot, weights=True))
        return None
    if found is None or found == AUTO:
        found, why = own, Message("assumed_checkpoint_format", {"weights": own})
        if own == "bf16" and accelerator is not None and runs_on(accelerator, snapshot.quantizations[own]) is not None:
            found, why = "fp16", Message("assumed_half_precision")
        gathered.assume("/weights", found, why)
    return snapshot.quantizations[found]


def read_kv_cache(name: str | None, model: NamedModel, snapshot: Snapshot, gathered: Gathered) -> Quantization | None:
    """The KV format of a body; ``auto`` is the checkpoint's own, else its 16-bit type."""
    found = AUTO if name is None else resolve_quantization(name, snapshot.quantization_index)
    if found is None or (found != AUTO and snapshot.quantizations[found].kv_bits is None):
        gathered.attempt(lambda: _unknown_format("/kv_cache", name or "", snapshot, weights=False))
        return None
    served = served_kv_format(model.architecture, found)
    if found == AUTO:
        gathered.assume("/kv_cache", served, Message("assumed_kv_format", {"kv_cache": served}))
    return snapshot.quantizations[served]


def _unknown_format(pointer: str, name: str, snapshot: Snapshot, *, weights: bool) -> None:
    usable = [q.id for q in snapshot.quantizations.values() if (q.quantizes if weights else q.kv_bits is not None)]
    raise UnknownId(pointer, Message("unknown_format", {"id": name[:200]}), closest(name, usable) or tuple(usable[:8]))


def read_behaviour(engine: EngineRequest, snapshot: Snapshot) -> EngineBehaviour:
    """The engine's behaviour in the version that the body names, or in the newest known."""
    return behaviour(snapshot.engines[engine.name], engine.version)


def read_offer(offer_id: str, snapshot: Snapshot, pointer: str = "/offer") -> Offer:
    """The offer of an id. Raises ``UnknownId``."""
    offer = snapshot.offers.get(offer_id) or snapshot.offers.get(offer_id.lower())
    if offer is None:
        raise UnknownId(pointer, Message("unknown_offer", {"id": offer_id[:200]}), closest(offer_id, snapshot.offers))
    return offer
