"""An accelerator (GPU SKU or MIG slice): memory, bandwidth, compute peaks and links."""

from typing import Literal

import msgspec

LinkKind = Literal["none", "pcie3", "pcie4", "pcie5", "pcie6", "nvlink", "nvlink_bridge", "infinity_fabric", "other"]


class Interconnect(msgspec.Struct, frozen=True):
    """The link between the accelerators of one server."""

    kind: LinkKind
    gb_per_s_per_direction: float
    """Peak bytes per second of one card in one direction, in GB/s (10**9)."""


class MigProfile(msgspec.Struct, frozen=True):
    """A hardware slice of a card; its accelerator id is ``<card>/<name>``."""

    name: str
    """NVIDIA's name, e.g. ``1g.10gb``."""
    memory_bytes: int
    usable_memory_bytes: int
    max_instances: int
    compute_share: float
    """Share of the card's streaming multiprocessors, 0..1."""
    bandwidth_share: float
    """Share of the card's memory bandwidth, 0..1."""
    basis: Literal["measured", "estimated"]


class Accelerator(msgspec.Struct, frozen=True):
    """One accelerator as engines see it."""

    id: str
    vendor: str
    architecture: str
    memory_bytes: int
    """Memory as the driver reports it (nvidia-smi, rocm-smi), not the label."""
    usable_memory_bytes: int
    """Total memory as the engine's process sees it (``torch.cuda.mem_get_info``): the base of memory budgets."""
    memory_bandwidth_gb_per_s: float
    """Data-sheet memory bandwidth in GB/s (10**9)."""
    dense_tflops: dict[str, float]
    """Dense (no sparsity) peak by number format, TFLOP/s; a missing format is not supported by the matrix units."""
    interconnect: Interconnect
    max_gpus_per_node: int
    compute_capability: float | None = None
    """NVIDIA compute capability (9.0 ...); None for other vendors."""
    memory_label_gb: float = 0.0
    """Marketing capacity, GB."""
    memory_type: str = ""
    memory_basis: Literal["reported", "estimated"] = "reported"
    """``estimated``: no driver print is known; the label times the measured share of its class."""
    tdp_w: float | None = None
    launch_year: int | None = None
    mig: tuple[MigProfile, ...] = ()
    aliases: tuple[str, ...] = ()
    ambiguous_aliases: tuple[str, ...] = ()
    """Names that several cards share."""
    unverified: tuple[str, ...] = ()
    """Fields that rest on recalled vendor figures."""
    sources: tuple[str, ...] = ()
    as_of: str = ""
    notes: str | None = None
