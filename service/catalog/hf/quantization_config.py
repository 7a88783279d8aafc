"""How a checkpoint stores its weights: ``quantization_config`` of every maker to our format ids."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from service.catalog.hf.fields import Fields
from service.catalog.hf.sections import Sections
from service.catalog.hf.unquantized_classes import MOST_NAMES, class_of, numberless, unquantized_classes
from service.domain.architecture import TensorClass

STORED_BITS: dict[str, float] = {
    "fp8": 8.0, "fp8-channel": 8.0078, "fp8-block": 8.002, "mxfp8": 8.25, "nvfp4": 4.5, "mxfp4": 4.25, "int4": 4.125,
    "int4-g32": 4.5, "awq-int4": 4.15625, "gptq-int4": 4.15625, "gptq-int8": 8.1875, "int8": 8.0039,
}  # fmt: skip
"""Bits per weight of formats that checkpoints mix (``data/quantizations.json`` has them with sources)."""

DTYPES = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16", "float32": "bf16",
    "fp32": "bf16", "float": "bf16",
}  # fmt: skip
"""Served type by ``torch_dtype``: engines load fp32 checkpoints in 16 bits unless told otherwise (vLLM dtype auto)."""

_GROUP_32 = 32
_NIBBLE = 4


class Stored(msgspec.Struct, frozen=True):
    """The published checkpoint's formats."""

    dtype: str = "bf16"
    format: str = "bf16"
    kv_cache: str | None = None
    unquantized: tuple[TensorClass, ...] | None = None
    bits: tuple[tuple[TensorClass, float], ...] = ()
    """Classes in a format of their own."""


def read_stored(sections: Sections) -> Stored:
    """Formats of the checkpoint; an unknown method is reported as an estimate."""
    dtype = _dtype(sections)
    quantized = _quantization_section(sections)
    if quantized is None:
        return Stored(dtype=dtype, format=dtype)
    algorithms = _layer_algorithms(quantized)
    found = _format(quantized, algorithms)
    unquantized = unquantized_classes(quantized)
    bits = _mixed(algorithms, found, sections.text)
    return Stored(dtype=dtype, format=found or dtype, kv_cache=_kv_cache(quantized), unquantized=unquantized, bits=bits)


def _dtype(sections: Sections) -> str:
    named = sections.whole.text("torch_dtype", "dtype") or sections.text.text("torch_dtype", "dtype")
    if named is None:
        sections.whole.estimated.append("torch_dtype")
        return "bf16"
    return DTYPES.get(named.removeprefix("torch.").lower(), "bf16")


def _quantization_section(sections: Sections) -> Fields | None:
    names = ("quantization_config", "compression_config", "hf_quant_config", "quantization")
    found = sections.whole.section(*names) or sections.text.section(*names)
    if found is not None and found.has("quantization"):
        return found.section("quantization")
    return found


def _lower(text: str | None) -> str:
    return (text or "").lower().replace("-", "_")


def _format(fields: Fields, algorithms: Mapping[str, str]) -> str | None:
    method = _lower(fields.text("quant_method"))
    algorithm = _lower(fields.text("quant_algo"))
    if algorithm:
        return _modelopt(fields, algorithm, algorithms)
    reader = _METHODS.get(method)
    if reader is not None:
        return reader(fields)
    fields.estimated.append("quantization_config")
    bits = _bits(fields)
    return {4: "int4", 8: "int8"}.get(bits or 0)


def _bits(fields: Fields) -> int | None:
    return fields.integer("bits", "w_bit", "nbits", "weight_bits", high=64)


def _fp8(fields: Fields) -> str:
    return "fp8-block" if fields.items("weight_block_size") else "fp8"


def _gptq(fields: Fields) -> str:
    if (_bits(fields) or _NIBBLE) > _NIBBLE:
        return "gptq-int8"
    return "gptq-int4-g32" if fields.raw("group_size") == _GROUP_32 else "gptq-int4"


def _bitsandbytes(fields: Fields) -> str:
    if fields.flag("load_in_4bit", "_load_in_4bit", default=False):
        double = fields.flag("bnb_4bit_use_double_quant", default=True)
        return "bnb-nf4" if double else "bnb-nf4-single"
    return "bnb-int8"


def _compressed_tensors(fields: Fields) -> str:
    """The group with the fewest bits: it covers the bulk of the weights where groups differ."""
    found = [_group_format(group, fields.text("format")) for group in _groups(fields)]
    if found:
        return min(found, key=lambda name: STORED_BITS[name])
    named = _lower(fields.text("format"))
    return {"int_quantized": "int8", "pack_quantized": "int4", "nvfp4_pack_quantized": "nvfp4"}.get(named, "fp8")


def _groups(fields: Fields) -> Iterable[Fields]:
    groups = fields.section("config_groups")
    if groups is None:
        return
    for index in range(16):
        group = groups.section(f"group_{index}")
        if group is not None:
            yield group


