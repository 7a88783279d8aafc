"""One option of a search written out, with the single endpoints' own answers for it."""

from datetime import date
from typing import Any

import msgspec
import numpy as np

from service.domain.answer import Assumed
from service.domain.assembly import assemble
from service.domain.calibration import profile_of
from service.domain.columns import at
from service.domain.cost import CostProjectionRequest, Throughput
from service.domain.cost_projection import cost_projection
from service.domain.demand import traffic_assumptions
from service.domain.deployment import Layout
from service.domain.numeric import as_float
from service.domain.offer import Offer, Provider
from service.domain.offer_terms import age_days, is_stale
from service.domain.option_notes import Written, reasons, risks
from service.domain.options import egress_gb, served_per_second, weight_gb
from service.domain.performance import PerformanceEstimate, performance
from service.domain.provider_questions import offer_questions, questions
from service.domain.recommendation import (
    EngineChoice,
    MeetsTargets,
    OfferView,
    ParallelismChoice,
    Recommendation,
    ReplicaBreakdown,
)
from service.domain.replay import replay
from service.domain.searched import Searched
from service.domain.subject import Subject
from service.domain.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR
from service.domain.verdict import weigh
from service.domain.vram_budget import vram_budget
from service.domain.work import work
from service.domain.workload import Traffic

LOAD_BYTES_PER_S = 2e9
"""Weights read from a local NVMe disk by all cards of a host together: sequential reads of 2 to 7 GB/s are usual, and what
the file system and the copy to the card leave of them."""
ENGINE_START_S = 60.0
"""Process start, profiling run and graph capture: vLLM start-up logs of the memory cases print 20 to 90 s."""


def write_option(searched: Searched, option: int, rank: int) -> Recommendation:
    """The recommendation of one option."""
    ask, found, market = searched.ask, searched.found, searched.market
    question = ask.question
    survivor = int(searched.options.survivor[option])
    offer = market.offers[int(searched.options.offer[option])]
    provider = market.providers[offer.provider]
    choice = question.choices[int(found.candidates.choice[found.survivors[survivor]])]
    layout, replicas = at(found.deployment.layout, survivor), at(found.replicas, survivor)
    subject, assumed = assemble(
        choice.checkpoint or ask.model,
        choice.architecture or question.architecture,
        searched.fleet.accelerators[searched.owner(option)],
        layout,
        choice.quantization,
        question.kv_cache,
        question.behaviour,
        question.engine,
        choice.checkpoint_bytes,
        question.draft,
    )
    if choice.checkpoint is None:
        assumed = (*ask.model_assumptions, *assumed)
    traffic = share_of(ask.traffic, float(found.share[survivor]), as_float(replicas.serving), ask.calls)
    estimate = _performance(searched, subject, traffic, assumed)
    costs = cost_request(searched, option)
    written = Written(
        option=option,
        subject=subject,
        offer=offer,
        view=offer_view(offer, provider, ask.evaluated_on),
        estimate=estimate,
        likely=bool(found.likely[survivor]),
        safe=bool(found.safe[survivor]),
    )
    return Recommendation(
        rank=rank,
        gpu=subject.accelerator.id,
        gpus_per_replica=int(as_float(layout.gpus)),
        parallelism=parallelism_of(layout),
        weights=subject.weights.id,
        kv_cache=subject.kv_cache.id,
        engine=_engine_choice(subject),
        checkpoint=subject.model,
        replicas=int(as_float(replicas.total)),
        replica_breakdown=ReplicaBreakdown(
            for_load=int(as_float(replicas.for_load)),
            headroom=int(as_float(replicas.headroom)),
            spare=int(as_float(replicas.spare)),
        ),
        instances=int(searched.options.instances[option]),
        gpus_per_instance=offer.gpus,
        idle_gpus=int(searched.options.idle_gpus[option]),
        monthly_usd=float(searched.options.monthly_usd[option]),
        vram=vram_budget(subject, assumptions=assumed),
        performance=estimate,
        cost=cost_projection(costs, offer.price_usd_per_hour or 0.0, offer.setup_fee_usd),
        offer=written.view,
        meets_targets=MeetsTargets(likely=written.likely, safe=written.safe),
        reasons=reasons(searched, written, rank),
        risks=risks(searched, written),
        verify=(*offer_questions(offer, provider), *questions(provider)),
        cold_start_s=round(weight_gb(question.architecture, choice) * GB / LOAD_BYTES_PER_S + ENGINE_START_S, 1),
        replay=replay(ask, choice.checkpoint or ask.model_reference, subject, traffic, costs),
    )


