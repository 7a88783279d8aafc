"""What a ``model_type`` implies beyond its config: biases, norms, gates, and defaults of keys that configs leave out.

Read from the modelling code of each family in ``transformers`` 5 and vLLM, and checked by the parameter counts in
``tests/unit/catalog/test_model_counts.py``. A type that is not here is read as a Llama-like decoder.
"""

from typing import Literal

import msgspec

Bias = Literal["none", "qkv", "all"]
QkNorm = Literal["none", "head", "full"]


class Traits(msgspec.Struct, frozen=True):
    """Facts of one family; the first value of each is Llama's."""

    bias: Bias | None = None
    """Biases of the attention projections; None: as ``attention_bias`` says."""
    bias_reach: Bias = "all"
    """Projections that ``attention_bias: true`` gives a bias to."""
    qk_norm: QkNorm = "none"
    """Norms of queries and keys, over one head or over the whole projection, where no key of the config says."""
    qk_norm_if: QkNorm = "head"
    """The same, where a key of the config switches them on."""
    gated_mlp: bool = True
    mlp_bias: bool = False
    norms: int = 2
    """Norms per layer, of the hidden size."""
    norm_bias: bool = False
    """LayerNorm with bias instead of RMSNorm."""
    tied: bool = False
    """``tie_word_embeddings`` where the config does not say."""
    window_every: int = 0
    """One layer in so many sees everything, the others a window, where no list says; 1: no window unless switched on
    (``use_sliding_window``); 0: all layers have the window that the config names."""
    positions: bool = False
    """Learned position embeddings."""
    position_offset: int = 0
    """Rows beyond ``max_position_embeddings``."""
    head_bias: bool = False
    """Bias of the output projection."""
    output_gate: bool = False
    """The query projection is doubled by an output gate."""
    head_gate: bool = False
    """A gate per attention head."""
    draft_dense: bool = False
    """Drafting layers have a dense MLP although the others have experts."""
    router_bias: bool = False
    """A correction bias per expert beside the gate."""
    shared_gate: bool = False
    """The shared expert has a gate of its own."""
    attention_blocks: int = 1
    """Attention blocks, each with a dense MLP of its own, per layer (LongCat has two around one block of experts)."""
    mlp: bool = True
    """There are MLPs behind the mixers; pure state-space models have none."""
    residual_mlp: bool = False
    """A dense MLP of the hidden size beside the experts of every layer."""
    sinks: bool = False
    """A learned attention sink per head."""
    expert_bias: bool = False
    """Experts and their gate have biases."""
    embedding_norm: bool = False
    """A norm right behind the embedding."""
    encoder: bool = False
    """No causal cache: embedding and reranking models."""
    pooler: bool = False
    token_types: int = 0
    """Rows of the segment embedding."""
    head: bool = True
    """There is an output projection (or a tied one)."""


_BIASED = Traits(bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True)
_QWEN2 = Traits(bias="qkv", window_every=1)
_QWEN3 = Traits(qk_norm="head", window_every=1)
_QWEN3_NEXT = Traits(qk_norm="head", window_every=1, output_gate=True, shared_gate=True)
_GEMMA3 = Traits(qk_norm="head", norms=4, tied=True, window_every=6)
_MLA = Traits(router_bias=True, window_every=1)
_EXAONE4 = Traits(qk_norm="head", window_every=4)
_BERT = Traits(
    bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, positions=True, embedding_norm=True,
    encoder=True, pooler=True, token_types=2, head=False,
)  # fmt: skip
_ROBERTA = msgspec.structs.replace(_BERT, token_types=1)
_COHERE = Traits(norms=1, tied=True, qk_norm_if="full", window_every=4)

