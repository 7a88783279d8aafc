"""The full-fleet search in one vectorised pass: which candidates fit, what they carry, and how many copies a load needs.

Every accelerator x layout x weight format is evaluated at once with the very formulas of the single endpoints. ``options.py``
joins the survivors to offers, ``ranking.py`` orders the options, ``recommend.py`` writes the answer.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.batching import Serving
from service.domain.calibration import Profile, Profiles, profile_for, stacked
from service.domain.candidates import ALIVE, STAGE, Candidates, candidates
from service.domain.columns import joined, take
from service.domain.deployment import Deployment, MemoryParts
from service.domain.engine import EngineBehaviour
from service.domain.engine_support import engine_refusal
from service.domain.fleet import Fleet, IntArray
from service.domain.latency import delays, load_at, tpot_s, ttft_s
from service.domain.legal_layout import layout_is_legal
from service.domain.memory import account, kv_capacity, parts_of
from service.domain.memory_checks import memory_checks
from service.domain.numeric import FloatArray
from service.domain.operating_point import ROUNDING, Most, OperatingPoint, at_clients, at_pile, at_rate, meets, most_of
from service.domain.question import Question
from service.domain.recommendation import RejectionCode
from service.domain.replicas import ReplicaCount, replicas_for
from service.domain.serving import MOST_SEQUENCES, serving
from service.domain.slo import Bound, bounded_s, bounds, user_time
from service.domain.units import MS_PER_S
from service.domain.work import shape_of

IDLE_BATCH = 1e-3
"""A running batch this small stands for a deployment at no load."""


class Found(msgspec.Struct, frozen=True, eq=False):
    """Candidates that carry the load under the targets, and the fate of the others.

    Arrays of ``survivors`` and below have one element a survivor.
    """

    candidates: Candidates
    survivors: IntArray
    """Positions among the candidates."""
    deployment: Deployment
    most: Most
    replicas: ReplicaCount
    share: FloatArray
    """Load of one serving replica: requests per second, or clients of a closed loop."""
    point: OperatingPoint
    likely: NDArray[np.bool_]
    safe: NDArray[np.bool_]
    ttft_p95_s: FloatArray
    tpot_p95_s: FloatArray
    idle_s: FloatArray
    """What the bounds limit at no load: one row a bound, one column a candidate; NaN for candidates not too slow."""


def find(question: Question, fleet: Fleet, largest: FloatArray, profiles: Profiles) -> Found:
    """Evaluate the whole fleet.

    ``largest``: accelerators of the largest instance on offer, by accelerator (0: none); what nobody sells is not timed.
    """
    work, behaviour = question.work, question.behaviour
    everything, weighed, parts = _weigh(question, fleet)
    fate = everything.fate
    unknown = fate.alive[np.asarray(everything.deployment.card.flops_per_s)[fate.alive] <= 0.0]
    fate.reject(unknown, "performance_unknown")
    _reject_unsold(everything, largest)

    fitting = fate.alive
    deployment = take(everything.deployment, fitting)
    profile = _profiles(question, everything, fitting, fleet, profiles)
    caching = deployment.settings.prefix_caching
    service = serving(
        question.architecture,
        deployment,
        behaviour,
        take(parts, np.flatnonzero(fate.stage[weighed] == ALIVE)),
        profile,
        shape_of(work, question.architecture, question.engine.speculative, prefix_caching=caching),
        work.arrival_cv2,
        open_loop=work.open_loop,
    )
    wanted, user = bounds(work.targets), user_time(work.application)
    most = most_of(service, wanted, user)
    closed = work.demand.loop == "closed"
    # A closed loop that cannot keep one client within the targets keeps none.
    carries = (most.batch > 0.0) & ((most.clients * ROUNDING >= 1.0) | (not closed))
    missed, kept = np.flatnonzero(~carries), np.flatnonzero(carries)
    idle_s = _reject_slow(everything, fitting[missed], take(service, missed), wanted, question)
    service, profile, most = take(service, kept), take(profile, kept), take(most, kept)

    replicas = replicas_for(work.demand.amount, most.of(work.demand), question.headroom, question.spare)
    share = np.asarray(work.demand.amount / replicas.serving)
    if closed:
        point = at_clients(service, share)
    elif work.open_loop:
        point = at_rate(service, share)
    else:
        pile = MOST_SEQUENCES if work.batch_requests is None else work.batch_requests
        point = at_pile(service, most, np.maximum(pile / np.asarray(replicas.serving), 1.0))
    likely, safe = meets(service, point, wanted, user, profile, 0.0 if closed else share)
    likely = np.broadcast_to(likely, share.shape)
    late, capacity = np.flatnonzero(~likely), np.broadcast_to(point.capacity, share.shape)
    everything.fate.reject(fitting[kept[late]], "load_above_capacity", capacity[late], share[late])
    return Found(
        candidates=everything,
        survivors=fitting[kept],
        deployment=take(deployment, kept),
        most=most,
        replicas=replicas,
        share=share,
        point=point,
        likely=likely,
        safe=np.broadcast_to(safe, share.shape),
        ttft_p95_s=np.asarray(ttft_s(service, point.load, point.delays, "p95")),
        tpot_p95_s=np.asarray(tpot_s(point.delays, "p95")),
        idle_s=idle_s,
    )


def memory_stages(
    question: Question, fleet: Fleet, largest: FloatArray
) -> tuple[IntArray, IntArray, NDArray[np.int64]]:
    """Accelerator and weight choice of each candidate, and its stage as far as layouts, memory and instances tell."""
    everything, _, _ = _weigh(question, fleet)
    _reject_unsold(everything, largest)
    return everything.accelerator, everything.choice, everything.fate.stage


def _weigh(question: Question, fleet: Fleet) -> tuple[Candidates, IntArray, MemoryParts]:
    """All candidates after the engine's support, legal layouts and memory; which were weighed, and what they hold."""
    everything = candidates(
        fleet,
        question.choices,
        question.architecture,
        question.behaviour,
        question.engine,
        question.allowed,
        _supported(question, fleet),
        question.draft,
    )
    _reject_layouts(everything, question)
    weighed, parts = _reject_by_memory(everything, question)
    return everything, weighed, parts


