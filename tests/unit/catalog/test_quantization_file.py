"""The quantization file and the names that find its formats."""

from pathlib import Path

import msgspec
import pytest

import service.catalog
from service.catalog.quantizations import (
    AUTO,
    build_quantization_index,
    load_quantizations,
    normalise,
    resolve_quantization,
)
from service.domain.errors import CatalogError
from service.domain.quantization import Quantization

PATH = Path(service.catalog.__file__).parent / "data" / "quantizations.json"
FORMATS = load_quantizations(PATH)
INDEX = build_quantization_index(FORMATS.values())

CONTRACT_IDS = "fp32 bf16 fp16 fp8 fp8-block mxfp8 int8 awq-int4 gptq-int4 gptq-int8 int4 bnb-nf4 bnb-int8 mxfp4 nvfp4"
GGUF_TYPES = (
    "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ1_S IQ1_M "
    "IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS IQ3_XS IQ3_S IQ3_M IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0"
)
GGUF_TENSOR_BITS = {
    "F32": 32, "F16": 16, "BF16": 16, "Q4_0": 4.5, "Q4_1": 5, "Q5_0": 5.5, "Q5_1": 6, "Q8_0": 8.5, "Q2_K": 2.625,
    "Q3_K": 3.4375, "Q4_K": 4.5, "Q5_K": 5.5, "Q6_K": 6.5625, "Q8_K": 9.125, "IQ1_S": 1.5625, "IQ1_M": 1.75,
    "IQ2_XXS": 2.0625, "IQ2_XS": 2.3125, "IQ2_S": 2.5625, "IQ3_XXS": 3.0625, "IQ3_S": 3.4375, "IQ4_NL": 4.5,
    "IQ4_XS": 4.25, "TQ1_0": 1.6875, "TQ2_0": 2.0625, "MXFP4": 4.25, "NVFP4": 4.5, "Q1_0": 1.125,
}  # fmt: skip
KV_BITS = {
    "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp8_e4m3": 8, "fp8_e5m2": 8, "int8": 8, "int4": 4, "nvfp4": 4.5,
    "q8_0": 8.5, "q4_0": 4.5, "q4_1": 5, "q5_0": 5.5, "q5_1": 6, "iq4_nl": 4.5, "f16": 16,
    "fp8_ds_mla": 656 * 8 / 576, "fp8_dsv41": 528 * 8 / 512,
}  # fmt: skip


@pytest.mark.parametrize("id_", CONTRACT_IDS.split())
def test_ids_of_the_contract_are_there(id_: str) -> None:
    assert FORMATS[id_].quantizes


@pytest.mark.parametrize("type_", GGUF_TYPES.split())
def test_gguf_files_are_found_with_and_without_their_prefix(type_: str) -> None:
    id_ = f"gguf-{normalise(type_)}"
    assert id_ in FORMATS
    assert resolve_quantization(f"gguf:{type_.lower()}", INDEX) == id_
    assert resolve_quantization(f"GGUF-{type_}", INDEX) == id_
    if type_ not in {"BF16", "MXFP4", "NVFP4"}:  # these mean the safetensors formats when named alone
        assert resolve_quantization(type_, INDEX) == id_


@pytest.mark.parametrize(("type_", "bits"), GGUF_TENSOR_BITS.items())
def test_gguf_tensor_types_have_the_bits_of_their_blocks(type_: str, bits: float) -> None:
    id_ = resolve_quantization(f"gguf-tensor-{type_}", INDEX)
    assert id_ is not None
    assert FORMATS[id_].bits_per_weight == pytest.approx(bits, rel=0.002)


@pytest.mark.parametrize(("name", "bits"), KV_BITS.items())
def test_kv_cache_formats(name: str, bits: float) -> None:
    id_ = resolve_quantization(name, INDEX)
    assert id_ is not None
    assert FORMATS[id_].kv_bits == pytest.approx(bits, rel=1e-4)


@pytest.mark.parametrize("id_", ["awq-int4", "gptq-int4", "bnb-nf4", "mxfp8", "fp8-block", "gguf-q4-k-m"])
def test_weight_formats_that_hold_no_kv_cache(id_: str) -> None:
    assert FORMATS[id_].kv_bits is None


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("awq_marlin", "awq-int4"),
        ("AWQ", "awq-int4"),
        ("gptq_marlin", "gptq-int4"),
        ("GPTQ-Int4", "gptq-int4"),
        ("fp8_e4m3", "fp8"),
        ("float8_e4m3fn", "fp8"),
        ("compressed-tensors", "fp8"),
        ("modelopt", "fp8"),
        ("modelopt_fp4", "nvfp4"),
        ("NVFP4", "nvfp4"),
        ("int8-w8a8", "int8"),
        ("w8a8", "int8"),
        ("w4a16", "int4"),
        ("quantized.w4a16", "int4"),
        ("int4-autoround", "int4"),
        ("w8a16", "gptq-int8"),
        ("bitsandbytes", "bnb-nf4"),
        ("nf4", "bnb-nf4"),
        ("bnb-4bit", "bnb-nf4"),
        ("experts_int8", "experts-int8"),
        ("mxfp4-pack-quantized", "mxfp4"),
        ("fp8-block-128x128", "fp8-block"),
        ("bfloat16", "bf16"),
        ("half", "fp16"),
        ("none", "bf16"),
        ("16-bit", "bf16"),
        ("Q4_K", "gguf-q4-k-m"),
        ("UD-Q4_K_XL", "gguf-q4-k-m"),
        ("gguf:iq3_s mix", "gguf-iq3-s"),
        ("int8 per-token-head", "int8"),
        ("auto", AUTO),
        ("checkpoint", AUTO),
    ],
)
def test_names_of_engines_and_checkpoints(name: str, id_: str) -> None:
    assert resolve_quantization(name, INDEX) == id_


