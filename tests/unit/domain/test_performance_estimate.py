"""The performance estimate: what is null when, which load it settles at, what follows from what is asked."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import LLAMA_8B

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.profiles import load_profiles
from service.catalog.quantizations import load_quantizations
from service.domain.architecture import Architecture, ParameterCounts
from service.domain.assembly import assemble
from service.domain.calibration import profile_for
from service.domain.deployment import Layout
from service.domain.engine import EngineRequest, Speculative
from service.domain.lengths import TokenLengths
from service.domain.load_curve import FRACTIONS
from service.domain.performance import PerformanceEstimate, performance
from service.domain.verdict import weigh
from service.domain.work import Run, work
from service.domain.workload import Application, Batch, Constant, Gamma, PercentileTargets, Targets, Traffic

DATA = Path("service/catalog/data")
CARDS = load_accelerators(DATA / "accelerators")
FORMATS = load_quantizations(DATA / "quantizations.json")
ENGINE = behaviour(load_engines(DATA / "engines")["vllm"], "0.19.0")
PROFILES = load_profiles(DATA / "profiles")
BERT = msgspec.structs.replace(
    LLAMA_8B,
    model_type="bert",
    role="encoder",
    layers=24,
    hidden_size=1024,
    query_heads=16,
    kv_heads=16,
    max_position_embeddings=512,
    intermediate_size=4096,
    parameters=ParameterCounts(embedding=31_000_000, attention=101_000_000, dense_mlp=202_000_000, norms=100_000),
    cache=(),
    dense_layers=24,
)


def estimate(
    traffic: Traffic,
    *,
    card: str = "h100-sxm-80gb",
    tensor: float = 1.0,
    model: Architecture = LLAMA_8B,
    engine: dict[str, Any] | None = None,
    **asked: Any,  # noqa: ANN401 - parts of the work, each of its own type
) -> PerformanceEstimate:
    request = EngineRequest(name="vllm", **({"max_model_len": 8192} | (engine or {})))
    weights = FORMATS["bf16"]
    subject, _ = assemble("m", model, CARDS[card], Layout(tensor=tensor), weights, weights, ENGINE, request)
    profile = profile_for(CARDS[card], weights, "vllm", "0.19.0", PROFILES)
    return performance(subject, weigh(subject), profile, work(traffic, **asked), request.speculative)


def at(rate: float, prompt: float | TokenLengths = 1000, output: float | TokenLengths = 200, **more: Any) -> Traffic:  # noqa: ANN401
    return Traffic(requests_per_second=rate, input_tokens=prompt, output_tokens=output, **more)


def test_a_single_stream_reads_the_weights_once_per_token() -> None:
    answer = estimate(at(0.01, 100, 100))
    assert answer.single_stream is not None
    read_ms = 15.0e9 / 3.35e12 * 1e3
    assert read_ms < answer.single_stream.tpot_ms < 2.0 * read_ms


def test_what_does_not_fit_has_no_numbers() -> None:
    answer = estimate(at(1), card="rtx-4070-12gb")
    assert answer.verdict == "does_not_fit"
    assert answer.reason_code is not None
    assert answer.bottleneck in {"weights_memory", "kv_capacity"}
    for value in (answer.ttft_ms, answer.tpot_ms, answer.e2e_ms, answer.throughput, answer.single_stream):
        assert value is None
    assert answer.max_requests_per_second is None
    assert answer.curve == ()


def test_a_card_without_compute_figures_has_no_estimate() -> None:
    answer = estimate(at(1), card="mi308x-192gb", engine={"max_model_len": 4096})
    assert answer.reason_code == "performance_unknown"
    assert answer.ttft_ms is None


def test_below_capacity_the_rate_is_served() -> None:
    answer = estimate(at(5))
    assert not answer.saturated
    assert answer.throughput is not None
    assert answer.throughput.requests_per_second == 5.0
    assert answer.throughput.output_tokens_per_second == 1000.0
    assert answer.throughput.total_tokens_per_second == 6000.0
    assert answer.throughput.output_tokens_per_second_per_user < 200.0
    assert answer.max_requests_per_second is not None
    assert answer.max_requests_per_second > 5.0


def test_percentiles_are_in_order_and_the_breakdown_adds_up() -> None:
    answer = estimate(at(8, TokenLengths(mean=1000, p95=3000), TokenLengths(mean=200, p95=600)))
    assert answer.ttft_ms is not None
    assert answer.tpot_ms is not None
    assert answer.e2e_ms is not None
    assert answer.ttft_breakdown is not None
    for values in (answer.ttft_ms, answer.tpot_ms, answer.e2e_ms):
        assert values.p50 <= values.p95 <= values.p99
        assert values.intervals["p95"].low < values.p95 < values.intervals["p95"].high
        assert values.intervals["p95"].confidence == 0.9
    parts = answer.ttft_breakdown
    assert parts.queue_ms + parts.prefill_ms + parts.host_ms == pytest.approx(answer.ttft_ms.mean)


def test_above_capacity_latency_is_null_and_the_rest_is_at_capacity() -> None:
    full = estimate(at(5)).max_requests_per_second
    assert full is not None
    answer = estimate(at(3 * full))
    assert answer.saturated
    assert answer.bottleneck == "queue"
    assert answer.ttft_ms is None
    assert answer.e2e_ms is None
    assert answer.ttft_breakdown is None
    assert answer.tpot_ms is not None
    assert answer.throughput is not None
    assert answer.throughput.requests_per_second == pytest.approx(full)


def test_a_run_that_ends_has_latencies_above_capacity_that_grow_with_it() -> None:
    full = estimate(at(5)).max_requests_per_second
    assert full is not None
    short = estimate(at(2 * full), run=Run(duration_s=60))
    long = estimate(at(2 * full), run=Run(duration_s=600))
    counted = estimate(at(2 * full), run=Run(requests=2 * full * 60))
    assert short.ttft_ms is not None
    assert long.ttft_ms is not None
    assert counted.ttft_ms is not None
    assert short.saturated
    assert short.bottleneck == "queue"
    # Twice the capacity: the last request of a minute waits for a minute's backlog.
    assert short.ttft_ms.p99 == pytest.approx(60_000, rel=0.1)
    assert long.ttft_ms.mean > 8 * short.ttft_ms.mean
    assert counted.ttft_ms.mean == pytest.approx(short.ttft_ms.mean)


def test_a_closed_loop_keeps_its_clients_busy() -> None:
    answer = estimate(Traffic(concurrent_requests=32, input_tokens=500, output_tokens=300))
    assert answer.active_requests == pytest.approx(32, rel=0.03)
    assert answer.running_requests is not None
    assert 25 < answer.running_requests <= 32


def test_past_saturation_a_closed_loop_queues_linearly() -> None:
    """As a served 70B did: 0.538 s more TTFT per client beyond the running set, the inverse of its rate."""
    limit = {"max_num_seqs": 64}
    some = estimate(Traffic(concurrent_requests=200, input_tokens=500, output_tokens=300), engine=limit)
    more = estimate(Traffic(concurrent_requests=300, input_tokens=500, output_tokens=300), engine=limit)
    assert some.saturated
    assert some.bottleneck == "scheduler"
    assert some.ttft_ms is not None
    assert more.ttft_ms is not None
    assert some.throughput is not None
    assert more.throughput is not None
    assert more.throughput.requests_per_second == some.throughput.requests_per_second
    slope_s = (more.ttft_ms.mean - some.ttft_ms.mean) / 1e3 / 100
    assert slope_s == pytest.approx(1.0 / some.throughput.requests_per_second, rel=1e-6)
    assert some.active_requests == pytest.approx(200, rel=0.01)


def test_cache_room_bounds_long_contexts() -> None:
    answer = estimate(
        Traffic(concurrent_requests=200, input_tokens=30_000, output_tokens=2_000), engine={"max_model_len": 40_000}
    )
    assert answer.saturated
    assert answer.bottleneck == "kv_capacity"


def test_a_batch_is_worked_off_at_full_load() -> None:
    pile = Traffic(batch=Batch(requests=100_000, deadline_s=86_400), input_tokens=1000, output_tokens=200)
    answer = estimate(pile)
    assert answer.batch is not None
    assert answer.throughput is not None
    assert answer.batch.duration_s == pytest.approx(100_000 / answer.throughput.requests_per_second)
    assert answer.batch.meets_deadline
    assert not answer.saturated
    tight = estimate(Traffic(batch=Batch(requests=100_000, deadline_s=60), input_tokens=1000, output_tokens=200))
    assert tight.batch is not None
    assert not tight.batch.meets_deadline
    assert tight.saturated


def test_targets_lower_the_most_that_is_carried() -> None:
    free = estimate(at(1)).max_requests_per_second
    held = estimate(at(1), targets=Targets(tpot_ms=PercentileTargets(p95=12.0))).max_requests_per_second
    impossible = estimate(at(1), targets=Targets(ttft_ms=PercentileTargets(p95=1.0))).max_requests_per_second
    assert free is not None
    assert held is not None
    assert 0.0 < held < free
    assert impossible == 0.0


def test_burstier_arrivals_wait_longer() -> None:
    means = []
    for arrivals in (Constant(), None, Gamma(cv=4.0)):
        answer = estimate(at(18, 2000, 50, arrivals=arrivals))
        assert answer.ttft_ms is not None
        means.append(answer.ttft_ms.mean)
    assert means[0] < means[1] < means[2]


def test_prefix_hits_and_short_prompts_save_prefill() -> None:
    plain, cached = estimate(at(5, 4000)), estimate(at(5, 4000, prefix_cache_hit_rate=0.8))
    off = estimate(at(5, 4000, prefix_cache_hit_rate=0.8), engine={"prefix_caching": False})
    assert plain.single_stream is not None
    assert cached.single_stream is not None
    assert off.single_stream is not None
    assert cached.single_stream.ttft_ms < 0.5 * plain.single_stream.ttft_ms
    assert off.single_stream.ttft_ms == plain.single_stream.ttft_ms


def test_speculation_gives_more_than_one_token_a_step() -> None:
    plain = estimate(at(0.1))
    guessed = estimate(at(0.1), engine={"speculative": Speculative(method="ngram", tokens=3, acceptance_rate=0.8)})
    assert plain.single_stream is not None
    assert guessed.single_stream is not None
    gain = plain.single_stream.tpot_ms / guessed.single_stream.tpot_ms
    assert 2.0 < gain < (1 - 0.8**4) / 0.2


def test_an_encoder_only_reads() -> None:
    answer = estimate(at(20, 256, 1), model=BERT, engine={"max_model_len": 512})
    assert answer.verdict == "starts"
    assert answer.tpot_ms is None
    assert answer.throughput is not None
    assert answer.throughput.output_tokens_per_second == 0.0
    assert answer.throughput.total_tokens_per_second == 20 * 256
    assert answer.ttft_ms is not None
    assert answer.e2e_ms is not None
    assert answer.e2e_ms.mean == pytest.approx(answer.ttft_ms.mean)


def test_the_application_adds_to_what_the_user_sees() -> None:
    application = Application(retrieval_ms=150, network_rtt_ms=30, llm_calls_per_request=3)
    answer = estimate(at(1), application=application)
    plain = estimate(at(3))
    assert plain.user_visible is None
    assert answer.ttft_ms is not None
    assert answer.e2e_ms is not None
    assert answer.user_visible is not None
    seen = answer.user_visible
    assert seen.ttft_ms is not None
    assert seen.e2e_ms is not None
    # Three calls of one request load the engine as three requests do.
    assert answer.throughput == plain.throughput
    assert seen.e2e_ms.mean == pytest.approx(180 + 3 * answer.e2e_ms.mean)
    assert seen.ttft_ms.mean == pytest.approx(180 + 2 * answer.e2e_ms.mean + answer.ttft_ms.mean)


def test_the_curve_rises() -> None:
    curve = estimate(at(1)).curve
    assert len(curve) == len(FRACTIONS)
    for name in ("requests_per_second", "concurrency", "ttft_ms_p95", "tpot_ms_p95", "output_tokens_per_second"):
        values = [getattr(point, name) for point in curve]
        assert values == sorted(values), name


def test_more_cards_are_faster_but_not_in_proportion() -> None:
    one, two = estimate(at(1)), estimate(at(1), tensor=2.0)
    assert one.single_stream is not None
    assert two.single_stream is not None
    assert 1.0 < one.single_stream.tpot_ms / two.single_stream.tpot_ms < 2.0