def _group_format(group: Fields, outer: str | None) -> str:
    weights = group.section("weights")
    named = _lower(group.text("format") or outer)
    if weights is None:
        return "fp8"
    bits = weights.integer("num_bits", high=64) or 8
    floating = _lower(weights.text("type")).startswith("float")
    if bits <= _NIBBLE and floating:
        return "mxfp4" if named.startswith("mxfp4") or weights.raw("group_size") == _GROUP_32 else "nvfp4"
    if bits <= _NIBBLE:
        return "int4-g32" if weights.raw("group_size") == _GROUP_32 else "int4"
    if floating:
        strategy = _lower(weights.text("strategy"))
        return {"channel": "fp8-channel", "block": "fp8-block"}.get(strategy, "fp8")
    activations = group.section("input_activations")
    return "gptq-int8" if activations is None or named.startswith("pack") else "int8"


_ALGORITHMS = {
    "fp8": "fp8", "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "nvfp4_awq": "nvfp4", "mxfp8": "mxfp8", "mxfp4": "mxfp4",
    "w4a16_awq": "awq-int4", "w4a8_awq": "awq-int4", "int4_awq": "awq-int4", "w8a8_sq_per_channel": "int8",
    "fp8_pb_wo": "fp8-block", "fp8_per_channel_per_token": "fp8-channel", "w4a8_mxfp4_fp8": "mxfp4", "int8": "int8",
    "w8a16": "gptq-int8", "w4a16": "int4",
}  # fmt: skip


def _modelopt(fields: Fields, algorithm: str, algorithms: Mapping[str, str]) -> str:
    if algorithm == "mixed_precision":
        found = {_ALGORITHMS.get(_lower(name), "fp8") for name in algorithms.values()}
        if found:
            return min(found, key=lambda name: STORED_BITS[name])
        named = _ALGORITHMS.get(_lower(fields.text("moe_quant_algo")))
        return named or ("nvfp4" if any(True for _ in _groups(fields)) else "fp8")
    if algorithm not in _ALGORITHMS:
        fields.estimated.append("quantization_config")
    return _ALGORITHMS.get(algorithm, "fp8")


_METHODS: dict[str, Callable[[Fields], str]] = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda _: "fp8-channel",
    "finegrained_fp8": lambda _: "fp8-block",
    "awq": lambda fields: "gptq-int4-g32" if fields.raw("group_size") == _GROUP_32 else "awq-int4",
    "gptq": _gptq,
    "auto_round": _gptq,
    "intel/auto_round": _gptq,
    "bitsandbytes": _bitsandbytes,
    "compressed_tensors": _compressed_tensors,
    "mxfp4": lambda _: "mxfp4",
    "mxfp8": lambda _: "mxfp8",
    "nvfp4": lambda _: "nvfp4",
    "modelopt": lambda _: "fp8",
    "modelopt_fp4": lambda _: "nvfp4",
    "experts_int8": lambda _: "experts-int8",
    "hqq": lambda _: "int4",
    "torchao": lambda _: "int8",
    "quark": lambda _: "mxfp4",
}


def _kv_cache(fields: Fields) -> str | None:
    """KV precision that the checkpoint asks for."""
    named = _lower(fields.text("kv_cache_quant_algo"))
    if named:
        return {"fp8": "fp8", "nvfp4": "nvfp4", "int8": "int8"}.get(named)
    scheme = fields.section("kv_cache_scheme")
    if scheme is None:
        return None
    bits = scheme.integer("num_bits", high=64) or 8
    if bits <= _NIBBLE:
        return "nvfp4"
    return "fp8" if _lower(scheme.text("type")).startswith("float") else "int8"


def _layer_algorithms(fields: Fields) -> Mapping[str, str]:
    """Algorithm by module name, numbers of layers and experts taken out."""
    layers = fields.section("quantized_layers")
    if layers is None:
        return {}
    found: dict[str, str] = {}
    for name, algorithm in layers.entries(MOST_NAMES):
        if isinstance(algorithm, Mapping):
            algorithm = algorithm.get("quant_algo")  # noqa: PLW2901 - the value inside
        if isinstance(algorithm, str):
            found[numberless(name)] = algorithm
    return found


def _mixed(algorithms: Mapping[str, str], found: str | None, text: Fields) -> tuple[tuple[TensorClass, float], ...]:
    """Classes stored in another quantized format than the main one."""
    bits: dict[TensorClass, float] = {}
    for name, algorithm in algorithms.items():
        tensor_class = class_of(name)
        own = _ALGORITHMS.get(_lower(algorithm))
        if tensor_class is not None and own is not None and own != found:
            bits[tensor_class] = STORED_BITS[own]
    if _lower(text.text("expert_dtype")) == "fp4" and found == "fp8-block":
        bits["routed_experts"] = STORED_BITS["mxfp4"]
    if "attention" in bits:
        bits.setdefault("attention_replicated", bits["attention"])
    return tuple(sorted(bits.items()))
