"""Laws of step time and steady state: one formula for floats and arrays, what grows with what, and nothing infinite."""

import math
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import memory_parts

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.profiles import load_profiles
from service.domain.architecture import Architecture, CacheLayers, ParameterCounts
from service.domain.batching import Serving, batch_for_rate, rate_at, step_at
from service.domain.calibration import Profile, profile_for, stacked
from service.domain.columns import at
from service.domain.deployment import Card, Deployment, EngineSettings, Layout, MemoryParts, Precision
from service.domain.latency import LEVELS, delays, e2e_s, load_at, tpot_s, ttft_s
from service.domain.lengths import TokenLengths, lengths
from service.domain.numeric import Number, as_float
from service.domain.operating_point import OperatingPoint, at_ceiling, at_clients, at_rate, meets, most_of
from service.domain.quantization import Quantization
from service.domain.request_shape import RequestShape, request_shape
from service.domain.serving import serving
from service.domain.slo import Bound, UserTime

DATA = Path("service/catalog/data")
ENGINE = behaviour(load_engines(DATA / "engines")["vllm"], "0.19.0")
PROFILES = load_profiles(DATA / "profiles")
CARDS = ("h100-sxm-80gb", "b200-sxm-180gb", "l40s-48gb", "rtx-4090-24gb", "mi300x-192gb", "a100-sxm-80gb", "t4-16gb")
LAYOUTS = ((1.0, 1.0, 1.0, 0.0), (2.0, 1.0, 1.0, 0.0), (8.0, 1.0, 1.0, 1.0), (4.0, 2.0, 1.0, 0.0), (1.0, 1.0, 4.0, 1.0))
FP8 = Quantization(
    id="fp8",
    bits_per_weight=8.0,
    quantizes=("attention", "dense_mlp"),
    arithmetic="fp8",
    weight_only=False,
    quality_risk="low",
    made_by_engine=True,
)
MODELS = ("dense", "experts", "latent", "state", "encoder")


@cache
def architecture(name: str) -> Architecture:
    """Invented models of 8 billion parameters and up, one for each way of computing."""
    full = CacheLayers(kind="full", layers=32, kv_heads=8, elements_per_head=256, query_heads=32, score_dim=256)
    caches: dict[str, tuple[CacheLayers, ...]] = {
        "dense": (full,),
        "experts": (
            msgspec.structs.replace(full, layers=16),
            msgspec.structs.replace(full, layers=16, kind="sliding", window_tokens=128),
        ),
        "latent": (CacheLayers(kind="latent", layers=32, elements_per_head=576, query_heads=32, score_dim=320),),
        "state": (
            msgspec.structs.replace(full, layers=8),
            CacheLayers(kind="state", layers=24, state_bytes=3_207_168),
        ),
        "encoder": (),
    }
    sparse = name in {"experts", "latent"}
    return Architecture(
        model_type="invented",
        role="encoder" if name == "encoder" else "decoder",
        layers=32,
        hidden_size=4096,
        vocab_size=128_000,
        query_heads=32,
        kv_heads=8,
        max_position_embeddings=131_072,
        intermediate_size=14_336,
        parameters=ParameterCounts(
            embedding=524_288_000,
            lm_head=0 if name == "encoder" else 524_288_000,
            attention=1_342_177_280,
            dense_mlp=0 if sparse else 5_637_144_576,
            routed_experts=22_548_578_304 if sparse else 0,
            router=4_194_304 if sparse else 0,
            norms=266_240,
        ),
        cache=caches[name],
        dense_layers=0 if sparse else 32,
        moe_layers=32 if sparse else 0,
        experts=64 if sparse else 0,
        experts_per_token=4 if sparse else 0,
        moe_intermediate_size=896 if sparse else 0,
    )


