"""The work that a deployment is asked to do, in the form that performance is computed from."""

from typing import Annotated

import msgspec
from msgspec import Meta

from service.domain.architecture import Architecture
from service.domain.demand import Demand, demand, kind_of, token_lengths
from service.domain.engine import Speculative
from service.domain.lengths import Lengths
from service.domain.request_shape import RequestShape, request_shape
from service.domain.workload import Application, Kind, Targets, Traffic


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test or a peak that ends: above capacity its latencies are finite, and grow to its end."""

    requests: Annotated[float, Meta(ge=1, le=1e9, description="Requests sent.")] | None = None
    duration_s: (
        Annotated[float, Meta(gt=0, le=31_622_400, description="Time over which they are sent, seconds.")] | None
    ) = None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Demand, lengths and targets of a workload."""

    demand: Demand
    input: Lengths
    output: Lengths
    prefix_hit: float = 0.0
    kind: Kind = "interactive"
    targets: Targets | None = None
    application: Application | None = None
    run: Run | None = None
    batch_requests: float | None = None
    """Calls of the model in one run of a batch."""
    deadline_s: float | None = None

    @property
    def open_loop(self) -> bool:
        """Requests come at a rate of their own: neither a fixed number of clients nor a pile to work off."""
        return self.demand.loop == "open" and self.kind == "interactive"

    @property
    def arrival_cv2(self) -> float:
        """Squared coefficient of variation of the gaps between arrivals at the engine.

        Where completions make room for the next request, arrivals are as irregular as lengths are, at most random.
        """
        if self.open_loop:
            return self.demand.arrival_cv2
        return min(self.output.second_moment / (self.output.mean * self.output.mean) - 1.0, 1.0)


def work(
    traffic: Traffic,
    targets: Targets | None = None,
    application: Application | None = None,
    kind: Kind | None = None,
    run: Run | None = None,
) -> Work:
    """Normal form of a request's parts. Raises ``ImpossibleCombination`` as ``demand`` and ``token_lengths`` do."""
    prompt, output = token_lengths(traffic)
    calls = 1.0 if application is None else application.llm_calls_per_request
    return Work(
        demand=demand(traffic, calls),
        input=prompt,
        output=output,
        prefix_hit=traffic.prefix_cache_hit_rate,
        kind=kind_of(traffic, kind),
        targets=targets,
        application=application,
        run=run,
        batch_requests=None if traffic.batch is None else traffic.batch.requests * calls,
        deadline_s=None if traffic.batch is None else traffic.batch.deadline_s,
    )


def shape_of(
    asked: Work, architecture: Architecture, speculative: Speculative | None = None, *, prefix_caching: bool = True
) -> RequestShape:
    """Shape of the requests on an engine; the prefix hit counts only where the engine's prefix cache is on."""
    return request_shape(
        architecture,
        asked.input,
        asked.output,
        prefix_hit=asked.prefix_hit if prefix_caching else 0.0,
        draft_tokens=0.0 if speculative is None else float(speculative.tokens),
        acceptance_rate=None if speculative is None else speculative.acceptance_rate,
        draft_model=speculative is not None and speculative.draft_model is not None,
    )
