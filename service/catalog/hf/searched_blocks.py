"""Networks whose blocks were searched one by one (Nemotron-NAS, ``block_configs``): sum layer by layer."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from service.catalog.hf.fault import contradiction, wrong_type
from service.catalog.hf.fields import MOST_HEADS, Fields
from service.catalog.hf.parts import Part
from service.catalog.hf.widths import Widths
from service.domain.architecture import CacheLayers, ParameterCounts

_ROUNDED_TO = 256
_MOST_MULTIPLE = 64.0


class Block(msgspec.Struct, frozen=True):
    """One layer: heads of keys and values (0: no attention) and MLP width (0: none)."""

    kv_heads: int
    linear_attention: bool
    width: int
    linear_mlp: bool


def read_blocks(fields: Fields, widths: Widths) -> Counter[Block]:
    """How many layers have which block."""
    entries = fields.items("block_configs")
    if len(entries) < widths.layers:
        raise contradiction(fields.pointer, "block_configs", "num_hidden_layers")
    counted: Counter[Block] = Counter()
    for index, entry in enumerate(entries[: widths.layers]):
        if not isinstance(entry, Mapping):
            raise wrong_type(fields.pointer, "block_configs", "list of objects")
        counted[_block(Fields(entry, f"{fields.pointer}/block_configs/{index}", fields.estimated), widths)] += 1
    return counted


def _block(entry: Fields, widths: Widths) -> Block:
    attention, mlp = entry.section("attention"), entry.section("ffn")
    kv_heads, width = 0, 0
    if attention is not None and not attention.flag("no_op", default=False):
        group = attention.integer("n_heads_in_group", low=1, high=MOST_HEADS)
        kv_heads = max(widths.heads // group, 1) if group else 0
    if mlp is not None and not mlp.flag("no_op", default=False):
        multiple = mlp.number("ffn_mult", high=_MOST_MULTIPLE)
        if multiple:
            width = -(-int(2 * multiple * widths.hidden / 3) // _ROUNDED_TO) * _ROUNDED_TO
    return Block(
        kv_heads=kv_heads,
        linear_attention=attention is not None and attention.flag("replace_with_linear", default=False),
        width=width,
        linear_mlp=mlp is not None and mlp.flag("replace_with_linear", default=False),
    )


def block_parts(counted: Mapping[Block, int], widths: Widths) -> tuple[Part, ...]:
    """Parameters and caches of all blocks; a block without attention or MLP has no norm before it either."""
    return tuple(Part(layers=n, each=_parameters(b, widths), caches=_cache(b, widths, n)) for b, n in counted.items())


def _parameters(block: Block, widths: Widths) -> ParameterCounts:
    hidden, queries = widths.hidden, widths.heads * widths.head_dim
    attention = 2 * hidden * (queries + block.kv_heads * widths.head_dim) if block.kv_heads else 0
    attention += hidden * hidden if block.linear_attention else 0
    mlp = 3 * hidden * block.width + (hidden * hidden if block.linear_mlp else 0)
    return ParameterCounts(attention=attention, dense_mlp=mlp, norms=hidden * (bool(attention) + bool(mlp)))


def _cache(block: Block, widths: Widths, layers: int) -> tuple[CacheLayers, ...]:
    if not block.kv_heads:
        return ()
    width = 2 * widths.head_dim
    return (
        CacheLayers(
            kind="full", layers=layers, kv_heads=block.kv_heads, elements_per_head=width, query_heads=widths.heads,
            score_dim=width,
        ),
    )  # fmt: skip
