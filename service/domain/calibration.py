"""Profiles: the shares of its data-sheet figures that a card reaches, and what an engine costs the host, as measured.

A profile is put together from three tables, each with its sources (``service/catalog/data/profiles``): kernels by
class of cards, collectives by link, host costs by engine version. A class without measurements borrows the figures of
the class it names, and its answers carry the wider ``analytic`` intervals.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from service.domain.accelerator import Accelerator, LinkKind
from service.domain.answer import Basis
from service.domain.numeric import Number
from service.domain.quantization import Quantization, computes_natively
from service.domain.subject import Subject

KernelKind = Literal["16bit", "fp8", "int8", "fp4", "w8a16", "w4a16", "gguf16", "gguf8", "gguf4"]
"""How matrix products run: in the weights' own arithmetic, weight-only 8 or 4 bit, or llama.cpp's kernels."""

_WIDE_BITS = 15.0
_BYTE_BITS = 7.0


class Profile(msgspec.Struct, frozen=True):
    """Efficiencies of one card, weight format and engine; or of many candidates, as arrays."""

    matmul_peak_share: Number
    """Sustained share of the dense peak of large matrix products with weights in the served format."""
    wide_matmul_peak_share: Number
    """The same for the tensors that stay 16-bit."""
    matmul_half_rows: Number
    """Rows that a product pays for beyond those it has (tiles that are not full)."""
    weight_read_share: Number
    """Share of the memory bandwidth at which a small batch reads weights of the served format."""
    wide_weight_read_share: Number
    """The same for the tensors that stay 16-bit."""
    expert_share: Number
    """Speed of grouped expert products, as a share of dense ones."""
    kv_read_share: Number
    """Share of the memory bandwidth at which decode attention reads the cache."""
    attention_peak_share: Number
    """Share of the 16-bit dense peak that prefill attention sustains."""
    allreduce_latency_2_s: Number
    """Shortest all-reduce of 2 ranks; ``_4`` and ``_8`` likewise."""
    allreduce_latency_4_s: Number
    allreduce_latency_8_s: Number
    allreduce_bandwidth_share_2: Number
    """Share of the link's one-direction peak that a large all-reduce of 2 ranks reaches; ``_4`` and ``_8`` likewise."""
    allreduce_bandwidth_share_4: Number
    allreduce_bandwidth_share_8: Number
    host_step_s: Number
    """Time of a step that no kernel explains: scheduling, sampling, launch."""
    layer_step_s: Number
    """Gaps and small kernels of one layer in one step."""
    expert_layer_step_s: Number
    """What routing, sorting and combining add in a layer of experts."""
    host_sequence_s: Number
    """Host time that one running sequence adds to a step."""
    host_request_s: Number
    """From the client's call to the first scheduled step, and from the first token back: tokenizer, HTTP, queues."""
    tpot_spread: Number
    """The 90 % interval of a time per output token is value / spread .. value x spread."""
    ttft_spread: Number
    throughput_spread: Number
    calibrated: Number
    """1.0 where runs of this class of card and engine were measured end to end; 0.0: borrowed or from formulas."""


class Kernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of peak compute and of memory bandwidth that one kind of matrix product reaches."""

    peak_share: float
    read_share: float


class CardClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Cards whose kernels reach like shares."""

    id: str
    architectures: tuple[str, ...]
    """``Accelerator.architecture`` of its members."""
    memory: tuple[str, ...] = ()
    """Prefixes of ``Accelerator.memory_type`` of its members; empty: any."""
    accelerators: tuple[str, ...] = ()
    """Ids of members regardless of the above: they win over other classes."""
    kernels: dict[KernelKind, Kernel]
    matmul_half_rows: float
    kv_read_share: float
    attention_peak_share: float
    measured: bool
    """Whether end-to-end runs of a member are among the sources."""
    sources: tuple[str, ...]
    as_of: str
    note: str | None = None


class LinkClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All-reduce over one kind of link, for 2, 4 and 8 ranks."""

    kind: LinkKind
    latency_us: tuple[float, float, float]
    bandwidth_share: tuple[float, float, float]
    sources: tuple[str, ...]
    as_of: str
    note: str | None = None


class EngineHost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Costs of an engine from a version on."""

    engine: str
    from_version: str
    host_step_us: float
    layer_step_us: float
    expert_layer_step_us: float
    host_sequence_us: float
    host_request_ms: float
    kernel_share: float
    """Speed of its kernels as a share of the card class's figures."""
    expert_share: float
    """Speed of its grouped expert products as a share of its dense ones."""
    sources: tuple[str, ...]
    as_of: str
    note: str | None = None


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Factor of the 90 % interval by metric: the 90th percentile of |log(predicted / measured)|, as a ratio."""

    basis: Basis
    tpot: float
    ttft: float
    throughput: float
    rows: int
    """Measurements that the factors rest on."""
    as_of: str
    note: str | None = None


class Profiles(msgspec.Struct, frozen=True, eq=False):
    """All tables, as read from the catalog; compared by identity."""

    classes: tuple[CardClass, ...]
    links: tuple[LinkClass, ...]
    engines: tuple[EngineHost, ...]
    spreads: tuple[Spread, ...]


def kernel_kind(accelerator: Accelerator, quantization: Quantization, engine: str) -> KernelKind:
    """Kind of matrix product that an engine runs for a weight format on a card."""
    bits = quantization.bits_per_weight
    if engine == "llama.cpp" or quantization.id.startswith("gguf"):
        return "gguf16" if bits > _WIDE_BITS else ("gguf8" if bits > _BYTE_BITS else "gguf4")
    if bits > _WIDE_BITS:
        return "16bit"
    if computes_natively(accelerator, quantization):
        native: dict[str, KernelKind] = {"fp8": "fp8", "int8": "int8", "fp4": "fp4"}
        if quantization.arithmetic in native:
            return native[quantization.arithmetic]
    return "w8a16" if bits > _BYTE_BITS else "w4a16"


def card_class(accelerator: Accelerator, profiles: Profiles) -> CardClass:
    """The class that names the card, else the first that takes its architecture and memory, else the last of all."""
    for known in profiles.classes:
        if accelerator.id.split("/")[0] in known.accelerators:
            return known
    for known in profiles.classes:
        memory_fits = not known.memory or accelerator.memory_type.startswith(known.memory)
        if accelerator.architecture in known.architectures and memory_fits:
            return known
    return profiles.classes[-1]


def engine_host(engine: str, version: str, profiles: Profiles) -> EngineHost:
    """Host costs of the newest band that starts at or before ``version``; of the first engine for one not listed."""
    bands = [band for band in profiles.engines if band.engine == engine] or [profiles.engines[0]]
    started = [band for band in bands if release(band.from_version) <= release(version)]
    return max(started or bands[:1], key=lambda band: release(band.from_version))


def profile_for(
    accelerator: Accelerator, quantization: Quantization, engine: str, version: str, profiles: Profiles
) -> Profile:
    """Profile of one card, weight format and engine; the first link class stands in for a kind not listed."""
    card = card_class(accelerator, profiles)
    kind = kernel_kind(accelerator, quantization, engine)
    kernel = card.kernels[kind]
    wide = card.kernels["gguf16" if kind.startswith("gguf") else "16bit"]
    link = next((known for known in profiles.links if known.kind == accelerator.interconnect.kind), profiles.links[0])
    host = engine_host(engine, version, profiles)
    calibrated = card.measured and host.engine == engine
    basis: Basis = "calibrated" if calibrated else "analytic"
    spread = next(known for known in profiles.spreads if known.basis == basis)
    return Profile(
        matmul_peak_share=kernel.peak_share * host.kernel_share,
        wide_matmul_peak_share=wide.peak_share * host.kernel_share,
        matmul_half_rows=card.matmul_half_rows,
        weight_read_share=kernel.read_share * host.kernel_share,
        wide_weight_read_share=wide.read_share * host.kernel_share,
        expert_share=host.expert_share,
        kv_read_share=card.kv_read_share * host.kernel_share,
        attention_peak_share=card.attention_peak_share * host.kernel_share,
        allreduce_latency_2_s=link.latency_us[0] * 1e-6,
        allreduce_latency_4_s=link.latency_us[1] * 1e-6,
        allreduce_latency_8_s=link.latency_us[2] * 1e-6,
        allreduce_bandwidth_share_2=link.bandwidth_share[0],
        allreduce_bandwidth_share_4=link.bandwidth_share[1],
        allreduce_bandwidth_share_8=link.bandwidth_share[2],
        host_step_s=host.host_step_us * 1e-6,
        layer_step_s=host.layer_step_us * 1e-6,
        expert_layer_step_s=host.expert_layer_step_us * 1e-6,
        host_sequence_s=host.host_sequence_us * 1e-6,
        host_request_s=host.host_request_ms * 1e-3,
        tpot_spread=spread.tpot,
        ttft_spread=spread.ttft,
        throughput_spread=spread.throughput,
        calibrated=1.0 if calibrated else 0.0,
    )


def profile_of(subject: Subject, profiles: Profiles) -> Profile:
    """Profile of one deployment."""
    behaviour = subject.behaviour
    return profile_for(subject.accelerator, subject.weights, behaviour.engine, behaviour.version, profiles)


def stacked(profiles: Sequence[Profile]) -> Profile:
    """One profile whose fields are arrays over ``profiles`` (float profiles, one a card)."""
    fields = msgspec.structs.fields(Profile)
    return Profile(**{field.name: np.array([getattr(one, field.name) for one in profiles]) for field in fields})


def release(version: str) -> tuple[int, ...]:
    """Leading numbers of a version ("0.19.0rc1" -> (0, 19, 0)); () for one that does not start with a number."""
    numbers: list[int] = []
    for part in version.strip().lower().lstrip("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
