"""Whatever a log holds, the answer is one: figures of any size, lines cut or repeated, members that contradict it."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FRAGMENTS = (
    "INFO vLLM API server version {0}",
    "non-default args: {{'model': 'Qwen/Qwen2.5-7B-Instruct', 'max_model_len': {0}, 'max_num_seqs': {1}, 'block_size': {0}}}",
    "Initializing a V1 LLM engine (v0.19.0) with config: model='facebook/opt-125m', max_seq_len={0}, tensor_parallel_size={1}",
    "Model loading took {0} GiB memory",
    "model weights take {0}GiB; non_torch_memory takes {1}GiB; PyTorch activation peak memory takes {0}GiB;",
    "DEBUG Requested memory: 0.9 (util), {0} GiB Total non KV cache memory: {1}GiB;",
    "Available KV cache memory: {0} GiB",
    "GPU KV cache size: {0} tokens",
    "Maximum concurrency for {0} tokens per request: {1}x",
    "# GPU blocks: {0}, # CPU blocks: {1}",
    "Estimated CUDA graph memory: {0} GiB total CUDA graph memory profiling is enabled",
    "Graph capturing finished in 8 secs, took {0} GiB",
    "Free memory on device cuda:1 ({0}/{1} GiB) on startup is less than desired GPU memory utilization ({0}, {1} GiB)",
    (
        "To serve at least one request with the model's max seq len ({0}), {1} GiB KV cache is needed, which is larger than the "
        "available KV cache memory ({0} GiB). Based on the available memory, the estimated maximum model length is {1}."
    ),
    "model's max seq len ({0}) is larger than the maximum number of tokens that can be stored in KV cache ({1})",
    "Setting attention block size to {0} tokens",
    "Tried to allocate {0} MiB. GPU 0 has a total capacity of {1} GiB of which {0} MiB is free.",
    "server_args=ServerArgs(model_path='Qwen/Qwen3-0.6B', tp_size={0}, dp_size={1}, mem_fraction_static=0.{0})",
    "[TP{0}] Load weight begin. avail mem={1} GB",
    "[TP{0}] Load weight end. avail mem={1} GB, mem usage={0} GB.",
    "[TP{0}] KV Cache is allocated. #tokens: {1}, K size: {0} GB, V size: {0} GB",
    "max_total_num_tokens={0}, max_running_requests={1}, context_len={0}",
    "load_tensors: CUDA0 model buffer size = {0} MiB",
    "load_tensors: offloaded {0}/{1} layers to GPU",
    "llama_context: n_ctx = {0}",
    "llama_kv_cache: CUDA0 KV buffer size = {0} MiB",
    "llama_context: CUDA1 compute buffer size = {1} MiB",
    "llama_memory_breakdown_print: |   - CUDA0 (X) | {0} = {1} + ({0} = {0} + {0} + {0}) + 1 |",
)
NUMBERS = st.one_of(
    st.integers(-5, 300).map(str),
    st.sampled_from(
        ["0", "0.0", "1e9", "8,192", "131,072", "999999", "9" * 12, "9" * 18, "1" * 400, "NaN", "-0.5", ""]
    ),
    st.floats(0, 200, allow_nan=False).map(lambda value: f"{value:.2f}"),
)
LINES = st.builds(lambda text, one, other: text.format(one, other), st.sampled_from(FRAGMENTS), NUMBERS, NUMBERS)
LOGS = st.builds(
    lambda lines, cut: "\n".join(lines)[cut:], st.lists(LINES, min_size=1, max_size=14), st.integers(0, 30)
)
MODELS = st.sampled_from(
    [
        "meta-llama/Llama-3.1-8B-Instruct",
        "openai/gpt-oss-120b",
        "google/gemma-3-27b-it",
        "deepseek-ai/DeepSeek-V3",
        "BAAI/bge-m3",
        "Qwen/Qwen3.5-27B",
        None,
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=LOGS, model=MODELS, gpu=st.sampled_from(["h100-sxm-80gb", "t4-16gb", "mi300x-192gb"]))
def test_every_log_is_answered_or_refused(api: Any, log: str, model: str | None, gpu: str) -> None:  # noqa: ANN401
    response = api.post("engine-logs", {"log": log, "gpu": gpu, "model": model})
    assert response.status_code in {200, 422}, response.text
    answer = response.json()
    if response.status_code == 422:
        assert {each["code"] for each in answer["errors"]} <= {"impossible_combination", "unknown_id"}
        return
    for part in (*answer["parts"], *answer["capacity"]):
        assert part["cause"]
        actual = part.get("actual_bytes", part.get("actual"))
        assert (actual is None) == (part["agrees"] is None)
        assert (part["cause_code"] == "gap_none") == (part["agrees"] is True)
        if "difference_bytes" in part and actual is not None:
            assert part["difference_bytes"] == actual - part["predicted_bytes"]
