"""Weight and KV formats: how many bytes a parameter takes, and what each format leaves in 16 bits."""

from typing import Literal

import msgspec

from service.domain.architecture import TensorClass

Arithmetic = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]
"""Number formats of an accelerator's matrix units (keys of ``Accelerator.dense_tflops``)."""


class Quantization(msgspec.Struct, frozen=True):
    """A weight format."""

    id: str
    bits_per_weight: float
    """Bits of one quantized weight with its scales and zeros."""
    quantizes: tuple[TensorClass, ...]
    """Tensor classes usually stored in this format; the others stay in the checkpoint's 16-bit type."""
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
    native_compute_capability: float | None = None
    """Lowest NVIDIA compute capability whose matrix units compute in ``arithmetic``."""
    aliases: tuple[str, ...] = ()
    source: str = ""
    as_of: str = ""
    note: str | None = None
