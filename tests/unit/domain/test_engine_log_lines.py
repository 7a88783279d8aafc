"""Single lines of each engine, in the forms that public logs show, and what must not be read."""

import pytest

from service.domain.engine_logs import LogFacts, engine_of, read_log
from service.domain.engine_logs.names import card_name, model_names, word
from service.domain.units import GIB, MIB


def facts_of(*lines: str) -> LogFacts:
    facts = read_log("\n".join(lines) + "\n")
    assert facts is not None
    return facts


def gib(value: float) -> int:
    return round(value * GIB)


@pytest.mark.parametrize("text", ["", "\n\n", "hello", "Traceback (most recent call last):", "load average: 1.0"])
def test_a_text_without_known_lines_is_no_log(text: str) -> None:
    assert read_log(text) is None
    assert engine_of(text) is None


def test_terminal_colours_and_wrapping_json_do_not_matter() -> None:
    coloured = facts_of(
        "\x1b[1;36m(EngineCore pid=7)\x1b[0;0m INFO Available KV cache memory: \x1b[32m61.66\x1b[0m GiB"
    )
    assert coloured.printed.kv_cache_bytes == gib(61.66)
    wrapped = facts_of('{"log":"INFO GPU KV cache size: 126,256 tokens\\n","stream":"stdout"}')
    assert wrapped.printed.capacity_tokens == 126_256


def test_windows_line_ends_and_timestamps() -> None:
    facts = read_log("2026-01-01T00:00:00Z stdout F Model loading took 12.56 GiB memory and 38.0 seconds\r\n")
    assert facts is not None
    assert facts.printed.weights_bytes == gib(12.56)


def test_the_old_profile_holds_weights_in_its_torch_peak() -> None:
    facts = facts_of(
        "INFO model_runner.py:1072] Loading model weights took 14.9888 GB",
        "INFO Memory profiling results: total_gpu_memory=23.62GiB initial_memory_usage=15.50GiB peak_torch_memory=16.20GiB "
        "memory_usage_post_profile=15.60GiB non_torch_memory=0.44GiB kv_cache_size=4.62GiB gpu_memory_utilization=0.90",
    )
    assert facts.printed.activation_bytes == gib(16.20) - gib(14.9888)
    assert facts.printed.non_torch_bytes == gib(0.44)
    assert facts.printed.kv_cache_bytes == gib(4.62)
    assert facts.printed.total_bytes == gib(23.62)
    assert "unit_gb" in facts.marks


def test_the_profile_of_many_lines() -> None:
    facts = facts_of(
        "INFO worker.py:243] Memory profiling results:",
        "INFO worker.py:243] total_gpu_memory     79.22GiB",
        "INFO worker.py:243] model weights take   7.48GiB",
        "INFO worker.py:243] non_torch_memory     3.58GiB",
        "INFO worker.py:243] PyTorch activation peak memory       1.26GiB",
        "INFO worker.py:243] available_kv_cache_memory    58.97GiB",
    )
    printed = facts.printed
    assert (printed.total_bytes, printed.weights_bytes) == (gib(79.22), gib(7.48))
    assert (printed.non_torch_bytes, printed.activation_bytes) == (gib(3.58), gib(1.26))
    assert printed.kv_cache_bytes == gib(58.97)


def test_utilization_of_total_on_one_line() -> None:
    facts = facts_of(
        "the current vLLM instance can use total_gpu_memory (23.58GiB) x gpu_memory_utilization (0.99) = 23.35GiB"
    )
    assert facts.printed.total_bytes == gib(23.58)
    assert facts.printed.budget_bytes == gib(23.35)
    assert facts.launched.settings["gpu_memory_utilization"] == 0.99


def test_one_figure_for_weights_and_libraries() -> None:
    facts = facts_of(
        "INFO Model loading took 49.17 GiB memory and 85.0 seconds",
        "INFO Desired GPU memory utilization is (0.69, 66.0 GiB). Actual usage is 50.71 GiB consumed (weights + non-torch), "
        "6.34 GiB for peak activation, and 0.26 GiB for CUDAGraph memory.",
        "INFO Available KV cache memory: 8.50 GiB",
    )
    assert facts.printed.non_torch_bytes == gib(50.71) - gib(49.17)
    assert facts.printed.activation_bytes == gib(6.34)
    assert "weights_with_libraries" in facts.marks


