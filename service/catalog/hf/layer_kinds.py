"""Which kind of token mixer each layer has. The lists of the config decide; patterns and defaults stand in for them."""

from typing import Literal

from service.catalog.hf.fault import contradiction
from service.catalog.hf.fields import MOST_LAYERS, MOST_POSITIONS, MOST_WIDTH, Fields
from service.catalog.hf.traits import Traits
from service.catalog.hf.widths import HEADS, Widths

LayerKind = Literal["full", "sliding", "chunked", "linear", "mamba", "conv", "cross", "parallel", "none"]
"""``linear``: gated delta, KDA or lightning attention; ``parallel``: attention beside a state-space mixer; ``none``: a
block that is an MLP alone."""

_WORDS: dict[str, LayerKind] = {
    "full_attention": "full", "attention": "full", "full": "full", "global": "full", "global_attention": "full",
    "indexed_attention": "full", "sparse_attention": "full", "compressed_sparse_attention": "full",
    "heavily_compressed_attention": "full", "deepseek_sparse_attention": "full", "mla": "full", "gqa": "full",
    "sliding_attention": "sliding", "sliding": "sliding", "local": "sliding", "local_attention": "sliding",
    "sliding_window": "sliding", "swa": "sliding", "window_attention": "sliding",
    "chunked_attention": "chunked", "chunked": "chunked",
    "linear_attention": "linear", "lightning_attention": "linear", "kda": "linear", "gated_deltanet": "linear",
    "linear": "linear", "mamba": "mamba", "mamba2": "mamba", "ssm": "mamba", "recurrent": "mamba",
    "conv": "conv", "short_conv": "conv", "cross_attention": "cross", "hybrid": "parallel", "hybrid_sliding": "sliding",
    "moe": "none", "mlp": "none",
}  # fmt: skip

_PATTERN: dict[str, LayerKind] = {"M": "mamba", "*": "full", "-": "none", "E": "none"}
_LETTERS: dict[str, LayerKind] = {"L": "sliding", "G": "full"}

_SWITCHES: tuple[tuple[str, LayerKind, LayerKind], ...] = (
    ("attn_type_list", "linear", "full"),
    ("hybrid_layer_pattern", "full", "sliding"),
)
"""Lists of 0 and 1: MiniMax-01, MiMo-V2."""

LINEAR_KEYS = ("linear_num_value_heads", "linear_num_heads", "linear_attn_config", "linear_key_head_dim")
STATE_KEYS = ("mamba_d_ssm", "ssm_state_size", "state_size", "mamba_d_state", "time_step_rank")
"""Keys of state-space mixers; without any, ``hybrid`` layers are attention (Inkling, with short convolutions)."""
_CHUNK_EVERY = 4
"""Llama 4: every fourth layer attends to everything (``no_rope_layer_interval``)."""


def block_letters(fields: Fields, layers: int | None = None) -> str:
    """Nemotron-H's single-purpose blocks: ``M`` mamba, ``*`` attention, ``-`` MLP, ``E`` experts; else empty."""
    pattern = fields.text("hybrid_override_pattern") or ""
    if not pattern:
        words = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
        pattern = "".join(words.get(word, "*") for word in fields.texts("layers_block_type"))
    pattern = "".join(letter for letter in pattern if letter in _PATTERN)
    if layers is not None and pattern and len(pattern) < layers:
        raise contradiction(fields.pointer, "hybrid_override_pattern", "num_hidden_layers")
    return pattern


def read_layer_kinds(fields: Fields, traits: Traits, widths: Widths) -> tuple[LayerKind, ...]:
    """One kind per layer."""
    layers = widths.layers
    kinds = _listed(fields, layers)
    if kinds is None:
        kinds = _patterned(fields, traits, layers)
    crossed = set(fields.integers("cross_attention_layers", high=MOST_LAYERS))
    if crossed:
        kinds = tuple("cross" if index in crossed else kind for index, kind in enumerate(kinds))
    if "sliding" in kinds and read_window(fields) is None:
        kinds = tuple("full" if kind == "sliding" else kind for kind in kinds)
    return kinds


def read_window(fields: Fields) -> int | None:
    """Tokens that a sliding layer sees; None where the window is switched off or the config names none."""
    if not fields.flag("use_sliding_window", default=True):
        return None
    return fields.integer("sliding_window", "sliding_window_size", "local_attention", high=MOST_POSITIONS) or None


