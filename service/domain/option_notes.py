"""Why an option stands where it does, and what could go wrong with it: messages from its own numbers."""

from collections.abc import Iterator

import msgspec

from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.offer import Offer
from service.domain.performance import PerformanceEstimate
from service.domain.recommendation import OfferView
from service.domain.searched import Searched
from service.domain.subject import Subject

_LOW_RISK = frozenset({"none", "low"})


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """An option as far as its notes need it."""

    option: int
    subject: Subject
    offer: Offer
    view: OfferView
    estimate: PerformanceEstimate
    likely: bool
    safe: bool


def reasons(searched: Searched, written: Written, rank: int) -> tuple[Message, ...]:
    """The objective's figure, its distance to the next option, and what bounds the number of replicas."""
    ask, options = searched.ask, searched.options
    monthly = round(float(options.monthly_usd[written.option]), 2)
    found = [Message(f"reason_{ask.objective}", {"rank": rank, "monthly_usd": monthly})]
    if rank < len(searched.chosen):
        after = float(options.monthly_usd[searched.chosen[rank]])
        found.append(Message("reason_next_option", {"next_usd": round(after, 2)}))
    estimate = written.estimate
    if estimate.bottleneck is not None and estimate.max_requests_per_second is not None:
        params = {"rate": round(estimate.max_requests_per_second, 3)}
        found.append(Message(f"reason_bound_by_{estimate.bottleneck}", params))
    return tuple(found)


def risks(searched: Searched, written: Written) -> tuple[Message, ...]:
    """Everything that could make the choice wrong, the gravest first."""
    return (*_risks_of_estimates(written), *_risks_of_offer(written.view), *_risks_of_layout(searched, written))


def _risks_of_estimates(written: Written) -> Iterator[Message]:
    weights, accelerator = written.subject.weights, written.subject.accelerator
    asked, window = (
        written.subject.deployment.settings.max_model_len,
        written.subject.architecture.max_position_embeddings,
    )
    if as_float(asked) > window:
        yield Message("risk_context_beyond_checkpoint", {"asked": int(as_float(asked)), "window": window})
    if not written.safe:
        yield Message("risk_targets_not_safe")
    # A model trained in its format loses nothing by it.
    if weights.quality_risk not in _LOW_RISK and weights.id != written.subject.architecture.checkpoint_format:
        yield Message("risk_weight_format", {"weights": weights.id, "risk": weights.quality_risk})
    if accelerator.memory_basis == "estimated":
        yield Message("risk_memory_estimated", {"gpu": accelerator.id})


def _risks_of_offer(view: OfferView) -> Iterator[Message]:
    if view.age_days is not None and view.stale:
        yield Message("risk_stale_price", {"days": view.age_days, "as_of": view.as_of or ""})
    if "price_outlier" in view.flags:
        yield Message("risk_price_outlier")
    if view.availability != "in_stock":
        yield Message("risk_stock_unknown", {"provider": view.provider})
    if view.tenancy == "marketplace":
        yield Message("risk_marketplace")


def _risks_of_layout(searched: Searched, written: Written) -> Iterator[Message]:
    if searched.ask.question.spare == 0.0 and searched.ask.question.work.kind == "interactive":
        yield Message("risk_no_spare")
    idle = int(searched.options.idle_gpus[written.option])
    if idle:
        yield Message("risk_idle_gpus", {"gpus": idle, "instances": int(searched.options.instances[written.option])})
    if as_float(written.subject.deployment.layout.pipeline) > 1.0:
        yield Message("risk_pipeline")
