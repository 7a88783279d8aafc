"""What a cloud's instance type holds, for plans that name the type and not the accelerator."""

from typing import Literal

import msgspec


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """A machine type of a cloud and the accelerators in it."""

    cloud: str
    """Provider id."""
    instance_type: str
    """The cloud's own name; Nebius: ``platform/preset``; GCP cards on N1 hosts: ``n1-*+<accelerator type>``."""
    gpu: str | None
    """Accelerator id; the smaller candidate where the form factor is not told; None: not in the catalog."""
    gpu_candidates: tuple[str, ...] = ()
    gpu_name: str
    gpus: int | None
    """Accelerators of one instance (1 for a fraction); None: the type alone does not tell."""
    gpu_fraction: float = 1.0
    """Share of one card; below 1 the memory and compute are that share."""
    gpu_memory_gb: float | None = None
    """Memory per accelerator as labelled, GB; of the share, for a fraction."""
    vendor: str
    kind: Literal["gpu", "accelerator"] = "gpu"
    """``accelerator``: neither CUDA nor ROCm (Inferentia, Trainium, Cloud AI 100)."""
    vcpu: float | None = None
    ram_gib: float | None = None
    source: str
    evidence: str
    notes: str | None = None
