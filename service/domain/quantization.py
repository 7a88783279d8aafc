"""Weight and KV formats: how many bytes a parameter takes, what each format leaves in 16 bits, and where it runs."""

from typing import Literal

import msgspec

from service.domain.accelerator import Accelerator
from service.domain.architecture import TensorClass
from service.domain.message import Message

Arithmetic = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]
"""Number formats of an accelerator's matrix units (keys of ``Accelerator.dense_tflops``)."""

WIDE_FORMATS = ("bf16", "fp16", "fp32")
"""What engines widen weights to where the matrix units lack the format itself, in order of preference."""


class Quantization(msgspec.Struct, frozen=True):
    """A weight format, a KV cache format, or both."""

    id: str
    bits_per_weight: float
    """Bits of one quantized weight with its scales and zeros."""
    quantizes: tuple[TensorClass, ...]
    """Tensor classes usually stored in this format, the others stay in the checkpoint's 16-bit type; empty: KV only."""
    arithmetic: Arithmetic
    """Number format the matrix units use where the card has it natively; else weights are widened to 16 bits."""
    weight_only: bool
    """True where activations stay 16-bit (AWQ, GPTQ, GGUF, nf4): compute runs at the 16-bit rate."""
    quality_risk: Literal["none", "low", "medium", "high"]
    """How much answers usually suffer; anything above ``low`` is named as a risk."""
    made_by_engine: bool
    """True where an engine makes it at load time from a 16-bit checkpoint (fp8, bnb-nf4, bnb-int8)."""
    min_compute_capability: float | None = None
    """Lowest NVIDIA compute capability on which engines run it (``None``: any)."""
    max_compute_capability: float | None = None
    """Highest NVIDIA compute capability on which engines have kernels for it (``None``: any)."""
    native_compute_capability: float | None = None
    """Lowest NVIDIA compute capability whose matrix units compute in ``arithmetic``."""
    vendors: tuple[str, ...] = ()
    """Vendors (``Accelerator.vendor``) on whose cards engines run it; empty: all."""
    architectures: tuple[str, ...] | None = None
    """Architectures of vendors other than NVIDIA on which engines run it; None: all of ``vendors``."""
    native_architectures: tuple[str, ...] | None = None
    """Architectures of other vendors that compute in ``arithmetic``; None: any whose peaks list it."""
    kv_bits: float | None = None
    """Bits of one cached K or V element with its scales, where the format can hold a KV cache."""
    aliases: tuple[str, ...] = ()
    source: str = ""
    as_of: str = ""
    note: str | None = None


def computes_natively(accelerator: Accelerator, quantization: Quantization) -> bool:
    """Whether matrix multiplications run in the format's own arithmetic on this card."""
    if quantization.weight_only or quantization.arithmetic not in accelerator.dense_tflops:
        return False
    capability = accelerator.compute_capability
    if capability is not None:
        native = quantization.native_compute_capability
        return native is None or capability >= native
    native_architectures = quantization.native_architectures
    return native_architectures is None or accelerator.architecture in native_architectures


def arithmetic_tflops(accelerator: Accelerator, quantization: Quantization) -> float:
    """Dense peak (TFLOP/s) that matrix multiplications run at with weights in this format.

    The format's own rate where the card computes in it, else the rate of the 16-bit type the weights are widened to
    (bf16, else fp16, else fp32). 0 where no figure is known: such a card has no performance estimate.
    """
    peaks = accelerator.dense_tflops
    if computes_natively(accelerator, quantization):
        return peaks[quantization.arithmetic]
    return next((peaks[wide] for wide in WIDE_FORMATS if wide in peaks), 0.0)


def runs_on(accelerator: Accelerator, quantization: Quantization) -> Message | None:
    """Say why engines cannot run this format on this card; None where they can, natively or by widening.

    Codes: ``quantization_needs_compute_capability``, ``quantization_above_compute_capability``,
    ``quantization_not_on_vendor``, ``quantization_not_on_architecture``, each with ``quantization`` and ``gpu``.
    """
    names = {"quantization": quantization.id, "gpu": accelerator.id}
    if quantization.vendors and accelerator.vendor not in quantization.vendors:
        has = {"vendor": accelerator.vendor, "vendors": ", ".join(quantization.vendors)}
        return Message("quantization_not_on_vendor", {**names, **has})
    capability = accelerator.compute_capability
    if capability is None:
        if quantization.architectures is None or accelerator.architecture in quantization.architectures:
            return None
        has = {"architecture": accelerator.architecture, "architectures": ", ".join(quantization.architectures)}
        return Message("quantization_not_on_architecture", {**names, **has})
    lowest, highest = quantization.min_compute_capability, quantization.max_compute_capability
    if lowest is not None and capability < lowest:
        return Message("quantization_needs_compute_capability", {**names, "needed": lowest, "has": capability})
    if highest is not None and capability > highest:
        return Message("quantization_above_compute_capability", {**names, "highest": highest, "has": capability})
    return None
