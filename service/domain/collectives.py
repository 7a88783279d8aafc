"""Time of the exchanges between the ranks of a deployment: all-reduce, pipeline hop, expert all-to-all.

All-reduce of b bytes over n ranks takes the shorter of two algorithms: one shot (each rank reads the other n - 1
buffers, used for the small messages of decode) and ring (2 (n - 1) / n of b over each link, plus its hops' latency).
"""

import msgspec

from service.domain.calibration import Profile
from service.domain.deployment import ACTIVATION_BYTES, Card, Layout
from service.domain.numeric import Number, choose, greater, lesser

RING_LATENCIES = 4.0
"""A ring's hops cost about this many shortest all-reduces: NCCL against one-shot in AIConfigurator's tables (H100,
16 KiB, 8 ranks: 17.8 us against 3.6; 4 ranks 11.3 against 3.3; 2 ranks 7.3 against 2.8)."""

UNSTATED_LINK_BYTES_PER_S = 12e9
"""Where a catalog states no link, ranks talk through the host: PCIe 3.0 x16 as NCCL reaches it."""

_TWO, _FOUR = 2.0, 4.0


class AllReduce(msgspec.Struct, frozen=True):
    """Constants of one all-reduce; zero for a single rank."""

    latency_s: Number
    one_shot_s_per_byte: Number
    ring_latency_s: Number
    ring_s_per_byte: Number


def link_bytes_per_s(card: Card) -> Number:
    """Peak of one card in one direction, or what the host's bus does where none is stated."""
    return choose(card.link_bytes_per_s > 0.0, card.link_bytes_per_s, UNSTATED_LINK_BYTES_PER_S)


def by_ranks(ranks: Number, two: Number, four: Number, eight: Number) -> Number:
    """A figure tabled for 2, 4 and 8 ranks, at the next larger count (8 for more)."""
    return choose(ranks > _FOUR, eight, choose(ranks > _TWO, four, two))


def link_share(ranks: Number, profile: Profile) -> Number:
    """Share of the link's peak that large exchanges of ``ranks`` reach."""
    return by_ranks(
        ranks,
        profile.allreduce_bandwidth_share_2,
        profile.allreduce_bandwidth_share_4,
        profile.allreduce_bandwidth_share_8,
    )


def link_latency_s(ranks: Number, profile: Profile) -> Number:
    """Shortest exchange of ``ranks``."""
    return by_ranks(ranks, profile.allreduce_latency_2_s, profile.allreduce_latency_4_s, profile.allreduce_latency_8_s)


def all_reduce(layout: Layout, card: Card, profile: Profile) -> AllReduce:
    """All-reduce over the tensor ranks."""
    ranks = layout.tensor
    several = choose(ranks > 1.0, 1.0, 0.0)
    latency = several * link_latency_s(ranks, profile)
    per_byte = several / (link_bytes_per_s(card) * link_share(ranks, profile))
    return AllReduce(
        latency_s=latency,
        one_shot_s_per_byte=(ranks - 1.0) * per_byte,
        ring_latency_s=RING_LATENCIES * latency,
        ring_s_per_byte=2.0 * (ranks - 1.0) / ranks * per_byte,
    )


def all_reduce_s(terms: AllReduce, message_bytes: Number) -> Number:
    """Seconds of one all-reduce of ``message_bytes`` (the tensor that each rank holds)."""
    one_shot = terms.one_shot_s_per_byte * message_bytes
    ring = terms.ring_latency_s + terms.ring_s_per_byte * message_bytes
    return terms.latency_s + lesser(one_shot, ring)


def hop_s_per_row(hidden_size: int, layout: Layout, card: Card, profile: Profile) -> Number:
    """Seconds that one row of hidden states takes to the next pipeline stage; 0 with one stage."""
    several = choose(layout.pipeline > 1.0, 1.0, 0.0)
    rate = link_bytes_per_s(card) * greater(profile.allreduce_bandwidth_share_2, 1e-3)
    return several * hidden_size * ACTIVATION_BYTES / rate
