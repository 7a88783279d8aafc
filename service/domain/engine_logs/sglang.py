"""Start-up logs of SGLang, 0.2 to 0.5.

Line formats as seen in public logs: SGLang issues 748, 1191, 3451, 4161, 4351, 7059, 7495 and pull requests 11716, 18263.
Sizes are printed as GB and are GiB.
"""

import re
from collections import defaultdict

from service.domain.engine_logs.arguments import Listing, command_at, given, shown_at
from service.domain.engine_logs.cards import cards_in
from service.domain.engine_logs.facts import Failure, Launched, LogFacts, Mark, Printed
from service.domain.engine_logs.names import model_names, word
from service.domain.engine_logs.ranks import least, most, spreads_of
from service.domain.engine_logs.scan import BEFORE, COUNT, SIZE, before, count, first, hits, places, size, sizes

START = "server_args=ServerArgs("
"""Printed once by each start."""

_SIZE = re.compile(rf"[ =:]{{0,3}}{SIZE}")
_LOADED = re.compile(rf"[^\n]{{0,300}}?avail mem={SIZE}(?:, mem usage={SIZE})?")
_POOL = re.compile(rf"[^\n]{{0,80}}?(?:#tokens: {COUNT}, )?(?:KV size: {SIZE}|K size: {SIZE}, V size: {SIZE})")
_STATE = re.compile(rf"[^\n]{{0,200}}?conv_state size: {SIZE}[^\n]{{0,80}}?ssm_state size: {SIZE}")
_CAPTURED = re.compile(rf"[^\n]{{0,120}}?mem usage={SIZE}")
_RANK = re.compile(r"(?:DP\d{1,4} )?(?:TP|PP)\d{1,4}(?: EP\d{1,4})?(?: (?:TP|PP)\d{1,4})?")
_EQUALS = re.compile(rf"={COUNT}")
_PROFILED = re.compile(r" is larger than the profiled value (-?\d{1,15})")
_TRIED = re.compile(rf" {SIZE}(?:\. GPU[^\n]{{0,80}}? of which {SIZE} is free)?")
_VERSION = re.compile(r"(?:==| version:? |[ -]v)([0-9][0-9A-Za-z.+_-]{0,60})")
_TOTAL = re.compile(rf" \d{{1,3}} has a total capacity of {SIZE}")


def read_sglang(text: str, whole_text: str) -> LogFacts:
    """Facts of one start; ``whole_text`` also holds what was printed before it."""
    listing = Listing(
        (shown_at(text, text.find("ServerArgs(")),) if "ServerArgs(" in text else (),
        command_at(whole_text, max(whole_text.rfind("sglang.launch_server"), whole_text.rfind("sglang serve "))),
    )
    free, weights = _loaded(text)
    pools, pool_tokens = _pools(text)
    tokens = [count(match[1]) for match in hits(text, "max_total_num_tokens", _EQUALS)]
    if not tokens:
        tokens = pool_tokens
    failure = _failure(text)
    graphs: dict[str, int] = defaultdict(int)
    for marker in ("cuda graph end.", "CUDA graph end."):
        for rank, match in _by_rank(text, marker, _CAPTURED):
            graphs[rank] += size(match[1], match[2])
    requests = first(hits(text, "max_running_requests", _EQUALS))
    length = first(hits(text, "context_len", _EQUALS))
    distributed = sizes(text, "Init torch distributed ends. mem usage", _SIZE)
    marks: set[Mark] = {"unit_gb"} if weights or pools else set()
    speculative = word(listing.get("speculative_algorithm"))
    if speculative:
        marks.add("draft_model")
    return LogFacts(
        launched=_launched(
            whole_text,
            listing,
            seqs=None if requests is None else count(requests[1]),
            length=None if length is None else count(length[1]),
        ),
        printed=Printed(
            total_bytes=least(sizes_of(text)),
            free_bytes=least(free),
            weights_bytes=most(weights),
            cuda_graph_bytes=most(list(graphs.values())),
            non_torch_bytes=most(distributed),
            kv_cache_bytes=least(pools),
            capacity_tokens=least(tokens),
        ),
        failure=failure,
        started=False if failure is not None else True if tokens or "The server is fired up" in text else None,
        marks=frozenset(marks),
        spreads=spreads_of(weights_bytes=weights, kv_cache_bytes=pools, capacity_tokens=tokens, free_bytes=free),
    )


def sizes_of(text: str) -> list[int]:
    """Total memory of the cards, which only an allocation failure prints."""
    return [size(match[1], match[2]) for match in hits(text, "GPU", _TOTAL)] if "total capacity of" in text else []


