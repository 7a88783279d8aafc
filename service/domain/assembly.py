"""Put one deployment together from its named parts: the subject that memory, performance and the search are asked about."""

from service.domain.accelerator import Accelerator
from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.deployment import Card, Deployment, Layout
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.engine_settings import resolve_settings
from service.domain.quantization import WIDE_FORMATS, Quantization, arithmetic_tflops
from service.domain.subject import Subject
from service.domain.weights import FLOAT_BYTES, precision

TERA = 1e12
GIGA = 1e9


def card_of(accelerator: Accelerator, weights: Quantization) -> Card:
    """What formulas read of an accelerator that serves ``weights``."""
    return Card(
        usable_memory_bytes=float(accelerator.usable_memory_bytes),
        bandwidth_bytes_per_s=accelerator.memory_bandwidth_gb_per_s * GIGA,
        weight_flops_per_s=arithmetic_tflops(accelerator, weights) * TERA,
        flops_per_s=wide_flops_per_s(accelerator),
        link_bytes_per_s=accelerator.interconnect.gb_per_s_per_direction * GIGA,
    )


def wide_flops_per_s(accelerator: Accelerator) -> float:
    """Dense 16-bit peak (32-bit where the card has no other); 0 where no figure is known."""
    peaks = accelerator.dense_tflops
    return next((peaks[wide] for wide in WIDE_FORMATS if wide in peaks), 0.0) * TERA


def assemble(  # noqa: PLR0913 - the parts of a deployment
    model: str,
    architecture: Architecture,
    accelerator: Accelerator,
    layout: Layout,
    weights: Quantization,
    kv_cache: Quantization,
    behaviour: EngineBehaviour,
    engine: EngineRequest,
    checkpoint_bytes: float | None = None,
    draft: Architecture | None = None,
) -> tuple[Subject, tuple[Assumed, ...]]:
    """The deployment, and the launch settings that had to be assumed.

    ``draft``: architecture of the draft model that ``engine.speculative`` names; it is sharded like the model.
    """
    settings, assumed = resolve_settings(
        engine, architecture, accelerator, layout, behaviour, draft_bytes_on_rank(draft, layout)
    )
    deployment = Deployment(
        layout=layout,
        card=card_of(accelerator, weights),
        precision=precision(architecture, weights, kv_cache, checkpoint_bytes),
        settings=settings,
    )
    subject = Subject(
        model=model,
        architecture=architecture,
        accelerator=accelerator,
        weights=weights,
        kv_cache=kv_cache,
        behaviour=behaviour,
        deployment=deployment,
        checkpoint_bytes=checkpoint_bytes,
        request=engine,
    )
    return subject, assumed


def draft_bytes_on_rank(draft: Architecture | None, layout: Layout) -> float:
    """Weights of a draft model on one tensor rank, in its own 16-bit type; 0 without one."""
    if draft is None:
        return 0.0
    return draft.parameters.total * FLOAT_BYTES.get(draft.dtype, 2.0) / float(layout.tensor)
