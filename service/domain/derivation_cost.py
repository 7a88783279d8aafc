"""How the cost of a month and of a token comes about."""

from service.domain.cost import CostProjection, CostProjectionRequest
from service.domain.cost_projection import (
    DEFAULT_EGRESS_USD_PER_GB,
    DEFAULT_HORIZON_MONTHS,
    DEFAULT_STORAGE_USD_PER_GB_MONTH,
    token_weights,
)
from service.domain.derivation import Derived, derived
from service.domain.derivation_performance import DEFINITION, Numbers
from service.domain.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MILLION

SPLIT = "service/domain/unit_cost.py: one bill split among the kinds of token by weight"
_PARTS = ("compute", "storage", "bandwidth", "backup", "platform", "engineering", "failure_reserve")


def cost_derivation(
    request: CostProjectionRequest, price_usd_per_hour: float, setup_fee_usd: float, source: str, found: CostProjection
) -> tuple[Derived, ...]:
    """Steps of ``found``, the answer of ``cost_projection``; ``source``: where the price comes from."""
    monthly = found.monthly_usd
    parts: Numbers = {name: getattr(monthly, name) for name in _PARTS if getattr(monthly, name)}
    total = derived("/monthly_usd/total", " + ".join(parts) or "0", parts, monthly.total, "USD", DEFINITION)
    return (
        _compute(request, price_usd_per_hour, setup_fee_usd, source, found),
        *_beside_compute(request, found),
        total,
        *_unit_costs(request, found),
        *_list_prices(request, found),
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _compute(
    request: CostProjectionRequest, price_usd_per_hour: float, setup_fee_usd: float, source: str, found: CostProjection
) -> Derived:
    inputs: Numbers = {
        "price_usd_per_hour": price_usd_per_hour,
        "instances": float(_or(request.replicas, 1)),
        "hours_per_month": _or(request.hours_per_month, HOURS_PER_MONTH),
    }
    hours = "hours_per_month"
    if request.idle_hours:
        hours, inputs = f"{hours} + idle_hours", {**inputs, "idle_hours": request.idle_hours}
    if request.starts_per_month and request.start_up_s:
        hours += " + starts_per_month * start_up_s / seconds_per_hour"
        inputs |= {
            "starts_per_month": request.starts_per_month,
            "start_up_s": request.start_up_s,
            "seconds_per_hour": SECONDS_PER_HOUR,
        }
    expression = (
        f"price_usd_per_hour * instances * ({hours})" if " " in hours else f"price_usd_per_hour * instances * {hours}"
    )
    if setup_fee_usd:
        expression += " + setup_fee_usd * instances / horizon_months"
        inputs |= {
            "setup_fee_usd": setup_fee_usd,
            "horizon_months": _or(request.horizon_months, DEFAULT_HORIZON_MONTHS),
        }
    return derived("/monthly_usd/compute", expression, inputs, found.monthly_usd.compute, "USD", source)


def _beside_compute(request: CostProjectionRequest, found: CostProjection) -> tuple[Derived, ...]:
    monthly = found.monthly_usd
    storage: Numbers = {
        "storage_gb": request.storage_gb,
        "storage_usd_per_gb_month": _or(request.storage_usd_per_gb_month, DEFAULT_STORAGE_USD_PER_GB_MONTH),
    }
    sent: Numbers = {
        "egress_gb": request.egress_gb,
        "egress_usd_per_gb": _or(request.egress_usd_per_gb, DEFAULT_EGRESS_USD_PER_GB),
    }
    reserve: Numbers = {"failure_reserve_share": request.failure_reserve_share, "compute": monthly.compute}
    rows = (("storage", storage), ("bandwidth", sent), ("failure_reserve", reserve))
    return tuple(
        derived(f"/monthly_usd/{name}", " * ".join(inputs), inputs, getattr(monthly, name), "USD", DEFINITION)
        for name, inputs in rows
        if getattr(monthly, name)
    )


def _unit_costs(request: CostProjectionRequest, found: CostProjection) -> tuple[Derived, ...]:
    flow = request.throughput
    if flow is None:
        return ()
    served: Numbers = {
        "monthly_usd": found.monthly_usd.total,
        "output_tokens_per_hour": flow.output_tokens_per_hour,
        "hours_per_month": _or(request.hours_per_month, HOURS_PER_MONTH),
        "utilization": _or(request.utilization, 1.0),
        "million": float(TOKENS_PER_MILLION),
    }
    of_month = "hours_per_month * utilization"
    steps = []
    if found.usd_per_million_output_tokens is not None:
        expression = f"monthly_usd / (output_tokens_per_hour * {of_month}) * million"
        price = found.usd_per_million_output_tokens
        steps.append(derived("/usd_per_million_output_tokens", expression, served, price, "USD", DEFINITION))
    if found.usd_per_million_tokens is not None:
        expression = f"monthly_usd / ((input_tokens_per_hour + output_tokens_per_hour) * {of_month}) * million"
        both: Numbers = {**served, "input_tokens_per_hour": _or(flow.input_tokens_per_hour, 0.0)}
        price = found.usd_per_million_tokens
        steps.append(derived("/usd_per_million_tokens", expression, both, price, "USD", DEFINITION))
    if found.usd_per_request is not None:
        names = ("monthly_usd", "hours_per_month", "utilization")
        calls: Numbers = {
            **{name: served[name] for name in names},
            "requests_per_hour": _or(flow.requests_per_hour, 0.0),
        }
        expression = f"monthly_usd / (requests_per_hour * {of_month})"
        steps.append(derived("/usd_per_request", expression, calls, found.usd_per_request, "USD", DEFINITION))
    return tuple(steps)


def _list_prices(request: CostProjectionRequest, found: CostProjection) -> tuple[Derived, ...]:
    """The input side of the price list that brings in the same total."""
    flow, price = request.throughput, found.usd_per_million_input_tokens
    if flow is None or price is None:
        return ()
    weights = token_weights(request, None)
    inputs: Numbers = {
        "monthly_usd": found.monthly_usd.total,
        "input_weight": weights.input,
        "cached_input_weight": weights.cached_input,
        "output_weight": weights.output,
        "input_tokens_per_hour": _or(flow.input_tokens_per_hour, 0.0),
        "output_tokens_per_hour": flow.output_tokens_per_hour,
        "prefix_cache_hit_rate": flow.prefix_cache_hit_rate,
        "hours_per_month": _or(request.hours_per_month, HOURS_PER_MONTH),
        "utilization": _or(request.utilization, 1.0),
        "million": float(TOKENS_PER_MILLION),
    }
    of_input = (
        "input_tokens_per_hour * (input_weight * (1 - prefix_cache_hit_rate)"
        " + cached_input_weight * prefix_cache_hit_rate)"
    )
    weighted = f"({of_input} + output_weight * output_tokens_per_hour) * hours_per_month * utilization"
    expression = f"input_weight * monthly_usd / ({weighted}) * million"
    return (derived("/usd_per_million_input_tokens", expression, inputs, price, "USD", SPLIT),)
