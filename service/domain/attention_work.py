"""What attention reads and multiplies: cache bytes of a decode step, token pairs of a prefill, by kind of layer."""

from service.domain.architecture import Architecture, CacheLayers
from service.domain.deployment import Deployment
from service.domain.kv_cache import GROWING, layer_bytes_per_token
from service.domain.numeric import Number
from service.domain.request_shape import RequestShape
from service.domain.strata import STRATUM_WEIGHTS

ABSORBED_VALUE_SHARE = 8.0 / 9.0
"""Latent attention decodes on the cached entry itself: keys of all 576 elements, values of the 512 not rotary."""


def visible_tokens(layers: CacheLayers, tokens: float) -> float:
    """Tokens that one query of a layer attends to in a context of ``tokens``."""
    if layers.kind == "state":
        return 0.0
    if layers.kind == "cross":
        return float(layers.window_tokens)
    if layers.kind not in GROWING:
        return min(tokens, float(layers.window_tokens))
    return min(tokens, float(layers.sparse_tokens)) if layers.sparse_tokens else tokens


def cache_read_bytes(architecture: Architecture, deployment: Deployment, tokens: float) -> Number:
    """Bytes that one tensor rank of all layers reads (recurrent state: and writes) in one decode step of a sequence."""
    tensor, kv_bytes = deployment.layout.tensor, deployment.precision.kv_bytes
    total: Number = 0.0
    for layers in architecture.cache:
        if layers.kind == "state":
            total = total + 2.0 * layers.layers * layers.state_bytes / tensor
            continue
        seen = visible_tokens(layers, tokens)
        token_bytes = layer_bytes_per_token(layers, tensor, kv_bytes)
        skipped = layers.extra_bytes_per_token * (tokens - seen) if layers.kind in GROWING else 0.0
        total = total + layers.layers * (token_bytes * seen + skipped)
    return total


def decode_flops(architecture: Architecture, tokens: float) -> float:
    """Attention FLOPs of one sequence in one decode step, over all heads and layers."""
    total = 0.0
    for layers in architecture.cache:
        width = float(layers.score_dim)
        if layers.kind == "latent":
            width = layers.elements_per_head * (1.0 + ABSORBED_VALUE_SHARE)
        total += layers.layers * 2.0 * layers.query_heads * width * visible_tokens(layers, tokens)
    return total


def prefill_flops(architecture: Architecture, shape: RequestShape, tokens: float) -> float:
    """Causal attention FLOPs of a prompt of ``tokens``, of which the cached prefix is attended to but not computed."""
    causal = architecture.role != "encoder"
    total = 0.0
    for layers in _scored(architecture):
        pairs = _pairs(layers, tokens, causal=causal) - _pairs(layers, tokens - shape.computed(tokens), causal=causal)
        total += layers.layers * 2.0 * layers.query_heads * layers.score_dim * pairs
    return total


def mean_prefill_flops(architecture: Architecture, shape: RequestShape) -> float:
    """The same, averaged over the distribution of the input."""
    points = zip(STRATUM_WEIGHTS, shape.input.points, strict=True)
    if shape.input.points[0] == shape.input.points[-1]:
        return prefill_flops(architecture, shape, shape.input.mean)
    return sum(weight * prefill_flops(architecture, shape, tokens) for weight, tokens in points)


def _scored(architecture: Architecture) -> tuple[CacheLayers, ...]:
    """Layers with attention scores; an encoder caches nothing, so its layers are taken as plain full attention."""
    if architecture.cache or architecture.role != "encoder":
        return architecture.cache
    width = 2 * architecture.hidden_size // max(architecture.query_heads, 1)
    return (
        CacheLayers(kind="full", layers=architecture.layers, query_heads=architecture.query_heads, score_dim=width),
    )


def _pairs(layers: CacheLayers, tokens: float, *, causal: bool) -> float:
    """Query-key pairs of the first ``tokens`` of a prompt in one head."""
    tokens = max(tokens, 0.0)
    if layers.kind == "state":
        return 0.0
    if layers.kind == "cross":
        return tokens * layers.window_tokens
    half = 0.5 if causal else 1.0
    window = visible_tokens(layers, tokens)
    return half * window * window + (tokens - window) * window
