"""The body of a recommendation in the domain's terms, with every default listed."""

import msgspec
import numpy as np

from service.api.call import Call
from service.api.deployments import needed, read_draft
from service.api.purchase_terms import allowed_accelerators, purchase_terms
from service.api.resolve import Gathered, read_behaviour, read_kv_cache, read_model, read_weights
from service.api.weight_choices import smaller_choices, weight_choice, weight_choices
from service.api.wire import Constraints, ModelSpec, OperationPart, RecommendationRequest
from service.catalog.snapshot import Snapshot
from service.domain.concurrency import DEFAULT_HEADROOM
from service.domain.demand import check_targets, traffic_assumptions
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.engine_settings import read_version
from service.domain.message import Message
from service.domain.question import Ask, Environment, Question
from service.domain.units import HOURS_PER_MONTH
from service.domain.work import Work, work

UNLIMITED = float("inf")
INTERACTIVE_SEQUENCES = 256
"""Engines default to up to 1,024 sequences on large cards and set memory aside for all of them: more than people who wait
for tokens let run at once, and gigabytes less of cache."""
_OF_DEPLOYMENT = ("/model", "/engine/speculative")
"""What had to be assumed of the models also stands in the answers of the single endpoints."""


def read_ask(body: RecommendationRequest, call: Call[Snapshot], gathered: Gathered, *, with_offers: bool) -> Ask:
    """The question of ``body``; its defaults are listed in ``gathered``.

    Raises:
        Refusal: unknown ids and contradictions, all reported together (422).

    """
    snapshot, constraints = call.snapshot, body.constraints or Constraints()
    asked = gathered.attempt(lambda: _work(body))
    model = read_model(body.model, snapshot, gathered, call.hub)
    weights = kv_cache = None
    if model is not None:
        weights = read_weights(body.weights, model, snapshot, gathered)
        kv_cache = read_kv_cache(body.kv_cache, model, snapshot, gathered)
    allowed = allowed_accelerators(constraints.gpus, snapshot, gathered)
    terms = purchase_terms(constraints, snapshot, gathered)
    draft = read_draft(body.engine or EngineRequest(), snapshot, gathered)
    gathered.check()

    served, format_, cache = needed(model), needed(weights), needed(kv_cache)
    told = tuple(one for one in gathered.assumptions if one.field.startswith(_OF_DEPLOYMENT))
    engine, behaviour = _engine(body, needed(asked), snapshot, gathered)
    if body.weights is None:
        choices = weight_choices(served, format_, cache, snapshot, gathered)
    else:
        choices = (weight_choice(format_, served, cache),)
    run = body.operation or OperationPart()
    ask = Ask(
        model=served.id,
        model_reference=_reference(body.model),
        model_assumptions=told,
        traffic=body.traffic,
        calls=1.0 if body.application is None else body.application.llm_calls_per_request,
        question=Question(
            architecture=served.architecture,
            choices=choices,
            kv_cache=cache,
            behaviour=behaviour,
            engine=engine,
            draft=draft,
            work=needed(asked),
            headroom=_headroom(body, gathered),
            spare=_spare(body, needed(asked), gathered),
            allowed=allowed,
            max_gpus=UNLIMITED if constraints.max_gpus is None else float(constraints.max_gpus),
        ),
        smaller=smaller_choices(served, format_, cache, snapshot),
        objective=body.objective,
        terms=terms,
        hours_per_month=run.hours_per_month,
        horizon_months=run.horizon_months,
        environments=tuple(
            Environment(name=one.name, replicas=float(one.replicas), hours_per_month=one.hours_per_month)
            for one in run.environments
            if one.replicas
        ),
        max_monthly_usd=UNLIMITED if constraints.max_monthly_usd is None else constraints.max_monthly_usd,
        limit=body.limit,
        evaluated_on=body.evaluated_on or call.today,
        with_offers=with_offers,
    )
    _assume_load(body, gathered)
    return ask


def _reference(model: str | ModelSpec) -> object:
    """The model as replays name it; a config of the caller's own is not sent back with each option."""
    if isinstance(model, str) or model.config is None:
        return msgspec.to_builtins(model)
    return None


def _work(body: RecommendationRequest) -> Work:
    if body.targets is not None:
        check_targets(body.targets)
    return work(body.traffic, body.targets, body.application, body.kind)


def _engine(
    body: RecommendationRequest, asked: Work, snapshot: Snapshot, gathered: Gathered
) -> tuple[EngineRequest, EngineBehaviour]:
    """Launch settings with the version that is meant, and a context as long as the longest request."""
    engine = body.engine or EngineRequest()
    behaviour = read_behaviour(engine, snapshot)
    if engine.version is None:
        why = Message("default_engine_version", {"engine": behaviour.engine, "version": behaviour.version})
        gathered.assume("/engine/version", behaviour.version, why)
    elif engine.version != behaviour.version:
        gathered.assume("/engine/version", behaviour.version, read_version(engine, behaviour))
    engine = msgspec.structs.replace(engine, version=behaviour.version)
    if engine.max_model_len is None and engine.ctx_size is None:
        longest = max(int(np.ceil(asked.input.max + asked.output.max)), 1)
        engine = msgspec.structs.replace(engine, max_model_len=longest)
        gathered.assume("/engine/max_model_len", longest, Message("assumed_max_model_len"))
    if asked.kind == "interactive" and engine.max_num_seqs is None and engine.parallel is None:
        engine = msgspec.structs.replace(engine, max_num_seqs=INTERACTIVE_SEQUENCES)
        gathered.assume("/engine/max_num_seqs", INTERACTIVE_SEQUENCES, Message("assumed_interactive_sequences"))
    return engine, behaviour


def _headroom(body: RecommendationRequest, gathered: Gathered) -> float:
    if body.headroom is None:
        gathered.assume("/headroom", DEFAULT_HEADROOM, Message("assumed_headroom"))
        return DEFAULT_HEADROOM
    return body.headroom


def _spare(body: RecommendationRequest, workload: Work, gathered: Gathered) -> float:
    if body.spare_replicas is None:
        spare = 1 if workload.kind == "interactive" else 0
        gathered.assume("/spare_replicas", spare, Message("assumed_spare", {"kind": workload.kind}))
        return float(spare)
    return float(body.spare_replicas)


def _assume_load(body: RecommendationRequest, gathered: Gathered) -> None:
    gathered.assumptions.extend(traffic_assumptions(body.traffic))
    if body.operation is None:
        gathered.assume("/operation/hours_per_month", HOURS_PER_MONTH, Message("assumed_hours_per_month"))
    if body.traffic.hourly_profile is None and body.traffic.batch is None:
        gathered.assume("/traffic/hourly_profile", 1.0, Message("assumed_peak_all_day"))
