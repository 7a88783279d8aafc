"""How vLLM was launched: its resolved configuration, the arguments given, the command line, and defaults that it names."""

import re

from service.domain.engine_logs.arguments import Listing, command_at, given, section, share, shown_at
from service.domain.engine_logs.cards import cards_in
from service.domain.engine_logs.facts import Launched
from service.domain.engine_logs.names import model_names, word
from service.domain.engine_logs.scan import COUNT, NUMBER, SIZE, count, first, hits, size

START = "non-default args: "
"""Printed once by each start."""

_VERSION = re.compile(r" {0,2}\(?v?([0-9][0-9A-Za-z.+_-]{0,60})")
_SERVED = re.compile(r"vllm serve[ \\\n]{1,20}([^\s\\-][^\s\\]{0,399})")
_COUNT = re.compile(rf"(?:=| to ){COUNT}")
_GIB = re.compile(r"\d{1,6}(?:\.\d{1,6})?")
_SHARES = (
    ("x gpu_memory_utilization (", re.compile(rf"{NUMBER}\)")),
    ("Requested memory:", re.compile(rf" {NUMBER} \(util\)")),
    ("esired GPU memory utilization", re.compile(rf"[^(\n]{{0,80}}\({NUMBER}, {SIZE}\)")),
    ("The current --gpu-memory-utilization=", re.compile(NUMBER)),
    ("increase --gpu-memory-utilization from ", re.compile(NUMBER)),
)
"""Where the memory fraction is printed, in the order of trust."""


def vllm_listing(text: str, whole_text: str) -> Listing:
    """Where the log shows arguments, the resolved configuration first."""
    shown = tuple(
        shown_at(text, text.find(marker)) for marker in (" with config: ", START, "args: Namespace(") if marker in text
    )
    at = max(whole_text.rfind("vllm serve "), whole_text.rfind("vllm.entrypoints."))
    return Listing(shown, command_at(whole_text, at))


def vllm_launched(text: str, whole_text: str, listing: Listing, length: int | None) -> Launched:
    """What the log tells of the launch; ``length``: max_model_len."""
    drafted = speculative(listing)
    adapters = listing.truth("enable_lora")
    offload = listing.get("cpu_offload_gb")
    return Launched(
        engine="vllm",
        version=_version(whole_text),
        models=model_names(listing.get("model", "model_tag") or _served(listing.command)),
        gpus=cards_in(whole_text),
        weights=word(listing.get("quantization")),
        dtype=word(listing.get("dtype")),
        kv_cache=word(listing.get("kv_cache_dtype")),
        tensor=listing.whole("tensor_parallel_size", "tp"),
        pipeline=listing.whole("pipeline_parallel_size", "pp"),
        data=listing.whole("data_parallel_size", "dp"),
        expert=listing.truth("enable_expert_parallel"),
        settings=given(
            {
                "gpu_memory_utilization": _share(text) or listing.share("gpu_memory_utilization"),
                "max_model_len": length,
                "max_num_seqs": listing.whole("max_num_seqs") or _counted(text, "Defaulting max_num_seqs"),
                "max_num_batched_tokens": listing.whole("max_num_batched_tokens")
                or _counted(text, "max_num_batched_tokens"),
                "enforce_eager": listing.truth("enforce_eager"),
                "block_size": listing.whole("block_size"),
                "prefix_caching": listing.truth("enable_prefix_caching"),
                "chunked_prefill": listing.truth("enable_chunked_prefill", "chunked_prefill_enabled"),
                "kv_cache_memory_bytes": listing.whole("kv_cache_memory_bytes", "kv_cache_memory"),
                "cpu_offload_bytes": size(offload, "GiB") if offload and _GIB.fullmatch(offload) else None,
                "hybrid_kv_cache": False if listing.truth("disable_hybrid_kv_cache_manager") else None,
            }
        ),
        speculative_method=word(drafted.get("method")),
        speculative_tokens=drafted.whole("num_speculative_tokens", "num_spec_tokens"),
        draft_models=model_names(drafted.get("model", "draft_model")),
        max_loras=(listing.whole("max_loras") or 1) if adapters else None,
        max_lora_rank=(listing.whole("max_lora_rank") or 16) if adapters else None,
    )


def speculative(listing: Listing) -> Listing:
    """The arguments of speculative decoding; empty where there is none."""
    drafts = section("\n".join(listing.shown), "speculative_config")
    return Listing((drafts,) if re.match(r"speculative_config['\"]?\s?[=:]\s?[^N]", drafts) else ())


def _counted(text: str, marker: str) -> int | None:
    match = first(hits(text, marker, _COUNT))
    return None if match is None else count(match[1])


def _served(command: str) -> str | None:
    match = _SERVED.match(command)
    return None if match is None else match[1].strip("'\"")


def _version(text: str) -> str | None:
    for marker in ("LLM engine", "vLLM API server version", "█  version"):
        found = list(hits(text, marker, _VERSION))
        if found:
            return found[-1][1]
    return None


def _share(text: str) -> float | None:
    for marker, pattern in _SHARES:
        match = first(hits(text, marker, pattern))
        if match is not None and (value := share(match[1])) is not None:
            return value
    return None
