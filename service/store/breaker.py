"""A circuit breaker: after some failures in a row nobody is kept waiting for a fault that is already known."""

import time
from collections.abc import Callable
from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Closed: calls pass. Open: they are refused. Half-open: one call passes per cool-down; its success closes.

    A probe whose caller is cancelled reports nothing; the next one is let through after another cool-down.
    """

    def __init__(
        self, *, failures_to_open: int, cooldown_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock`` gives seconds that never run backwards."""
        self._failures_to_open = failures_to_open
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._failures = 0
        self._probe_at = 0.0

    @property
    def state(self) -> State:
        """Where the breaker stands now."""
        if self._failures < self._failures_to_open:
            return "closed"
        return "half_open" if self._clock() >= self._probe_at else "open"

    def admits(self) -> bool:
        """Whether a call may be tried now; taking the half-open probe holds others back for a cool-down."""
        state = self.state
        if state == "half_open":
            self._probe_at = self._clock() + self._cooldown_s
        return state != "open"

    def succeeded(self) -> None:
        """Report a call that was answered."""
        self._failures = 0

    def failed(self) -> None:
        """Report a call that was not."""
        self._failures += 1
        self._probe_at = self._clock() + self._cooldown_s