TRAITS: dict[str, Traits] = {
    "afmoe": Traits(qk_norm="head", norms=4, router_bias=True, window_every=4, output_gate=True),
    "apertus": Traits(qk_norm="head", gated_mlp=False),
    "arcee": Traits(gated_mlp=False),
    "arctic": Traits(norms=3, residual_mlp=True),
    "bailing_moe": Traits(qk_norm="head", router_bias=True),
    "bailing_moe_v2": Traits(qk_norm="head", router_bias=True),
    "bailing_hybrid": _MLA,
    "bert": _BERT,
    "bloom": Traits(bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, embedding_norm=True),
    "camembert": _ROBERTA,
    "chatglm": Traits(bias="qkv"),
    "codegen": Traits(gated_mlp=False, mlp_bias=True, norms=1, norm_bias=True, head_bias=True),
    "cohere": _COHERE,
    "cohere2": _COHERE,
    "cohere2_moe": _COHERE,
    "cohere2_vision": _COHERE,
    "dbrx": Traits(window_every=1),
    "deepseek_v3": _MLA,
    "deepseek_v32": _MLA,
    "deepseek_v4": _MLA,
    "deepseek_ref": _MLA,
    "distilbert": msgspec.structs.replace(_BERT, pooler=False, token_types=0),
    "dots1": Traits(qk_norm="head", router_bias=True, window_every=1),
    "ernie4_5": Traits(tied=True),
    "ernie4_5_moe": Traits(tied=True, router_bias=True, draft_dense=True),
    "ernie4_5_moe_vl": Traits(tied=True, router_bias=True, draft_dense=True),
    "ernie4_5_vl_moe": Traits(tied=True, router_bias=True, draft_dense=True),
    "exaone4": _EXAONE4,
    "exaone4_5": _EXAONE4,
    "exaone_moe": Traits(qk_norm="head", window_every=4, router_bias=True, draft_dense=True),
    "falcon": Traits(gated_mlp=False, norms=1, norm_bias=True, tied=True),
    "falcon_mamba": Traits(norms=1, mlp=False),
    "gemma": Traits(tied=True),
    "gemma2": Traits(norms=4, tied=True, window_every=2),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gemma3n": _GEMMA3,
    "gemma4": _GEMMA3,
    "gemma4_unified": _GEMMA3,
    "glm": Traits(bias_reach="qkv"),
    "glm4": Traits(bias_reach="qkv", norms=4),
    "glm4v": Traits(bias="qkv", norms=4),
    "glm4_moe": Traits(bias="qkv", router_bias=True),
    "glm4v_moe": Traits(bias="qkv", router_bias=True),
    "glm4_moe_lite": _MLA,
    "glm_moe_dsa": _MLA,
    "glm5_next": _MLA,
    "gpt2": Traits(
        bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, positions=True
    ),
    "gpt_bigcode": Traits(
        bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, positions=True
    ),
    "gpt_neo": Traits(bias="none", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, positions=True),
    "gpt_neox": _BIASED,
    "gpt_oss": Traits(bias="all", sinks=True, expert_bias=True, window_every=2),
    "gptj": Traits(gated_mlp=False, mlp_bias=True, norms=1, norm_bias=True, head_bias=True),
    "granitemoehybrid": Traits(tied=True),
    "hunyuan_v1_dense": Traits(qk_norm="head", tied=True),
    "hunyuan_v1_moe": Traits(qk_norm="head", tied=True),
    "hy_v3": Traits(qk_norm="head", router_bias=True),
    "hy_v4": _MLA,
    "hy_v4_vl": _MLA,
    "inkling_mm_model": Traits(qk_norm="head", router_bias=True, window_every=6),
    "kimi_k2": _MLA,
    "kimi_linear": _MLA,
    "laguna": Traits(qk_norm="head", router_bias=True, head_gate=True),
    "lfm2": Traits(qk_norm="head", tied=True),
    "lfm2_moe": Traits(qk_norm="head", tied=True, router_bias=True),
    "longcat_flash": Traits(norms=4, router_bias=True, attention_blocks=2, window_every=1),
    "mamba": Traits(norms=1, mlp=False, tied=True),
    "mamba2": Traits(norms=1, mlp=False, tied=True),
    "mimo": Traits(bias="qkv", window_every=1),
    "mimo_v2": Traits(router_bias=True, draft_dense=True),
    "mimo_v2_flash": Traits(router_bias=True, draft_dense=True),
    "minimax_m2": Traits(qk_norm="full", qk_norm_if="full", router_bias=True),
    "minimax_m3": Traits(qk_norm="head", router_bias=True),
    "mistral4": _MLA,
    "mistral_large4": _MLA,
    "modernbert": Traits(
        tied=True, encoder=True, embedding_norm=True, head=False, bias="none", window_every=3
    ),
    "mpnet": _ROBERTA,
    "mpt": Traits(bias="none", gated_mlp=False, tied=True),
    "nemotron": Traits(gated_mlp=False, norm_bias=True),
    "nemotron_h": Traits(gated_mlp=False, norms=1, router_bias=True),
    "nomic_bert": msgspec.structs.replace(
        _BERT, bias="none", gated_mlp=True, mlp_bias=False, positions=False, pooler=False
    ),
    "nvembed": Traits(head=False),
    "olmo": Traits(norms=0),
    "olmo2": Traits(qk_norm="full"),
    "olmo3": Traits(qk_norm="full", window_every=4),
    "olmoe": Traits(qk_norm="full"),
    "opt": Traits(
        bias="all", gated_mlp=False, mlp_bias=True, norm_bias=True, tied=True, positions=True, position_offset=2
    ),
    "phi": Traits(bias="all", gated_mlp=False, mlp_bias=True, norms=1, norm_bias=True, head_bias=True),
    "phi-msft": Traits(bias="all", gated_mlp=False, mlp_bias=True, norms=1, norm_bias=True, head_bias=True),
    "phi3small": Traits(bias="all", mlp_bias=True, norm_bias=True, tied=True),
    "phimoe": Traits(norm_bias=True),
    "qwen": Traits(bias="qkv"),
    "qwen2": _QWEN2,
    "qwen2_5_omni": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_audio": _QWEN2,
    "qwen2_moe": Traits(bias="qkv", window_every=1, shared_gate=True),
    "qwen2_vl": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_5": _QWEN3_NEXT,
    "qwen3_5_moe": _QWEN3_NEXT,
    "qwen3_moe": _QWEN3,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_omni_moe": _QWEN3,
    "qwen3_vl": _QWEN3,
    "qwen3_vl_moe": _QWEN3,
    "qwen4_exp": _QWEN3_NEXT,
    "roberta": _ROBERTA,
    "seed_oss": Traits(bias_reach="qkv"),
    "smollm3": Traits(tied=True, window_every=1),
    "solar_open": Traits(router_bias=True),
    "stablelm": Traits(norm_bias=True),
    "starcoder2": _BIASED,
    "step3p5": Traits(qk_norm="head", router_bias=True, head_gate=True, draft_dense=True),
    "step3p7": Traits(qk_norm="head", router_bias=True, head_gate=True, draft_dense=True),
    "xlm-roberta": _ROBERTA,
    "xlm-roberta-xl": _ROBERTA,
}  # fmt: skip

