"""A pasted start-up log, compared with what is predicted for the launch that it shows."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from service.api.call import Call, Provenance, provenance
from service.api.deployments import read_deployment
from service.api.explain import explained_budget, members
from service.api.log_launches import Difference, LogLaunch, LogRequest, join
from service.api.operation import operation
from service.api.resolve import Gathered
from service.api.sizing import SizingQuery, extended
from service.catalog.engines import behaviour
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.derivation import Derived, Explanation
from service.domain.engine import EngineBehaviour
from service.domain.engine_logs import read_log
from service.domain.errors import ImpossibleCombination
from service.domain.log_case import Alternatives
from service.domain.log_comparison import LogComparison, compare_log
from service.domain.message import Message
from service.domain.subject import Subject
from service.domain.vram_budget import VramBudget, vram_budget
from service.domain.workload_fit import Asked

LOG_LIMIT_BYTES = 8 * 1024 * 1024


class EngineLogRequest(LogRequest, frozen=True, kw_only=True):
    """Body of `POST /v1/engine-logs`: a log, and what it does not state."""

    log: Annotated[str, Meta(max_length=LOG_LIMIT_BYTES)]
    """Start-up log of vLLM, SGLang or llama.cpp, as printed. Only known figures and flags are read; nothing is kept."""


class EngineLogAnswer(LogComparison, frozen=True, kw_only=True):
    """A log against the prediction for its launch."""

    launch: LogLaunch
    differences: tuple[Difference, ...]
    """Members of the body that the log contradicts."""
    budget: VramBudget
    """The prediction as a whole, with remedies where the launch does not fit."""
    assumptions: tuple[Assumed, ...]
    """What the log stated, and what neither log nor body did."""
    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each predicted number comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the prediction in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to check before buying or deploying."""


@operation("POST", "/v1/engine-logs", tag="sizing", max_body_bytes=LOG_LIMIT_BYTES, examples=("engine-log",))
def compare_engine_log(call: Call[Snapshot], body: EngineLogRequest, query: SizingQuery) -> EngineLogAnswer:
    """Start-up log of an engine against prediction, part by part, each gap with the flag or fact that explains it.

    Reads vLLM (V0 and V1), SGLang and llama.cpp logs, also of starts that failed. What the log states need not be given;
    what is given wins, and `differences` names it. vLLM seldom prints the card: give `gpu`. A log in which no line is known,
    or which leaves model or card open, is refused with 422 and the member to give. Of the log only known figures and flags
    are used; nothing of it is stored or logged.
    """
    facts = read_log(body.log)
    if facts is None:
        raise ImpossibleCombination("/log", Message("log_not_recognised"))
    gathered = Gathered()
    joined = join(body, facts, call, gathered)
    request = joined.request
    placed = read_deployment(request, call, gathered)
    asked = None
    if request.context_tokens is not None and request.concurrent_sequences is not None:
        asked = Asked(request.context_tokens, request.concurrent_sequences)
    compared = compare_log(facts, placed.subject, _alternatives(call.snapshot, placed.subject))
    budget = vram_budget(placed.subject, asked, placed.proposals)
    more = members(explained_budget(placed, budget, asked)) if query.explain else {}
    return extended(
        EngineLogAnswer,
        compared,
        launch=joined.launch,
        differences=joined.differences,
        budget=budget,
        assumptions=(*joined.read, *placed.assumptions),
        provenance=provenance(call.snapshot, body.evaluated_on or call.today),
        **more,
    )


WEIGHT_FORMATS = ("bf16", "fp8", "int8", "int4", "awq-int4", "gptq-int4", "bnb-nf4", "mxfp4", "nvfp4", "fp32")
"""Formats that the weights of a log may turn out to have; with llama.cpp all GGUF file types."""
CACHE_FORMATS = {"llama.cpp": ("gguf-f16", "gguf-q8-0", "gguf-q4-0", "gguf-f32")}
"""Formats that the cache of a log may turn out to have, where they are not those of the other engines."""
USUAL_CACHE_FORMATS = ("bf16", "fp8", "nvfp4")


def _alternatives(snapshot: Snapshot, subject: Subject) -> Alternatives:
    """Formats that the engine may have loaded, and its versions where none is named."""
    engine, formats = subject.behaviour.engine, snapshot.quantizations
    weights: tuple[str, ...] = WEIGHT_FORMATS
    if engine == "llama.cpp":
        weights = tuple(name for name in formats if name.startswith("gguf-") and not name.startswith("gguf-tensor-"))
    behaviours: tuple[EngineBehaviour, ...] = ()
    if subject.request is None or subject.request.version is None:
        table = snapshot.engines[engine]
        behaviours = tuple(behaviour(table, known.version) for known in table.file.versions)
    return Alternatives(
        weights=tuple(formats[name] for name in weights),
        kv_caches=tuple(formats[name] for name in CACHE_FORMATS.get(engine, USUAL_CACHE_FORMATS)),
        behaviours=behaviours,
    )


ENGINE_LOG_OPERATIONS = (compare_engine_log,)
