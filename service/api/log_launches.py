"""The launch that a log shows, looked up in the catalogs, and joined with the members of a body, which win."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from service.api.call import Call
from service.api.resolve import Gathered
from service.api.wire import (
    AcceleratorSpec,
    ContextTokens,
    Dated,
    Id,
    ModelSpec,
    Parallelism,
    VramBudgetRequest,
)
from service.catalog.gpu_names import resolve_gpu
from service.catalog.model_names import resolve_model
from service.catalog.quantizations import AUTO, resolve_quantization
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.engine import EngineRequest
from service.domain.engine_logs import Launched, LogFacts
from service.domain.errors import ImpossibleCombination
from service.domain.launch import Launch
from service.domain.log_launch import launch_of_log
from service.domain.message import Message

T = TypeVar("T")

MOST_SUGGESTIONS = 5

AMBIGUOUS_METHODS = frozenset(
    {"compressed-tensors", "modelopt", "quark", "auto-round", "auto_round", "gguf", "moe_wna16"}
)
"""Methods that hold several formats: the checkpoint's own tells more."""

HALF = {"float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
"""Weight formats that a dtype stands for where nothing is quantized; bf16 is what a checkpoint has."""

LLAMA_DEFAULT_CACHE = "f16"


class LogLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """The launch as read from the log: members of a VRAM budget's body, and the line. Null: the log does not state it."""

    model: str | None
    gpu: str | None
    weights: str | None
    kv_cache: str | None
    parallelism: Parallelism
    engine: EngineRequest
    command: str
    """Start line of what the log states; no default is filled in."""
    args: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A member of the body that the log contradicts; the body's was taken."""

    field: str
    """JSON pointer of the member."""
    in_log: str | float | int | bool | None
    in_body: str | float | int | bool | None
    message: Message


class Joined(msgspec.Struct, frozen=True):
    """A deployment put together from log and body."""

    request: VramBudgetRequest
    launch: LogLaunch
    differences: tuple[Difference, ...]
    read: tuple[Assumed, ...]
    """Members that the log gave."""


class LogRequest(Dated, frozen=True, kw_only=True):
    """Members of a VRAM budget's body, all optional: what the log states need not be given, and what is given wins."""

    model: Id | ModelSpec | None = None
    gpu: Id | AcceleratorSpec | None = None
    weights: Id | None = None
    kv_cache: Id | None = None
    parallelism: Parallelism | None = None
    engine: EngineRequest | None = None
    context_tokens: ContextTokens | None = None
    concurrent_sequences: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


def launch_read(facts: LogFacts, snapshot: Snapshot) -> LogLaunch:
    """The launch of a log in the catalogs' ids."""
    launched = facts.launched
    model = next((name for name in launched.models if resolve_model(name, snapshot.models) is not None), None)
    cards = (resolve_gpu(name, snapshot.gpu_index) for name in launched.gpus)
    gpu = next((match.id for match in cards if match is not None), None)
    parallelism = Parallelism(
        tensor=_ranks(launched.tensor),
        pipeline=_ranks(launched.pipeline),
        data=_ranks(launched.data),
        expert=bool(launched.expert),
    )
    engine = _engine(launched, snapshot)
    kv_cache = _kv_cache(launched, snapshot)
    ranks = parallelism.tensor, parallelism.pipeline, parallelism.data
    line: Launch = launch_of_log(engine, model, ranks, kv_cache)
    return LogLaunch(
        model=model,
        gpu=gpu,
        weights=_weights(launched, model, snapshot),
        kv_cache=kv_cache,
        parallelism=parallelism,
        engine=engine,
        command=line.command,
        args=line.args,
    )


def _ranks(number: int | None) -> int:
    return number if number is not None and 1 <= number <= 1024 else 1  # noqa: PLR2004 - the wire's bound


def _engine(launched: Launched, snapshot: Snapshot) -> EngineRequest:
    """Launch settings within their bounds; one beyond them is not taken."""
    found: dict[str, Any] = {"name": launched.engine}
    members: dict[str, object] = {"version": launched.version, **launched.settings}
    if launched.speculative_tokens is not None:
        draft = next((name for name in launched.draft_models if resolve_model(name, snapshot.models) is not None), None)
        members["speculative"] = {
            "method": (launched.speculative_method or "draft_model").lower(),
            "tokens": launched.speculative_tokens,
            "draft_model": draft,
        }
    if launched.max_loras is not None:
        members["lora"] = {"max_loras": launched.max_loras, "max_rank": launched.max_lora_rank or 16}
    for member, value in members.items():
        try:
            msgspec.convert({**found, member: value}, EngineRequest)
        except msgspec.ValidationError:
            continue
        found[member] = value
    return msgspec.convert(found, EngineRequest)


def _weights(launched: Launched, model: str | None, snapshot: Snapshot) -> str | None:
    """The format, where the log says more than the checkpoint does."""
    match = None if model is None else resolve_model(model, snapshot.models)
    own = None if match is None else match.weights or match.model.architecture.checkpoint_format
    if launched.weights is None or launched.weights.lower() in AMBIGUOUS_METHODS:
        plain = launched.weights is None and own == "bf16"
        return HALF.get(launched.dtype or "") if plain else None
    found = resolve_quantization(launched.weights, snapshot.quantization_index)
    if found is None and launched.engine == "llama.cpp":
        found = resolve_quantization(f"gguf-{launched.weights}", snapshot.quantization_index)
    if found is None or found == AUTO or not snapshot.quantizations[found].quantizes:
        return None
    return None if own is not None and own.partition("-")[0] == found.partition("-")[0] != "gguf" else found


def _kv_cache(launched: Launched, snapshot: Snapshot) -> str | None:
    if (launched.engine, launched.kv_cache) == ("llama.cpp", LLAMA_DEFAULT_CACHE):
        return None
    if launched.kv_cache in {None, AUTO}:
        return HALF[launched.dtype] if launched.dtype in {"float32", "float"} else None
    found = resolve_quantization(launched.kv_cache or AUTO, snapshot.quantization_index)
    if found is None or found == AUTO or snapshot.quantizations[found].kv_bits is None:
        return None
    return found


def join(body: LogRequest, facts: LogFacts, call: Call[Snapshot], gathered: Gathered) -> Joined:
    """The deployment that ``body`` and log describe together.

    Raises:
        Refusal: neither names the model, or neither names the card (422).

    """
    snapshot, launch = call.snapshot, launch_read(facts, call.snapshot)
    differences: list[Difference] = []
    read: list[Assumed] = []

    def one(field: str, given: T | None, in_log: T | None) -> T | None:
        """The body's member, else the log's; a contradiction is noted."""
        if given is None and in_log is not None:
            shown = in_log if isinstance(in_log, (str, int, float, bool)) else None
            read.append(Assumed(field, shown, Message("log_states")))
        elif given is not None and in_log is not None and _differ(field, given, in_log, snapshot):
            differences.append(_difference(field, given, in_log))
        return in_log if given is None else given

    model = one("/model", body.model, launch.model)
    gpu = one("/gpu", body.gpu, launch.gpu)
    if model is None:
        code = "log_without_model" if not facts.launched.models else "log_model_unknown"
        gathered.attempt(lambda: _missing("/model", Message(code), ()))
    if gpu is None:
        gathered.attempt(lambda: _missing("/gpu", Message("log_without_gpu"), _cards_like(facts, snapshot)))
    gathered.check()
    parallelism = launch.parallelism if body.parallelism is None else body.parallelism
    for name in ("tensor", "pipeline", "data"):
        if getattr(facts.launched, name) is not None:
            given = None if body.parallelism is None else getattr(body.parallelism, name)
            one(f"/parallelism/{name}", given, getattr(launch.parallelism, name))
    members: dict[str, Any] = {"model": model, "gpu": gpu}
    request = VramBudgetRequest(
        **members,
        weights=one("/weights", body.weights, launch.weights),
        kv_cache=one("/kv_cache", body.kv_cache, launch.kv_cache),
        parallelism=parallelism,
        engine=_joined_engine(body.engine, launch.engine, one),
        context_tokens=body.context_tokens,
        concurrent_sequences=body.concurrent_sequences,
        evaluated_on=body.evaluated_on,
    )
    return Joined(request, launch, tuple(differences), tuple(read))


def _joined_engine(given: EngineRequest | None, in_log: EngineRequest, one: Any) -> EngineRequest:  # noqa: ANN401
    """Settings of the log under those of the body; a setting at its default counts as not given."""
    default = EngineRequest()
    found: dict[str, Any] = {}
    for name in EngineRequest.__struct_fields__:
        usual = getattr(default, name)
        own = None if given is None else getattr(given, name)
        logged = getattr(in_log, name)
        if own == usual:
            own = None
        if logged == usual and name != "name":
            logged = None
        chosen = one(f"/engine/{name}", own, logged)
        found[name] = usual if chosen is None else chosen
    return EngineRequest(**found)


def _missing(pointer: str, message: Message, suggestions: tuple[str, ...]) -> None:
    raise ImpossibleCombination(pointer, message, suggestions)


def _cards_like(facts: LogFacts, snapshot: Snapshot) -> tuple[str, ...]:
    """Cards whose memory is as large as the log prints."""
    total = facts.printed.total_bytes
    if total is None:
        return ()
    near = sorted(snapshot.accelerators.values(), key=lambda card: (abs(card.usable_memory_bytes - total), card.id))
    return tuple(card.id for card in near[:MOST_SUGGESTIONS])


def _differ(field: str, given: object, in_log: object, snapshot: Snapshot) -> bool:
    """Whether two values of a member mean different things."""
    if field == "/model" and isinstance(given, str) and isinstance(in_log, str):
        one, other = resolve_model(given, snapshot.models), resolve_model(in_log, snapshot.models)
        return one is None or other is None or (one.model.id, one.weights) != (other.model.id, other.weights)
    if field == "/gpu" and isinstance(given, str):
        match = resolve_gpu(given, snapshot.gpu_index)
        return match is None or match.id != in_log
    if field in {"/weights", "/kv_cache"} and isinstance(given, str):
        return resolve_quantization(given, snapshot.quantization_index) != in_log
    return isinstance(given, (str, int, float, bool)) and given != in_log


def _difference(field: str, given: object, in_log: object) -> Difference:
    here = given if isinstance(given, (str, int, float, bool)) else None
    there = in_log if isinstance(in_log, (str, int, float, bool)) else None
    message = Message("log_contradicted", {"field": field, "in_body": str(here), "in_log": str(there)})
    return Difference(field=field, in_log=there, in_body=here, message=message)
