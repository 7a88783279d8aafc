"""The cost of a deployment in a month and per token: rent, storage, bandwidth, backup, platform, people and a reserve.

One function answers ``POST /v1/cost-projections`` and fills the ``cost`` of a recommendation. Nothing is rounded.
"""

from service.domain.answer import Assumed
from service.domain.break_even import BreakEven, Volume, against_managed_api, against_owned_hardware
from service.domain.cost import (
    AtUtilization,
    CostProjection,
    CostProjectionRequest,
    MonthlyUsd,
    Throughput,
    TokenPrices,
)
from service.domain.errors import ImpossibleCombination
from service.domain.message import Message
from service.domain.unit_cost import (
    LEAST_VOLUME,
    LIST_PRICE_WEIGHTS,
    TokenWeights,
    monthly_compute_usd,
    paid_hours,
    usd_per_million,
    usd_per_unit,
    weighted_tokens,
)
from service.domain.units import HOURS_PER_MONTH

DEFAULT_HORIZON_MONTHS = 12.0
"""The contract's default horizon."""
DEFAULT_STORAGE_USD_PER_GB_MONTH = 0.07
"""Network storage of RunPod (below 1 TB), Hyperstack and CoreWeave file storage, as read in 2026."""
DEFAULT_EGRESS_USD_PER_GB = 0.09
"""First tier of AWS (egress price file of 2026-05-06); most GPU clouds charge less or nothing."""
UTILIZATIONS = (0.1, 0.3, 0.5, 1.0)
_PRICES = ("price_usd_per_hour", "offer")


def check_price(request: CostProjectionRequest) -> None:
    """Raise ``ImpossibleCombination`` unless exactly one of a price and an offer is given."""
    if request.price_usd_per_hour is None and request.offer is None:
        raise ImpossibleCombination(pointer="", message=Message("cost_price_missing"), suggestions=_PRICES)
    if request.price_usd_per_hour is not None and request.offer is not None:
        raise ImpossibleCombination(pointer="/offer", message=Message("cost_price_twice"), suggestions=_PRICES)


def cost_projection(
    request: CostProjectionRequest,
    price_usd_per_hour: float,
    setup_fee_usd: float = 0.0,
    weights: TokenWeights | None = None,
) -> CostProjection:
    """Project the cost of ``request`` at the price of one replica.

    ``price_usd_per_hour`` and ``setup_fee_usd`` (per replica, once) are those of the request or of its offer.
    ``weights`` split the cost among the kinds of token, best by compute time; by default the managed API's prices, or
    the usual shape of such lists.
    """
    hours = _default(request.hours_per_month, HOURS_PER_MONTH)
    monthly = _monthly_usd(request, price_usd_per_hour, setup_fee_usd)
    full_load = None if request.throughput is None else _volume(request.throughput, hours)
    share = _default(request.utilization, 1.0)
    served = None if full_load is None else full_load.scaled(share)
    prices = _token_prices(monthly.total, served, token_weights(request, weights)) if _has_input(request) else None
    now = _at_utilization(share, monthly.total, request.throughput, full_load)
    return CostProjection(
        monthly_usd=monthly,
        usd_per_million_output_tokens=now.usd_per_million_output_tokens,
        usd_per_million_input_tokens=None if prices is None else prices.usd_per_million_input_tokens,
        usd_per_million_cached_input_tokens=None if prices is None else prices.usd_per_million_cached_input_tokens,
        usd_per_million_tokens=now.usd_per_million_tokens,
        usd_per_request=now.usd_per_request,
        token_prices=prices,
        utilization=request.utilization if full_load is None else share,
        at_utilization=[_at_utilization(level, monthly.total, request.throughput, full_load) for level in UTILIZATIONS],
        break_even=_break_even(request, monthly, served, full_load),
        assumptions=_assumptions(request, setup_fee_usd, weights),
    )


def _monthly_usd(request: CostProjectionRequest, price_usd_per_hour: float, setup_fee_usd: float) -> MonthlyUsd:
    replicas = float(_replicas(request))
    rent = float(monthly_compute_usd(price_usd_per_hour, replicas, _paid_hours(request)))
    compute = rent + setup_fee_usd * replicas / _default(request.horizon_months, DEFAULT_HORIZON_MONTHS)
    storage = request.storage_gb * _default(request.storage_usd_per_gb_month, DEFAULT_STORAGE_USD_PER_GB_MONTH)
    bandwidth = request.egress_gb * _default(request.egress_usd_per_gb, DEFAULT_EGRESS_USD_PER_GB)
    reserve = request.failure_reserve_share * compute
    backup, platform = request.backup_usd_per_month, request.platform_usd_per_month
    engineering = request.engineering_usd_per_month
    return MonthlyUsd(
        total=compute + storage + bandwidth + backup + platform + engineering + reserve,
        compute=compute,
        storage=storage,
        bandwidth=bandwidth,
        backup=backup,
        platform=platform,
        engineering=engineering,
        failure_reserve=reserve,
    )


