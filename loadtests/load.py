"""Two ways to send requests: as fast as answers come (closed loop), or at times fixed in advance (open loop).

In the open loop a latency counts from the scheduled time, so that a request which waits behind a slow one is as late as
its sender would see it. Both are bounded: by the number of requests given and by ``LONGEST_PHASE_S``.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from loadtests.client import Answer, connect

LONGEST_PHASE_S = 120.0
"""A phase that takes longer is given up."""
MOST_REQUESTS = 100_000
OPEN_LOOP_CONNECTIONS = 64

Seen = Callable[[int, Answer], None]
"""Called with the position of a request and its answer."""


class Phase(NamedTuple):
    """What a phase of load measured."""

    seconds: float
    latencies_ms: list[float]
    """Ascending."""
    statuses: dict[int, int]

    @property
    def requests(self) -> int:
        """Answers received."""
        return len(self.latencies_ms)

    @property
    def per_second(self) -> float:
        """Answers per second."""
        return self.requests / self.seconds

    def percentile_ms(self, percent: float) -> float:
        """Latency that ``percent`` of the requests do not exceed (nearest rank)."""
        rank = max(0, min(self.requests - 1, round(percent / 100.0 * self.requests + 0.5) - 1))
        return self.latencies_ms[rank]

    def figures(self) -> dict[str, object]:
        """The phase as JSON."""
        percentiles = {f"p{percent}_ms": round(self.percentile_ms(percent), 3) for percent in (50, 90, 99)}
        return {
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "requests_per_second": round(self.per_second, 1),
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            **percentiles,
            "max_ms": round(self.latencies_ms[-1], 3),
        }


async def closed_loop(port: int, requests: Sequence[bytes], connections: int, seen: Seen | None = None) -> Phase:
    """Send each request once; every connection sends the next as soon as it has its answer."""
    queue = iter(enumerate(requests))
    return await _run(port, queue, requests, min(connections, len(requests)), seen)


async def open_loop(
    port: int, requests: Sequence[bytes], per_second: float, seed: int, seen: Seen | None = None
) -> Phase:
    """Send each request once at its scheduled time (Poisson arrivals), whatever the server does."""
    draw = random.Random(seed)  # noqa: S311 - a schedule, no secret
    at, schedule = 0.0, []
    for _ in requests:
        at += draw.expovariate(per_second)
        schedule.append(at)
    queue = iter(enumerate(requests))
    return await _run(port, queue, requests, min(OPEN_LOOP_CONNECTIONS, len(requests)), seen, schedule)


async def _run(  # noqa: PLR0913 - one phase
    port: int,
    queue: Iterator[tuple[int, bytes]],
    requests: Sequence[bytes],
    connections: int,
    seen: Seen | None,
    schedule: Sequence[float] | None = None,
) -> Phase:
    if not 0 < len(requests) <= MOST_REQUESTS:
        message = f"{len(requests)} requests: a phase has 1 to {MOST_REQUESTS}"
        raise ValueError(message)
    latencies_ms: list[float] = []
    statuses: Counter[int] = Counter()
    opened = [await connect(port) for _ in range(connections)]
    started = time.perf_counter()

    async def work(place: int) -> None:
        connection = opened[place]
        # Connections take turns along the schedule: the next free one waits for the next arrival.
        for position, request in queue:
            due = time.perf_counter()
            if schedule is not None:
                due = started + schedule[position]
                if (early := due - time.perf_counter()) > 0.0:
                    await asyncio.sleep(early)
            answer = await connection.exchange(request)
            latencies_ms.append((time.perf_counter() - due) * 1e3)
            statuses[answer.status] += 1
            if seen is not None:
                seen(position, answer)

    try:
        async with asyncio.timeout(LONGEST_PHASE_S), asyncio.TaskGroup() as group:
            for place in range(connections):
                group.create_task(work(place))
        seconds = time.perf_counter() - started
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        for connection in opened:
            connection.close()
    return Phase(seconds, sorted(latencies_ms), dict(statuses))
