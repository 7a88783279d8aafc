"""Module names of quantized checkpoints to tensor classes: what a release's own list leaves in 16 bits."""

import re
from collections import Counter

from service.catalog.hf.fields import Fields
from service.domain.architecture import TensorClass

ALWAYS_KEPT: frozenset[TensorClass] = frozenset({"embedding", "norms", "router"})
"""No release quantizes these with its linear layers."""

MOST_NAMES = 24_000
"""Names of a list beyond which it is not read; the longest seen has 22,000 (one per expert matrix)."""

_CLASS_PATTERNS: dict[TensorClass, re.Pattern[str]] = {
    "mtp": re.compile(r"\bmtp|nextn|eh_proj|shared_head"),
    "vision": re.compile(r"vision|visual|image|mm_proj|multi_modal|projector|audio|patch_merge"),
    "norms": re.compile(r"norm\b|layernorm|_norm"),
    "embedding": re.compile(r"embed_tokens|wte|word_embed|tok_embed|^embed"),
    "lm_head": re.compile(r"lm_head|^head$|output_layer|embed_out"),
    "shared_experts": re.compile(r"shared_?expert|shared_mlp|share_expert"),
    "router": re.compile(r"router|\.gate$|\bgate\*?$|gate\.|e_score|correction_bias"),
    "routed_experts": re.compile(r"experts?\b"),
    "state_mixer": re.compile(r"linear_attn|mamba|mixer|conv|ssm|delta|in_proj_[abqz]|\bkda"),
    "attention_replicated": re.compile(r"indexer|index_[kq]|kv_a_proj|q_a_proj|compressor"),
    "attention": re.compile(r"self_?attn|attention|\battn|[qkvo]_proj|qkv"),
    "dense_mlp": re.compile(r"mlp|ffn|feed_forward|gate_proj|up_proj|down_proj|\bfc\d?"),
}
"""Tensor classes by module name, the first that matches."""

_SINGLE_MATRIX = re.compile(r"indexers?_proj|k_norm|q_a_layernorm|in_proj_[ab]\b|conv1d|A_log|dt_bias")
"""Names of one small matrix or vector of a class, which do not speak for the class."""


_NUMBER = re.compile(r"\d+")


def numberless(name: str) -> str:
    """A module name with the numbers of layers and experts taken out."""
    return _NUMBER.sub("#", name[:300])


def class_of(name: str) -> TensorClass | None:
    """Tensor class that a module name or pattern speaks of."""
    plain = name.removeprefix("re:").replace("\\", "").strip(".*^$")
    for tensor_class, pattern in _CLASS_PATTERNS.items():
        if pattern.search(plain):
            return tensor_class
    return None


def unquantized_classes(fields: Fields) -> tuple[TensorClass, ...] | None:
    """Classes that the checkpoint's own list leaves in 16 bits; None where it has no list.

    A list by layer speaks for the class when it names at least a third of the layers that the list's longest run names:
    releases leave single layers (first and last) in 16 bits too.
    """
    names: list[object] = []
    for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"):
        value = fields.raw(key)
        if isinstance(value, list | tuple):
            names += value[:MOST_NAMES]
    if not names:
        return None
    kept: set[TensorClass] = set(ALWAYS_KEPT)
    counted = Counter(numberless(name) for name in names if isinstance(name, str))
    layers = max(counted.values(), default=0)
    for pattern, count in counted.items():
        found = class_of(pattern)
        everywhere = "layers.#" not in pattern or count * 3 >= layers
        if found is None or not everywhere or _SINGLE_MATRIX.search(pattern):
            continue
        kept.add(found)
    if "attention" in kept and not fields.has("quantized_layers"):
        kept.add("attention_replicated")
    return tuple(sorted(kept))