def _by_rank(text: str, marker: str, pattern: re.Pattern[str]) -> list[tuple[str, re.Match[str]]]:
    """Matches behind each marker with the rank that the line begins with."""
    found = []
    for at in places(text, marker):
        match = pattern.match(text, at + len(marker), at + len(marker) + BEFORE * 3)
        if match is not None:
            rank = _RANK.search(before(text, at))
            found.append((rank[0] if rank else "", match))
    return found


def _loaded(text: str) -> tuple[list[int], list[int]]:
    """Free memory before the first load, and weights with a draft's, of each rank."""
    begins: dict[str, list[int]] = defaultdict(list)
    for rank, match in _by_rank(text, "Load weight begin. avail mem", _SIZE):
        begins[rank].append(size(match[1], match[2]))
    weights: dict[str, int] = defaultdict(int)
    seen: dict[str, int] = defaultdict(int)
    for rank, match in _by_rank(text, "Load weight end.", _LOADED):
        left = size(match[1], match[2])
        started = begins[rank][seen[rank]] if seen[rank] < len(begins[rank]) else None
        seen[rank] += 1
        if match[3] is not None:
            weights[rank] += size(match[3], match[4])
        elif started is not None:
            weights[rank] += started - left
    return [each[0] for each in begins.values() if each], list(weights.values())


def _pools(text: str) -> tuple[list[int], list[int]]:
    """KV pools of each rank (sliding and full ones, and recurrent state, added up), and their largest token counts."""
    pools: dict[str, int] = defaultdict(int)
    tokens: dict[str, int] = defaultdict(int)
    for rank, match in _by_rank(text, "KV Cache is allocated.", _POOL):
        if match[2] is not None:
            pools[rank] += size(match[2], match[3])
        else:
            pools[rank] += size(match[4], match[5]) + size(match[6], match[7])
        if match[1] is not None:
            tokens[rank] = max(tokens[rank], count(match[1]))
    for rank, match in _by_rank(text, "Mamba Cache is allocated.", _STATE):
        pools[rank] += size(match[1], match[2]) + size(match[3], match[4])
    return list(pools.values()), [each for each in tokens.values() if each]


def _launched(whole_text: str, listing: Listing, *, seqs: int | None, length: int | None) -> Launched:
    tensor, data = listing.whole("tp_size", "tensor_parallel_size", "tp"), listing.whole("dp_size", "dp")
    if listing.truth("enable_dp_attention") and tensor and data:
        tensor = max(tensor // data, 1)  # ranks of attention lie inside the tensor ranks
    else:
        data = None  # independent copies behind one router
    chunk = listing.get("chunked_prefill_size")
    experts = listing.whole("ep_size", "expert_parallel_size")
    version = None
    for match in hits(whole_text, "sglang", _VERSION):
        version = match[1]
    return Launched(
        engine="sglang",
        version=version,
        models=model_names(listing.get("model_path", "model")),
        gpus=cards_in(whole_text),
        weights=word(listing.get("quantization")),
        dtype=_named(listing.get("dtype")),
        kv_cache=word(listing.get("kv_cache_dtype")),
        tensor=tensor,
        pipeline=listing.whole("pp_size", "pipeline_parallel_size"),
        data=data,
        expert=None if experts is None else experts > 1,
        settings=given(
            {
                "mem_fraction_static": listing.share("mem_fraction_static"),
                "max_model_len": listing.whole("context_length") or length,
                "max_num_seqs": listing.whole("max_running_requests") or seqs,
                "max_num_batched_tokens": listing.whole("chunked_prefill_size"),
                "chunked_prefill": False if chunk == "-1" else None,
                "enforce_eager": listing.truth("disable_cuda_graph"),
                "block_size": listing.whole("page_size"),
                "prefix_caching": False if listing.truth("disable_radix_cache") else None,
            }
        ),
        speculative_method=word(listing.get("speculative_algorithm")),
        speculative_tokens=listing.whole("speculative_num_draft_tokens", "speculative_num_steps"),
        draft_models=model_names(listing.get("speculative_draft_model_path", "speculative_draft")),
    )


def _named(dtype: str | None) -> str | None:
    value = word(dtype)
    return None if value == "auto" else value


def _failure(text: str) -> Failure | None:
    profiled = first(hits(text, "max_total_tokens", re.compile(rf"=\d{{1,15}}{_PROFILED.pattern}")))
    short = profiled is not None and int(profiled[1]) <= 0
    if short or "Not enough memory. Please try to increase --mem-fraction-static" in text:
        return Failure(code="no_room_for_kv")
    if "weights leave no GPU memory" in text:
        return Failure(code="no_room_for_kv")
    tried = first(hits(text, "Tried to allocate", _TRIED))
    if tried is None:
        return None
    return Failure(
        code="out_of_memory",
        tried_bytes=size(tried[1], tried[2]),
        free_bytes=None if tried[3] is None else size(tried[3], tried[4]),
    )
