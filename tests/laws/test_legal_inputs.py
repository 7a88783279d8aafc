"""No legal workload or cost question can overflow, divide by zero or give a number that is not one.

Values are drawn from the wire types themselves, with a preference for their very bounds.
"""

import json
import math
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect as mi

from service.domain.concurrency import DurationSeconds, Headroom, concurrency_estimate
from service.domain.cost import CostProjectionRequest
from service.domain.cost_projection import cost_projection
from service.domain.demand import monthly_requests
from service.domain.errors import ImpossibleCombination
from service.domain.message import Message
from service.domain.workload import Traffic
from service.text.rendering import render

DEMANDS = ("requests_per_second", "concurrent_requests", "users", "batch")


def legal(kind: mi.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one return a kind of type
    """JSON values that a msgspec type admits."""
    match kind:
        case mi.Metadata(type=inner):
            return legal(inner)
        case mi.FloatType():
            assert kind.ge is not None, "a number without a lower bound"
            assert kind.le is not None, "a number without an upper bound"
            bounds = st.sampled_from([float(kind.ge), float(kind.le), min(max(1.0, float(kind.ge)), float(kind.le))])
            return bounds | st.floats(kind.ge, kind.le)
        case mi.IntType():
            return st.integers(kind.ge, kind.le)
        case mi.StrType():
            return st.just("x")
        case mi.NoneType():
            return st.none()
        case mi.UnionType(types=types):
            return st.one_of(*map(legal, types))
        case mi.VarTupleType(item_type=item):
            return st.sampled_from([24, 168]).flatmap(lambda n: legal(item).map(lambda value: [value] * n))
        case mi.StructType():
            members = {field.encode_name: legal(field.type) for field in kind.fields if field.required}
            optional = {field.encode_name: legal(field.type) for field in kind.fields if not field.required}
            drawn = st.fixed_dictionaries(members, optional=optional)
            return drawn if kind.tag is None else drawn.map(lambda value: {kind.tag_field: kind.tag, **value})
    raise AssertionError(kind)


@st.composite
def traffics(draw: st.DrawFn) -> Traffic:
    """Traffic with one of the four ways to state it."""
    value = draw(legal(mi.type_info(Traffic)))
    chosen = draw(st.sampled_from(DEMANDS))
    if value.get(chosen) is None:
        field = next(f for f in mi.type_info(Traffic).fields if f.name == chosen)
        value[chosen] = draw(legal(field.type).filter(lambda v: v is not None))
    for name in DEMANDS:
        if name != chosen:
            value.pop(name, None)
    if chosen == "users":
        spare = draw(st.sampled_from([("active_at_peak",), ("registered", "active_share_at_peak")]))
        for name in spare:
            value["users"].pop(name, None)
    return msgspec.convert(value, Traffic, strict=True)


def plain(value: object) -> object:
    """A message as its English sentence, as the service's encoder does."""
    assert isinstance(value, Message)
    sentence = render(value, "en")
    assert sentence != value.code, f"no English text for {value.code}"
    return sentence


def assert_finite(answer: object) -> None:
    """Every number is finite and not negative (msgspec would write NaN and infinity as null)."""

    def walk(value: object) -> None:
        match value:
            case float():
                assert math.isfinite(value)
                assert value >= 0.0
            case dict():
                for member in value.values():
                    walk(member)
            case list():
                for member in value:
                    walk(member)

    walk(msgspec.to_builtins(answer, enc_hook=plain))
    json.dumps(msgspec.to_builtins(answer, enc_hook=plain), allow_nan=False)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(traffics(), legal(mi.type_info(DurationSeconds)), legal(mi.type_info(Headroom)))
def test_every_legal_traffic_has_a_finite_number_in_progress(
    traffic: Traffic, duration_s: float, headroom: float
) -> None:
    try:
        estimate = concurrency_estimate(traffic, duration_s, headroom)
    except ImpossibleCombination as fault:
        plain(fault.message)
        return
    assert_finite(estimate)
    active = estimate.active_requests
    assert active.p50 <= active.p95 <= active.p99
    month = monthly_requests(traffic)
    assert month is None or math.isfinite(month)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(legal(mi.type_info(CostProjectionRequest)), st.sampled_from([0.0, 1e-6, 1.0, 1e6]), st.sampled_from([0.0, 1e9]))
def test_every_legal_cost_question_has_a_finite_answer(value: dict[str, Any], price: float, setup_fee: float) -> None:
    request = msgspec.convert(value, CostProjectionRequest, strict=True)
    assert_finite(cost_projection(request, price, setup_fee))
