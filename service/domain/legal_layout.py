"""Which parallel layouts an engine accepts for a model."""

from typing import NamedTuple

from service.domain.architecture import Architecture
from service.domain.deployment import Layout
from service.domain.message import Message
from service.domain.numeric import Flag, Number, as_float, choose
from service.domain.weights import expert_slices, padded_vocabulary


class _Check(NamedTuple):
    code: str
    holds: Flag
    has: float
    """What must divide, or must not be exceeded."""
    asked: Number


def _checks(architecture: Architecture, layout: Layout, *, span_data: bool) -> list[_Check]:
    """Rules of tensor, pipeline and expert parallelism (vLLM ``verify_with_parallel_config`` and the layers' own)."""
    tensor, ranks = layout.tensor, layout.tensor * layout.data
    experts_whole = layout.expert > 0.0
    checks = [
        _Check("heads_not_divisible", architecture.query_heads % tensor == 0.0, architecture.query_heads, tensor),
        _Check(
            "layers_fewer_than_stages", layout.pipeline <= architecture.layers, architecture.layers, layout.pipeline
        ),
    ]
    vocabulary = padded_vocabulary(architecture)
    checks.append(_Check("vocabulary_not_divisible", vocabulary % tensor == 0.0, architecture.vocab_size, tensor))
    for heads in sorted(
        {group.kv_heads for group in architecture.cache if group.kind in {"full", "sliding", "chunked"}}
    ):
        shared = (heads % tensor == 0.0) | (tensor % heads == 0.0)
        checks.append(_Check("kv_heads_not_divisible", shared, heads, tensor))
    if architecture.experts:
        width = architecture.moe_intermediate_size
        slices = expert_slices(layout, span_data=span_data)
        checks.append(_Check("expert_width_not_divisible", width % slices == 0.0, width, slices))
        spread = choose(experts_whole, architecture.experts % ranks, 0.0)
        checks.append(_Check("experts_not_divisible", spread == 0.0, architecture.experts, ranks))
    else:
        width = architecture.intermediate_size
        checks.append(_Check("mlp_width_not_divisible", width % tensor == 0.0, width, tensor))
    return checks


def layout_is_legal(architecture: Architecture, layout: Layout, *, span_data: bool = False) -> Flag:
    """Whether heads, vocabulary, experts and layers divide over the layout, for one or for many.

    ``span_data``: experts are cut over data ranks too (``EngineBehaviour.experts_span_data``).
    """
    legal: Flag = True
    for check in _checks(architecture, layout, span_data=span_data):
        legal = check.holds & legal
    return legal


def layout_fault(architecture: Architecture, layout: Layout, *, span_data: bool = False) -> Message | None:
    """Say the first rule that one layout breaks; None where it is legal.

    Codes: ``heads_not_divisible``, ``kv_heads_not_divisible``, ``vocabulary_not_divisible``,
    ``mlp_width_not_divisible``, ``expert_width_not_divisible``, ``experts_not_divisible``,
    ``layers_fewer_than_stages``, each with ``has`` and ``asked``.
    """
    for check in _checks(architecture, layout, span_data=span_data):
        if not check.holds:
            return Message(check.code, {"has": int(check.has), "asked": int(as_float(check.asked))})
    return None