def _listed(fields: Fields, layers: int) -> tuple[LayerKind, ...] | None:
    """Kinds that the config spells out layer by layer."""
    letters = block_letters(fields, layers)
    if letters:
        return tuple(_PATTERN[letter] for letter in letters[:layers])
    for name in ("layer_types", "layers_block_type", "block_types"):
        words = fields.texts(name)
        if words:
            kinds = [_WORDS.get(word, "full") for word in words]
            if not fields.has(*STATE_KEYS):
                kinds = ["full" if kind == "parallel" else kind for kind in kinds]
            if any(word not in _WORDS for word in words):
                fields.estimated.append(name)
            return _first(kinds, layers, fields, name)
    nested = fields.section("linear_attn_config")
    if nested is not None:
        attending = set(nested.integers("full_attn_layers", high=MOST_LAYERS))
        return tuple("full" if index in attending else "linear" for index in range(1, layers + 1))
    for name, zero, one in _SWITCHES:
        numbers = fields.integers(name, high=1)
        if numbers:
            return _first([one if number else zero for number in numbers], layers, fields, name)
    attending = set(fields.integers("full_attn_idxs", high=MOST_LAYERS))
    return _where(attending, layers, "conv") if attending else None


def _first(kinds: list[LayerKind], layers: int, fields: Fields, name: str) -> tuple[LayerKind, ...]:
    """The list cut to the layers; drafting layers may stand behind them."""
    if len(kinds) < layers:
        raise contradiction(fields.pointer, name, "num_hidden_layers")
    return tuple(kinds[:layers])


def _patterned(fields: Fields, traits: Traits, layers: int) -> tuple[LayerKind, ...]:
    """Kinds that a period gives."""
    period = fields.integer("attn_layer_period", low=1, high=MOST_LAYERS)
    if period is not None:
        offset = fields.integer("attn_layer_offset", high=MOST_LAYERS) or 0
        return _every(layers, "full", "mamba", period, offset)
    attending = set(fields.integers("attn_layer_indices", high=MOST_LAYERS))
    if attending:
        return _where(attending, layers, "mamba")
    if fields.has(*LINEAR_KEYS):
        every = fields.integer("full_attention_interval", low=1, high=MOST_LAYERS) or 4
        return _every(layers, "full", "linear", every, every - 1)
    if fields.has(*STATE_KEYS):
        return ("parallel" if fields.has(*HEADS) else "mamba",) * layers
    if fields.has("attention_chunk_size"):
        return _chunked(fields, layers)
    return _windowed(fields, traits, layers)


def _chunked(fields: Fields, layers: int) -> tuple[LayerKind, ...]:
    rotary = fields.integers("no_rope_layers", high=1)
    if rotary:
        return _first(["chunked" if entry else "full" for entry in rotary], layers, fields, "no_rope_layers")
    every = fields.integer("no_rope_layer_interval", low=1, high=MOST_LAYERS) or _CHUNK_EVERY
    return _every(layers, "full", "chunked", every, every - 1)


def _windowed(fields: Fields, traits: Traits, layers: int) -> tuple[LayerKind, ...]:
    """Windows by pattern: a number, a string of L and G, the family's habit, or on all layers."""
    pattern = fields.raw("sliding_window_pattern")
    if isinstance(pattern, str) and pattern and set(pattern) <= _LETTERS.keys():
        return tuple(_LETTERS[pattern[index % len(pattern)]] for index in range(layers))
    numbers = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    every = None if isinstance(pattern, str) else fields.integer(*numbers, low=0, high=MOST_LAYERS)
    switched_on = fields.flag("use_sliding_window", default=False)
    if every is None:
        every = traits.window_every
    if every == 1 and switched_on:
        first = fields.integer("max_window_layers", high=MOST_WIDTH) or 0
        return _where(set(range(first)), layers, "sliding")
    if not every:
        return _where(set(), layers, "sliding")
    return _every(layers, "full", "sliding", every, every - 1)


def _where(attending: set[int], layers: int, usual: LayerKind) -> tuple[LayerKind, ...]:
    return tuple("full" if index in attending else usual for index in range(layers))


def _every(layers: int, rare: LayerKind, usual: LayerKind, period: int, offset: int) -> tuple[LayerKind, ...]:
    return tuple(rare if index % period == offset % period else usual for index in range(layers))
