"""The launch line that a log shows: only what it states, no default filled in."""

from service.domain.engine import EngineName, EngineRequest
from service.domain.launch import Launch, quote

FLAGS: dict[EngineName, dict[str, str]] = {
    "vllm": {
        "max_model_len": "--max-model-len",
        "max_num_seqs": "--max-num-seqs",
        "max_num_batched_tokens": "--max-num-batched-tokens",
        "gpu_memory_utilization": "--gpu-memory-utilization",
        "block_size": "--block-size",
        "kv_cache_memory_bytes": "--kv-cache-memory-bytes",
    },
    "sglang": {
        "max_model_len": "--context-length",
        "max_num_seqs": "--max-running-requests",
        "max_num_batched_tokens": "--chunked-prefill-size",
        "mem_fraction_static": "--mem-fraction-static",
        "block_size": "--page-size",
    },
    "tensorrt-llm": {},
    "llama.cpp": {"ctx_size": "--ctx-size", "parallel": "--parallel", "max_num_batched_tokens": "--batch-size"},
}
"""Flag of each launch setting that is a number."""

BEGINNINGS: dict[EngineName, tuple[str, ...]] = {
    "vllm": ("vllm", "serve"),
    "sglang": ("python", "-m", "sglang.launch_server", "--model-path"),
    "tensorrt-llm": ("trtllm-serve",),
    "llama.cpp": ("llama-server", "--hf-repo"),
}

RANKS: dict[EngineName, tuple[str, str, str]] = {
    "vllm": ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"),
    "sglang": ("--tp-size", "--pp-size", "--dp-size"),
    "tensorrt-llm": ("--tp_size", "--pp_size", ""),
    "llama.cpp": ("", "", ""),
}

EAGER: dict[EngineName, str] = {"vllm": "--enforce-eager", "sglang": "--disable-cuda-graph"}


def launch_of_log(
    engine: EngineRequest, model: str | None, ranks: tuple[int, int, int], kv_cache: str | None
) -> Launch:
    """The line as the log states it. ``ranks``: tensor, pipeline, data; ``model``: none where the log names none."""
    name = engine.name
    args = [*BEGINNINGS[name], *([] if model is None else [model])]
    for flag, number in zip(RANKS[name], ranks, strict=True):
        if flag and number > 1:
            args += [flag, str(number)]
    for setting, flag in FLAGS[name].items():
        value = getattr(engine, setting)
        if value is not None:
            args += [flag, f"{value:.6g}" if isinstance(value, float) else str(value)]
    if kv_cache is not None and name in {"vllm", "sglang"}:
        args += ["--kv-cache-dtype", kv_cache]
    if engine.enforce_eager and name in EAGER:
        args.append(EAGER[name])
    return Launch(command=" ".join(map(quote, args)), args=tuple(args))
