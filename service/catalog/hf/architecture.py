"""Any Hugging Face ``config.json`` to the domain's ``Architecture``."""

from collections.abc import Iterable, Mapping
from typing import Literal

from service.catalog.hf.attention import SOFTMAX, attention_parts, read_facts, read_heads
from service.catalog.hf.draft_layers import draft_parts
from service.catalog.hf.embeddings import embedding_parts, is_tied
from service.catalog.hf.encoder_decoder import is_encoder_decoder, read_encoder_decoder
from service.catalog.hf.fields import Fields
from service.catalog.hf.latent_attention import compressed_parts, has_compression, has_latent, latent_parts
from service.catalog.hf.layer_kinds import LayerKind, read_layer_kinds
from service.catalog.hf.mlp import Experts, Mlp, mlp_parts, read_mlp
from service.catalog.hf.parts import Part, caches, total
from service.catalog.hf.quantization_config import Stored, read_stored
from service.catalog.hf.searched_blocks import Block, block_parts, read_blocks
from service.catalog.hf.sections import Sections, read_sections
from service.catalog.hf.state_mixers import state_parts
from service.catalog.hf.towers import largest_image_tokens, tower_parts
from service.catalog.hf.traits import Traits
from service.catalog.hf.widths import Widths, read_widths
from service.domain.architecture import Architecture

MOST_ROTARY_SCALE = 1024.0
"""A larger factor is no model's."""


def architecture_from_config(config: Mapping[str, object]) -> Architecture:
    """Read the language model (or encoder) of a config.

    What had to be assumed is named in ``estimated``; an unknown ``model_type`` is read as a Llama-like decoder with the
    attention, experts and state that its keys describe.

    Raises ``ConfigError`` (``pointer`` relative to the config) where a key that no model can be sized without is
    missing, or a value is of the wrong type, out of all bounds, or contradicts another.
    """
    sections = read_sections(config)
    stored = read_stored(sections)
    if is_encoder_decoder(sections.text):
        return read_encoder_decoder(sections, stored)
    return _decoder(sections, stored)


def _decoder(sections: Sections, stored: Stored) -> Architecture:
    fields, traits = sections.text, sections.traits
    widths = read_widths(fields, traits)
    causal = not traits.encoder
    if fields.has("block_configs"):
        blocks = read_blocks(fields, widths)
        mlp = _searched_mlp(blocks)
        mixers: tuple[Part, ...] = block_parts(blocks, widths)
        outside = [part for part in embedding_parts(fields, traits, widths) if part.layers == 1]
        feed_forward: tuple[Part, ...] = ()
    else:
        mlp = read_mlp(fields, traits, widths)
        mixers = tuple(_mixers(sections, widths, causal=causal))
        outside = list(embedding_parts(fields, traits, widths))
        feed_forward = tuple(mlp_parts(fields, traits, widths, mlp))
    parts = (
        *mixers,
        *outside,
        *feed_forward,
        *draft_parts(fields, traits, widths, mlp, mixers),
        *tower_parts(sections, widths.hidden),
    )
    cached = caches(parts)
    return Architecture(
        model_type=sections.model_type,
        role=_role(sections, traits),
        layers=widths.layers,
        hidden_size=widths.hidden,
        vocab_size=widths.vocabulary,
        query_heads=widths.heads,
        kv_heads=max((cache.kv_heads for cache in cached if cache.kind != "state"), default=widths.kv_heads),
        max_position_embeddings=widths.positions,
        intermediate_size=max(mlp.dense_width, mlp.experts.chosen * mlp.experts.width, 1),
        parameters=total(parts),
        cache=cached,
        dense_layers=mlp.dense_layers,
        moe_layers=mlp.moe_layers,
        experts=mlp.experts.count,
        experts_per_token=mlp.experts.chosen,
        moe_intermediate_size=mlp.experts.width,
        gated_mlp=mlp.gated,
        tied_embeddings=is_tied(fields, traits),
        vision_tokens_max=largest_image_tokens(sections),
        dtype=stored.dtype,
        checkpoint_format=stored.format,
        checkpoint_kv_cache=stored.kv_cache,
        unquantized=stored.unquantized,
        stored_bits=stored.bits,
        rotary_scale=_rotary_scale(fields),
        estimated=tuple(dict.fromkeys(sections.whole.estimated)),
    )


def _rotary_scale(fields: Fields) -> float:
    """Factor of linear rope scaling; 1 for every other kind, which keeps the tables' length."""
    scaling = fields.raw("rope_scaling") or fields.raw("rope_parameters")
    if isinstance(scaling, Mapping) and isinstance(scaling.get("full_attention"), Mapping):
        scaling = scaling["full_attention"]
    if not isinstance(scaling, Mapping) or "linear" not in (scaling.get("rope_type"), scaling.get("type")):
        return 1.0
    factor = scaling.get("factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1.0 <= factor <= MOST_ROTARY_SCALE:
        return 1.0
    return float(factor)


def _role(sections: Sections, traits: Traits) -> Literal["decoder", "encoder"]:
    return "encoder" if traits.encoder or sections.whole.text("model_role") == "encoder" else "decoder"


def _mixers(sections: Sections, widths: Widths, *, causal: bool) -> Iterable[Part]:
    """Attention and state of all layers."""
    fields, traits = sections.text, sections.traits
    if has_compression(fields):
        yield from compressed_parts(fields, widths)
        return
    kinds: tuple[LayerKind, ...] = read_layer_kinds(fields, traits, widths) * traits.attention_blocks
    if has_latent(fields):
        yield from latent_parts(fields, widths, kinds)
    elif SOFTMAX & set(kinds):
        facts = read_facts(fields, traits, largest_image_tokens(sections) if "cross" in kinds else 0)
        yield from attention_parts(read_heads(fields, widths, kinds), facts, widths, causal=causal)
    yield from state_parts(fields, widths, kinds)


def _searched_mlp(blocks: Mapping[Block, int]) -> Mlp:
    """The widest of the searched MLPs stands for the activations of all."""
    dense = sum(layers for block, layers in blocks.items() if block.width)
    return Mlp(Experts(), max(block.width for block in blocks), dense_layers=dense, moe_layers=0, gated=True)
