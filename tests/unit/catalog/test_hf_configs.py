"""Configs that callers paste: known totals of many families, formats, windows, and what is said of a wrong one."""

from typing import Any

import pytest

from service.catalog.hf import ConfigError, architecture_from_config
from service.domain.errors import ImpossibleCombination

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (LLAMA, 8_030_261_248),
        (
            {
                "model_type": "opt",
                "hidden_size": 768,
                "num_hidden_layers": 12,
                "num_attention_heads": 12,
                "ffn_dim": 3072,
                "vocab_size": 50272,
                "max_position_embeddings": 2048,
            },
            125_239_296,
        ),
        (
            {
                "model_type": "gpt2",
                "n_embd": 768,
                "n_layer": 12,
                "n_head": 12,
                "n_positions": 1024,
                "vocab_size": 50257,
            },
            124_439_808,
        ),
        (
            {
                "model_type": "gpt_neox",
                "hidden_size": 6144,
                "num_hidden_layers": 44,
                "num_attention_heads": 64,
                "intermediate_size": 24576,
                "vocab_size": 50432,
            },
            20_554_567_680,
        ),
        (
            {
                "model_type": "gptj",
                "n_embd": 4096,
                "n_layer": 28,
                "n_head": 16,
                "n_positions": 2048,
                "vocab_size": 50400,
                "tie_word_embeddings": False,
            },
            6_050_882_784,
        ),
        (
            {
                "model_type": "bloom",
                "hidden_size": 4096,
                "n_layer": 30,
                "num_attention_heads": 32,
                "vocab_size": 250880,
            },
            7_069_016_064,
        ),
        (
            {
                "model_type": "mpt",
                "d_model": 4096,
                "n_heads": 32,
                "n_layers": 32,
                "max_seq_len": 2048,
                "vocab_size": 50432,
            },
            6_649_286_656,
        ),
        (
            {
                "model_type": "gpt_bigcode",
                "n_embd": 6144,
                "n_head": 48,
                "n_inner": 24576,
                "n_layer": 40,
                "n_positions": 8192,
                "vocab_size": 49152,
                "multi_query": True,
            },
            15_517_456_384,
        ),
        (
            {
                "model_type": "falcon",
                "hidden_size": 8192,
                "num_hidden_layers": 60,
                "num_attention_heads": 128,
                "num_kv_heads": 8,
                "new_decoder_architecture": True,
                "vocab_size": 65024,
            },
            41_303_293_952,
        ),
        (
            {
                "model_type": "chatglm",
                "hidden_size": 4096,
                "ffn_hidden_size": 13696,
                "num_layers": 28,
                "num_attention_heads": 32,
                "kv_channels": 128,
                "multi_query_group_num": 2,
                "add_qkv_bias": True,
                "padded_vocab_size": 65024,
            },
            6_243_584_000,
        ),
        (
            {
                "model_type": "mamba",
                "hidden_size": 2560,
                "num_hidden_layers": 64,
                "state_size": 16,
                "vocab_size": 50280,
                "time_step_rank": 160,
            },
            2_768_345_600,
        ),
        (
            {
                "model_type": "t5",
                "d_model": 768,
                "d_kv": 64,
                "d_ff": 3072,
                "num_layers": 12,
                "num_decoder_layers": 12,
                "num_heads": 12,
                "vocab_size": 32128,
            },
            222_903_552,
        ),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else "",
)
def test_totals_of_published_models(config: dict[str, Any], parameters: int) -> None:
    assert architecture_from_config(config).parameters.total == pytest.approx(parameters, rel=1e-5)


def test_an_unknown_type_is_read_by_its_keys() -> None:
    known = architecture_from_config(LLAMA)
    unknown = architecture_from_config({**LLAMA, "model_type": "brand_new"})
    assert unknown.parameters == known.parameters
    assert unknown.cache == known.cache
    assert unknown.estimated == ("model_type",)
    assert known.estimated == ()


def test_an_unknown_mixture_of_experts() -> None:
    config = {**LLAMA, "model_type": "x_moe", "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
              "moe_intermediate_size": 1408, "first_k_dense_replace": 1}  # fmt: skip
    architecture = architecture_from_config(config)
    assert (architecture.experts, architecture.experts_per_token, architecture.moe_layers) == (64, 6, 31)
    assert architecture.parameters.routed_experts == 31 * 64 * 3 * 4096 * 1408
    assert architecture.parameters.shared_experts == 31 * 2 * 3 * 4096 * 1408
    assert architecture.parameters.dense_mlp == 3 * 4096 * 14336
    assert architecture.intermediate_size == 14336


def test_a_language_model_inside_a_larger_config() -> None:
    nested = {
        "model_type": "new_vl",
        "text_config": LLAMA,
        "vision_config": {"hidden_size": 1024, "num_hidden_layers": 24},
    }
    architecture = architecture_from_config(nested)
    assert architecture.parameters.attention == architecture_from_config(LLAMA).parameters.attention
    assert 2e8 < architecture.parameters.vision < 5e8
    assert architecture.vision_tokens_max > 0
    assert architecture.model_type == "new_vl"


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"sliding_window": 4096}, {"sliding": 32}),
        ({"sliding_window": 131072}, {"full": 32}),
        ({"sliding_window": 4096, "use_sliding_window": False}, {"full": 32}),
        ({"model_type": "qwen2", "sliding_window": 4096}, {"full": 32}),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28},
         {"full": 28, "sliding": 4}),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, {"full": 5, "sliding": 27}),
        ({"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention"] * 16},
         {"full": 16, "sliding": 16}),
        ({"sliding_window": 512, "sliding_window_pattern": "LLLG"}, {"full": 8, "sliding": 24}),
        ({"sliding_window": 512, "hybrid_layer_pattern": [0, 1] * 16}, {"full": 16, "sliding": 16}),
        ({"model_type": "llama4", "attention_chunk_size": 8192}, {"full": 8, "chunked": 24}),
        ({"attn_type_list": [0] * 28 + [1] * 4}, {"full": 4, "state": 28}),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128}, {"latent": 32}),
        ({"num_kv_shared_layers": 12}, {"full": 20}),
    ],
    ids=str,
)  # fmt: skip
def test_which_layers_cache_what(changes: dict[str, Any], kinds: dict[str, int]) -> None:
    found: dict[str, int] = {}
    for cache in architecture_from_config({**LLAMA, **changes}).cache:
        found[cache.kind] = found.get(cache.kind, 0) + cache.layers
    assert found == kinds


