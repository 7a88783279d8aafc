"""Logs written from the figures of public starts, in each engine's line formats, are read back to the same figures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.domain.engine_logs import LogFacts, read_log
from service.domain.units import GIB

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "accuracy" / "data" / "memory_cases.json").read_text()
)

HALF_A_STEP_BYTES = 0.0051 * GIB
"""Sizes are printed to a hundredth of a GiB."""

Writer = Callable[[dict[str, Any]], str]


def lines(*found: str | None) -> str:
    return "\n".join(line for line in found if line is not None) + "\n"


def when(value: object, line: str) -> str | None:
    """The line with ``value`` put in, where there is one."""
    return None if value is None else line.format(value)


def version_of(case: dict[str, Any]) -> str:
    return f"(v{case['version']}) " if "version" in case else ""


def vllm_v0(case: dict[str, Any]) -> str:
    """0.6.5 to 0.8: four figures on one line, blocks instead of tokens."""
    seen = case["observed"]
    blocks = seen.get("gpu_blocks")
    if blocks is None and seen.get("kv_tokens") is not None:
        blocks = seen["kv_tokens"] // (seen.get("block_size") or case.get("block_size") or 16)
    parts = [
        when(seen.get("weights_gib_per_gpu"), "model weights take {:.2f}GiB"),
        when(seen.get("non_torch_gib"), "non_torch_memory takes {:.2f}GiB"),
        when(seen.get("activation_peak_gib"), "PyTorch activation peak memory takes {:.2f}GiB"),
        when(seen.get("kv_cache_gib_per_gpu"), "the rest of the memory reserved for KV Cache is {:.2f}GiB"),
    ]
    return lines(
        f"INFO 03-01 08:00:00 [llm_engine.py:240] Initializing a V0 LLM engine {version_of(case)}with config: "
        f"model='{case['model']}', dtype=torch.bfloat16, max_seq_len={case.get('max_model_len')}, "
        f"tensor_parallel_size={case['tensor']}, pipeline_parallel_size={case['pipeline']}, "
        f"block_size={seen.get('block_size') or case.get('block_size') or 16}",
        when(
            seen.get("weights_gib_per_gpu"),
            "INFO 03-01 08:01:00 model_runner.py:1099] Loading model weights took {:.4f} GB",
        ),
        "INFO 03-01 08:01:09 worker.py:287] " + "; ".join(part for part in parts if part) + ".",
        when(blocks, "INFO 03-01 08:01:10 executor_base.py:112] # cuda blocks: {}, # CPU blocks: 2048"),
        concurrency(seen, grouped=False),
        when(
            seen.get("cuda_graph_gib"),
            "INFO 03-01 08:01:30 model_runner.py:1598] Graph capturing finished in 15 secs, took {:.2f} GiB",
        ),
    )


def concurrency(seen: dict[str, Any], *, grouped: bool = True) -> str | None:
    if seen.get("max_concurrency") is None or seen.get("max_concurrency_at_len") is None:
        return None
    length = f"{seen['max_concurrency_at_len']:,}" if grouped else str(seen["max_concurrency_at_len"])
    times = f"{seen['max_concurrency']:.2f}x"
    return f"INFO 04-22 00:18:23 [kv_cache_utils.py:1324] Maximum concurrency for {length} tokens per request: {times}"


def vllm_v1(case: dict[str, Any]) -> str:
    """0.8 on, at debug level, from a worker with a rank before each line."""
    seen = case["observed"]
    arguments = {
        "model_tag": case["model"],
        "model": case["model"],
        "max_model_len": case.get("max_model_len"),
        "tensor_parallel_size": case["tensor"],
        "pipeline_parallel_size": case["pipeline"],
        "data_parallel_size": case["data"],
        "gpu_memory_utilization": case.get("memory_fraction"),
        "max_num_seqs": case.get("max_num_seqs"),
        "max_num_batched_tokens": case.get("max_num_batched_tokens"),
    }
    shown = {name: value for name, value in arguments.items() if value is not None}
    rank = "(Worker_TP0 pid=444)"
    return lines(
        f"(APIServer pid=1) INFO 04-22 00:16:12 [utils.py:233] non-default args: {shown}",
        f"(EngineCore pid=245) INFO 04-22 00:16:25 [core.py:105] Initializing a V1 LLM engine "
        f"{version_of(case)}with config: model='{case['model']}', speculative_config=None, "
        f"dtype=torch.bfloat16, max_seq_len={case.get('max_model_len')}, tensor_parallel_size={case['tensor']}, "
        f"pipeline_parallel_size={case['pipeline']}, data_parallel_size={case['data']}, quantization=None, "
        f"enforce_eager={case['enforce_eager']}, kv_cache_dtype=auto",
        when(
            seen.get("weights_gib_per_gpu"),
            rank
            + " INFO 04-22 00:17:32 [gpu_model_runner.py:4820] Model loading took {} GiB memory and 54.254199 seconds",
        ),
        when(
            seen.get("activation_peak_gib"),
            rank + " DEBUG 04-22 00:18:23 [gpu_worker.py:435] torch peak memory increase: {}GiB;",
        ),
        when(
            seen.get("non_torch_gib"),
            rank + " DEBUG 04-22 00:18:23 [gpu_worker.py:435] non-torch forward increase memory: {}GiB;",
        ),
        when(
            seen.get("kv_cache_gib_per_gpu"),
            rank + " INFO 04-22 00:18:23 [gpu_worker.py:436] Available KV cache memory: {} GiB",
        ),
        when(
            seen.get("kv_tokens"),
            "(EngineCore pid=245) INFO 04-22 00:18:23 [kv_cache_utils.py:1319] GPU KV cache size: {:,} tokens",
        ),
        concurrency(seen),
        when(
            seen.get("cuda_graph_gib"),
            rank + " INFO 04-22 00:18:32 [gpu_model_runner.py:6046] Graph capturing finished in 8 secs, took {} GiB",
        ),
        refusal(case),
    )


def refusal(case: dict[str, Any]) -> str | None:
    """The error of a request of max_model_len that does not fit."""
    seen = case["observed"]
    if seen.get("needed_kv_gib") is None:
        return None
    return (
        f"ERROR 02-08 00:00:00 [core.py:946] ValueError: To serve at least one request with the model's max seq len "
        f"({case['max_model_len']}), ({seen['needed_kv_gib']} GiB KV cache is needed, which is larger than the available "
        f"KV cache memory ({seen['kv_cache_gib_per_gpu']} GiB). Based on the available memory, the estimated maximum "
        f"model length is {seen['estimated_max_model_len']}. Try increasing `gpu_memory_utilization`."
    )


def sglang(case: dict[str, Any]) -> str:
    """Two ranks, one MiB apart, as they print."""
    seen = case["observed"]
    half = seen["kv_cache_gib_per_gpu"] / 2 if "kv_cache_gib_per_gpu" in seen else None
    stamp = "[2026-03-01 08:00:0{} TP{}]"
    ranks = [stamp.format(rank, rank) for rank in range(2)]
    return lines(
        f"[2026-03-01 08:00:00] server_args=ServerArgs(model_path='{case['model']}', tokenizer_path='x', dtype='auto', "
        f"quantization=None, context_length={case.get('max_model_len')}, mem_fraction_static={case.get('memory_fraction')}, "
        f"tp_size={case['tensor']}, pp_size={case['pipeline']}, chunked_prefill_size=8192, disable_cuda_graph=False)",
        *(f"{rank} Load weight begin. avail mem=75.02 GB" for rank in ranks),
        *(
            when(
                seen.get("weights_gib_per_gpu"),
                rank + " Load weight end. type=Model, dtype=torch.bfloat16, avail mem=74.28 GB, mem usage={:.2f} GB.",
            )
            for rank in ranks
        ),
        *(
            None
            if half is None
            else f"{rank} KV Cache is allocated. #tokens: {seen.get('kv_tokens', 100)}, "
            f"K size: {half:.2f} GB, V size: {half:.2f} GB"
            for rank in ranks
        ),
        f"{ranks[0]} Memory pool end. avail mem=8.73 GB",
        when(
            seen.get("cuda_graph_gib"),
            ranks[0] + " Capture cuda graph end. Time elapsed: 1.24 s. mem usage={:.2f} GB. avail mem=2.89 GB.",
        ),
        when(
            seen.get("kv_tokens"),
            ranks[0]
            + " max_total_num_tokens={}, chunked_prefill_size=8192, max_running_requests=2049, context_len=131072",
        ),
    )


def llama_old(case: dict[str, Any]) -> str:
    return llama(case, "llm_load_tensors", "llama_new_context_with_model", "llama_kv_cache_init", "buffer size")


def llama_new(case: dict[str, Any]) -> str:
    return llama(case, "load_tensors", "llama_context", "llama_kv_cache", "model buffer size")


def llama(case: dict[str, Any], load: str, context: str, cache: str, buffer: str) -> str:
    seen = case["observed"]
    mib = {name: value * 1024 for name, value in seen.items() if name.endswith(("gpu", "gib"))}
    build = case["version"].removeprefix("b")
    layers = case.get("layers_on_gpu")
    return lines(
        f"build: {build} (5598f475) with cc (Ubuntu 11.4.0) 11.4.0 for x86_64-linux-gnu",
        "ggml_cuda_init: found 1 CUDA devices:",
        "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes",
        "llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from "
        f"/m/{case['model'].split('/')[-1]}.gguf (version GGUF V3 (latest))",
        None if layers is None else f"{load}: offloaded {layers}/62 layers to GPU",
        f"{load}:   CPU_Mapped {buffer} =   315.30 MiB",
        f"{load}:        CUDA0 {buffer} = {mib['weights_gib_per_gpu']:8.2f} MiB",
        f"{context}: n_seq_max     = 1",
        f"{context}: n_ctx         = {case['max_model_len']}",
        f"{context}: n_ctx_per_seq = {case['max_model_len']}",
        f"{context}: n_batch       = 2048",
        f"{cache}:      CUDA0 KV buffer size = {mib['kv_cache_gib_per_gpu']:8.2f} MiB",
        f"{context}:  CUDA_Host  output buffer size =     1.95 MiB",
        f"{context}:      CUDA0 compute buffer size = {mib['activation_peak_gib']:8.2f} MiB",
        f"{context}:  CUDA_Host compute buffer size =   260.02 MiB",
    )


WRITERS: dict[str, tuple[Writer, ...]] = {
    "vllm": (vllm_v0, vllm_v1),
    "sglang": (sglang,),
    "llama.cpp": (llama_old, llama_new),
}

RUNS = [
    pytest.param(case, write, id=f"{case['id']}-{write.__name__}")
    for case in CASES
    if case["observed"]
    for write in WRITERS.get(case["engine"], ())
]


def read(case: dict[str, Any], write: Writer) -> LogFacts:
    facts = read_log(write(case))
    assert facts is not None
    return facts


def test_the_cases_are_many() -> None:
    assert len(RUNS) > 200


@pytest.mark.parametrize(("case", "write"), RUNS)
def test_printed_figures_are_read_back(case: dict[str, Any], write: Writer) -> None:
    facts, seen = read(case, write), case["observed"]
    printed = facts.printed
    assert facts.launched.engine == case["engine"]
    for field, value in (
        ("weights_gib_per_gpu", printed.weights_bytes),
        ("kv_cache_gib_per_gpu", printed.kv_cache_bytes),
        ("activation_peak_gib", printed.activation_bytes),
        ("cuda_graph_gib", printed.cuda_graph_bytes),
        ("non_torch_gib", printed.non_torch_bytes),
        ("needed_kv_gib", printed.needed_kv_bytes),
    ):
        if field in seen and not (write is vllm_v0 and field == "needed_kv_gib"):
            assert value == pytest.approx(seen[field] * GIB, abs=2 * HALF_A_STEP_BYTES), field
    if write is vllm_v0:
        if "kv_tokens" in seen and seen["kv_tokens"] % (seen.get("block_size") or case.get("block_size") or 16) == 0:
            blocks = seen.get("gpu_blocks")
            block = seen.get("block_size") or case.get("block_size") or 16
            assert printed.capacity_tokens == (seen["kv_tokens"] if blocks is None else blocks * block)
    elif case["engine"] != "llama.cpp" and "kv_tokens" in seen:
        assert printed.capacity_tokens == seen["kv_tokens"]
    if "max_concurrency" in seen and "max_concurrency_at_len" in seen:
        assert printed.max_concurrency == pytest.approx(seen["max_concurrency"], abs=0.005)
        assert printed.at_tokens == seen["max_concurrency_at_len"]
    if write is vllm_v1:
        assert printed.longest_context == seen.get("estimated_max_model_len")


@pytest.mark.parametrize(("case", "write"), RUNS)
def test_the_launch_is_read_back(case: dict[str, Any], write: Writer) -> None:
    launched = read(case, write).launched
    name = case["model"].split("/")[-1]
    assert any(found.split("/")[-1] == name for found in launched.models)
    length = launched.settings.get("ctx_size" if case["engine"] == "llama.cpp" else "max_model_len")
    if case.get("max_model_len") is not None:
        assert length == case["max_model_len"]
    if case["engine"] == "llama.cpp":
        assert launched.version == case["version"]
        return
    assert launched.tensor == case["tensor"]
    assert launched.pipeline == case["pipeline"]
    if case["engine"] == "vllm" and case.get("version", "dev") != "dev":
        assert launched.version == case["version"]
    if write is vllm_v1:
        for field, setting in (
            ("memory_fraction", "gpu_memory_utilization"),
            ("max_num_seqs", "max_num_seqs"),
            ("max_num_batched_tokens", "max_num_batched_tokens"),
        ):
            assert launched.settings.get(setting) == case.get(field)
