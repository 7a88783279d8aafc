"""Order of the options under an objective, best first; ties go to the lower cost, then to fewer cards of a replica.

What is still equal stays in the order of accelerator, layout and offer id.
"""

from collections.abc import Iterator

import numpy as np

from service.domain.fleet import IntArray
from service.domain.market import Market
from service.domain.numeric import FloatArray
from service.domain.options import Options
from service.domain.packing import pack
from service.domain.question import Question
from service.domain.recommendation import Objective
from service.domain.replicas import replicas_for
from service.domain.search import Found

SCENARIOS = (0.5, 1.0, 2.0)
"""Loads of the least-regret objective, as multiples of the plan."""


def scores(objective: Objective, found: Found, options: Options, market: Market, question: Question) -> FloatArray:
    """What each option is ranked by (less is better), in the objective's own unit."""
    if objective == "min_latency":
        after_first = question.work.output.mean - 1.0
        return (found.ttft_p95_s + after_first * found.tpot_p95_s)[options.survivor]
    if objective == "max_throughput_per_usd":
        served = np.asarray(found.most.rate * found.replicas.serving)[options.survivor] * question.work.output.mean
        return -served / np.maximum(options.monthly_usd, 1e-9)
    if objective == "least_regret":
        return _worst_regret(found, options, market, question)
    return options.monthly_usd


def ranked(score: FloatArray, found: Found, options: Options) -> IntArray:
    """Options in order; likely ones only (targets that fail at the planned share are no option)."""
    likely = np.flatnonzero(found.likely[options.survivor])
    gpus = np.asarray(found.deployment.layout.gpus)[options.survivor]
    # Options stand in the order of accelerator, layout and offer id already: lexsort is stable on it.
    order = np.lexsort((gpus[likely], options.monthly_usd[likely], score[likely]))
    return likely[order]


def distinct(order: IntArray, found: Found, options: Options, market: Market) -> Iterator[int]:
    """The best option of each provider and accelerator, in order: alternatives rather than variants of one."""
    seen: set[tuple[str, int]] = set()
    accelerator = found.candidates.accelerator[found.survivors]
    for option in order.tolist():
        key = (market.offers[options.offer[option]].provider, int(accelerator[options.survivor[option]]))
        if key not in seen:
            seen.add(key)
            yield option


def _worst_regret(found: Found, options: Options, market: Market, question: Question) -> FloatArray:
    """Largest excess over the cheapest option of each scenario, when every option is resized to its load (USD a month)."""
    survivor, offer = options.survivor, options.offer
    demand = question.work.demand
    most = np.asarray(found.most.of(demand))
    gpus = np.asarray(found.deployment.layout.gpus)[survivor]
    per_instance = options.monthly_usd / options.instances
    worst = np.zeros(survivor.size)
    for factor in SCENARIOS:
        replicas = replicas_for(demand.amount * factor, most, question.headroom, question.spare).total
        instances = pack(np.asarray(replicas)[survivor], gpus, market.gpus[offer]).instances
        cost = np.asarray(instances) * per_instance
        worst = np.maximum(worst, cost - cost.min(initial=np.inf))
    return worst
