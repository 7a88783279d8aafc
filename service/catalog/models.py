"""Read the model files: facts of each model, and the ``Architecture`` that its config describes.

One file a family (``data/models/README.md``). Configs hold only the keys that ``service.catalog.hf`` reads.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

import msgspec

from service.catalog.hf import ConfigError, architecture_from_config
from service.domain.architecture import Architecture, ParameterCounts, TensorClass
from service.domain.errors import CatalogError

Kind = Literal["llm", "vlm", "embedding", "reranker", "asr"]
ConfigBasis = Literal[
    "copied_config",
    "hub_fields",
    "mapped_from_tool",
    "class_defaults",
    "inferred_from_parameter_count",
    "sibling_config",
    "hub_core_dims",
    "recalled",
]
"""Where the config comes from: a copy of the release's own; hub fields or a tool's table under Hugging Face key names;
defaults of the class in ``transformers``; dimensions solved from the exact parameter count; a sibling's config; core
dimensions alone; general knowledge."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the catalog."""

    id: str
    """Hugging Face id."""
    architecture: Architecture
    total_parameters: int
    """Parameters of the checkpoint, drafting layers included; counted from the config where the hub's count is not one
    of parameters (packed 4-bit words)."""
    checkpoint_bytes: int | None
    """Bytes of the weight files, where known."""
    kind: Kind
    context_window: int
    """Longest context, tokens."""
    license: str | None
    release: str | None
    """Month of release (``2024-07``)."""
    gated: bool | None
    base_model: str | None
    """Catalog id of the model that this one quantizes or fine-tunes; None for a model of its own."""
    source: str
    as_of: str
    """Date the source was read."""
    config_basis: ConfigBasis
    partial: bool
    """Some facts of the architecture are unknown; ``note`` says which."""
    note: str | None
    vllm_since: str | None
    """Earliest vLLM version of the vLLM project's own recipe."""


class ModelRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model as written in a file."""

    id: str
    config: dict[str, object]
    config_basis: ConfigBasis
    source: str
    kind: Kind = "llm"
    total_parameters: int | None = None
    beyond_config: dict[TensorClass, int] = {}
    """Parameters of the checkpoint that its config does not describe, as the hub's total shows them."""
    checkpoint_bytes: int | None = None
    license: str | None = None
    release: str | None = None
    gated: bool | None = None
    context_window: int | None = None
    base_model: str | None = None
    partial: bool = False
    note: str | None = None
    vllm_since: str | None = None
    as_of: str | None = None


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family of models."""

    family: str
    as_of: str
    models: tuple[ModelRow, ...]


def load_models(folder: Path) -> dict[str, Model]:
    """All models of a folder by id, in the order of the files.

    Raises ``CatalogError``, naming file and place, where a file is unreadable, an id is used twice, a base model is in
    no file, or a config describes no model.
    """
    models: dict[str, Model] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            file = msgspec.json.decode(path.read_bytes(), type=ModelFile)
        except (OSError, msgspec.MsgspecError) as error:
            msg = f"{path}: {error}"
            raise CatalogError(msg) from error
        for index, row in enumerate(file.models):
            place = f"{path}: /models/{index} ({row.id})"
            if row.id in models:
                msg = f"{place}: id used twice"
                raise CatalogError(msg)
            try:
                models[row.id] = _model(row, file)
            except ConfigError as error:
                msg = f"{place}: /config{error.pointer}: {error.message}"
                raise CatalogError(msg) from error
    _check_bases(models, folder)
    return models


def _model(row: ModelRow, file: ModelFile) -> Model:
    architecture = architecture_from_config(row.config)
    if row.beyond_config:
        counts = architecture.parameters
        added = {name: getattr(counts, name) + more for name, more in row.beyond_config.items()}
        architecture = msgspec.structs.replace(architecture, parameters=msgspec.structs.replace(counts, **added))
    counts = architecture.parameters
    return Model(
        id=row.id,
        architecture=architecture,
        total_parameters=row.total_parameters or counts.total + counts.mtp,
        checkpoint_bytes=row.checkpoint_bytes,
        kind=row.kind,
        context_window=row.context_window or architecture.max_position_embeddings,
        license=row.license,
        release=row.release,
        gated=row.gated,
        base_model=row.base_model,
        source=row.source,
        as_of=row.as_of or file.as_of,
        config_basis=row.config_basis,
        partial=row.partial,
        note=row.note,
        vllm_since=row.vllm_since,
    )


def _check_bases(models: Mapping[str, Model], folder: Path) -> None:
    for model in models.values():
        if model.base_model is not None and model.base_model not in models:
            msg = f"{folder}: {model.id}: base_model {model.base_model} is in no file"
            raise CatalogError(msg)


def with_parameters(architecture: Architecture, parameters: int) -> Architecture:
    """The same architecture with all counts scaled so that ``parameters.total`` is exactly the one given.

    What rounding leaves goes to the largest class; drafting layers are scaled along, outside the total.
    """
    counts = architecture.parameters
    factor = parameters / max(counts.total, 1)
    scaled = {name: round(getattr(counts, name) * factor) for name in counts.__struct_fields__}
    largest = max((name for name in scaled if name != "mtp"), key=lambda name: scaled[name])
    rest = parameters - sum(count for name, count in scaled.items() if name != "mtp")
    scaled[largest] += rest
    return msgspec.structs.replace(architecture, parameters=ParameterCounts(**scaled))


def dense_stand_in(parameters: int, models: Mapping[str, Model]) -> Architecture:
    """The dense grouped-query text model nearest in log size, its widths kept, its counts scaled to ``parameters``.

    For a caller who knows nothing but a size (at least 1): everything but the total is an estimate and listed as such.
    """
    dense = [model for model in models.values() if _is_plain(model)]
    nearest = min(dense, key=lambda model: (abs(math.log(model.architecture.parameters.total / parameters)), model.id))
    architecture = with_parameters(nearest.architecture, parameters)
    estimated = tuple(name for name in architecture.__struct_fields__ if name not in {"parameters", "estimated"})
    return msgspec.structs.replace(architecture, estimated=estimated)


def _is_plain(model: Model) -> bool:
    """A dense 16-bit decoder as most are: grouped-query attention to all tokens, gated MLPs, no towers."""
    architecture = model.architecture
    kinds = {cast("str", cache.kind) for cache in architecture.cache}
    return (
        model.kind == "llm"
        and not model.partial
        and architecture.role == "decoder"
        and not architecture.experts
        and architecture.gated_mlp
        and 1 < architecture.kv_heads < architecture.query_heads
        and not architecture.parameters.vision
        and kinds == {"full"}
        and architecture.checkpoint_format == architecture.dtype
    )
