"""``POST /v1/recommendations``: from a workload to ranked, priced options."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from service.api.asking import read_ask
from service.api.call import Call, Provenance, provenance
from service.api.explain import explained_options, members
from service.api.operation import operation
from service.api.resolve import Gathered
from service.api.sizing import SizingQuery, extended
from service.api.wire import RecommendationRequest
from service.catalog.snapshot import Snapshot
from service.domain.answer import Assumed
from service.domain.derivation import Derived, Explanation
from service.domain.market import open_offers
from service.domain.message import Message
from service.domain.not_modelled import not_modelled
from service.domain.recommend import Recommendations, recommend


class RecommendationQuery(SizingQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a recommendation."""

    rejected: (
        Annotated[Literal["offers"], Meta(description="`offers`: also list each offer that the terms keep out.")] | None
    ) = None


class RecommendationAnswer(Recommendations, frozen=True, kw_only=True):
    """Ranked options with what they rest on."""

    assumptions: tuple[Assumed, ...]
    provenance: Provenance
    derivation: tuple[Derived, ...] | UnsetType = UNSET
    """With `?explain=true`: how each number of the first option comes about."""
    explanation: Explanation | UnsetType = UNSET
    """With `?explain=true`: the first option in words."""
    checklist: tuple[Message, ...] | UnsetType = UNSET
    """With `?explain=true`: what to ask and check before buying the first option."""


@operation("POST", "/v1/recommendations", tag="sizing", examples=("recommendation",))
def recommend_deployment(
    call: Call[Snapshot], body: RecommendationRequest, query: RecommendationQuery
) -> RecommendationAnswer:
    """What to run a workload on: ranked accelerators, layouts, replicas, providers and offers, with cost and reasons.

    Every accelerator, count, layout and weight format of the catalog is searched; each that lost is listed with the
    bound it broke. Costs are of whole instances.
    """
    snapshot, gathered = call.snapshot, Gathered()
    ask = read_ask(body, call, gathered, with_offers=query.rejected == "offers")
    found = recommend(
        ask,
        snapshot.fleet,
        snapshot.market,
        open_offers(snapshot.market, ask.terms, ask.evaluated_on),
        snapshot.profiles,
    )
    more = members(explained_options(call, ask, found, body.model)) if query.explain else {}
    return extended(
        RecommendationAnswer,
        found,
        assumptions=(*gathered.assumptions, *not_modelled(body.targets, body.application)),
        provenance=provenance(snapshot, ask.evaluated_on),
        **more,
    )


RECOMMENDATION_OPERATIONS = (recommend_deployment,)
