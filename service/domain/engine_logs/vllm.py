"""Start-up logs of vLLM: V0 (0.4 to 0.8) and V1 (0.8 on), at info and at debug level."""

import re

from service.domain.engine_logs.arguments import Listing
from service.domain.engine_logs.facts import Failure, LogFacts, Mark, Printed
from service.domain.engine_logs.ranks import least, most, spreads_of
from service.domain.engine_logs.scan import COUNT, NUMBER, SIZE, count, first, hits, size
from service.domain.engine_logs.vllm_figures import vllm_sizes
from service.domain.engine_logs.vllm_launch import speculative, vllm_launched, vllm_listing
from service.domain.units import GIB

DEFAULT_BLOCK_TOKENS = 16
LARGEST_BLOCK_TOKENS = 65_536

PRINTED_STEP_BYTES = GIB // 100
"""Sizes are printed to a hundredth of a GiB."""

_TOKENS = re.compile(rf" {COUNT} tokens")
_BLOCKS = re.compile(rf" blocks: {COUNT}")
_CONCURRENCY = re.compile(rf" {COUNT} tokens per request: {NUMBER}x")
_ONE_REQUEST = re.compile(
    rf"s?'s max seq len\s{{1,4}}\({COUNT}\),\s{{1,4}}\(?{SIZE}\s{{1,4}}KV\s{{1,4}}cache\s{{1,4}}is\s{{1,4}}needed"
    rf"[^0-9]{{0,120}}{SIZE}"
)
_LONGEST = re.compile(rf"\s{{1,4}}model\s{{1,4}}length\s{{1,4}}is\s{{1,4}}{COUNT}")
_STORED = re.compile(
    rf" \({COUNT}\) is larger than the maximum number of tokens that can be stored in KV cache \({COUNT}\)"
)
_TRIED = re.compile(rf" {SIZE}(?:\. GPU[^\n]{{0,80}}? of which {SIZE} is free)?")


def read_vllm(text: str, whole_text: str) -> LogFacts:
    """Facts of one start; ``whole_text`` also holds what was printed before it (version, launch line)."""
    listing = vllm_listing(text, whole_text)
    found = vllm_sizes(text)
    block = _block_size(text, listing)
    tokens = [count(match[1]) for match in hits(text, "GPU KV cache size:", _TOKENS)]
    if not tokens:
        markers = ("# GPU", "# CUDA", "# cuda")
        tokens = [
            count(match[1]) * (block or DEFAULT_BLOCK_TOKENS)
            for marker in markers
            for match in hits(text, marker, _BLOCKS)
        ]
    concurrency = list(hits(text, "Maximum concurrency for", _CONCURRENCY))
    refused = first(hits(text, "To serve at least one request with the model", _ONE_REQUEST))
    stored = first(hits(text, "model's max seq len", _STORED))
    longest = first(hits(text, "estimated maximum", _LONGEST))
    marks = _marks(text, listing)
    pools = found["kv_cache_bytes"] or found["fixed_pool"]
    if found["budget_bytes"] and "graphs_in_budget" not in marks:
        pools += _emptier(found, pools)
    if refused is not None and not pools:
        pools = [size(refused[4], refused[5])]
    if stored is not None and not tokens:
        tokens = [count(stored[2])]
    named = refused or stored or (concurrency[0] if concurrency else None)
    length = listing.whole("max_seq_len", "max_model_len") or (None if named is None else count(named[1]))
    failure = _failure(text, context=refused is not None or stored is not None)
    running = bool(tokens) or "startup complete" in text
    return LogFacts(
        launched=vllm_launched(text, whole_text, listing, length),
        printed=Printed(
            total_bytes=least(found["total_bytes"]),
            free_bytes=least(found["free_bytes"]),
            budget_bytes=least(found["budget_bytes"]),
            weights_bytes=most(found["weights_bytes"]),
            activation_bytes=most(found["activation_bytes"]),
            cuda_graph_bytes=most(found["cuda_graph_bytes"] or found["graph_pool"]),
            graph_estimate_bytes=most(found["graph_estimate_bytes"]),
            non_torch_bytes=most(found["non_torch_bytes"]),
            kv_cache_bytes=least(pools),
            capacity_tokens=least(tokens),
            block_size=block,
            max_concurrency=min((float(match[2]) for match in concurrency), default=None),
            at_tokens=count(concurrency[0][1]) if concurrency else None,
            longest_context=None if longest is None else count(longest[1]),
            needed_kv_bytes=None if refused is None else size(refused[2], refused[3]),
        ),
        failure=failure,
        started=False if failure is not None else True if running else None,
        marks=marks,
        spreads=spreads_of(
            weights_bytes=found["weights_bytes"],
            activation_bytes=found["activation_bytes"],
            non_torch_bytes=found["non_torch_bytes"],
            kv_cache_bytes=pools,
            free_bytes=found["free_bytes"],
            capacity_tokens=tokens,
        ),
    )


def _emptier(found: dict[str, list[int]], pools: list[int]) -> list[int]:
    """Pools of ranks that print what they take but not what is left, where less is left than any rank prints.

    Pipeline stages differ, and the stage that binds does not always print its pool.
    """
    left = [min(found["budget_bytes"]) - taken for taken in found["taken_bytes"]]
    return [each for each in left if not pools or each < min(pools) - 2 * PRINTED_STEP_BYTES]


def _block_size(text: str, listing: Listing) -> int | None:
    enlarged = first(hits(text, "Setting attention block size to", _TOKENS))
    if enlarged is not None:
        return count(enlarged[1])
    given = listing.whole("block_size")
    return given if given is not None and given <= LARGEST_BLOCK_TOKENS else None


def _failure(text: str, *, context: bool) -> Failure | None:
    """The first check that failed, in the order in which vLLM makes them."""
    if "is less than desired GPU memory utilization" in text:
        return Failure(code="free_memory_below_budget")
    if "No available memory for the cache blocks" in text:
        return Failure(code="no_room_for_kv")
    if context:
        return Failure(code="context_does_not_fit")
    warm_up = "out of memory occurred when warming up sampler" in text
    tried = first(hits(text, "Tried to allocate", _TRIED))
    if tried is None and not warm_up:
        return None
    return Failure(
        code="out_of_memory_at_warm_up" if warm_up else "out_of_memory",
        tried_bytes=None if tried is None else size(tried[1], tried[2]),
        free_bytes=None if tried is None or tried[3] is None else size(tried[3], tried[4]),
    )


def _marks(text: str, listing: Listing) -> frozenset[Mark]:
    marks: set[Mark] = set()
    if "CUDA graph memory profiling is enabled" in text:
        marks.add("graphs_in_budget")
    elif "CUDA graph memory profiling will be enabled by default" in text:
        marks.add("graphs_beside_budget")
    if "padding layers, may waste" in text:
        marks.add("padded_groups")
    if "memory for KV Cache as specified" in text:
        marks.add("fixed_pool")
    if "(weights + non-torch" in text:
        marks.add("weights_with_libraries")
    if first(hits(text, "weights took ", re.compile(r"[0-9.]{1,12} GB"))) is not None:
        marks.add("unit_gb")
    if listing.truth("enable_lora"):
        marks.add("lora")
    if speculative(listing).whole("num_speculative_tokens", "num_spec_tokens") is not None:
        marks.add("draft_model")
    return frozenset(marks)