def test_a_snapshot_is_not_the_profile() -> None:
    facts = facts_of(
        "DEBUG worker init memory snapshot: torch_peak=0.01GiB, free_memory=77.66GiB, total_memory=79.19GiB, "
        "cuda_memory=1.53GiB, torch_memory=0.02GiB, non_torch_memory=1.51GiB",
        "INFO Available KV cache memory: 1.0 GiB",
    )
    assert facts.printed.non_torch_bytes is None
    assert facts.printed.free_bytes == gib(77.66)


def test_the_emptiest_rank_binds() -> None:
    facts = facts_of(
        "DEBUG Requested memory: 0.950000 (util), 75.23 GiB",
        "(Worker_PP0) DEBUG Total non KV cache memory: 8.69GiB; torch peak memory increase: 1.1GiB;",
        "(Worker_PP1) DEBUG Total non KV cache memory: 9.60GiB; torch peak memory increase: 2.01GiB;",
        "(Worker_PP0) INFO Available KV cache memory: 66.54 GiB",
    )
    assert facts.printed.kv_cache_bytes == pytest.approx(65.63 * GIB, abs=0.011 * GIB)
    assert facts.printed.activation_bytes == gib(2.01)
    assert set(facts.spreads) == {"activation_bytes", "kv_cache_bytes"}


def test_every_rank_prints_its_tokens() -> None:
    facts = facts_of("INFO GPU KV cache size: 1,000 tokens", "INFO GPU KV cache size: 960 tokens")
    assert facts.printed.capacity_tokens == 960
    assert (facts.spreads["capacity_tokens"].low, facts.spreads["capacity_tokens"].high) == (960, 1000)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            (
                "ValueError: Free memory on device cuda:1 (60.33/79.19 GiB) on startup is less than desired GPU memory "
                "utilization (0.95, 75.23 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
            ),
            "free_memory_below_budget",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
            "no_room_for_kv",
        ),
        (
            (
                "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in "
                "KV cache (2400). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`."
            ),
            "context_does_not_fit",
        ),
        (
            (
                "ValueError: To serve at least one request with the models's max seq len (1280),\n(0.18 GiB KV cache is needed, "
                "which is larger than the available KV cache\nmemory (0.10 GiB). Based on the available memory, the estimated "
                "maximum model\nlength is 736."
            ),
            "context_does_not_fit",
        ),
        (
            (
                "GPU memory utilization\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a "
                "total capacity of 79.19 GiB of which 552.50 MiB is free."
            ),
            "out_of_memory",
        ),
        (
            (
                "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering "
                "`max_num_seqs` or `gpu_memory_utilization`"
            ),
            "out_of_memory_at_warm_up",
        ),
    ],
)
def test_failures_of_vllm(line: str, code: str) -> None:
    facts = facts_of(line)
    assert facts.failure is not None
    assert facts.failure.code == code
    assert facts.started is False


def test_figures_of_failures() -> None:
    refused = facts_of(
        "To serve at least one request with the models's max seq len (1280),\n(0.18 GiB KV cache is needed, which is larger "
        "than the available KV cache\nmemory (0.10 GiB). Based on the available memory, "
        "the estimated maximum model\nlength is 736."
    )
    assert refused.printed.needed_kv_bytes == gib(0.18)
    assert refused.printed.kv_cache_bytes == gib(0.10)
    assert refused.printed.longest_context == 736
    assert refused.launched.settings["max_model_len"] == 1280
    spilled = facts_of(
        "LLM engine (v0.19.0)",
        "CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 552.50 MiB is free.",
    )
    assert spilled.failure is not None
    assert (spilled.failure.tried_bytes, spilled.failure.free_bytes) == (786 * MIB, round(552.5 * MIB))


