"""Waits against closed forms and against simulated queues."""

import math

import numpy as np
import pytest

from service.domain.queueing import (
    in_progress,
    many_server_wait,
    rate_of,
    single_server_wait,
)


def simulated_waits(gaps: np.ndarray, services: np.ndarray) -> np.ndarray:
    """Waits before one server by Lindley's recursion, in closed form over the running minimum."""
    steps = services[:-1] - gaps[1:]
    walk = np.concatenate(([0.0], np.cumsum(steps)))
    return walk - np.minimum.accumulate(walk)


def test_littles_law_both_ways() -> None:
    assert in_progress(2.0, 8.0) == 16.0
    assert rate_of(16.0, 8.0) == 2.0


def test_mm1_is_exact() -> None:
    wait = single_server_wait(0.8, 1.0, 2.0)
    assert wait.mean_s == pytest.approx(4.0)
    assert wait.probability == pytest.approx(0.8)
    assert wait.scale_s == pytest.approx(5.0)
    assert not wait.saturated


def test_md1_waits_half_of_mm1() -> None:
    assert single_server_wait(0.8, 1.0, 1.0).mean_s == pytest.approx(2.0)


def test_constant_arrivals_and_service_never_wait() -> None:
    wait = single_server_wait(0.9, 1.0, 1.0, arrival_cv2=0.0)
    assert wait.mean_s == 0.0
    assert wait.probability == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("arrival_cv", [0.5, 1.0, 2.0])
def test_single_server_wait_is_near_a_simulated_queue(arrival_cv: float) -> None:
    rng = np.random.default_rng(3)
    n = 1_000_000
    shape = 1.0 / arrival_cv**2
    gaps = rng.gamma(shape, 1.0 / shape, n) / 0.8
    services = np.exp(0.5 * rng.standard_normal(n) - 0.125)
    simulated = simulated_waits(gaps, services)
    wait = single_server_wait(0.8, 1.0, math.exp(0.25), arrival_cv**2)
    assert wait.mean_s == pytest.approx(simulated.mean(), rel=0.15)
    assert wait.probability == pytest.approx((simulated > 0).mean(), abs=0.06)
    p95 = wait.scale_s * math.log(wait.probability / 0.05)
    assert p95 == pytest.approx(np.quantile(simulated, 0.95), rel=0.15)


def test_one_of_many_servers_is_mm1() -> None:
    assert many_server_wait(0.8, 1.0, 1.0).mean_s == pytest.approx(4.0)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.7), (8, 0.8), (32, 0.9), (256, 0.97)])
def test_many_server_wait_is_near_erlang_c(servers: int, load: float) -> None:
    offered = servers * load
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = offered * blocking / (k + offered * blocking)
    erlang_c = blocking / (1.0 - load * (1.0 - blocking))
    wait = many_server_wait(offered, 1.0, float(servers))
    assert wait.probability == pytest.approx(erlang_c, abs=0.06)
    assert wait.mean_s == pytest.approx(erlang_c / (servers * (1.0 - load)), rel=0.15)


@pytest.mark.parametrize("rate", [1.0, 1.0000001, 50.0, 1e9])
def test_saturation_is_said_and_stays_finite(rate: float) -> None:
    for wait in (single_server_wait(rate, 1.0, 2.0), many_server_wait(rate * 4.0, 1.0, 4.0)):
        assert wait.saturated
        assert math.isfinite(wait.mean_s)
        assert math.isfinite(wait.scale_s)
        assert wait.utilization >= 1.0


def test_no_traffic_never_waits() -> None:
    wait = single_server_wait(0.0, 1.0, 2.0)
    assert (wait.mean_s, wait.probability) == (0.0, 0.0)
    assert many_server_wait(0.0, 1.0, 8.0).mean_s == pytest.approx(0.0)