@cache
def candidates(model: str, batched_tokens: float = 8192.0) -> tuple[Deployment, MemoryParts, Profile]:
    """Every card in every layout, as arrays."""
    cards = load_accelerators(DATA / "accelerators")
    rows = [(cards[name], layout) for name in CARDS for layout in LAYOUTS]
    classes = msgspec.structs.fields(ParameterCounts)
    deployment = Deployment(
        layout=Layout(*(np.array([layout[i] for _, layout in rows]) for i in range(4))),
        card=Card(
            usable_memory_bytes=np.array([float(card.usable_memory_bytes) for card, _ in rows]),
            bandwidth_bytes_per_s=np.array([card.memory_bandwidth_gb_per_s * 1e9 for card, _ in rows]),
            weight_flops_per_s=np.array(
                [card.dense_tflops.get("fp8", card.dense_tflops["fp16"]) * 1e12 for card, _ in rows]
            ),
            flops_per_s=np.array([card.dense_tflops["fp16"] * 1e12 for card, _ in rows]),
            link_bytes_per_s=np.array([card.interconnect.gb_per_s_per_direction * 1e9 for card, _ in rows]),
        ),
        precision=Precision(
            weight_bytes={
                field.name: 1.0 if field.name in {"attention", "dense_mlp", "routed_experts"} else 2.0  # type: ignore[misc]
                for field in classes
            },
            kv_bytes=2.0,
        ),
        settings=EngineSettings(
            memory_fraction=0.9,
            max_model_len=131_072.0,
            max_num_seqs=256.0,
            max_num_batched_tokens=batched_tokens,
            block_size=16.0,
        ),
    )
    parts = memory_parts(architecture(model), deployment, ENGINE)
    profile = stacked([profile_for(card, FP8, "vllm", "0.19.0", PROFILES) for card, _ in rows])
    return deployment, parts, profile


def shape_for(model: str, prompt: float | TokenLengths, output: float | TokenLengths) -> RequestShape:
    return request_shape(architecture(model), lengths(prompt), lengths(output))


def service_for(model: str, shape: RequestShape, *, cv2: float = 1.0, open_loop: bool = True) -> Serving:
    deployment, parts, profile = candidates(model)
    return serving(architecture(model), deployment, ENGINE, parts, profile, shape, cv2, open_loop=open_loop)


def values(service: Serving, point: OperatingPoint) -> list[Number]:
    found = [point.load.batch, point.load.rate, point.capacity, point.delays.queue_s, point.delays.own_mean_s]
    for level in LEVELS:
        first = ttft_s(service, point.load, point.delays, level)
        found += [first, tpot_s(point.delays, level), e2e_s(service.shape, point.delays, first, level)]
    return found


BOUNDS = (Bound(metric="ttft", level="p95", limit_s=1.0), Bound(metric="tpot", level="p95", limit_s=0.05))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("spread", [False, True])
def test_a_float_and_an_array_of_candidates_agree_to_the_bit(model: str, *, spread: bool) -> None:
    prompt = TokenLengths(mean=3000, p95=9000) if spread else 3000.0
    output = TokenLengths(mean=200, p95=500) if spread else 200.0
    shape = shape_for(model, prompt, output)
    many = service_for(model, shape)
    most = most_of(many, BOUNDS, UserTime())
    open_point = at_rate(many, np.full(len(CARDS) * len(LAYOUTS), 0.7))
    closed = msgspec.structs.replace(many, open_loop=False)
    closed_point, full_point = at_clients(closed, 40.0), at_ceiling(closed, 1e9)
    columns = [most.batch, most.rate, most.clients]
    columns += values(many, open_point) + values(closed, closed_point) + values(closed, full_point)
    deployment, parts, profile = candidates(model)
    for row in range(len(CARDS) * len(LAYOUTS)):
        one = serving(
            architecture(model), at(deployment, row), ENGINE, at(parts, row), at(profile, row), shape, open_loop=True
        )
        alone = msgspec.structs.replace(one, open_loop=False)
        single = most_of(one, BOUNDS, UserTime())
        numbers = [single.batch, single.rate, single.clients]
        numbers += values(one, at_rate(one, 0.7)) + values(alone, at_clients(alone, 40.0))
        numbers += values(alone, at_ceiling(alone, 1e9))
        expected = [np.broadcast_to(column, (len(CARDS) * len(LAYOUTS),))[row] for column in columns]
        assert [as_float(number) for number in numbers] == [float(value) for value in expected]


