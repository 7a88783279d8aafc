"""Layers that carry a state of fixed size instead of a growing cache: state-space, linear attention, convolution.

State bytes per layer and sequence: the recurrent state in the precision that the config names (vLLM's mamba_utils.py:
``mamba_ssm_dtype`` / ``mamba_ssm_cache_dtype``, else the model's 16 bits; KDA always fp32), and the last
``kernel - 1`` inputs of the convolution in 16 bits.
"""

from collections.abc import Iterable

from service.catalog.hf.fields import MOST_HEADS, MOST_WIDTH, Fields
from service.catalog.hf.layer_kinds import LayerKind
from service.catalog.hf.parts import Part
from service.catalog.hf.widths import Widths
from service.domain.architecture import CacheLayers, ParameterCounts

_WIDE_BYTES = 4
_NARROW_BYTES = 2
_KERNEL = 4
_STATE_HEAD = 64
_WIDE_NAMES = frozenset({"float32", "fp32", "float"})
_MOST_KERNEL = 256


def state_parts(fields: Fields, widths: Widths, kinds: tuple[LayerKind, ...]) -> Iterable[Part]:
    """Parameters and state of all layers that are not softmax attention alone."""
    mamba = kinds.count("mamba") + kinds.count("parallel")
    linear = kinds.count("linear")
    conv = kinds.count("conv")
    if mamba:
        yield _mamba(fields, widths, mamba)
    if linear:
        yield _linear(fields, widths, linear)
    if conv:
        yield _short_convolution(fields, widths, conv)


def _state_element_bytes(fields: Fields) -> int:
    named = fields.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    return _WIDE_BYTES if named in _WIDE_NAMES else _NARROW_BYTES


def _kernel(fields: Fields) -> int:
    names = ("linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel", "short_conv_kernel_size", "d_conv")
    return fields.integer(*names, low=1, high=_MOST_KERNEL) or _KERNEL


def _part(layers: int, mixer: int, norms: int, state_bytes: int) -> Part:
    return Part(
        layers=layers,
        each=ParameterCounts(state_mixer=mixer, norms=norms),
        caches=(CacheLayers(kind="state", layers=layers, state_bytes=state_bytes),),
    )


def _mamba(fields: Fields, widths: Widths, layers: int) -> Part:
    """Mamba-2 where the config counts heads, else Mamba-1."""
    heads = fields.integer("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", low=1, high=MOST_HEADS)
    if heads is None and not fields.has("mamba_d_ssm"):
        return _mamba_1(fields, widths, layers)
    return _mamba_2(fields, widths, layers, heads)


def _inner(fields: Fields, widths: Widths) -> int:
    expand = fields.integer("mamba_expand", "expand", low=1, high=64) or 2
    return expand * widths.hidden


