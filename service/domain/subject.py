"""One deployment of one model on one card, with the names that people know its parts by."""

import msgspec

from service.domain.accelerator import Accelerator
from service.domain.architecture import Architecture
from service.domain.deployment import Deployment
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.quantization import Quantization


class Subject(msgspec.Struct, frozen=True):
    """What a VRAM budget is asked of. All numbers of ``deployment`` are floats."""

    model: str
    """Model id, as the engine loads it."""
    architecture: Architecture
    accelerator: Accelerator
    weights: Quantization
    """Format served."""
    kv_cache: Quantization
    behaviour: EngineBehaviour
    deployment: Deployment
    checkpoint_bytes: float | None = None
    """Size of the checkpoint, where the caller gave it."""
    request: EngineRequest | None = None
    """Launch settings as asked: adapters and speculative decoding go into the launch line from here."""
