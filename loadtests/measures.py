"""What a run measures: the service and the no-op application by turns, each one worker, over the same bodies."""

import os
import statistics
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from loadtests.client import Answer
from loadtests.load import Phase, closed_loop, open_loop
from loadtests.scenario import Drawn, Ids, catalog_ids, catalogs_of, draw
from loadtests.worker import Worker

SERVICE, NOOP = "service.asgi:app", "loadtests.noop:app"
MEGA = 1e6


class Plan(NamedTuple):
    """How much a run does."""

    starts: int = 3
    """Starts of each application; the median counts."""
    rounds: int = 5
    """Turns of vram-budgets and no-op, each with bodies never sent before; the median ratio counts."""
    bodies: int = 1000
    """Distinct bodies of a turn, and of the recommendations."""
    slice: int = 100
    """Bodies sent to one application before the other has them, so that both see the same noise of the machine."""
    warm: int = 200
    """Requests before the clock runs."""
    paced: int = 1000
    """Requests of an open loop."""
    connections: int = 8
    """Of a closed loop that saturates the worker."""
    load_share: float = 0.5
    """Rate of the open loop, over what the closed loop reached."""


FULL = Plan()
QUICK = Plan(starts=1, rounds=1, bodies=20, slice=10, warm=2, paced=20, connections=2)


class RefusedError(Exception):
    """A scenario's request was not answered with 200."""


class _Answers:
    """What a phase's answers were: their sizes, and how many deployments start."""

    def __init__(self, requests: Sequence[Drawn]) -> None:
        self.requests = requests
        self.sizes = [0] * len(requests)
        self.starting = 0

    def see(self, position: int, answer: Answer) -> None:
        if answer.status != 200:  # noqa: PLR2004 - HTTP's own number
            drawn = self.requests[position]
            message = f"{drawn.path} answered {answer.status}: {drawn.body.decode()}\n{answer.body[:1000].decode()}"
            raise RefusedError(message)
        self.sizes[position] = len(answer.body)
        self.starting += answer.body.startswith(b'{"verdict":"starts"')

    def on_noop(self) -> list[bytes]:
        """Requests of the no-op with the same bodies, for answers of the same sizes."""
        pairs = zip(self.requests, self.sizes, strict=True)
        return [Drawn(f"/noop?answer_bytes={size}", drawn.body).request for drawn, size in pairs]


async def measure(plan: Plan) -> dict[str, Any]:
    """Run the plan; the result is JSON."""
    service_starts = [_start_s(SERVICE) for _ in range(plan.starts - 1)]
    noop_starts = [_start_s(NOOP) for _ in range(plan.starts - 1)]
    with Worker(SERVICE) as service, Worker(NOOP) as noop:
        service_starts.append(service.ready_s)
        noop_starts.append(noop.ready_s)
        ready_s, noop_ready_s = statistics.median(service_starts), statistics.median(noop_starts)
        started_bytes = service.resident_bytes()
        ids = await catalog_ids(
            service.port, catalogs_of("vram-budgets", "vram-budgets-anywhere", "recommendations", "mixed")
        )
        budgets = await _vram_budgets(plan, service, noop, ids)
        recommendations = await _recommendations(plan, service, noop, ids)
        mixed = draw("mixed", plan.paced, ids)
        rate = plan.load_share / (recommendations["mean_ms"] / 1e3 / 12 + 11 / 12 / budgets["requests_per_second"])
        mix = await _open(service, mixed, rate)
        return {
            "machine": {"cores": os.cpu_count(), "load_average": os.getloadavg()[0], "python": sys.version.split()[0]},
            "plan": plan._asdict(),
            "start": {
                "ready_s": round(ready_s, 3),
                "noop_ready_s": round(noop_ready_s, 3),
                "ready_over_noop": round(ready_s / noop_ready_s, 3),
            },
            "vram_budgets": budgets,
            "recommendations": recommendations,
            "mixed_open_loop": mix,
            "memory": {
                "resident_mb": round(service.resident_bytes() / MEGA, 1),
                "peak_mb": round(service.resident_bytes(peak=True) / MEGA, 1),
                "at_start_mb": round(started_bytes / MEGA, 1),
                "noop_resident_mb": round(noop.resident_bytes() / MEGA, 1),
            },
        }


