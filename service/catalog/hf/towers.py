"""Vision and audio encoders with their projectors: parameters, and the tokens of the largest image.

One reader for all: a stack of transformer layers over patches. What differs (gated MLPs, biases, mergers) is told by
the encoder's own config or by its ``model_type``; tests hold the totals to the hub's counts.
"""

from collections.abc import Iterable

import msgspec

from service.catalog.hf.fields import MOST_HEADS, MOST_HIDDEN, MOST_LAYERS, MOST_POSITIONS, MOST_WIDTH, Fields
from service.catalog.hf.parts import Part
from service.catalog.hf.sections import Sections
from service.domain.architecture import ParameterCounts

MOST_TOKENS = 16_384
"""Tokens of the largest image where pixels bound it: Qwen-VL processors allow 12.8 or 16.8 million pixels."""

PROFILED_TOKENS: dict[str, int] = {
    "gemma3": 256,
    "gemma4": 2_496,
    "gemma4_unified": 2_496,
    "llama4": 2_448,
    "mllama": 6_404,
    "internvl_chat": 3_328,
    "lfm2_vl": 2_816,
    "kimi_k25": 4_096,
    "kimi_k3": 4_096,
    "kimi_vl": 4_096,
    "minimax_m3_vl": 5_184,
    "llava_onevision": 7_290,
    "phi3_v": 2_509,
    "whisper": 0,
}
"""Tokens of the largest multimodal item by family: Gemma 3 256 an image; Gemma 4 a video of 32 frames x 78 (its
engines raise the batch to it); Llama 3.2 four tiles of 1,601; Llama 4 17 tiles of 144; InternVL 13 tiles of 256;
LFM2-VL 11 of 256; LLaVA-OneVision 10 tiles of 729 (``max_num_patches`` and tile sizes of their configs)."""

_GATED = frozenset({
    "pixtral", "qwen2_5_vl", "exaone4_5_vision", "glm4v_vision", "glm4v_moe_vision", "glm5_next_vision",
    "gemma4_vision",
})  # fmt: skip
_UNBIASED = frozenset({"pixtral", "gemma4_vision", "kimi_k3_vision"})
_DEFAULT_PATCH = 14


class Encoder(msgspec.Struct, frozen=True):
    """Geometry of a vision encoder."""

    kind: str
    hidden: int
    layers: int
    width: int
    patch: int
    channels: int
    frames: int
    image: int
    merge: int
    kv_share: float


def tower_parts(sections: Sections, text_hidden: int) -> Iterable[Part]:
    """Parameters of all encoders that the config describes."""
    for holder in _holders(sections):
        vision = holder.section("vision_config")
        if vision is not None:
            encoder = read_encoder(vision, sections)
            if encoder is not None:
                count = _encoder_parameters(vision, encoder) + _projector(vision, encoder, sections, text_hidden)
                yield Part(layers=1, each=ParameterCounts(vision=count))
        audio = holder.section("audio_config")
        if audio is not None:
            yield Part(layers=1, each=ParameterCounts(vision=_audio_parameters(audio, text_hidden)))


def _holders(sections: Sections) -> tuple[Fields, ...]:
    thinker = sections.whole.section("thinker_config")
    return (sections.whole,) if thinker is None else (thinker,)


def read_encoder(vision: Fields, sections: Sections) -> Encoder | None:
    """Geometry of the encoder; None where the config does not give it (another library's names)."""
    hidden = vision.integer("embed_dim", "vt_hidden_size", "hidden_size", "width", low=1, high=MOST_HIDDEN)
    layers = vision.integer(
        "depth", "num_hidden_layers", "vt_num_hidden_layers", "layers", low=1, high=MOST_LAYERS
    )  # fmt: skip
    if hidden is None or layers is None:
        sections.whole.estimated.append("vision_config")
        return None
    ratio = vision.number("mlp_ratio", high=64.0) or 4.0
    width = vision.integer("intermediate_size", "vt_intermediate_size", low=1, high=MOST_WIDTH)
    heads = vision.integer("num_attention_heads", "num_heads", low=1, high=MOST_HEADS) or 1
    kv_heads = vision.integer("num_key_value_heads", low=1, high=MOST_HEADS) or heads
    extra = vision.integer("num_global_layers", high=MOST_LAYERS) or 0
    merge = vision.integer("spatial_merge_size", "merge_size", low=1, high=64)
    if merge is None:
        merge = sections.whole.integer("spatial_merge_size", "downsample_factor", low=1, high=64) or 1
    if vision.has("merge_kernel_size"):
        merge = vision.largest("merge_kernel_size", low=1, high=64) or 1
    return Encoder(
        kind=vision.text("model_type") or sections.model_type,
        hidden=hidden,
        layers=layers + extra,
        width=width or int(ratio * hidden),
        patch=vision.largest("patch_size", "spatial_patch_size", low=1, high=MOST_WIDTH) or _DEFAULT_PATCH,
        channels=vision.integer("in_channels", "in_chans", "num_channels", low=1, high=64) or 3,
        frames=vision.integer("temporal_patch_size", "patch_temporal", low=1, high=64) or 1,
        image=vision.largest("image_size", high=MOST_WIDTH) or 0,
        merge=merge,
        kv_share=min(kv_heads / heads, 1.0),
    )