LENGTH = st.one_of(
    st.floats(1, 1e7),
    st.sampled_from([1.0, 2.0, 100.0, 131_072.0]),
    st.floats(1, 1e5).map(lambda m: TokenLengths(mean=m)),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(MODELS),
    prompt=LENGTH,
    output=LENGTH,
    rate=st.sampled_from([1e-6, 0.3, 50.0, 1e6]),
    cv2=st.sampled_from([0.0, 1.0, 900.0]),
    clients=st.sampled_from([1.0, 70.0, 1e7]),
)
def test_every_legal_input_gives_finite_numbers(  # noqa: PLR0913 - each an input
    model: str, prompt: float | TokenLengths, output: float | TokenLengths, rate: float, cv2: float, clients: float
) -> None:
    many = service_for(model, shape_for(model, prompt, output), cv2=cv2)
    closed = msgspec.structs.replace(many, open_loop=False)
    _, _, profile = candidates(model)
    most = most_of(many, BOUNDS, UserTime(overhead_s=1.0, calls=3.0))
    points = [(many, at_rate(many, rate)), (closed, at_clients(closed, clients)), (closed, at_ceiling(closed, clients))]
    for service, point in points:
        for number in values(service, point):
            assert np.isfinite(number).all()
            assert (np.asarray(number) >= 0.0).all()
        likely, safe = meets(service, point, BOUNDS, UserTime(), profile, rate)
        assert (np.asarray(likely) | ~np.asarray(safe)).all()
    assert np.isfinite(most.rate).all()
    assert (np.asarray(most.batch) <= np.asarray(many.limit.batch)).all()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(MODELS),
    prompt=st.floats(16, 40_000),
    output=st.floats(2, 4_000),
    shares=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)),
)
def test_rate_and_latency_grow_with_the_batch(
    model: str, prompt: float, output: float, shares: tuple[float, float]
) -> None:
    many = service_for(model, shape_for(model, prompt, output))
    low, high = (load_at(many, many.limit.batch * share) for share in sorted(shares))
    before, after = delays(many, low), delays(many, high)
    assert (np.asarray(high.rate) >= np.asarray(low.rate) * (1.0 - 1e-9)).all()
    assert (np.asarray(after.tpot_mean_s) >= np.asarray(before.tpot_mean_s) * (1.0 - 1e-9)).all()
    # More but smaller chunks overlap better in a pipeline, so there a prompt's own time may fall.
    single_stage = np.asarray(many.costs.stages) == 1.0
    for level in LEVELS:
        first, second = ttft_s(many, low, before, level), ttft_s(many, high, after, level)
        assert (np.asarray(second) >= np.asarray(first) * (1.0 - 1e-6))[single_stage].all(), level


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(MODELS),
    share=st.floats(0.02, 0.98),
    prompt=st.floats(16, 40_000),
    output=st.floats(2, 4_000),
)
def test_output_obeys_littles_law(model: str, share: float, prompt: float, output: float) -> None:
    many = service_for(model, shape_for(model, prompt, output))
    rate = np.asarray(rate_at(many, many.limit.batch)) * share
    batch = batch_for_rate(many, rate)
    assert np.allclose(rate_at(many, batch), rate, rtol=3e-3)
    steps = (
        np.asarray(rate) * many.shape.steps * np.asarray(many.costs.stages) * np.asarray(step_at(many, batch).mean_s)
    )
    assert np.allclose(steps, np.asarray(batch) * np.asarray(many.costs.ranks), rtol=3e-3)