def _start_s(application: str) -> float:
    with Worker(application) as worker:
        return worker.ready_s


async def _vram_budgets(plan: Plan, service: Worker, noop: Worker, ids: Ids) -> dict[str, Any]:
    drawn = draw("vram-budgets", plan.warm + plan.rounds * plan.bodies + plan.paced, ids)
    await _turn(plan, service, noop, drawn[: plan.warm])
    turns = [
        await _turn(plan, service, noop, drawn[start : start + plan.bodies])
        for start in range(plan.warm, plan.warm + plan.rounds * plan.bodies, plan.bodies)
    ]
    middle = sorted(turns, key=lambda turn: turn["rate_over_noop"])[len(turns) // 2]
    paced = await _open(service, drawn[-plan.paced :], plan.load_share * middle["requests_per_second"])
    anywhere = draw("vram-budgets-anywhere", plan.bodies, ids)
    return {
        **middle,
        "rounds": turns,
        "open_loop": paced,
        "anywhere": await _turn(plan, service, noop, anywhere),
    }


async def _turn(plan: Plan, service: Worker, noop: Worker, drawn: Sequence[Drawn]) -> dict[str, Any]:
    """The same bodies to the service and to the no-op, which answers as many bytes, slice by slice."""
    seconds = noop_seconds = cpu_s = noop_cpu_s = 0.0
    sizes: list[int] = []
    starting = 0
    for start in range(0, len(drawn), plan.slice):
        part = drawn[start : start + plan.slice]
        answers = _Answers(part)
        cpu_s -= service.cpu_s()
        asked = await closed_loop(service.port, [one.request for one in part], plan.connections, answers.see)
        cpu_s += service.cpu_s()
        noop_cpu_s -= noop.cpu_s()
        floor = await closed_loop(noop.port, answers.on_noop(), plan.connections)
        noop_cpu_s += noop.cpu_s()
        seconds, noop_seconds = seconds + asked.seconds, noop_seconds + floor.seconds
        sizes += answers.sizes
        starting += answers.starting
    count = len(drawn)
    return {
        "rate_over_noop": round(noop_seconds / seconds, 3),
        "requests_per_second": round(count / seconds, 1),
        "noop_requests_per_second": round(count / noop_seconds, 1),
        "worker_cpu_us": round(cpu_s / count * 1e6, 1),
        "noop_worker_cpu_us": round(noop_cpu_s / count * 1e6, 1),
        "distinct_bodies": len({one.body for one in drawn}),
        "starting_share": round(starting / count, 3),
        "mean_answer_bytes": round(statistics.fmean(sizes)),
    }


async def _recommendations(plan: Plan, service: Worker, noop: Worker, ids: Ids) -> dict[str, Any]:
    """One connection: what it waits for is the service time."""
    drawn = draw("recommendations", plan.warm // 10 + plan.bodies, ids)
    warm, timed = drawn[: plan.warm // 10 or 1], drawn[-plan.bodies :]
    await closed_loop(service.port, [one.request for one in warm], 1)
    answers = _Answers(timed)
    phase = await closed_loop(service.port, [one.request for one in timed], 1, answers.see)
    floor = await closed_loop(noop.port, [Drawn("/noop?answer_bytes=4000", one.body).request for one in timed], 1)
    return {
        **phase.figures(),
        "mean_ms": round(phase.seconds / phase.requests * 1e3, 3),
        "noop_p50_ms": round(floor.percentile_ms(50), 3),
        "median_over_noop": round(phase.percentile_ms(50) / floor.percentile_ms(50), 1),
        "distinct_bodies": len({one.body for one in timed}),
        "mean_answer_bytes": round(statistics.fmean(answers.sizes)),
    }


async def _open(service: Worker, drawn: Sequence[Drawn], per_second: float) -> dict[str, Any]:
    answers = _Answers(drawn)
    phase: Phase = await open_loop(service.port, [one.request for one in drawn], per_second, seed=1, seen=answers.see)
    return {"scheduled_per_second": round(per_second, 1), **phase.figures()}
