"""A pasted start-up log of any engine, read."""

import msgspec

from service.domain.engine import EngineName
from service.domain.engine_logs import llama_cpp, sglang, vllm, vllm_launch
from service.domain.engine_logs.facts import LogFacts, Mark, Printed
from service.domain.engine_logs.scan import plain

SIGNS: dict[EngineName, tuple[str, ...]] = {
    "vllm": (
        "vLLM API server",
        "non-default args: ",
        "PyTorch activation peak memory",
        "LLM engine (v",
        " LLM engine ",
        "reserved for KV Cache is",
        "Available KV cache memory",
        "GPU KV cache size",
        "Model loading took",
        "Loading model weights took",
        "gpu_memory_utilization",
        "Maximum concurrency for",
        "max seq len (",
        "# GPU blocks:",
        "vllm serve ",
        "No available memory for the cache blocks",
        "GPU memory utilization",
    ),
    "sglang": (
        "ServerArgs(",
        "Load weight begin.",
        "Load weight end.",
        "KV Cache is allocated.",
        "max_total_num_tokens=",
        "Memory pool end.",
        "mem-fraction-static",
        "sglang.launch_server",
    ),
    "llama.cpp": (
        "llama_model_loader:",
        "load_tensors:",
        "llama_kv_cache",
        "llama_context:",
        "llama_new_context_with_model:",
        "llama_init_from_model:",
        "compute buffer size",
        "KV buffer size",
        "model buffer size",
        "memory breakdown [MiB]",
    ),
}
"""Parts of lines that only this engine prints."""


LARGEST = 2**50
"""Bytes or tokens beyond which a figure is not one of a card."""


def engine_of(text: str) -> EngineName | None:
    """The engine that most signs of its own speak for; None: no line is known."""
    counted = {name: sum(sign in text for sign in signs) for name, signs in SIGNS.items()}
    best = max(counted, key=lambda name: counted[name])
    return best if counted[best] else None


def read_log(log: str) -> LogFacts | None:
    """Facts of the last start in ``log``; None where no line is known.

    The time is linear in the length of the log, whatever it holds.
    """
    text = plain(log)
    engine = engine_of(text)
    if engine is None:
        return None
    start = {"vllm": vllm_launch.START, "sglang": sglang.START, "llama.cpp": ""}[engine]
    at = text.rfind(start) if start else -1
    several = at > 0 and text.find(start) < at
    last = text[at:] if several else text
    facts = {"vllm": vllm.read_vllm, "sglang": sglang.read_sglang, "llama.cpp": llama_cpp.read_llama_cpp}[engine](
        last, text
    )
    marks: frozenset[Mark] = facts.marks | {"several_starts"} if several else facts.marks
    spreads = {name: spread for name, spread in facts.spreads.items() if _sane(spread.low) and _sane(spread.high)}
    return msgspec.structs.replace(facts, printed=_bounded(facts.printed), marks=marks, spreads=spreads)


def _sane(value: object) -> bool:
    return not isinstance(value, int) or abs(value) <= LARGEST


def _bounded(printed: Printed) -> Printed:
    """The figures without those that no machine has."""
    return Printed(**{name: value for name in Printed.__struct_fields__ if _sane(value := getattr(printed, name))})