@pytest.mark.parametrize("model", MODELS[:4])
def test_more_bandwidth_more_compute_and_a_faster_link_never_slow_a_step(model: str) -> None:
    deployment, parts, profile = candidates(model)
    shape = shape_for(model, 2000.0, 300.0)
    plain = serving(architecture(model), deployment, ENGINE, parts, profile, shape)
    for field in ("bandwidth_bytes_per_s", "flops_per_s", "weight_flops_per_s", "link_bytes_per_s"):
        faster = msgspec.structs.replace(deployment.card, **{field: 1.3 * getattr(deployment.card, field)})
        better = serving(
            architecture(model), msgspec.structs.replace(deployment, card=faster), ENGINE, parts, profile, shape
        )
        for batch in (1.0, 8.0, 64.0):
            assert (np.asarray(step_at(better, batch).mean_s) <= np.asarray(step_at(plain, batch).mean_s)).all(), field


@pytest.mark.parametrize("model", MODELS)
def test_longer_prompts_take_longer_to_first_token(model: str) -> None:
    before: Number = 0.0
    for tokens in (10.0, 500.0, 5_000.0, 50_000.0):
        service = service_for(model, shape_for(model, tokens, 100.0))
        parts = delays(service, load_at(service, 0.5))
        assert (np.asarray(parts.ttft_mean_s) > np.asarray(before)).all()
        before = parts.ttft_mean_s


def test_two_distributions_of_one_mean_have_two_percentiles() -> None:
    even = service_for("dense", shape_for("dense", 3000.0, 200.0))
    spread = service_for(
        "dense", shape_for("dense", TokenLengths(mean=3000, p95=9000), TokenLengths(mean=200, p95=600))
    )
    for service in (even, spread):
        assert service.shape.input.mean == pytest.approx(3000)
    firsts, ends = [], []
    for service in (even, spread):
        load = load_at(service, 2.0)
        parts = delays(service, load)
        first = ttft_s(service, load, parts, "p95")
        firsts.append(np.asarray(first))
        ends.append(np.asarray(e2e_s(service.shape, parts, first, "p95")))
    assert (firsts[1] > 1.3 * firsts[0]).all()
    assert (ends[1] > 1.5 * ends[0]).all()


def test_the_most_under_targets_meets_them_and_a_little_more_does_not() -> None:
    many = service_for("dense", shape_for("dense", 1000.0, 200.0))
    _, _, profile = candidates("dense")
    most = most_of(many, BOUNDS, UserTime())
    serves = np.asarray(most.rate) > 0.0
    assert serves.any()
    rate = np.where(serves, most.rate, 1.0)
    likely, _ = meets(many, at_rate(many, rate * 0.999), BOUNDS, UserTime(), profile, rate * 0.999)
    beyond, _ = meets(many, at_rate(many, rate * 1.02), BOUNDS, UserTime(), profile, rate * 1.02)
    assert np.asarray(likely)[serves].all()
    assert not np.asarray(beyond)[serves].any()


def test_waits_beyond_capacity_are_called_saturated() -> None:
    many = service_for("dense", shape_for("dense", 1000.0, 200.0))
    capacity = np.asarray(rate_at(many, many.limit.batch))
    assert np.asarray(at_rate(many, capacity * 1.01).saturated).all()
    assert not np.asarray(at_rate(many, capacity * 0.97).saturated).any()
    assert math.isclose(float(np.max(np.asarray(at_rate(many, capacity * 2.0).load.rate) / capacity)), 1.0)


@pytest.mark.parametrize("model", MODELS)
def test_one_client_meets_no_prompt_but_its_own(model: str) -> None:
    service = service_for(model, shape_for(model, 8000.0, 20.0), open_loop=False)
    alone = at_clients(service, 1.0)
    decode_s = alone.load.step.decode_s * service.costs.stages
    assert np.all(np.asarray(alone.delays.tpot_mean_s) <= np.asarray(decode_s) * 1.05)
