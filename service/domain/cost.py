"""Question and answer of a cost projection: what is paid for, what it serves, and a month's and a token's cost."""

from typing import Annotated

import msgspec
from msgspec import Meta

from service.domain.answer import Assumed
from service.domain.break_even import BreakEven, ManagedApi
from service.domain.ownership import MonthlyFee, Owned

PerHour = Annotated[float, Meta(ge=0, le=1e15)]
Hours = Annotated[float, Meta(ge=0, le=744)]


class Throughput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all replicas together really serve in an hour; with `utilization`, what they serve at full load."""

    output_tokens_per_hour: PerHour
    input_tokens_per_hour: PerHour | None = None
    requests_per_hour: PerHour | None = None
    prefix_cache_hit_rate: Annotated[
        float, Meta(ge=0, le=1, description="Share of the input tokens found in the prefix cache.")
    ] = 0.0


class CostProjectionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price (`price_usd_per_hour`, or an `offer` of the catalog), what it serves, and what else is paid for."""

    price_usd_per_hour: Annotated[float, Meta(ge=0, le=1e6, description="Of one replica (one instance).")] | None = None
    offer: (
        Annotated[str, Meta(min_length=1, max_length=300, description="Id of an offer instead of a price.")] | None
    ) = None
    replicas: Annotated[int, Meta(ge=1, le=1_000_000_000, description="Instances paid for; by default 1.")] | None = (
        None
    )
    hours_per_month: (
        Annotated[float, Meta(ge=0.1, le=744, description="Hours in which the throughput is served; by default 730.")]
        | None
    ) = None
    throughput: Throughput | None = None
    utilization: (
        Annotated[float, Meta(ge=0, le=1, description="Share of full load that is served on average.")] | None
    ) = None
    storage_gb: Annotated[float, Meta(ge=0, le=1e15)] = 0.0
    storage_usd_per_gb_month: Annotated[float, Meta(ge=0, le=1000, description="By default 0.07.")] | None = None
    egress_gb: Annotated[float, Meta(ge=0, le=1e15, description="Data sent out in a month.")] = 0.0
    egress_usd_per_gb: Annotated[float, Meta(ge=0, le=1000, description="By default 0.09.")] | None = None
    backup_usd_per_month: MonthlyFee = 0.0
    platform_usd_per_month: MonthlyFee = 0.0
    engineering_usd_per_month: MonthlyFee = 0.0
    failure_reserve_share: Annotated[
        float, Meta(ge=0, le=10, description="Set aside for failures and repeated work, as a share of compute.")
    ] = 0.0
    idle_hours: Annotated[
        Hours, Meta(description="Hours of a month, on top of `hours_per_month`, that are paid for without traffic.")
    ] = 0.0
    starts_per_month: Annotated[float, Meta(ge=0, le=100_000)] = 0.0
    start_up_s: Annotated[float, Meta(ge=0, le=86_400, description="Paid time from start to the first request.")] = 0.0
    horizon_months: (
        Annotated[float, Meta(ge=1, le=240, description="Months over which fees paid once are spread; by default 12.")]
        | None
    ) = None
    owned: Annotated[
        Owned | None, Meta(description="Hardware to compare with: `break_even` says when it pays back.")
    ] = None
    managed_api: Annotated[
        ManagedApi | None, Meta(description="API to compare with: `break_even` says from which volume.")
    ] = None


class MonthlyUsd(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of a month by purpose; the parts sum to the total. `compute` holds setup fees spread over the horizon."""

    total: float
    compute: float
    storage: float
    bandwidth: float
    backup: float
    platform: float
    engineering: float
    failure_reserve: float


class TokenPrices(msgspec.Struct, frozen=True, kw_only=True):
    """A price list that brings in exactly the month's total: cost split among the kinds of token by stated weights."""

    usd_per_million_input_tokens: float
    usd_per_million_cached_input_tokens: float
    usd_per_million_output_tokens: float


class AtUtilization(msgspec.Struct, frozen=True, kw_only=True):
    """Unit costs if the deployment served this share of its full load for the same money."""

    utilization: float
    output_tokens_per_hour: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens: float | None
    usd_per_request: float | None


class CostProjection(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of a month and per token.

    `usd_per_million_output_tokens` lets output tokens bear all of the cost, as rented GPUs are compared, and
    `usd_per_million_tokens` shares it among input and output alike; `usd_per_million_input_tokens` and
    `usd_per_million_cached_input_tokens` are the input side of `token_prices`, the list that charges input and output
    and brings in the same total. These are three views of one bill, not to be added up. Costs per token are null where
    nothing is known to be served.
    """

    monthly_usd: MonthlyUsd
    usd_per_million_output_tokens: float | None
    usd_per_million_input_tokens: float | None
    usd_per_million_cached_input_tokens: float | None
    usd_per_million_tokens: float | None
    usd_per_request: float | None
    token_prices: TokenPrices | None
    """Null unless input and output throughput are known."""
    utilization: float | None
    """Share of full load that is served; 1 where only the served throughput is known; null without throughput."""
    at_utilization: list[AtUtilization]
    break_even: list[BreakEven]
    assumptions: list[Assumed]
