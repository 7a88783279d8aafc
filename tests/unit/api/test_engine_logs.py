"""``POST /v1/engine-logs``: what is read, which member wins, what explains a gap, and what never comes back."""

import json
from typing import Any

import pytest

GIB = 1024**3

SECRETS = ("hf_abcdefghijklmnop", "10.128.4.190", "someone", "corp-internal", "sk-live-123", "/mnt/private")

CONFIG = (
    "INFO 12-01 09:30:20 [core.py:1] Initializing a V1 LLM engine (v0.19.0) with config: "
    "model='{model}', dtype={dtype}, max_seq_len=8192, tensor_parallel_size={tensor}, pipeline_parallel_size=1, "
    "data_parallel_size=1, quantization={quantization}, enforce_eager=False, kv_cache_dtype={kv_cache}"
)
ARGUMENTS = (
    "INFO utils.py:233] non-default args: {{'model': '{model}', 'max_num_seqs': 1024, 'max_num_batched_tokens': 8192}}"
)


def vllm(
    *lines: str,
    model: str = "meta-llama/Llama-3.1-8B-Instruct",
    tensor: int = 1,
    quantization: str = "None",
    kv_cache: str = "auto",
    dtype: str = "torch.bfloat16",
) -> str:
    """A start of vLLM 0.19.0 with more lines behind."""
    config = CONFIG.format(model=model, tensor=tensor, quantization=quantization, kv_cache=kv_cache, dtype=dtype)
    return "\n".join([ARGUMENTS.format(model=model), config, *lines]) + "\n"


FIGURES = (
    "DEBUG Initial free memory: 78.68 GiB; Requested memory: 0.900000 (util), 71.27 GiB",
    "DEBUG worker init memory snapshot: free_memory=78.68GiB, total_memory=79.19GiB",
    "INFO Model loading took 14.99 GiB memory and 38.0 seconds",
    (
        "DEBUG Total non KV cache memory: 17.13GiB; torch peak memory increase: 1.89GiB; "
        "non-torch forward increase memory: 0.25GiB; weights memory: 14.99GiB."
    ),
    "INFO Available KV cache memory: 54.14 GiB",
    "INFO GPU KV cache size: 443,504 tokens",
    "INFO Maximum concurrency for 8,192 tokens per request: 54.14x",
    "INFO In v0.19, CUDA graph memory profiling will be enabled by default (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1)",
    "INFO Graph capturing finished in 8 secs, took 0.85 GiB",
)


def figures(**changed: str) -> list[str]:
    """The figures with the lines that begin alike replaced."""
    found = list(FIGURES)
    for start, line in changed.items():
        found = [line if start.replace("_", " ") in each else each for each in found]
    return found


