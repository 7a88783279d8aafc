"""Encoder-decoder models: Whisper, BART and T5 in their own key names."""

from service.catalog.hf.fields import (
    MOST_HEADS,
    MOST_HIDDEN,
    MOST_LAYERS,
    MOST_POSITIONS,
    MOST_VOCABULARY,
    MOST_WIDTH,
    Fields,
)
from service.catalog.hf.parts import Part, caches, total
from service.catalog.hf.quantization_config import Stored
from service.catalog.hf.sections import Sections
from service.domain.architecture import Architecture, CacheLayers, ParameterCounts

_LARGEST_SOURCE = 512
"""Source tokens cached by a text encoder-decoder where the config names no limit (T5's training length)."""


def is_encoder_decoder(fields: Fields) -> bool:
    """Whether encoder and decoder layers are counted apart."""
    return fields.has("decoder_layers") or (fields.has("num_decoder_layers") and fields.has("d_model"))


def read_encoder_decoder(sections: Sections, stored: Stored) -> Architecture:
    """Self-attention over the output, cross-attention over a fixed source (1,500 frames of 30 s audio for Whisper)."""
    fields = sections.text
    hidden = fields.required("d_model", "hidden_size", high=MOST_HIDDEN)
    layers = fields.required("decoder_layers", "num_decoder_layers", high=MOST_LAYERS)
    encoder_layers = fields.integer("encoder_layers", "num_layers", high=MOST_LAYERS) or layers
    heads = fields.required("decoder_attention_heads", "num_heads", "num_attention_heads", high=MOST_HEADS)
    head_dim = fields.integer("d_kv", low=1, high=MOST_WIDTH) or max(hidden // heads, 1)
    width = fields.required("decoder_ffn_dim", "d_ff", high=MOST_WIDTH)
    encoder_width = fields.integer("encoder_ffn_dim", low=1, high=MOST_WIDTH) or width
    vocabulary = fields.required("vocab_size", high=MOST_VOCABULARY)
    targets = fields.assumed(
        "max_target_positions", "max_position_embeddings", "n_positions", high=MOST_POSITIONS, default=_LARGEST_SOURCE
    )
    bins = fields.integer("num_mel_bins", low=1, high=MOST_WIDTH)
    sources = fields.integer("max_source_positions", "max_position_embeddings", low=1, high=MOST_POSITIONS)
    sources = sources or _LARGEST_SOURCE
    biased = not fields.has("d_kv")
    gated = "gated" in (fields.text("feed_forward_proj") or "")
    inner = heads * head_dim
    attention = 4 * hidden * inner + (2 * inner + 2 * hidden if biased else 0)
    if biased and bins is None:
        attention += inner  # Whisper's key projection alone has no bias
    elif biased:
        attention += inner - hidden
    norm = 2 * hidden if biased else hidden

    def mlp(inner_width: int) -> int:
        return hidden * inner_width * (3 if gated else 2) + (inner_width + hidden if biased else 0)

    audio = 0 if bins is None else 3 * bins * hidden + 3 * hidden * hidden + 2 * hidden
    learned = (sources + targets) * hidden if biased else 0
    cache = {"kv_heads": heads, "elements_per_head": 2 * head_dim, "query_heads": heads, "score_dim": 2 * head_dim}
    parts = (
        Part(layers=1, each=ParameterCounts(embedding=vocabulary * hidden + learned + audio, norms=2 * norm)),
        Part(
            layers=encoder_layers,
            each=ParameterCounts(attention=attention, dense_mlp=mlp(encoder_width), norms=2 * norm),
        ),
        Part(
            layers=layers,
            each=ParameterCounts(attention=2 * attention, dense_mlp=mlp(width), norms=3 * norm),
            caches=(
                CacheLayers(kind="full", layers=layers, **cache),
                CacheLayers(kind="cross", layers=layers, window_tokens=sources, **cache),
            ),
        ),
    )
    return Architecture(
        model_type=sections.model_type,
        role="encoder_decoder",
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocabulary,
        query_heads=heads,
        kv_heads=heads,
        max_position_embeddings=targets,
        intermediate_size=max(width, encoder_width),
        parameters=total(parts),
        cache=caches(parts),
        dense_layers=layers,
        gated_mlp=gated,
        tied_embeddings=fields.flag("tie_word_embeddings", default=True),
        dtype=stored.dtype,
        checkpoint_format=stored.format,
        checkpoint_kv_cache=stored.kv_cache,
        unquantized=stored.unquantized,
        stored_bits=stored.bits,
        estimated=tuple(dict.fromkeys(fields.estimated)),
    )