@pytest.mark.parametrize(
    ("quantization", "format_"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8-channel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq-int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq-int4-g32"),
        ({"quant_method": "gptq", "bits": 8}, "gptq-int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bnb-nf4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bnb-int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": {
            "input_activations": {"num_bits": 8}, "weights": {"num_bits": 8, "type": "int"}}}}, "int8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
            "weights": {"num_bits": 4, "type": "int", "group_size": 128}}}}, "int4"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
            "weights": {"num_bits": 8, "type": "int", "group_size": 128}}}}, "gptq-int8"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": {
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}}, "fp8-channel"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0": {
            "weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}, "nvfp4"),
    ],
    ids=str,
)  # fmt: skip
def test_formats_of_quantization_configs(quantization: dict[str, Any], format_: str) -> None:
    architecture = architecture_from_config({**LLAMA, "quantization_config": quantization})
    assert architecture.checkpoint_format == format_
    assert architecture.dtype == "bf16"
    assert architecture.estimated == ()


def test_an_unknown_quantization_method_is_an_estimate() -> None:
    architecture = architecture_from_config({**LLAMA, "quantization_config": {"quant_method": "novel", "bits": 4}})
    assert architecture.checkpoint_format == "int4"
    assert architecture.estimated == ("quantization_config",)


def test_kv_precision_of_a_checkpoint() -> None:
    scheme = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert architecture_from_config({**LLAMA, "quantization_config": scheme}).checkpoint_kv_cache == "fp8"
    named = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    assert architecture_from_config({**LLAMA, "hf_quant_config": {"quantization": named}}).checkpoint_kv_cache == "fp8"


def test_a_long_list_by_layer_speaks_for_the_class() -> None:
    listed = [f"model.layers.{layer}.{name}" for layer in range(32) for name in ("self_attn.q_proj", "mlp.gate")]
    few = ["lm_head", "model.layers.0.mlp.down_proj"]
    quantization = {"quant_method": "fp8", "modules_to_not_convert": listed + few}
    kept = architecture_from_config({**LLAMA, "quantization_config": quantization}).unquantized
    assert kept is not None
    assert {"attention", "lm_head", "router"} <= set(kept)
    assert "dense_mlp" not in kept


@pytest.mark.parametrize(
    ("config", "pointer", "code"),
    [
        ({}, "/hidden_size", "config_key_missing"),
        ({"hidden_size": 4096}, "/num_hidden_layers", "config_key_missing"),
        ({**LLAMA, "vocab_size": None}, "/vocab_size", "config_key_missing"),
        ({**LLAMA, "intermediate_size": None}, "/intermediate_size", "config_key_missing"),
        ({**LLAMA, "num_hidden_layers": 1e30}, "/num_hidden_layers", "config_key_range"),
        ({**LLAMA, "num_hidden_layers": 2_001}, "/num_hidden_layers", "config_key_range"),
        ({**LLAMA, "num_hidden_layers": -1}, "/num_hidden_layers", "config_key_range"),
        ({**LLAMA, "num_hidden_layers": float("nan")}, "/num_hidden_layers", "config_key_range"),
        ({**LLAMA, "num_hidden_layers": "32"}, "/num_hidden_layers", "config_key_type"),
        ({**LLAMA, "num_hidden_layers": True}, "/num_hidden_layers", "config_key_type"),
        ({**LLAMA, "num_hidden_layers": 1.5}, "/num_hidden_layers", "config_key_type"),
        ({**LLAMA, "layer_types": ["full_attention"]}, "/layer_types", "config_keys_contradict"),
        ({**LLAMA, "layer_types": [1] * 32}, "/layer_types", "config_key_type"),
        ({**LLAMA, "num_experts": 8}, "/num_experts_per_tok", "config_key_missing"),
        ({**LLAMA, "num_experts": 8, "num_experts_per_tok": 9}, "/num_experts_per_tok", "config_keys_contradict"),
        ({**LLAMA, "num_experts": 10**9, "num_experts_per_tok": 2}, "/num_experts", "config_key_range"),
        ({"text_config": {**LLAMA, "hidden_size": {}}}, "/text_config/hidden_size", "config_key_type"),
        ({"text_config": []}, "/text_config", "config_key_type"),
        ({**LLAMA, "quantization_config": "fp8"}, "/quantization_config", "config_key_type"),
        ({**LLAMA, "model_type": 3}, "/model_type", "config_key_type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_config_names_the_key(config: dict[str, Any], pointer: str, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        architecture_from_config(config)
    assert caught.value.pointer == pointer
    assert caught.value.message.code == code
    assert isinstance(caught.value, ImpossibleCombination)


def test_a_whole_float_is_a_number() -> None:
    assert architecture_from_config({**LLAMA, "num_hidden_layers": 32.0}) == architecture_from_config(LLAMA)


def test_deep_nesting_ends() -> None:
    config: dict[str, Any] = dict(LLAMA)
    for _ in range(500):
        config = {"text_config": config}
    with pytest.raises(ConfigError):
        architecture_from_config(config)
