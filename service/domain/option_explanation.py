"""The first recommendation in words."""

from collections.abc import Iterator

from service.domain.cost import CostProjectionRequest
from service.domain.derivation import Explanation
from service.domain.explanation import (
    left_out_of_cost,
    left_out_of_memory,
    left_out_of_performance,
    memory_checks_to_do,
    performance_checks_to_do,
    speed_of,
)
from service.domain.message import Message
from service.domain.question import Ask
from service.domain.recommendation import Recommendation
from service.domain.subject import Subject
from service.domain.work import Work

NOTHING_FOUND = Explanation(
    summary=Message("explain_nothing_found"), risks=(), not_considered=(Message("not_considered_multi_instance"),)
)
"""Of a search without an option: ``rejected`` and ``by_provider`` say why."""


def explain_option(
    ask: Ask, option: Recommendation, subject: Subject, asked: Work, costs: CostProjectionRequest
) -> Explanation:
    """Rank 1 in one paragraph, its risks, and what the search leaves out."""
    per_million = option.cost.usd_per_million_output_tokens
    summary = Message(
        "explain_option",
        {
            "model": option.checkpoint,
            "weights": option.weights,
            "gpu": option.gpu,
            "gpus_per_replica": option.gpus_per_replica,
            "replicas": option.replicas,
            "instances": option.instances,
            "instance_type": option.offer.instance_type,
            "provider": option.offer.provider,
            "monthly_usd": option.monthly_usd,
            "speed": speed_of(option.performance),
            "unit_cost": Message("explain_unit_cost_unknown")
            if per_million is None
            else Message("explain_unit_cost", {"price": per_million}),
        },
    )
    left_out = dict.fromkeys(_left_out(ask, subject, asked, costs))
    return Explanation(summary=summary, risks=option.risks, not_considered=tuple(left_out))


def _left_out(ask: Ask, subject: Subject, asked: Work, costs: CostProjectionRequest) -> Iterator[Message]:
    yield Message("not_considered_answers", {"model": subject.model})
    yield from left_out_of_performance(subject, asked)
    yield from left_out_of_memory(subject)
    yield Message("not_considered_multi_instance")
    yield Message("not_considered_quota")
    if ask.terms.regions is None:
        yield Message("not_considered_residency")
    if asked.kind == "interactive":
        yield Message("not_considered_balancing")
    yield from left_out_of_cost(costs)


def option_checks_to_do(option: Recommendation, subject: Subject) -> tuple[Message, ...]:
    """What to ask the provider, and what to measure on one replica before renting all of them."""
    return (
        *option.verify,
        *memory_checks_to_do(subject, option.vram),
        *performance_checks_to_do(option.performance),
    )