def _mamba_2(fields: Fields, widths: Widths, layers: int, heads: int | None) -> Part:
    head_dim = fields.integer("mamba_d_head", "mamba_head_dim", "mamba_headdim", low=1, high=MOST_WIDTH)
    inner = fields.integer("mamba_d_ssm", low=1, high=MOST_WIDTH)
    if inner is None:
        inner = heads * head_dim if heads and head_dim else _inner(fields, widths)
    heads = heads or max(inner // (head_dim or _STATE_HEAD), 1)
    state = fields.required("mamba_d_state", "ssm_state_size", "state_size", high=MOST_WIDTH)
    groups = fields.integer("mamba_n_groups", "n_groups", "mamba_ngroups", low=1, high=MOST_HEADS) or 1
    kernel = _kernel(fields)
    convolved = inner + 2 * groups * state
    bias = convolved if fields.flag("use_conv_bias", "mamba_conv_bias", default=True) else 0
    projected = widths.hidden * (inner + convolved + heads) + inner * widths.hidden
    gate_norm = inner if fields.flag("mamba_rms_norm", default=True) else 0
    return _part(
        layers,
        projected + convolved * kernel + bias,
        3 * heads + gate_norm,
        inner * state * _state_element_bytes(fields) + convolved * (kernel - 1) * _NARROW_BYTES,
    )


def _mamba_1(fields: Fields, widths: Widths, layers: int) -> Part:
    hidden, inner = widths.hidden, _inner(fields, widths)
    state = fields.integer("mamba_d_state", "state_size", "ssm_state_size", low=1, high=MOST_WIDTH) or 16
    rank_names = ("mamba_dt_rank", "time_step_rank")
    given = next((name for name in rank_names if isinstance(fields.raw(name), int)), None)
    rank = fields.integer(given, low=1, high=MOST_WIDTH) if given else None
    rank = rank or -(-hidden // 16)
    kernel = _kernel(fields)
    bias = inner if fields.flag("mamba_conv_bias", "use_conv_bias", default=True) else 0
    mixer = hidden * 2 * inner + inner * kernel + bias + inner * (rank + 2 * state) + rank * inner + inner
    mixer += inner * state + inner + inner * hidden
    inner_norms = rank + 2 * state if fields.has("attn_layer_period") else 0
    state_bytes = inner * state * _state_element_bytes(fields) + inner * (kernel - 1) * _NARROW_BYTES
    return _part(layers, mixer, inner_norms, state_bytes)


def _linear(fields: Fields, widths: Widths, layers: int) -> Part:
    """Gated delta net (Qwen3-Next on), KDA (Kimi Linear on), else lightning attention (MiniMax-01)."""
    if fields.has("linear_num_value_heads", "linear_num_key_heads"):
        return _gated_delta(fields, widths, layers)
    if fields.has("linear_num_heads", "linear_attn_config"):
        return _kda(fields, widths, layers)
    return _lightning(widths, layers)


def _gated_delta(fields: Fields, widths: Widths, layers: int) -> Part:
    hidden = widths.hidden
    key_heads = fields.required("linear_num_key_heads", high=MOST_HEADS)
    value_heads = fields.integer("linear_num_value_heads", low=1, high=MOST_HEADS) or key_heads
    key_dim = fields.integer("linear_key_head_dim", low=1, high=MOST_WIDTH) or 128
    value_dim = fields.integer("linear_value_head_dim", low=1, high=MOST_WIDTH) or key_dim
    kernel = _kernel(fields)
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolved = 2 * keys + values
    mixer = hidden * (2 * keys + 2 * values + 2 * value_heads) + convolved * kernel + values * hidden
    state = value_heads * key_dim * value_dim * _state_element_bytes(fields)
    return _part(layers, mixer, 2 * value_heads + value_dim, state + convolved * (kernel - 1) * _NARROW_BYTES)


def _kda(fields: Fields, widths: Widths, layers: int) -> Part:
    own = fields.section("linear_attn_config") or fields
    heads = own.integer("num_heads", "linear_num_heads", low=1, high=MOST_HEADS) or widths.heads
    dim = own.integer("head_dim" if own is not fields else "linear_head_dim", low=1, high=MOST_WIDTH) or 128
    kernel = own.integer("short_conv_kernel_size", "linear_conv_kernel_dim", low=1, high=_MOST_KERNEL) or _KERNEL
    hidden, width = widths.hidden, heads * dim
    low_rank = hidden * dim + dim * width
    gate = hidden * width if own.flag("use_full_rank_gate", default=False) else low_rank
    mixer = 3 * hidden * width + 3 * width * kernel + low_rank + hidden * heads + gate + width * hidden
    state = heads * dim * dim * _WIDE_BYTES + 3 * width * (kernel - 1) * _NARROW_BYTES
    return _part(layers, mixer, heads + width + dim, state)


def _lightning(widths: Widths, layers: int) -> Part:
    hidden, width = widths.hidden, widths.heads * widths.head_dim
    mixer = hidden * 3 * width + hidden * width + width * hidden
    return _part(layers, mixer, width, widths.heads * widths.head_dim * widths.head_dim * _NARROW_BYTES)


def _short_convolution(fields: Fields, widths: Widths, layers: int) -> Part:
    """LFM2: a gated convolution over the last few tokens."""
    hidden = widths.hidden
    length = fields.integer("conv_L_cache", low=1, high=_MOST_KERNEL) or 3
    bias = 5 * hidden if fields.flag("conv_bias", default=False) else 0
    mixer = hidden * 3 * hidden + hidden * length + hidden * hidden + bias
    return _part(layers, mixer, 0, (length - 1) * hidden * _NARROW_BYTES)