@pytest.mark.parametrize("name", ["", "fp7", "q9_9", "-", "gguf:q9", "gguf-gguf"])
def test_names_that_are_no_format(name: str) -> None:
    assert resolve_quantization(name, INDEX) is None


@pytest.mark.parametrize("quantization", FORMATS.values(), ids=lambda quantization: quantization.id)
def test_a_format_is_plausible_and_sourced(quantization: Quantization) -> None:
    assert quantization.source
    assert quantization.as_of == "2026-12-01"
    assert 1 <= quantization.bits_per_weight <= 32
    assert quantization.quantizes or quantization.kv_bits is not None
    for name in (quantization.id, *quantization.aliases):
        assert resolve_quantization(name, INDEX) == quantization.id
    if quantization.bits_per_weight < 16 and quantization.quantizes:
        assert not {"norms", "router", "vision"} & set(quantization.quantizes)
        assert ("embedding" in quantization.quantizes) == quantization.id.startswith("gguf-")
        assert quantization.quality_risk != "none"
    lowest, highest = quantization.min_compute_capability, quantization.max_compute_capability
    native = quantization.native_compute_capability
    assert lowest is None or native is None or lowest <= native
    assert lowest is None or highest is None or lowest <= highest


def test_scales_are_counted() -> None:
    assert FORMATS["awq-int4"].bits_per_weight == 4 + (16 + 4) / 128
    assert FORMATS["int4"].bits_per_weight == 4 + 16 / 128
    assert FORMATS["mxfp4"].bits_per_weight == 4 + 8 / 32
    assert FORMATS["nvfp4"].bits_per_weight == 4 + 8 / 16
    assert FORMATS["mxfp8"].bits_per_weight == 8 + 8 / 32
    assert FORMATS["fp8-block"].bits_per_weight == pytest.approx(8 + 32 / 128**2, abs=1e-4)
    assert FORMATS["bnb-nf4"].bits_per_weight == pytest.approx(4 + 8 / 64 + 32 / (64 * 256), abs=1e-4)


@pytest.mark.parametrize(
    ("id_", "gib"), [("fp8", 8.49), ("awq-int4", 5.38), ("bnb-nf4", 5.31), ("bf16", 14.99), ("gguf-q4-0", 4.34)]
)
def test_llama_3_1_8b_loads_what_engines_print(id_: str, gib: float) -> None:
    # 8,030,261,248 parameters, of which embedding and head 2 x 128,256 x 4,096 and norms 65 x 4,096
    embeddings, norms = 2 * 128256 * 4096, 65 * 4096
    linear = 8_030_261_248 - embeddings - norms
    quantization = FORMATS[id_]
    bits = quantization.bits_per_weight
    head_bits = bits if "embedding" in quantization.quantizes else 16
    total = linear * bits + embeddings * head_bits + norms * 16
    assert total / 8 / 2**30 == pytest.approx(gib, rel=0.012)


ROW: dict[str, object] = {
    "id": "x",
    "bits_per_weight": 8,
    "quantizes": "linear",
    "arithmetic": "int8",
    "weight_only": True,
    "quality_risk": "low",
    "source": "s",
}


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([ROW, ROW], "x: id used twice"),
        ([ROW | {"quantizes": "nothing"}], "x: no tensor set nothing"),
        ([ROW | {"arithmetic": "int5"}], r"\$.quantizations\[0\].arithmetic"),
        ([ROW | {"colour": "green"}], "colour"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, rows: list[dict[str, object]], fault: str) -> None:
    path = tmp_path / "q.json"
    file = {"as_of": "2026-12-01", "tensor_sets": {"linear": ["attention"]}, "quantizations": rows}
    path.write_bytes(msgspec.json.encode(file))
    with pytest.raises(CatalogError, match=f"q.json.*{fault}"):
        load_quantizations(path)


def test_a_name_of_two_formats_is_refused() -> None:
    twin = msgspec.structs.replace(FORMATS["fp8"], id="other")
    with pytest.raises(CatalogError, match="claimed by fp8 and other"):
        build_quantization_index([FORMATS["fp8"], twin])
