"""Eight MiB of anything are read in time that grows with the length alone."""

import time

import pytest

from service.domain.engine_logs import read_log
from service.domain.engine_logs.reading import SIGNS

CHARACTERS = 8 * 1024 * 1024
MOST_SECONDS = 2.0

TEXTS = {
    "one line": "a",
    "colours": "\x1b[",
    "every sign": " ".join(sign for signs in SIGNS.values() for sign in signs),
    "sizes": "Model loading took 12.56 GiB Available KV cache memory: 61.66 GiB GPU KV cache size: 126,256 tokens ",
    "spaces behind a marker": "Available KV cache memory:" + " " * 5000,
    "arguments without an end": "non-default args: {'model': 'a', 'max_model_len': " + "'quantization': '" * 300,
    "devices": "".join(f"load_tensors: CUDA{number} model buffer size = 1.0 MiB\n" for number in range(5000)),
    "wide characters": "█ GPU KV cache size: 1 tokens 😀",
}


@pytest.mark.parametrize("name", TEXTS)
def test_time_is_bounded(name: str) -> None:
    text = (TEXTS[name] * (CHARACTERS // len(TEXTS[name]) + 1))[:CHARACTERS]
    started = time.process_time()
    read_log(text)
    assert time.process_time() - started < MOST_SECONDS