@lru_cache(maxsize=1024)
def support_stages(
    fleet: Fleet, behaviour: EngineBehaviour, model_type: str, weights: str, kv_cache: str
) -> NDArray[np.int64]:
    """Stage of the engine's refusal on each accelerator, ``ALIVE`` where it runs; kept, for the matrix has few rows."""
    formats = fleet.formats
    refusals = [
        engine_refusal(behaviour, model_type, accelerator, formats[weights], formats[kv_cache])
        for accelerator in fleet.accelerators
    ]
    return np.array([ALIVE if refused is None else STAGE[refused.reason_code] for refused in refusals])


def _supported(question: Question, fleet: Fleet) -> NDArray[np.int64]:
    behaviour, model_type = question.behaviour, question.architecture.model_type
    stages = [
        support_stages(fleet, behaviour, model_type, choice.quantization.id, question.kv_cache.id)
        for choice in question.choices
    ]
    for position, choice in enumerate(question.choices):
        if choice.instead_of is not None:
            needed = stages[choice.instead_of] == STAGE["weights_format_unsupported"]
            stages[position] = np.where(needed, stages[position], STAGE["weights_format_unsupported"])
    return np.stack(stages)


def _reject_layouts(everything: Candidates, question: Question) -> None:
    """Layouts that do not divide the model, or take more accelerators than allowed."""
    alive = everything.fate.alive
    layout = take(everything.deployment.layout, alive)
    span = question.behaviour.experts_span_data
    legal = np.broadcast_to(layout_is_legal(question.architecture, layout, span_data=span), alive.shape)
    everything.fate.reject(alive[~legal], "layout_illegal")
    gpus = np.asarray(layout.gpus)
    many = legal & (gpus > question.max_gpus)
    everything.fate.reject(alive[many], "replica_too_large", question.max_gpus, gpus[many])