def test_the_last_start_of_several_is_read() -> None:
    first = ["non-default args: {'model': 'a/b', 'max_model_len': 1}", "INFO Available KV cache memory: 1.0 GiB"]
    last = ["non-default args: {'model': 'a/b', 'max_model_len': 2}", "INFO Available KV cache memory: 2.0 GiB"]
    facts = facts_of("vLLM API server version 0.10.2", *first, "No available memory for the cache blocks", *last)
    assert facts.printed.kv_cache_bytes == gib(2.0)
    assert facts.launched.settings["max_model_len"] == 2
    assert facts.failure is None
    assert facts.launched.version == "0.10.2"
    assert "several_starts" in facts.marks


def test_arguments_in_every_form() -> None:
    shown = facts_of(
        "INFO api_server.py:529] vLLM API server version 0.6.3",
        "INFO api_server.py:530] args: Namespace(host=None, model='/data/hub/models--Qwen--Qwen2.5-7B/snapshots/0a1b', "
        "max_model_len=None, max_num_seqs=64, gpu_memory_utilization=0.85, enforce_eager=True, block_size=32, "
        "cpu_offload_gb=4, enable_lora=True, max_loras=2, max_lora_rank=32, kv_cache_dtype='fp8', quantization=None)",
    ).launched
    assert shown.models == ("Qwen/Qwen2.5-7B",)
    assert shown.settings == {
        "max_num_seqs": 64,
        "gpu_memory_utilization": 0.85,
        "enforce_eager": True,
        "block_size": 32,
        "cpu_offload_bytes": 4 * GIB,
    }
    assert (shown.kv_cache, shown.weights) == ("fp8", None)
    assert (shown.max_loras, shown.max_lora_rank) == (2, 32)
    typed = facts_of(
        "$ vllm serve Qwen/Qwen3-8B \\",
        "    --tensor-parallel-size 2 \\",
        "    --max-model-len=16384 --enforce-eager --gpu-memory-utilization 0.8",
        "INFO Available KV cache memory: 1.0 GiB --tensor-parallel-size 8",
    ).launched
    assert typed.models == ("Qwen/Qwen3-8B", "Qwen3-8B")
    assert typed.tensor == 2
    assert typed.settings == {"max_model_len": 16384, "enforce_eager": True, "gpu_memory_utilization": 0.8}


def test_speculative_decoding() -> None:
    facts = facts_of(
        "non-default args: {'model': 'Qwen/Qwen3.5-27B', 'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 3}}"
    )
    assert (facts.launched.speculative_method, facts.launched.speculative_tokens) == ("mtp", 3)
    assert "draft_model" in facts.marks
    none = facts_of("LLM engine (v0.19.0) with config: model='a/b', speculative_config=None, dtype=torch.float16")
    assert none.launched.speculative_tokens is None
    assert none.launched.dtype == "float16"


def test_hybrid_and_graph_lines() -> None:
    facts = facts_of(
        "INFO Setting attention block size to 1568 tokens to ensure that attention page size is >= mamba page size.",
        "WARNING Add 3 padding layers, may waste at most 6.25% KV cache memory",
        "INFO Estimated CUDA graph memory: 0.36 GiB total",
        "INFO CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.8200 is "
        "equivalent to --gpu-memory-utilization=0.8048 without CUDA graph memory profiling.",
        "INFO Graph capturing finished in 8 secs, took -0.33 GiB",
        "INFO Available KV cache memory: -2.14 GiB",
        "INFO Initial free memory 31.16 GiB, reserved 4.25 GiB memory for KV Cache as specified by kv_cache_memory_bytes config",
    )
    assert facts.printed.block_size == 1568
    assert facts.marks == {"padded_groups", "graphs_in_budget", "fixed_pool"}
    assert facts.printed.graph_estimate_bytes == gib(0.36)
    assert facts.printed.cuda_graph_bytes == gib(-0.33)
    assert facts.printed.kv_cache_bytes == gib(-2.14)
    assert facts.launched.settings["gpu_memory_utilization"] == 0.82


