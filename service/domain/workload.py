"""The load that a caller describes: traffic, latency targets, the application around the model (also on the wire)."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.domain.lengths import TokenCount
from service.domain.member_rules import exactly_one, given

Kind = Literal["interactive", "batch"]
"""interactive: people wait for tokens; batch: throughput and the deadline matter, time to first token does not."""

Milliseconds = Annotated[float, Meta(ge=0, le=3_600_000)]
TargetMs = Annotated[float, Meta(ge=1e-6, le=1_000_000_000)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Users(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """People who use the application: `registered` with `active_share_at_peak`, or `active_at_peak`.

    Registered users are not concurrent requests: only the active send any, each at `requests_per_active_user_hour`.
    """

    registered: Annotated[float, Meta(ge=1, le=1e10, description="Everyone who has an account.")] | None = None
    active_share_at_peak: (
        Annotated[float, Meta(ge=1e-6, le=1, description="Share of the registered at work in the busiest hour.")] | None
    ) = None
    active_at_peak: Annotated[float, Meta(ge=1, le=1e9, description="People at work in the busiest hour.")] | None = (
        None
    )
    requests_per_active_user_hour: Annotated[
        float, Meta(ge=0.001, le=36_000, description="Requests that one active user sends in an hour.")
    ]


_USERS_RULE = {
    "oneOf": [
        given("registered", "active_share_at_peak", without=("active_at_peak",)),
        given("active_at_peak", without=("registered", "active_share_at_peak")),
        {"type": "null"},
    ]
}


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pile of requests to finish by a deadline."""

    requests: Annotated[float, Meta(ge=1, le=1e12, description="Requests of one run.")]
    deadline_s: Annotated[float, Meta(ge=1, le=31_622_400, description="Time that one run may take, seconds.")]
    runs_per_month: (
        Annotated[float, Meta(ge=0.01, le=50_000, description="Runs in a month of 730 hours; by default 30.")] | None
    ) = None


class Poisson(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="process", tag="poisson"
):
    """Independent arrivals of many users; the gaps have a coefficient of variation of 1."""

    cv: Annotated[float, Meta(ge=1, le=1)] = 1.0


class Gamma(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="process", tag="gamma"):
    """Gamma-distributed gaps between arrivals: above a `cv` of 1 they come in bursts, below they are paced."""

    cv: Annotated[float, Meta(ge=0, le=30, description="Standard deviation over mean of the gaps.")] = 1.0


class Constant(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="process", tag="constant"
):
    """Arrivals at equal gaps."""

    cv: Annotated[float, Meta(ge=0, le=0)] = 0.0


_PROFILE_LENGTHS = {"anyOf": [{"minItems": 24, "maxItems": 24}, {"minItems": 168, "maxItems": 168}]}
HourlyProfile = Annotated[
    tuple[Share, ...],
    Meta(
        min_length=24,
        max_length=168,
        extra_json_schema=_PROFILE_LENGTHS,
        description="Load of each hour of a day (24) or week (168) as a multiplier of the peak.",
    ),
]


class Traffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requests to serve; exactly one of the first four says how many."""

    requests_per_second: (
        Annotated[float, Meta(ge=1e-6, le=1e6, description="Requests per second at the peak.")] | None
    ) = None
    concurrent_requests: (
        Annotated[
            float,
            Meta(ge=0.01, le=1e7, description="Requests always in progress: each answer is followed by a request."),
        ]
        | None
    ) = None
    users: Annotated[Users | None, Meta(extra_json_schema=_USERS_RULE)] = None
    batch: Batch | None = None
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    arrivals: Annotated[
        Poisson | Gamma | Constant | None,
        Meta(description="How requests arrive, by default Poisson; without effect on concurrent requests and batches."),
    ] = None
    burst_factor: Annotated[float, Meta(ge=1, le=100, description="Capacity is planned for the peak times this.")] = 1.0
    prefix_cache_hit_rate: Annotated[
        Share, Meta(description="Share of the input tokens whose KV entries are found in the prefix cache.")
    ] = 0.0
    hourly_profile: HourlyProfile | None = None


class PercentileTargets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Upper bounds in milliseconds, at least one."""

    p50: TargetMs | None = None
    p95: TargetMs | None = None
    p99: TargetMs | None = None
    mean: TargetMs | None = None


BoundsMs = Annotated[PercentileTargets | None, Meta(extra_json_schema={"minProperties": 1})]


class Targets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold at the peak. `ttft_ms` and `tpot_ms` are at the engine's door; `e2e_ms` is what the user sees."""

    ttft_ms: Annotated[BoundsMs, Meta(description="Time to the first token.")] = None
    tpot_ms: Annotated[BoundsMs, Meta(description="Time per output token after the first.")] = None
    e2e_ms: Annotated[
        BoundsMs, Meta(description="From the user's request to the last token, application included.")
    ] = None
    availability: (
        Annotated[float, Meta(ge=0.5, le=0.9999999, description="Share of time with enough replicas.")] | None
    ) = None


class Application(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time that the application adds around the model, and how often a user's request calls the model."""

    retrieval_ms: Milliseconds = 0.0
    tool_calls_ms: Milliseconds = 0.0
    prompt_build_ms: Milliseconds = 0.0
    network_rtt_ms: Milliseconds = 0.0
    gateway_ms: Milliseconds = 0.0
    llm_calls_per_request: Annotated[
        float, Meta(ge=1, le=1_000, description="Calls of the model, one after the other, for one request of a user.")
    ] = 1.0
    users_region: Annotated[str, Meta(min_length=1, max_length=64, description="Where most users are.")] | None = None

    @property
    def overhead_ms(self) -> float:
        """Time outside of the engine for one user's request, milliseconds."""
        return self.retrieval_ms + self.tool_calls_ms + self.prompt_build_ms + self.network_rtt_ms + self.gateway_ms


_TRAFFIC_RULE = exactly_one(("requests_per_second",), ("concurrent_requests",), ("users",), ("batch",))
TrafficShape = Annotated[Traffic, Meta(extra_json_schema=_TRAFFIC_RULE)]
"""Traffic as a request part where token counts may be left out."""
SizedTraffic = Annotated[Traffic, Meta(extra_json_schema=_TRAFFIC_RULE | given("input_tokens", "output_tokens"))]
"""Traffic as a request part where token counts are needed."""
