"""From which volume on a self-hosted deployment is cheaper than a managed API, and when owned hardware pays back."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.domain.message import Message
from service.domain.ownership import Owned, owned_monthly_usd, payback_months
from service.domain.unit_cost import LEAST_VOLUME, TokenWeights, weighted_tokens
from service.domain.units import TOKENS_PER_MILLION

TokenPrice = Annotated[float, Meta(ge=0, le=1e6)]
_MOST_VOLUME = 1e24
"""Tokens a month past which a break-even is of no use to anyone; keeps the quotient finite."""


class ManagedApi(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price list of an API that sells the same tokens, USD per million."""

    usd_per_million_input_tokens: TokenPrice
    usd_per_million_cached_input_tokens: (
        Annotated[TokenPrice, Meta(description="By default cached input costs as much as other input.")] | None
    ) = None
    usd_per_million_output_tokens: TokenPrice

    @property
    def weights(self) -> TokenWeights:
        """The list as a split of cost among the kinds of token."""
        cached = self.usd_per_million_cached_input_tokens
        return TokenWeights(
            input=self.usd_per_million_input_tokens,
            cached_input=self.usd_per_million_input_tokens if cached is None else cached,
            output=self.usd_per_million_output_tokens,
        )


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """What a month serves."""

    fresh_input_tokens: float
    """Input tokens that are computed."""
    cached_input_tokens: float
    """Input tokens found in the prefix cache."""
    output_tokens: float
    requests: float | None

    def scaled(self, factor: float) -> "Volume":
        """The same mix, ``factor`` times as much."""
        return Volume(
            fresh_input_tokens=self.fresh_input_tokens * factor,
            cached_input_tokens=self.cached_input_tokens * factor,
            output_tokens=self.output_tokens * factor,
            requests=None if self.requests is None else self.requests * factor,
        )


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """Where an alternative and the projected deployment cost the same.

    Against `managed_api`: the monthly volume, in today's mix of tokens, from which the deployment is cheaper, and the
    utilization that this means; `reached` is false if the deployment cannot serve as much (more replicas raise cost and
    volume alike) or the API is free. Against `owned_hardware`: the months after which buying has been cheaper than the
    rent; `reached` is false if that is never or after the end of its life.
    """

    against: Literal["managed_api", "owned_hardware"]
    reached: bool
    monthly_usd: float
    """What is compared: all of the deployment (managed_api), its rent (owned_hardware)."""
    alternative_monthly_usd: float | None
    """The alternative at the stated volume; null without throughput."""
    output_tokens_per_month: float | None = None
    requests_per_month: float | None = None
    utilization: float | None = None
    """Of the deployment at the break-even volume; above 1 it cannot serve it."""
    months: float | None = None
    why: Message


def against_managed_api(
    api: ManagedApi, monthly_usd: float, served: Volume | None, full_load: Volume | None
) -> BreakEven:
    """Volume at which ``monthly_usd``, a cost that does not depend on volume, buys the same tokens from ``api``.

    ``served`` and ``full_load`` have one mix of tokens; None where no throughput is known.
    """
    if served is None or full_load is None or full_load.output_tokens < LEAST_VOLUME:
        return _unknown(monthly_usd)
    alternative = _api_usd(api, served)
    at_full_load = _api_usd(api, full_load)
    if at_full_load * _MOST_VOLUME <= monthly_usd * full_load.output_tokens:
        return BreakEven(
            against="managed_api",
            reached=False,
            monthly_usd=monthly_usd,
            alternative_monthly_usd=alternative,
            why=Message("break_even_api_free"),
        )
    utilization = monthly_usd / at_full_load
    at_break_even = full_load.scaled(utilization)
    reached = utilization <= 1.0
    code = "break_even_api_reached" if reached else "break_even_api_beyond_capacity"
    params = {"tokens": at_break_even.output_tokens, "utilization_percent": utilization * 100.0}
    return BreakEven(
        against="managed_api",
        reached=reached,
        monthly_usd=monthly_usd,
        alternative_monthly_usd=alternative,
        output_tokens_per_month=at_break_even.output_tokens,
        requests_per_month=at_break_even.requests,
        utilization=utilization,
        why=Message(code, params),
    )


def against_owned_hardware(owned: Owned, rent_usd: float, powered_hours: float) -> BreakEven:
    """Months after which buying ``owned`` has cost less than a rent of ``rent_usd`` a month."""
    month = owned_monthly_usd(owned, powered_hours)
    months = payback_months(owned, rent_usd - month.running)
    reached = months is not None and months <= owned.life_months
    if months is None:
        why = Message("break_even_owned_never", {"running_usd": month.running, "rent_usd": rent_usd})
    else:
        code = "break_even_owned_reached" if reached else "break_even_owned_after_life"
        why = Message(code, {"months": months, "life_months": owned.life_months})
    return BreakEven(
        against="owned_hardware",
        reached=reached,
        monthly_usd=rent_usd,
        alternative_monthly_usd=month.total,
        months=months,
        why=why,
    )


def _api_usd(api: ManagedApi, volume: Volume) -> float:
    tokens = weighted_tokens(api.weights, volume.fresh_input_tokens, volume.cached_input_tokens, volume.output_tokens)
    return float(tokens) / TOKENS_PER_MILLION


def _unknown(monthly_usd: float) -> BreakEven:
    return BreakEven(
        against="managed_api",
        reached=False,
        monthly_usd=monthly_usd,
        alternative_monthly_usd=None,
        why=Message("break_even_needs_throughput"),
    )
