"""Sums over weight files, on the numbers of real repositories."""

import pytest
from huggingface_hub import ModelInfo

from service.hub.weights import Weights, weights_of_elements, weights_of_index, weights_of_info


def info(elements: dict[str, int] | None, files: dict[str, int | None]) -> ModelInfo:
    described: dict[str, object] = {
        "id": "org/name",
        "siblings": [{"rfilename": name, "size": size} for name, size in files.items()],
    }
    if elements is not None:
        described["safetensors"] = {"parameters": elements, "total": sum(elements.values())}
    return ModelInfo(**described)


def test_elements_of_one_dtype_are_parameters() -> None:
    weights = weights_of_elements({"BF16": 8_030_261_248})
    assert weights.parameters == 8_030_261_248
    assert weights.checkpoint_bytes == 16_060_522_496


@pytest.mark.parametrize("packed", ["I32", "U8"])
def test_packed_elements_tell_bytes_but_no_parameters(packed: str) -> None:
    weights = weights_of_elements({packed: 1000, "F16": 10})
    assert weights.parameters is None
    assert weights.checkpoint_bytes == 20 + (4000 if packed == "I32" else 1000)


def test_an_unknown_dtype_tells_elements_only() -> None:
    assert weights_of_elements({"F3": 8}) == Weights(parameters=8, elements_by_dtype={"F3": 8})


@pytest.mark.parametrize("elements", [{}, {"BF16": 0}, {"BF16": -1}, {"BF16": 10**16}, {"BF16": "8"}])
def test_senseless_counts_are_no_counts(elements: dict[str, int]) -> None:
    assert not weights_of_elements(elements).known


def test_files_that_hold_the_weights_twice_count_once() -> None:
    files = {
        "config.json": 700,
        "consolidated.safetensors": 1000,
        "model-00001-of-00002.safetensors": 600,
        "model-00002-of-00002.safetensors": 401,
        "model.safetensors.index.json": 50,
        "onnx/model.safetensors": 1000,
        "pytorch_model.bin": 1000,
    }
    assert weights_of_info(info({"BF16": 500}, files)).checkpoint_bytes == 1001
    assert weights_of_info(info(None, {"pytorch_model.bin": 1000})).checkpoint_bytes == 1000
    assert (
        weights_of_info(info(None, {"weights-a.safetensors": 9, "adapter_model.safetensors": 5})).checkpoint_bytes == 9
    )


def test_without_sizes_the_elements_tell_the_bytes() -> None:
    assert weights_of_info(info({"F32": 10}, {"model.safetensors": None})).checkpoint_bytes == 40
    assert not weights_of_info(info(None, {"model.safetensors": None})).known


def test_an_index_tells_its_totals() -> None:
    text = b'{"metadata": {"total_size": 1.6060522496e10, "total_parameters": 8030261248}, "weight_map": {"a": "b"}}'
    assert weights_of_index(text) == Weights(parameters=8_030_261_248, checkpoint_bytes=16_060_522_496)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"metadata": {"total_size": "x"}}', b'{"metadata": {}}'])
def test_an_index_without_totals_tells_nothing(text: bytes) -> None:
    assert not weights_of_index(text).known
