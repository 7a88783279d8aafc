"""A model as a sum of parts: layers that are alike, what each holds and what it caches."""

from collections.abc import Iterable

import msgspec

from service.domain.architecture import CacheLayers, ParameterCounts


class Part(msgspec.Struct, frozen=True):
    """``layers`` times the same parameters, with one cache at most."""

    layers: int
    each: ParameterCounts
    """Parameters of one layer."""
    caches: tuple[CacheLayers, ...] = ()
    """What each layer caches; several where a layer has more than one cache (attention beside state space)."""


def total(parts: Iterable[Part]) -> ParameterCounts:
    """Parameters of all parts together."""
    sums = [0] * len(ParameterCounts.__struct_fields__)
    for part in parts:
        for index, count in enumerate(msgspec.structs.astuple(part.each)):
            sums[index] += part.layers * count
    return ParameterCounts(*sums)


def caches(parts: Iterable[Part]) -> tuple[CacheLayers, ...]:
    """All caches, equal ones joined, growing ones first (a draft module's layers join the first growing kind)."""
    counts: dict[CacheLayers, int] = {}
    for part in parts:
        for cache in part.caches:
            alike = msgspec.structs.replace(cache, layers=0)
            counts[alike] = counts.get(alike, 0) + cache.layers
    joined = [msgspec.structs.replace(alike, layers=layers) for alike, layers in counts.items() if layers]
    return tuple(sorted(joined, key=lambda cache: cache.kind not in {"full", "latent"}))