def _performance(
    searched: Searched, subject: Subject, traffic: Traffic, assumed: tuple[Assumed, ...]
) -> PerformanceEstimate:
    """What `performance-estimates` answers for one replica's share of the traffic."""
    question = searched.ask.question
    profile = profile_of(subject, searched.profiles)
    asked = work(traffic, question.work.targets, question.work.application, question.work.kind)
    assumptions = (*traffic_assumptions(traffic), *assumed)
    return performance(subject, weigh(subject), profile, asked, question.engine.speculative, assumptions)


def share_of(traffic: Traffic, share: float, serving: float, calls: float) -> Traffic:
    """Traffic of one serving replica: ``share`` in calls per second, or in clients of a closed loop."""
    plain: dict[str, Any] = {
        "users": None,
        "burst_factor": 1.0,
        "requests_per_second": None,
        "hourly_profile": None,
    }
    if traffic.concurrent_requests is not None:
        plain["concurrent_requests"] = share
    elif traffic.batch is not None:
        batch = traffic.batch
        plain["batch"] = msgspec.structs.replace(batch, requests=max(batch.requests / serving, 1.0))
    else:
        plain["requests_per_second"] = share / calls
    return msgspec.structs.replace(traffic, **plain)


def parallelism_of(layout: Layout) -> ParallelismChoice:
    """A float layout as an answer shows it."""
    return ParallelismChoice(
        tensor=int(as_float(layout.tensor)),
        pipeline=int(as_float(layout.pipeline)),
        data=int(as_float(layout.data)),
        expert=as_float(layout.expert) > 0.0,
    )


def offer_view(offer: Offer, provider: Provider, evaluated_on: date) -> OfferView:
    """An offer with the age of its price."""
    return OfferView(
        id=offer.id,
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=offer.region,
        country=offer.country,
        tenancy=offer.tenancy,
        term=offer.term,
        min_term_months=offer.min_term_months,
        gpus=offer.gpus,
        price_usd_per_hour=offer.price_usd_per_hour or 0.0,
        price_usd_per_gpu_hour=offer.usd_per_gpu_hour or 0.0,
        setup_fee_usd=offer.setup_fee_usd,
        as_of=offer.as_of,
        age_days=age_days(offer, evaluated_on),
        stale=is_stale(offer, provider, evaluated_on),
        evidence=offer.evidence,
        source=offer.source,
        availability=offer.availability,
        flags=offer.flags,
    )


def _engine_choice(subject: Subject) -> EngineChoice:
    settings = subject.deployment.settings
    return EngineChoice(
        name=subject.behaviour.engine,
        version=subject.behaviour.version,
        memory_fraction=as_float(settings.memory_fraction),
        max_model_len=int(as_float(settings.max_model_len)),
        max_num_seqs=int(as_float(settings.max_num_seqs)),
        max_num_batched_tokens=int(as_float(settings.max_num_batched_tokens)),
    )


def cost_request(searched: Searched, option: int) -> CostProjectionRequest:
    """What `cost-projections` is asked for an option: whole instances, and the share of their full load that is served."""
    ask, found, market = searched.ask, searched.found, searched.market
    survivor, offer_position = int(searched.options.survivor[option]), int(searched.options.offer[option])
    choice = ask.question.choices[int(found.candidates.choice[found.survivors[survivor]])]
    provider = market.providers[market.offers[offer_position].provider]
    instances = int(searched.options.instances[option])
    work_ = ask.question.work
    full = float(np.asarray(found.most.rate * found.replicas.serving)[survivor])
    served = float(served_per_second(ask, found)[survivor])
    per_hour = full * SECONDS_PER_HOUR
    return CostProjectionRequest(
        offer=market.offers[offer_position].id,
        replicas=instances,
        hours_per_month=ask.hours_per_month,
        idle_hours=max(HOURS_PER_MONTH - ask.hours_per_month, 0.0) if market.by_month[offer_position] else 0.0,
        horizon_months=ask.horizon_months,
        throughput=Throughput(
            output_tokens_per_hour=per_hour * work_.output.mean,
            input_tokens_per_hour=per_hour * work_.input.mean,
            requests_per_hour=per_hour,
            prefix_cache_hit_rate=work_.prefix_hit,
        ),
        utilization=min(served / full, 1.0),
        storage_gb=weight_gb(ask.question.architecture, choice) * instances,
        storage_usd_per_gb_month=provider.storage_usd_per_gb_month,
        egress_gb=float(egress_gb(ask, np.asarray(served))),
        egress_usd_per_gb=provider.egress_usd_per_gb,
    )
