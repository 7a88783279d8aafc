"""The command that starts a deployment."""

import re
from collections.abc import Callable

import msgspec

from service.domain.engine import EngineName, EngineRequest
from service.domain.numeric import Number, as_float
from service.domain.subject import Subject
from service.domain.units import GIB

_SAFE = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")

VLLM_FORMATS = {"bnb-nf4": "bitsandbytes", "bnb-int8": "bitsandbytes"}
"""vLLM's ``--quantization`` for formats it makes at load time, where its name is not the id."""

KV_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp8": "fp8", "int8": "int8", "nvfp4": "nvfp4"}

GGUF_KV_PREFIX = "gguf-"

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Launch(msgspec.Struct, frozen=True):
    """How to start the engine."""

    command: str
    """The whole line for a POSIX shell."""
    args: tuple[str, ...]
    """The same as separate words, program included."""


def quote(word: str) -> str:
    """Make ``word`` one word of a POSIX shell."""
    if _SAFE.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def launch(subject: Subject) -> Launch:
    """Start line of the engine for a deployment, with every setting that the budget rests on."""
    args = _BUILDERS[subject.behaviour.engine](subject)
    return Launch(command=" ".join(map(quote, args)), args=tuple(args))


def _whole(value: Number) -> str:
    return str(int(as_float(value)))


def _share(value: Number) -> str:
    return f"{as_float(value):.4g}"


def _layout(subject: Subject, tensor: str, pipeline: str, data: str) -> list[str]:
    layout = subject.deployment.layout
    args: list[str] = []
    for flag, ranks in ((tensor, layout.tensor), (pipeline, layout.pipeline), (data, layout.data)):
        if flag and as_float(ranks) > 1.0:
            args += [flag, _whole(ranks)]
    return args