def _encoder_parameters(vision: Fields, encoder: Encoder) -> int:
    hidden, width = encoder.hidden, encoder.width
    inner = vision.integer("qkv_hidden_size", low=1, high=MOST_WIDTH) or hidden
    keys = int(inner * encoder.kv_share)
    gated = encoder.kind in _GATED
    biased = encoder.kind not in _UNBIASED and vision.flag("attn_bias", default=True)
    attention = hidden * (2 * inner + 2 * keys)
    mlp = hidden * width * (3 if gated else 2)
    biases = inner + 2 * keys + hidden + (2 if gated else 1) * width + hidden if biased else 0
    layer = attention + mlp + biases + (4 if biased and not gated else 2) * hidden
    patches = encoder.channels * encoder.patch * encoder.patch * encoder.frames * hidden + hidden
    return encoder.layers * layer + patches + _positions(vision, encoder) * hidden + 2 * hidden


def _positions(vision: Fields, encoder: Encoder) -> int:
    """Learned positions: a stated count, a grid, or the patches of a fixed image; none for rotary encoders."""
    stated = vision.integer("num_position_embeddings", "num_patches", high=MOST_POSITIONS)
    if stated is not None:
        return stated
    if vision.has("position_embedding_size"):
        return 2 * (vision.integer("position_embedding_size", high=MOST_POSITIONS) or 0)
    if vision.has("init_pos_emb_height", "pos_emb_height"):
        height = vision.integer("init_pos_emb_height", "pos_emb_height", high=MOST_WIDTH) or 0
        return height * (vision.integer("init_pos_emb_width", "pos_emb_width", high=MOST_WIDTH) or 0)
    if encoder.kind == "pixtral" or vision.text("position_embedding_type") == "rope" or not encoder.image:
        return 0
    side = encoder.image // encoder.patch
    return side * side + 1


def _projector(vision: Fields, encoder: Encoder, sections: Sections, text_hidden: int) -> int:
    """The merger of Qwen's shape where patches are merged, a two-layer MLP or a single matrix elsewhere."""
    merged = encoder.hidden * encoder.merge * encoder.merge
    out = vision.integer("out_hidden_size", low=1, high=MOST_HIDDEN) or text_hidden
    if encoder.kind == "pixtral":
        return merged * encoder.hidden + encoder.hidden * text_hidden + text_hidden * text_hidden + encoder.hidden
    if sections.model_type.startswith("gemma"):
        return encoder.hidden * text_hidden + encoder.hidden
    if encoder.kind.startswith("mllama"):
        outputs = vision.integer("vision_output_dim", low=1, high=MOST_WIDTH) or encoder.hidden
        return outputs * text_hidden + text_hidden
    inner = sections.whole.integer("projector_hidden_size", low=1, high=MOST_WIDTH)
    if inner is not None:
        return merged * inner + inner + inner * text_hidden + text_hidden
    if encoder.merge == 1:
        ratio = sections.whole.number("downsample_ratio", high=1.0, low=0.05)
        if ratio:
            merged = int(encoder.hidden / (ratio * ratio))
        return merged * text_hidden + text_hidden * text_hidden + 2 * text_hidden
    deep = len(vision.items("deepstack_visual_indexes"))
    one = merged * merged + merged + merged * out + out
    return (1 + deep) * one + 2 * encoder.hidden + deep * 2 * merged


def _audio_parameters(audio: Fields, text_hidden: int) -> int:
    """A Whisper-like encoder: two convolutions, a stack of layers, a projector."""
    hidden = audio.integer("d_model", "hidden_size", low=1, high=MOST_HIDDEN)
    layers = audio.integer(
        "encoder_layers", "num_hidden_layers", "conf_num_hidden_layers", low=1, high=MOST_LAYERS
    )  # fmt: skip
    if hidden is None or layers is None:
        audio.estimated.append("audio_config")
        return 0
    width = audio.integer("encoder_ffn_dim", "intermediate_size", low=1, high=MOST_WIDTH) or 4 * hidden
    bins = audio.integer("num_mel_bins", "input_feat_size", low=1, high=MOST_WIDTH) or 128
    layer = 4 * hidden * hidden + 3 * hidden + 2 * hidden * width + width + hidden + 4 * hidden
    positions = audio.integer("max_source_positions", high=MOST_POSITIONS) or 0
    front = 3 * bins * hidden + 3 * hidden * hidden + 2 * hidden + positions * hidden
    return layers * layer + front + 2 * hidden + hidden * text_hidden + text_hidden * text_hidden


def largest_image_tokens(sections: Sections) -> int:
    """Tokens of the largest image that an engine profiles with; 0 without a vision encoder."""
    known = PROFILED_TOKENS.get(sections.model_type)
    if known is not None:
        return known
    for holder in _holders(sections):
        vision = holder.section("vision_config")
        encoder = None if vision is None else read_encoder(vision, sections)
        if encoder is not None:
            if not encoder.image:
                return MOST_TOKENS
            side = -(-encoder.image // (encoder.patch * encoder.merge))
            tokens = side * (side + 1) if encoder.kind == "pixtral" else side * side
            return min(tokens, MOST_TOKENS)
    return 0