LIKE_LLAMA = Traits()

PLAIN = frozenset({
    "aquila", "baichuan", "bamba", "bart", "decilm", "deepseek", "deepseek_v2", "deepseek_vl_v2", "exaone",
    "falcon_h1", "granite", "granitemoe", "helium", "internlm", "internlm2", "internlm3", "internvl_chat", "jamba",
    "kimi_k25", "kimi_k3", "kimi_vl", "llama", "llama4", "llama4_text", "llava", "llava_next", "llava_onevision",
    "mbart", "minicpm", "minicpm3", "minimax", "ministral3", "mistral", "mistral3", "mixtral", "mllama",
    "mllama_text_model", "mt5", "muse_glimmer", "nemotron-nas", "orion", "phi3", "phi3_v", "phi4mm", "t5", "umt5",
    "voxtral", "whisper", "yi",
})  # fmt: skip
"""Known types that need no entry above: the Llama-like ones, and those whose config has its own reader."""


def traits_of(model_type: str) -> tuple[Traits, bool]:
    """The traits of a type, and whether the type is known. A ``_text`` section has those of its family."""
    for name in (model_type, model_type.removesuffix("_text"), model_type.removesuffix("_thinker")):
        if name in TRAITS:
            return TRAITS[name], True
        if name in PLAIN:
            return LIKE_LLAMA, True
    return LIKE_LLAMA, False