def _vllm(subject: Subject) -> list[str]:
    settings, architecture = subject.deployment.settings, subject.architecture
    args = ["vllm", "serve", subject.model]
    args += _layout(subject, "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
    if as_float(subject.deployment.layout.expert) > 0.0:
        args.append("--enable-expert-parallel")
    args += ["--max-model-len", _whole(settings.max_model_len), "--max-num-seqs", _whole(settings.max_num_seqs)]
    args += ["--max-num-batched-tokens", _whole(settings.max_num_batched_tokens)]
    args += ["--gpu-memory-utilization", _share(settings.memory_fraction)]
    if subject.weights.id != architecture.checkpoint_format:
        if subject.weights.id in DTYPES:
            args += ["--dtype", DTYPES[subject.weights.id]]
        elif subject.weights.made_by_engine:
            args += ["--quantization", VLLM_FORMATS.get(subject.weights.id, subject.weights.id)]
    if subject.kv_cache.id not in {architecture.dtype, architecture.checkpoint_kv_cache}:
        args += ["--kv-cache-dtype", KV_NAMES.get(subject.kv_cache.id, subject.kv_cache.id)]
    return args + _vllm_exceptions(subject)


def _vllm_exceptions(subject: Subject) -> list[str]:
    """Flags of settings that are not the engine's default."""
    settings = subject.deployment.settings
    args: list[str] = []
    if as_float(settings.block_size) != subject.behaviour.block_size:
        args += ["--block-size", _whole(settings.block_size)]
    if as_float(settings.kv_cache_memory_bytes) > 0.0:
        args += ["--kv-cache-memory-bytes", _whole(settings.kv_cache_memory_bytes)]
    if as_float(settings.cpu_offload_bytes) > 0.0:
        args += ["--cpu-offload-gb", f"{as_float(settings.cpu_offload_bytes) / GIB:.4g}"]
    if as_float(settings.cuda_graphs) == 0.0:
        args.append("--enforce-eager")
    if as_float(settings.hybrid_kv_cache) == 0.0 and subject.behaviour.windowed_cache:
        args.append("--disable-hybrid-kv-cache-manager")
    if not settings.prefix_caching:
        args.append("--no-enable-prefix-caching")
    if subject.request is not None and subject.request.chunked_prefill is False:
        args.append("--no-enable-chunked-prefill")
    return args + _vllm_extras(subject.request)


def _vllm_extras(request: EngineRequest | None) -> list[str]:
    """Adapters and speculative decoding."""
    if request is None:
        return []
    args: list[str] = []
    if request.lora is not None:
        args += [
            "--enable-lora",
            "--max-loras",
            str(request.lora.max_loras),
            "--max-lora-rank",
            str(request.lora.max_rank),
        ]
    if request.speculative is not None:
        speculative = request.speculative
        config: dict[str, str | int] = {"method": speculative.method, "num_speculative_tokens": speculative.tokens}
        if speculative.draft_model is not None:
            config["model"] = speculative.draft_model
        args += ["--speculative-config", msgspec.json.encode(config).decode()]
    return args


def _sglang(subject: Subject) -> list[str]:
    settings = subject.deployment.settings
    args = ["python", "-m", "sglang.launch_server", "--model-path", subject.model]
    args += _layout(subject, "--tp-size", "--pp-size", "--dp-size")
    if as_float(subject.deployment.layout.expert) > 0.0:
        args += ["--ep-size", _whole(subject.deployment.layout.tensor * subject.deployment.layout.data)]
    args += [
        "--context-length",
        _whole(settings.max_model_len),
        "--mem-fraction-static",
        _share(settings.memory_fraction),
    ]
    args += ["--max-running-requests", _whole(settings.max_num_seqs)]
    args += ["--chunked-prefill-size", _whole(settings.max_num_batched_tokens) if settings.chunked_prefill else "-1"]
    if subject.weights.id != subject.architecture.checkpoint_format and subject.weights.made_by_engine:
        args += ["--quantization", VLLM_FORMATS.get(subject.weights.id, subject.weights.id)]
    if subject.kv_cache.id == "fp8":
        args += ["--kv-cache-dtype", "fp8_e5m2"]
    if as_float(settings.cuda_graphs) == 0.0:
        args.append("--disable-cuda-graph")
    if not settings.prefix_caching:
        args.append("--disable-radix-cache")
    return args


def _tensorrt_llm(subject: Subject) -> list[str]:
    settings = subject.deployment.settings
    args = ["trtllm-serve", subject.model]
    args += _layout(subject, "--tp_size", "--pp_size", "")
    if as_float(subject.deployment.layout.expert) > 0.0:
        args += ["--ep_size", _whole(subject.deployment.layout.tensor)]
    args += ["--max_seq_len", _whole(settings.max_model_len), "--max_batch_size", _whole(settings.max_num_seqs)]
    args += ["--max_num_tokens", _whole(settings.max_num_batched_tokens)]
    args += ["--kv_cache_free_gpu_memory_fraction", _share(settings.memory_fraction)]
    if subject.kv_cache.id == "fp8":
        args += ["--kv_cache_dtype", "fp8"]
    return args


def _llama_cpp(subject: Subject) -> list[str]:
    settings = subject.deployment.settings
    args = ["llama-server", "--hf-repo", subject.model, "--n-gpu-layers", "999"]
    args += ["--ctx-size", _whole(settings.max_model_len), "--parallel", _whole(settings.max_num_seqs)]
    if subject.kv_cache.id.startswith(GGUF_KV_PREFIX):
        name = subject.kv_cache.id.removeprefix(GGUF_KV_PREFIX).replace("-", "_")
        args += ["--cache-type-k", name, "--cache-type-v", name]
    if as_float(subject.deployment.layout.gpus) > 1.0:
        args += ["--split-mode", "layer"]
    return args


_BUILDERS: dict[EngineName, Callable[[Subject], list[str]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "tensorrt-llm": _tensorrt_llm,
    "llama.cpp": _llama_cpp,
}