def test_sglang_ranks_state_and_latent_pools() -> None:
    facts = facts_of(
        "[2026-02-26 16:40:00] server_args=ServerArgs(model_path='moonshotai/Kimi-K2.5', tp_size=8, dp_size=8, "
        "enable_dp_attention=True, mem_fraction_static=0.85, kv_cache_dtype='auto', dtype='auto', page_size=64, "
        "max_running_requests=None, chunked_prefill_size=-1, disable_cuda_graph=True, context_length=None)",
        "[2026-02-26 16:40:01 DP0 TP0] Init torch distributed ends. mem usage=1.77 GB",
        "[2026-02-26 16:40:01 DP0 TP0] Load weight begin. avail mem=137.34 GB",
        "[2026-02-26 16:40:01 DP1 TP1] Load weight begin. avail mem=137.29 GB",
        "[2026-02-26 16:41:18 DP0 TP0] Load weight end. type=A, dtype=torch.bfloat16, avail mem=63.76 GB",
        "[2026-02-26 16:41:18 DP1 TP1] Load weight end. type=A, dtype=torch.bfloat16, avail mem=63.70 GB",
        "[2026-02-26 16:42:00 DP0 TP0] Load weight begin. avail mem=63.76 GB",
        "[2026-02-26 16:42:18 DP0 TP0] Load weight end. type=B, dtype=torch.bfloat16, avail mem=61.76 GB",
        "[2026-02-26 16:43:18 DP0 TP0] Mamba Cache is allocated. max_mamba_cache_size: 38, conv_state size: 0.03GB, "
        "ssm_state size: 2.74GB ",
        "[2026-02-26 16:43:18 DP0 TP0] KV Cache is allocated. #tokens: 383872, KV size: 19.36 GB",
        "[2026-02-26 16:43:19 DP0 TP0] max_total_num_tokens=383872, chunked_prefill_size=-1, max_running_requests=2049, "
        "context_len=262144",
    )
    printed, launched = facts.printed, facts.launched
    assert printed.weights_bytes == pytest.approx(75.58 * GIB, abs=4)
    assert printed.kv_cache_bytes == gib(19.36) + gib(0.03) + gib(2.74)
    assert (printed.capacity_tokens, printed.free_bytes) == (383_872, gib(137.29))
    assert printed.non_torch_bytes == gib(1.77)
    assert (launched.tensor, launched.data) == (1, 8)
    assert launched.settings == {
        "mem_fraction_static": 0.85,
        "max_model_len": 262_144,
        "max_num_seqs": 2049,
        "chunked_prefill": False,
        "enforce_eager": True,
        "block_size": 64,
    }


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.2",
        "KV Cache is allocated.\nRuntimeError: Loaded weights leave no GPU memory for the KV cache",
        "Load weight end.\nmax_total_tokens=131072 is larger than the profiled value -561981. Use the profiled value instead.",
    ],
)
def test_failures_of_sglang(line: str) -> None:
    facts = facts_of("Load weight begin. avail mem=43.74 GB", line)
    assert facts.launched.engine == "sglang"
    assert facts.failure is not None
    assert facts.failure.code == "no_room_for_kv"