def _volume(throughput: Throughput, hours: float) -> Volume:
    """What ``throughput`` amounts to in the serving hours of a month."""
    inputs = (throughput.input_tokens_per_hour or 0.0) * hours
    requests = throughput.requests_per_hour
    return Volume(
        fresh_input_tokens=inputs * (1.0 - throughput.prefix_cache_hit_rate),
        cached_input_tokens=inputs * throughput.prefix_cache_hit_rate,
        output_tokens=throughput.output_tokens_per_hour * hours,
        requests=None if requests is None else requests * hours,
    )


def _at_utilization(
    share: float, total_usd: float, throughput: Throughput | None, full_load: Volume | None
) -> AtUtilization:
    if throughput is None or full_load is None:
        return AtUtilization(
            utilization=share,
            output_tokens_per_hour=None,
            usd_per_million_output_tokens=None,
            usd_per_million_tokens=None,
            usd_per_request=None,
        )
    served = full_load.scaled(share)
    inputs = served.fresh_input_tokens + served.cached_input_tokens
    both = None if throughput.input_tokens_per_hour is None else inputs + served.output_tokens
    return AtUtilization(
        utilization=share,
        output_tokens_per_hour=throughput.output_tokens_per_hour * share,
        usd_per_million_output_tokens=_per_million(total_usd, served.output_tokens),
        usd_per_million_tokens=_per_million(total_usd, both),
        usd_per_request=_per_unit(total_usd, served.requests),
    )


def _token_prices(total_usd: float, served: Volume | None, weights: TokenWeights) -> TokenPrices | None:
    if served is None:
        return None
    shares = float(
        weighted_tokens(weights, served.fresh_input_tokens, served.cached_input_tokens, served.output_tokens)
    )
    price = _per_million(total_usd, shares)
    if price is None:
        return None
    return TokenPrices(
        usd_per_million_input_tokens=price * weights.input,
        usd_per_million_cached_input_tokens=price * weights.cached_input,
        usd_per_million_output_tokens=price * weights.output,
    )


def token_weights(request: CostProjectionRequest, given: TokenWeights | None) -> TokenWeights:
    """The split of cost in use, with the largest weight at 1 (so that no tiny weight can overflow a price)."""
    found = given or (LIST_PRICE_WEIGHTS if request.managed_api is None else request.managed_api.weights)
    largest = max(found.input, found.cached_input, found.output)
    if largest == 0.0:
        return token_weights(request, LIST_PRICE_WEIGHTS)
    return TokenWeights(
        input=found.input / largest, cached_input=found.cached_input / largest, output=found.output / largest
    )


def _break_even(
    request: CostProjectionRequest, monthly: MonthlyUsd, served: Volume | None, full_load: Volume | None
) -> list[BreakEven]:
    found = []
    if request.managed_api is not None:
        found.append(against_managed_api(request.managed_api, monthly.total, served, full_load))
    if request.owned is not None:
        found.append(against_owned_hardware(request.owned, monthly.compute, _paid_hours(request)))
    return found


def _assumptions(request: CostProjectionRequest, setup_fee_usd: float, weights: TokenWeights | None) -> list[Assumed]:
    found = []

    def assume(field: str, value: float | None, code: str) -> None:
        found.append(Assumed(field, value, Message(code)))

    if request.hours_per_month is None:
        assume("/hours_per_month", HOURS_PER_MONTH, "assumed_hours_per_month")
    if request.replicas is None:
        assume("/replicas", 1, "assumed_one_replica")
    if request.throughput is not None and request.utilization is None:
        assume("/utilization", 1.0, "assumed_throughput_is_full_load")
    if request.storage_gb > 0.0 and request.storage_usd_per_gb_month is None:
        assume("/storage_usd_per_gb_month", DEFAULT_STORAGE_USD_PER_GB_MONTH, "assumed_storage_price")
    if request.egress_gb > 0.0 and request.egress_usd_per_gb is None:
        assume("/egress_usd_per_gb", DEFAULT_EGRESS_USD_PER_GB, "assumed_egress_price")
    if setup_fee_usd > 0.0 and request.horizon_months is None:
        assume("/horizon_months", DEFAULT_HORIZON_MONTHS, "assumed_horizon")
    if _has_input(request) and weights is None and request.managed_api is None:
        assume("/managed_api", None, "assumed_token_price_split")
    return found


def _has_input(request: CostProjectionRequest) -> bool:
    return request.throughput is not None and request.throughput.input_tokens_per_hour is not None


def _paid_hours(request: CostProjectionRequest) -> float:
    serving = _default(request.hours_per_month, HOURS_PER_MONTH)
    return float(paid_hours(serving, request.idle_hours, request.starts_per_month, request.start_up_s))


def _replicas(request: CostProjectionRequest) -> int:
    return 1 if request.replicas is None else request.replicas


def _per_million(usd: float, volume: float | None) -> float | None:
    return None if volume is None or volume < LEAST_VOLUME else float(usd_per_million(usd, volume))


def _per_unit(usd: float, volume: float | None) -> float | None:
    return None if volume is None or volume < LEAST_VOLUME else float(usd_per_unit(usd, volume))


def _default(value: float | None, default: float) -> float:
    return default if value is None else value
