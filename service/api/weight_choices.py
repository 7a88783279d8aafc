"""Weight formats that a recommendation considers: what is asked for, or what the model can be had and served in."""

from collections.abc import Iterable

import msgspec

from service.api.resolve import Gathered, NamedModel
from service.catalog.snapshot import Snapshot
from service.domain.architecture import Architecture
from service.domain.candidates import WeightChoice
from service.domain.message import Message
from service.domain.quantization import Quantization
from service.domain.weights import FLOAT_BYTES, precision

SMALLER_FORMATS = ("fp8", "awq-int4", "nvfp4")
"""Weight formats tried on cards that are too small, in order of least harm."""


def weight_choices(
    model: NamedModel, weights: Quantization, kv_cache: Quantization, snapshot: Snapshot, gathered: Gathered
) -> tuple[WeightChoice, ...]:
    """The checkpoint's own format, the engine's fp8 where cards compute in it, and published quantized checkpoints."""
    choices = [weight_choice(weights, model, kv_cache)]
    if weights.id == "bf16":
        half = weight_choice(snapshot.quantizations["fp16"], model, kv_cache)
        choices.append(msgspec.structs.replace(half, instead_of=0))
        gathered.assume("/weights", "fp16", Message("assumed_half_precision"))
    if weights.id in FLOAT_BYTES:
        fp8 = weight_choice(snapshot.quantizations["fp8"], model, kv_cache)
        choices.append(msgspec.structs.replace(fp8, native_only=True))
        gathered.assume("/weights", "fp8", Message("assumed_engine_fp8"))
    return (*choices, *_published(model, {choice.quantization.id for choice in choices}, kv_cache, snapshot, gathered))


def _published(
    model: NamedModel, have: Iterable[str], kv_cache: Quantization, snapshot: Snapshot, gathered: Gathered
) -> list[WeightChoice]:
    """Quantized checkpoints of the model that the catalog knows, those that hold its very tensors."""
    seen = set(have)
    found = []
    for other in snapshot.quantized_checkpoints.get(model.id, ()):
        name = other.architecture.checkpoint_format
        if name in seen or not _same_tensors(model.architecture, other.architecture):
            continue
        seen.add(name)
        choice = WeightChoice(
            quantization=snapshot.quantizations[name],
            precision=precision(other.architecture, snapshot.quantizations[name], kv_cache, other.checkpoint_bytes),
            checkpoint=other.id,
            architecture=other.architecture,
            checkpoint_bytes=other.checkpoint_bytes,
        )
        found.append(choice)
        gathered.assume("/weights", name, Message("assumed_published_checkpoint", {"checkpoint": other.id}))
    return found


_STORED = (
    "checkpoint_format",
    "checkpoint_kv_cache",
    "unquantized",
    "stored_bits",
    "estimated",
    "max_position_embeddings",
)
"""How a repository stores or describes a model, rather than what it computes."""


def _same_tensors(one: Architecture, other: Architecture) -> bool:
    """Whether two architectures differ in storage alone, so that one search holds for both."""
    return all(getattr(one, name) == getattr(other, name) for name in one.__struct_fields__ if name not in _STORED)


def smaller_choices(
    model: NamedModel, weights: Quantization, kv_cache: Quantization, snapshot: Snapshot
) -> tuple[WeightChoice, ...]:
    """Formats smaller than ``weights``, for cards that are too small for it."""
    formats = (snapshot.quantizations[name] for name in SMALLER_FORMATS)
    return tuple(
        weight_choice(one, model, kv_cache) for one in formats if one.bits_per_weight < weights.bits_per_weight
    )


def weight_choice(weights: Quantization, model: NamedModel, kv_cache: Quantization) -> WeightChoice:
    """A format as the search takes it."""
    published = weights.id == model.architecture.checkpoint_format
    return WeightChoice(
        quantization=weights,
        precision=precision(model.architecture, weights, kv_cache, model.checkpoint_bytes),
        checkpoint_bytes=model.checkpoint_bytes if published else None,
    )