def part(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found = [each for each in (*answer["parts"], *answer["capacity"]) if each["name"] == name]
    assert len(found) == 1
    return dict(found[0])


def ask(api: Any, log: str, **body: object) -> dict[str, Any]:  # noqa: ANN401 - the fixture of conftest
    answer: dict[str, Any] = api.ask("engine-logs", {"log": log, "gpu": "h100-sxm-80gb", **body})
    return answer


def test_every_part_of_a_usual_start_agrees(api: Any) -> None:  # noqa: ANN401
    answer = ask(api, vllm(*FIGURES))
    assert [each["name"] for each in answer["parts"]] == [
        "total",
        "budget",
        "weights",
        "activation",
        "cuda_graph",
        "non_torch",
        "kv_cache",
    ]
    assert [each["name"] for each in (*answer["parts"], *answer["capacity"]) if not each["agrees"]] == []
    assert {each["cause_code"] for each in answer["parts"]} == {"gap_none"}
    weights = part(answer, "weights")
    assert weights["actual_bytes"] == round(14.99 * GIB)
    assert weights["difference_bytes"] == weights["actual_bytes"] - weights["predicted_bytes"]
    assert answer["verdict"] == {
        "predicted": "starts",
        "predicted_reason_code": None,
        "actual": "starts",
        "actual_reason_code": None,
    }
    assert [each["code"] for each in answer["findings"]] == ["graphs_beside_budget"]
    assert answer["budget"]["per_gpu"]["weights_bytes"] == pytest.approx(weights["predicted_bytes"], abs=10)
    assert answer["provenance"]["evaluated_on"]


def test_the_launch_is_that_of_the_log(api: Any) -> None:  # noqa: ANN401
    answer = ask(api, vllm(*FIGURES, tensor=2))
    launch = answer["launch"]
    assert launch["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert launch["gpu"] is None
    assert launch["parallelism"]["tensor"] == 2
    assert launch["engine"]["version"] == "0.19.0"
    assert launch["engine"]["gpu_memory_utilization"] == 0.9
    assert launch["args"][:3] == ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]
    assert launch["command"].endswith("--max-num-batched-tokens 8192 --gpu-memory-utilization 0.9")
    stated = {each["field"] for each in answer["assumptions"] if each["why"] == "The log states it."}
    assert {"/model", "/parallelism/tensor", "/engine/version", "/engine/max_model_len"} <= stated
    assert answer["differences"] == []


def test_what_the_body_gives_wins_and_is_named(api: Any) -> None:  # noqa: ANN401
    answer = ask(
        api,
        vllm(*FIGURES, tensor=2),
        model="Qwen/Qwen2.5-7B-Instruct",
        kv_cache="fp8",
        parallelism={"tensor": 4},
        engine={"version": "0.10.2", "max_model_len": 4096},
    )
    differences = {each["field"]: (each["in_body"], each["in_log"]) for each in answer["differences"]}
    assert differences == {
        "/model": ("Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        "/parallelism/tensor": (4, 2),
        "/engine/version": ("0.10.2", "0.19.0"),
        "/engine/max_model_len": (4096, 8192),
    }
    assert all(each["message"] for each in answer["differences"])
    assert answer["budget"]["gpus"] == 4
    assert "4096" in answer["budget"]["launch"]["args"]


def test_the_same_thing_by_another_name_is_no_difference(api: Any) -> None:  # noqa: ANN401
    log = vllm(*FIGURES, "GPU 0: NVIDIA H100 80GB HBM3")
    answer = ask(api, log, model="llama-3.1-8b-instruct", gpu="H100 SXM")
    assert answer["differences"] == []
    assert answer["launch"]["gpu"] == "h100-sxm-80gb"


@pytest.mark.parametrize("log", ["", "hello", "0" * 100, "Traceback (most recent call last):"])
def test_a_text_that_is_no_log_is_refused(api: Any, log: str) -> None:  # noqa: ANN401
    response = api.post(
        "engine-logs", {"log": log, "gpu": "h100-sxm-80gb", "model": "meta-llama/Llama-3.1-8B-Instruct"}
    )
    assert response.status_code == 422
    [fault] = response.json()["errors"]
    assert (fault["code"], fault["pointer"]) == ("impossible_combination", "/log")


def test_what_neither_log_nor_body_says_is_asked_for(api: Any) -> None:  # noqa: ANN401
    response = api.post(
        "engine-logs", {"log": "DEBUG total_memory=79.19GiB\nINFO Available KV cache memory: 61.66 GiB\n"}
    )
    assert response.status_code == 422
    faults = {each["pointer"]: each for each in response.json()["errors"]}
    assert set(faults) == {"/model", "/gpu"}
    assert "h100-sxm-80gb" in faults["/gpu"]["suggestions"]


def test_a_model_that_no_catalog_holds_is_not_shown_again(api: Any) -> None:  # noqa: ANN401
    response = api.post("engine-logs", {"log": vllm(model="corp-internal/zzyzx-99b"), "gpu": "h100-sxm-80gb"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/model"
    assert "zzyzx" not in response.text


def test_nothing_else_of_the_log_comes_back(api: Any) -> None:  # noqa: ANN401
    noise = [
        f"INFO HF_TOKEN=hf_abcdefghijklmnop mq_connect_ip=10.128.4.190 api_key='sk-live-123' path={SECRETS[5]}/x"
    ] * 3
    log = vllm(
        *noise,
        *FIGURES,
        *noise,
        model="/mnt/private/someone/corp-internal/Llama-3.1-8B-Instruct",
        quantization="<b>sk-live-123</b>",
    )
    answer = json.dumps(ask(api, log))
    assert not [secret for secret in SECRETS if secret in answer]
    assert "Llama-3.1-8B-Instruct" in answer


def test_eight_mib_are_read_and_no_more(api: Any) -> None:  # noqa: ANN401
    filler = "INFO nothing of interest in this line at all\n" * 180_000
    assert 7_500_000 < len(filler) < 8_300_000
    answer = ask(api, vllm(*FIGURES) + filler)
    assert part(answer, "kv_cache")["agrees"]
    response = api.post("engine-logs", {"log": "x" * 8_400_000, "gpu": "h100-sxm-80gb"})
    assert response.status_code == 413


def test_explanations_are_added_on_demand(api: Any) -> None:  # noqa: ANN401
    body = {"log": vllm(*FIGURES), "gpu": "h100-sxm-80gb"}
    plain = api.ask("engine-logs", body)
    explained = api.ask("engine-logs", body, explain="true")
    assert not {"derivation", "explanation", "checklist"} & plain.keys()
    assert {"derivation", "explanation", "checklist"} <= explained.keys()
    assert plain["parts"] == explained["parts"]


CAUSES = [
    pytest.param(
        figures(GPU_KV_cache_size="INFO GPU KV cache size: 887,008 tokens"),
        {},
        "capacity_tokens",
        "gap_kv_format",
        id="cache of eight bits",
    ),
    pytest.param(
        figures(Model_loading="INFO Model loading took 8.49 GiB memory", Total_non="DEBUG nothing"),
        {},
        "weights",
        "gap_weights_format",
        id="weights of eight bits",
    ),
    pytest.param(
        [
            *figures(
                Total_non="DEBUG torch peak memory increase: 4.60GiB; non-torch forward increase memory: 0.25GiB;"
            )[:4],
            "INFO Available KV cache memory: 51.43 GiB",
        ],
        {},
        "kv_cache",
        "gap_pool_follows_part",
        id="a part moved the pool",
    ),
    pytest.param(
        ["DEBUG total_memory=79.19GiB", "DEBUG worker requested memory: 63.35GiB"],
        {},
        "budget",
        "gap_memory_fraction",
        id="another fraction",
    ),
    pytest.param(["DEBUG total_memory=94.97GiB"], {}, "total", "gap_card_total", id="another card"),
    pytest.param(
        ["INFO Graph capturing finished in 8 secs, took -0.88 GiB"],
        {},
        "cuda_graph",
        "gap_graph_difference",
        id="a difference",
    ),
    pytest.param(
        ["INFO reserved 4.25 GiB memory for KV Cache as specified by kv_cache_memory_bytes config"],
        {},
        "kv_cache",
        "gap_fixed_pool",
        id="a fixed pool",
    ),
    pytest.param(
        ["INFO Model loading took 14.99 GiB memory", "INFO Available KV cache memory: 53.29 GiB"],
        {"engine": {"enforce_eager": False}},
        "kv_cache",
        "gap_none",
        id="close enough",
    ),
    pytest.param(["INFO Available KV cache memory: 30.0 GiB"], {}, "kv_cache", "gap_pool_unprinted", id="not told"),
]


@pytest.mark.parametrize(("lines", "body", "name", "cause"), CAUSES)
def test_causes(api: Any, lines: list[str], body: dict[str, Any], name: str, cause: str) -> None:  # noqa: ANN401
    found = part(ask(api, vllm(*lines), **body), name)
    assert found["cause_code"] == cause
    assert found["cause"].endswith(".")
    assert found["agrees"] is (cause == "gap_none")


def test_an_unknown_version_is_found_by_what_it_prints(api: Any) -> None:  # noqa: ANN401
    """The activation peak of 0.10 to 0.16 is more than twice that of later versions."""
    log = "\n".join(
        [
            ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct"),
            "INFO Model loading took 14.99 GiB memory",
            "DEBUG torch peak memory increase: 4.76GiB; non-torch forward increase memory: 0.13GiB;",
        ]
    )
    found = part(ask(api, log, engine={"max_model_len": 8192}), "activation")
    assert found["cause_code"] == "gap_version"
    assert "0.1" in found["cause"]


def test_tensor_ranks_that_the_log_does_not_state(api: Any) -> None:  # noqa: ANN401
    log = "INFO LLM engine (v0.19.0) with config: model='meta-llama/Llama-3.1-8B-Instruct'\nModel loading took 7.51 GiB memory"
    found = part(ask(api, log), "weights")
    assert found["cause_code"] == "gap_tensor_ranks"
    assert "2" in found["cause"]


FAILURES = [
    (
        (
            "ValueError: Free memory on device cuda:1 (60.33/79.19 GiB) on startup is less than desired GPU memory utilization "
            "(0.95, 75.23 GiB)."
        ),
        "free_memory_below_budget",
        {"free_memory_below_budget", "memory_in_use"},
    ),
    ("ValueError: No available memory for the cache blocks.", "no_room_for_kv", {"no_room_for_kv"}),
    (
        (
            "To serve at least one request with the model's max seq len (8192), (1.00 GiB KV cache is needed, which is larger "
            "than the available KV cache memory (0.50 GiB). Based on the available memory, the estimated maximum model length "
            "is 4096."
        ),
        "context_does_not_fit",
        {"context_does_not_fit"},
    ),
    (
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 79.19 GiB "
            "of which 552.50 MiB is free."
        ),
        "out_of_memory",
        {"out_of_memory"},
    ),
    (
        "CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
        "out_of_memory_at_warm_up",
        set(),
    ),
]


@pytest.mark.parametrize(("line", "code", "findings"), FAILURES)
def test_failed_starts(api: Any, line: str, code: str, findings: set[str]) -> None:  # noqa: ANN401
    answer = ask(api, vllm(line))
    assert (answer["verdict"]["actual"], answer["verdict"]["actual_reason_code"]) == ("does_not_fit", code)
    assert findings <= {each["code"] for each in answer["findings"]}
    if code == "context_does_not_fit":
        longest = part(answer, "longest_context")
        assert longest["actual"] == 4096
        assert part(answer, "kv_cache")["actual_bytes"] == GIB // 2


def test_a_start_of_sglang(api: Any) -> None:  # noqa: ANN401
    """SGLang issue 7495: 74.28 - 75.02 x (1 - 0.874) GiB."""
    answer = ask(
        api,
        "server_args=ServerArgs(model_path='Qwen/Qwen3-0.6B-FP8', tp_size=1, mem_fraction_static=0.874, dtype='auto', "
        "quantization=None, kv_cache_dtype='auto', context_length=None, chunked_prefill_size=8192)\n"
        "[TP0] Load weight begin. avail mem=75.02 GB\n"
        "[TP0] Load weight end. type=A, dtype=torch.bfloat16, avail mem=74.28 GB, mem usage=0.74 GB.\n"
        "[TP0] KV Cache is allocated. #tokens: 606832, K size: 32.41 GB, V size: 32.41 GB\n"
        "[TP0] Memory pool end. avail mem=8.73 GB\nThe server is fired up and ready to roll!\n",
        engine={"version": "0.4.7.post1"},
    )
    assert answer["launch"]["engine"]["name"] == "sglang"
    assert answer["launch"]["command"].startswith("python -m sglang.launch_server --model-path Qwen/Qwen3-0.6B-FP8")
    pool = part(answer, "kv_cache")
    assert pool["actual_bytes"] == 2 * round(32.41 * GIB)
    assert pool["cause_code"] in {"gap_none", "gap_pool_follows_part"}
    assert {"unit_gb"} <= {each["code"] for each in answer["findings"]}


def test_a_start_of_llama_cpp_with_layers_in_host_memory(api: Any) -> None:  # noqa: ANN401
    answer = api.ask(
        "engine-logs",
        {
            "log": "build: 4783 (5598f475) with cc\n  Device 0: NVIDIA GeForce RTX 4070 Laptop GPU, compute capability 8.9\n"
            "llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from "
            "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf (version GGUF V3 (latest))\n"
            "load_tensors: offloaded 10/33 layers to GPU\nload_tensors: CUDA0 model buffer size = 1263.13 MiB\n"
            "llama_init_from_model: n_ctx = 131072\nllama_kv_cache_init: CUDA0 KV buffer size = 5120.00 MiB\n"
            "llama_init_from_model: CUDA0 compute buffer size = 920.00 MiB\n"
        },
    )
    assert answer["launch"]["gpu"] == "rtx-4070-laptop-8gb"
    assert answer["launch"]["engine"]["version"] == "b4783"
    assert answer["verdict"]["actual"] == "starts"
    for name in ("weights", "kv_cache"):
        assert part(answer, name)["cause_code"] == "gap_layers_in_host_memory"


def test_weights_of_float32_have_a_cache_of_float32(api: Any) -> None:  # noqa: ANN401
    answer = ask(api, vllm(dtype="torch.float32"))
    assert (answer["launch"]["weights"], answer["launch"]["kv_cache"]) == ("fp32", "fp32")
