"""Where a format runs and at which arithmetic rate."""

from pathlib import Path

import pytest

import service.catalog
from service.catalog.accelerators import load_accelerators
from service.catalog.quantizations import load_quantizations
from service.domain.quantization import WIDE_FORMATS, arithmetic_tflops, computes_natively, runs_on
from service.text.catalogs import CATALOGS

DATA = Path(service.catalog.__file__).parent / "data"
CARDS = load_accelerators(DATA / "accelerators")
FORMATS = load_quantizations(DATA / "quantizations.json")


@pytest.mark.parametrize(
    ("gpu", "format_", "tflops"),
    [
        ("h100-sxm-80gb", "bf16", 989.4),
        ("h100-sxm-80gb", "fp8", 1978.9),
        ("h100-sxm-80gb", "fp8-block", 1978.9),
        ("h100-sxm-80gb", "awq-int4", 989.4),
        ("h100-sxm-80gb", "gguf-q4-k-m", 989.4),
        ("h100-sxm-80gb", "mxfp8", 989.4),
        ("h100-sxm-80gb", "mxfp4", 989.4),
        ("h100-sxm-80gb", "nvfp4", 989.4),
        ("h100-sxm-80gb", "fp32", 66.91),
        ("a100-sxm-80gb", "fp8", 312),
        ("a100-sxm-80gb", "int8", 624),
        ("b200-sxm-180gb", "nvfp4", 9000),
        ("b200-sxm-180gb", "mxfp4", 9000),
        ("b200-sxm-180gb", "mxfp8", 4500),
        ("rtx-5090-32gb", "nvfp4", 1676.8),
        ("t4-16gb", "fp16", 65),
        ("t4-16gb", "int8", 130),
        ("t4-16gb", "awq-int4", 65),
        ("v100-sxm2-32gb", "gptq-int4", 125),
        ("p40-24gb", "gguf-q4-k-m", 11.76),
        ("mi300x-192gb", "fp8", 2614.9),
        ("mi300x-192gb", "mxfp4", 1307.4),
        ("mi355x-288gb", "mxfp4", 10066.3),
        ("mi355x-288gb", "mxfp8", 5033.2),
        ("arc-pro-b60-24gb", "int4", 98.3),
        ("rtx-6000d-84gb", "bf16", 0.0),
    ],
)
def test_matrices_are_multiplied_at_the_native_rate_or_at_16_bits(gpu: str, format_: str, tflops: float) -> None:
    assert arithmetic_tflops(CARDS[gpu], FORMATS[format_]) == tflops


@pytest.mark.parametrize(
    ("gpu", "format_"),
    [
        ("h100-sxm-80gb", "fp8"),
        ("a100-sxm-80gb", "fp8"),
        ("t4-16gb", "fp8"),
        ("t4-16gb", "fp16"),
        ("t4-16gb", "awq-int4"),
        ("v100-sxm2-32gb", "gptq-int4"),
        ("h100-sxm-80gb", "mxfp4"),
        ("a100-sxm-80gb", "nvfp4"),
        ("mi300x-192gb", "fp8"),
        ("mi300x-192gb", "mxfp4"),
        ("mi250-128gb", "gptq-int4"),
        ("rx-9070-xt-16gb", "awq-int4"),
        ("apple-m3-max", "gguf-q4-k-m"),
        ("p40-24gb", "gguf-q8-0"),
        ("h100-sxm-80gb/1g.10gb", "fp8"),
    ],
)
def test_supported(gpu: str, format_: str) -> None:
    assert runs_on(CARDS[gpu], FORMATS[format_]) is None


@pytest.mark.parametrize(
    ("gpu", "format_", "code"),
    [
        ("t4-16gb", "bf16", "quantization_needs_compute_capability"),
        ("v100-sxm2-32gb", "fp8", "quantization_needs_compute_capability"),
        ("v100-sxm2-32gb", "awq-int4", "quantization_needs_compute_capability"),
        ("h100-sxm-80gb", "mxfp8", "quantization_needs_compute_capability"),
        ("t4-16gb", "mxfp4", "quantization_needs_compute_capability"),
        ("b200-sxm-180gb", "int8", "quantization_above_compute_capability"),
        ("mi300x-192gb", "nvfp4", "quantization_not_on_vendor"),
        ("mi300x-192gb", "bnb-nf4", "quantization_not_on_vendor"),
        ("apple-m3-max", "fp8", "quantization_not_on_vendor"),
        ("tpu-v6e-32gb", "gguf-q4-k-m", "quantization_not_on_vendor"),
        ("mi250-128gb", "fp8", "quantization_not_on_architecture"),
        ("arc-pro-b60-24gb", "fp8", "quantization_not_on_architecture"),
        ("rx-7900-xtx-24gb", "mxfp4", "quantization_not_on_architecture"),
    ],
)
def test_unsupported_with_its_reason(gpu: str, format_: str, code: str) -> None:
    message = runs_on(CARDS[gpu], FORMATS[format_])
    assert message is not None
    assert message.code == code
    sentence = CATALOGS["en"][code].format(**message.params)
    assert gpu in sentence
    assert format_ in sentence


def test_every_rate_is_a_peak_of_the_card_and_supported_native_formats_gain() -> None:
    for card in CARDS.values():
        widened = next((card.dense_tflops[wide] for wide in WIDE_FORMATS if wide in card.dense_tflops), 0.0)
        for format_ in FORMATS.values():
            rate = arithmetic_tflops(card, format_)
            if not computes_natively(card, format_):
                assert rate == widened
            elif runs_on(card, format_) is None and format_.bits_per_weight < 16:
                assert rate >= widened
