"""The breaker's states, on a clock of the test."""

import pytest

from service.store.breaker import Breaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(failures_to_open=2, cooldown_s=5.0, clock=clock)


def test_it_opens_after_failures_in_a_row_only(breaker: Breaker) -> None:
    for _ in range(3):
        breaker.failed()
        breaker.succeeded()
    assert breaker.state == "closed"
    breaker.failed()
    assert breaker.admits()
    breaker.failed()
    assert breaker.state == "open"
    assert not breaker.admits()


def test_one_probe_passes_per_cooldown_and_its_success_closes(breaker: Breaker, clock: Clock) -> None:
    breaker.failed()
    breaker.failed()
    clock.now += 5.0
    assert breaker.state == "half_open"
    assert breaker.admits()
    assert not breaker.admits(), "a second call passed beside the probe"
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.admits()


def test_a_failed_probe_opens_again_for_a_whole_cooldown(breaker: Breaker, clock: Clock) -> None:
    breaker.failed()
    breaker.failed()
    clock.now += 5.0
    assert breaker.admits()
    clock.now += 1.0
    breaker.failed()
    clock.now += 4.9
    assert not breaker.admits()
    clock.now += 0.1
    assert breaker.admits()


def test_a_probe_that_never_reports_does_not_lock_the_breaker(breaker: Breaker, clock: Clock) -> None:
    breaker.failed()
    breaker.failed()
    clock.now += 5.0
    assert breaker.admits()
    clock.now += 5.0
    assert breaker.admits()