def _reject_by_memory(everything: Candidates, question: Question) -> tuple[IntArray, MemoryParts]:
    """The checks of ``verdict.weigh``, in its order. Returns the candidates weighed and their memory."""
    architecture, behaviour, fate = question.architecture, question.behaviour, everything.fate
    weighed = fate.alive
    deployment = take(everything.deployment, weighed)
    counted = account(architecture, deployment, behaviour)
    parts = parts_of(counted, architecture, deployment, behaviour)
    capacity = kv_capacity(architecture, deployment, behaviour, parts)
    for code, short, limit, value in memory_checks(architecture, behaviour, counted, parts, capacity):
        broken = np.broadcast_to(short, weighed.shape) & (fate.stage[weighed] == ALIVE)
        fate.reject(
            weighed[broken],
            code,
            np.broadcast_to(limit, weighed.shape)[broken],
            np.broadcast_to(value, weighed.shape)[broken],
        )
    return weighed, parts


@lru_cache(maxsize=256)
def _profile_table(fleet: Fleet, quantization_id: str, engine: str, version: str, profiles: Profiles) -> Profile:
    """Profiles of all accelerators for one format; kept, since formats and versions are few."""
    quantization = fleet.formats[quantization_id]
    return stacked([profile_for(a, quantization, engine, version, profiles) for a in fleet.accelerators])


def _profiles(question: Question, everything: Candidates, rows: IntArray, fleet: Fleet, profiles: Profiles) -> Profile:
    """The profile of each candidate in ``rows``."""
    behaviour = question.behaviour
    tables = [
        _profile_table(fleet, choice.quantization.id, behaviour.engine, behaviour.version, profiles)
        for choice in question.choices
    ]
    table = tables[0] if len(tables) == 1 else joined(tables)
    return take(table, everything.choice[rows] * len(fleet.accelerators) + everything.accelerator[rows])


def _reject_unsold(everything: Candidates, largest: FloatArray) -> None:
    """Candidates of cards that nobody sells, or of more cards than any instance has."""
    alive = everything.fate.alive
    most = largest[everything.accelerator[alive]]
    gpus = np.asarray(everything.deployment.layout.gpus)[alive]
    everything.fate.reject(alive[most == 0.0], "no_offer")
    larger = (most > 0.0) & (gpus > most)
    everything.fate.reject(alive[larger], "needs_multi_node", most[larger], gpus[larger])


_SLOW: dict[str, RejectionCode] = {"ttft": "ttft_too_high", "tpot": "tpot_too_high", "e2e": "e2e_too_high"}


def _reject_slow(
    everything: Candidates, rows: IntArray, service: Serving, wanted: Sequence[Bound], question: Question
) -> FloatArray:
    """Candidates that miss a bound even at no load, or with one client of a closed loop.

    Each keeps the bound that it misses by the largest factor, with limit and value (ms). Returns what each bound limits
    at that load, by bound and candidate.
    """
    reached = np.full((len(wanted), everything.size), np.nan)
    if not rows.size:
        return reached
    if question.work.demand.loop == "closed":
        point = at_clients(service, np.ones(rows.size))
        load, parts = point.load, point.delays
    else:
        load = load_at(service, np.full(rows.size, IDLE_BATCH))
        parts = delays(service, load)
    user = user_time(question.work.application)
    for position, bound in enumerate(wanted):
        reached[position, rows] = bounded_s(service, load, parts, bound, user)
    limits = np.array([bound.limit_s for bound in wanted])
    worst = np.argmax(reached[:, rows] / limits[:, None], axis=0)
    for position, bound in enumerate(wanted):
        missed = rows[worst == position]
        everything.fate.reject(
            missed, _SLOW[bound.metric], bound.limit_s * MS_PER_S, reached[position, missed] * MS_PER_S
        )
    return reached
