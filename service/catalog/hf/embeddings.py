"""Token and position embeddings, the output projection, and the norms that are not inside an attention layer."""

import re
from collections.abc import Iterable

from service.catalog.hf.fields import MOST_HIDDEN, MOST_VOCABULARY, MOST_WIDTH, Fields
from service.catalog.hf.layer_kinds import block_letters
from service.catalog.hf.parts import Part
from service.catalog.hf.traits import Traits
from service.catalog.hf.widths import Widths
from service.domain.architecture import ParameterCounts

_BARE = re.compile(r"^(?!.*(?:LM|MM|Chat)).*Model$|Classification$")
"""Class names of models without a head; ``GPT2LMHeadModel`` and ``InternVLChatModel`` have one."""


def is_tied(fields: Fields, traits: Traits) -> bool:
    """Whether the output projection is the embedding."""
    if fields.has("tie_embedding"):
        return fields.flag("tie_embedding", default=traits.tied)
    return fields.inherited_flag("tie_word_embeddings", default=traits.tied)


def has_head(fields: Fields, traits: Traits) -> bool:
    """Whether there is an output projection: embedding and reranking checkpoints (``Qwen3Model``) have none."""
    return traits.head and not any(map(_BARE.search, fields.inherited_texts("architectures")))


def embedding_parts(fields: Fields, traits: Traits, widths: Widths) -> Iterable[Part]:
    """Everything outside the layers, and the norms of all layers."""
    hidden = widths.hidden
    own_width = fields.integer("word_embed_proj_dim", "embedding_size", low=1, high=MOST_HIDDEN) or hidden
    projected = 2 * own_width * hidden if own_width != hidden else 0
    rows = widths.vocabulary
    if traits.positions and fields.text("position_embedding_type") in {None, "absolute"}:
        rows += widths.positions + traits.position_offset
    rows += fields.integer("type_vocab_size", high=MOST_WIDTH) or traits.token_types
    head = 0
    if has_head(fields, traits) and not is_tied(fields, traits):
        head = widths.vocabulary * own_width
    if fields.flag("lm_head_bias", default=traits.head_bias):
        head += widths.vocabulary
    norm = hidden * (2 if traits.norm_bias else 1)
    final = 0 if traits.encoder and traits.pooler else norm
    before = norm if traits.embedding_norm else 0
    pooler = hidden * (hidden + 1) if traits.pooler else 0
    yield Part(
        layers=1,
        each=ParameterCounts(
            embedding=rows * own_width + projected, lm_head=head, norms=final + before, dense_mlp=pooler
        ),
    )
    yield Part(layers=widths.layers, each=ParameterCounts(norms=_norms_per_layer(fields, traits) * norm))
    yield from _per_layer_embeddings(fields, widths)


def _norms_per_layer(fields: Fields, traits: Traits) -> int:
    if block_letters(fields):
        return 1
    if fields.flag("new_decoder_architecture", default=False):
        return 2
    if fields.flag("enable_moe_block", default=False):
        return traits.norms + 3
    return traits.norms


def _per_layer_embeddings(fields: Fields, widths: Widths) -> Iterable[Part]:
    """Gemma 3n and the small Gemma 4: every layer looks up a narrow embedding of its own."""
    width = fields.integer("hidden_size_per_layer_input", high=MOST_WIDTH)
    if not width:
        return
    rows = fields.integer("vocab_size_per_layer_input", low=1, high=MOST_VOCABULARY) or widths.vocabulary
    hidden, layers = widths.hidden, widths.layers
    yield Part(
        layers=1,
        each=ParameterCounts(embedding=rows * width * layers, dense_mlp=hidden * width * layers, norms=width),
    )
    yield Part(layers=layers, each=ParameterCounts(dense_mlp=2 * hidden * width, norms=hidden))
    yield from _alternating_updates(fields, hidden, layers)


def _alternating_updates(fields: Fields, hidden: int, layers: int) -> Iterable[Part]:
    """Gemma 3n: several copies of the hidden state (AltUp), and low-rank side paths (LAuReL)."""
    inputs = fields.integer("altup_num_inputs", high=64)
    if not inputs:
        return
    rank = fields.integer("laurel_rank", high=MOST_WIDTH) or 0
    yield Part(layers=1, each=ParameterCounts(dense_mlp=2 * (inputs - 1) * hidden * hidden))
    coefficients = inputs * inputs + inputs * inputs * inputs + inputs * hidden
    yield Part(layers=layers, each=ParameterCounts(dense_mlp=2 * hidden * rank + coefficients, norms=3 * hidden))