def test_llama_devices_windows_and_host_memory() -> None:
    facts = facts_of(
        "build: 7003 (596a297cb) with cc (Ubuntu 11.4.0) 11.4.0 for x86_64-linux-gnu",
        "ggml_cuda_init: found 2 CUDA devices:",
        "  Device 0: NVIDIA GeForce RTX 5090, compute capability 12.0, VMM: yes",
        "  Device 1: NVIDIA GeForce RTX 5090, compute capability 12.0, VMM: yes",
        "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 5090) (0000:03:00.0) - 31000 MiB free",
        "llama_model_loader: loaded meta data with 40 key-value pairs and 808 tensors from "
        "/home/someone/private/gemma-3-27b-it-Q4_K_M-00001-of-00002.gguf (version GGUF V3 (latest))",
        "print_info: file type   = Q4_K - Medium",
        "load_tensors: offloaded 40/63 layers to GPU",
        "load_tensors:        CUDA0 model buffer size =  8000.00 MiB",
        "load_tensors:        CUDA0 model buffer size =  8000.00 MiB",
        "load_tensors:        CUDA1 model buffer size =  7000.00 MiB",
        "load_tensors:   CPU_Mapped model buffer size =  1000.00 MiB",
        "llama_context: n_seq_max     = 4",
        "llama_context: n_ctx         = 32768",
        "llama_context: n_ctx_seq     = 8192",
        "llama_context: n_batch       = 2048",
        "llama_context: n_ubatch      = 512",
        "llama_kv_cache:      CUDA0 KV buffer size =  1360.00 MiB",
        "llama_kv_cache:      CUDA0 KV buffer size =   552.50 MiB",
        "llama_kv_cache:      CUDA1 KV buffer size =  1000.00 MiB",
        "llama_kv_cache: size = 1360.00 MiB ( 32768 cells,  10 layers,  4/1 seqs), K (q8_0):  680.00 MiB, V (q8_0):  680.00 MiB",
        "llama_context:      CUDA0 compute buffer size =   300.75 MiB",
        "llama_context:      CUDA0 compute buffer size =   522.50 MiB",
        "llama_context:  CUDA_Host compute buffer size =   900.00 MiB",
        "main: server is listening on http://127.0.0.1:8080",
    )
    printed, launched = facts.printed, facts.launched
    assert printed.weights_bytes == 8000 * MIB
    assert printed.kv_cache_bytes == round(1912.5 * MIB)
    assert printed.activation_bytes == round(522.5 * MIB)
    assert (printed.layers_on_card, printed.layers) == (40, 63)
    assert printed.free_bytes == 31_000 * MIB
    assert launched.version == "b7003"
    assert launched.gpus == ("NVIDIA GeForce RTX 5090",)
    assert launched.models[-1] == "gemma-3-27b-it-Q4_K_M"
    assert (launched.weights, launched.kv_cache, launched.pipeline) == ("Q4_K_M", "q8_0", 2)
    assert launched.settings == {"ctx_size": 32768, "parallel": 4, "max_num_batched_tokens": 2048}
    assert facts.started is True


def test_llama_exit_table_and_failed_allocation() -> None:
    table = facts_of(
        "llama_memory_breakdown_print: | memory breakdown [MiB]  | total  free  self  model  context  compute  unaccounted |",
        "llama_memory_breakdown_print: |   - CUDA0 (GTX 1080 Ti) | 11165 = 8702 + (10001 =  9814 +     134 +      51) + 3 |",
        "llama_memory_breakdown_print: |   - Host                |                   197 =   166 +       0 +      30     |",
    ).printed
    assert (table.total_bytes, table.free_bytes) == (11_165 * MIB, 8702 * MIB)
    assert (table.weights_bytes, table.kv_cache_bytes, table.activation_bytes) == (9814 * MIB, 134 * MIB, 51 * MIB)
    failed = facts_of(
        "llama_model_loader: x",
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 39979.48 MiB on device 1: cudaMalloc failed: out of memory",
    )
    assert failed.failure is not None
    assert failed.failure.tried_bytes == round(39_979.48 * MIB)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "Using default MoE config. Config file not found at E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json",
            "NVIDIA H100 80GB HBM3",
        ),
        ("GPU 0: NVIDIA A100-SXM4-40GB\nGPU 1: NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("GPU 0: NVIDIA L4 (UUID: GPU-0a1b)", "NVIDIA L4"),
        ("|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |", "NVIDIA H100 80GB HBM3"),
    ],
)
def test_cards(line: str, name: str) -> None:
    assert facts_of("vllm serve a/b", line).launched.gpus == (name,)


def test_names_are_cut_to_what_is_public() -> None:
    assert model_names("meta-llama/Llama-3.1-8B") == ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B")
    assert model_names("/home/someone/secret-project/Llama-3.1-8B/") == ("Llama-3.1-8B",)
    assert model_names("C:\\models\\Qwen3-8B") == ("Qwen3-8B",)
    assert model_names("<script>alert(1)</script>") == ()
    assert model_names("x" * 5000) == ()
    assert model_names("") == model_names(None) == model_names("///") == ()
    assert word("torch.bfloat16") == "bfloat16"
    assert word("None") is None
    assert word("a b") is None
    assert card_name("\x00\x01") == ()
