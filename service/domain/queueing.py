"""Waiting in queues, for one deployment or many: Little's law, one-server and many-server waits, and percentiles.

Every argument may be a float or an array of candidates; both give the same bits. A load at or above capacity has no
steady state: the result says ``saturated``, and its numbers are those just below capacity (finite, of no meaning).
"""

import msgspec
import numpy as np

from service.domain.numeric import Flag, Number, choose, clamp, exp, greater, sqrt
from service.domain.strata import STRATUM_WEIGHTS, Points

_FULLEST = 1.0 - 1e-9
"""Utilization at which the numbers of a saturated queue are given."""
_TINY = 1e-12
_CANCELS = 1e-6
"""Below this 1 - exp(-x) loses more digits than its first-order series."""
_HALVINGS = 30
"""Bisection steps inside one segment of the distribution: below 1e-9 of its width."""


class Wait(msgspec.Struct, frozen=True):
    """Time that a request waits for a server: 0 with probability 1 - ``probability``, else exponential.

    P(W > t) = probability x exp(-t / scale_s); exact for Poisson arrivals with exponential service, and in heavy load.
    """

    mean_s: Number
    probability: Number
    scale_s: Number
    """Mean wait of those who wait."""
    utilization: Number
    """Offered load over capacity; may exceed 1."""
    saturated: Flag


def in_progress(rate: Number, duration_s: Number) -> Number:
    """Mean number in progress at a rate and a mean duration (Little's law, L = lambda W)."""
    return rate * duration_s


def rate_of(number: Number, duration_s: Number) -> Number:
    """Rate at which a fixed number in progress completes (Little's law); ``duration_s`` > 0."""
    return number / duration_s


def single_server_wait(
    rate: Number, service_s: Number, service_second_moment: Number, arrival_cv2: Number = 1.0
) -> Wait:
    """Wait before one first-come-first-served server of general service time.

    Poisson arrivals (``arrival_cv2`` 1): Pollaczek-Khinchine, exact mean and probability. Other arrivals: Kingman's
    mean with the Kraemer and Langenbach-Belz factor below 1, and their probability of waiting (Whitt, "The Queueing
    Network Analyzer", 1983). ``service_second_moment`` is E[S²] in s², at least ``service_s`` squared.
    """
    utilization = in_progress(rate, service_s)
    load = clamp(utilization, 0.0, _FULLEST)
    service_cv2 = greater(service_second_moment / greater(service_s * service_s, _TINY * _TINY) - 1.0, 0.0)
    variability = arrival_cv2 + service_cv2
    gap = greater(1.0 - arrival_cv2, 0.0)
    smoothing = exp(-2.0 * (1.0 - load) * gap * gap / greater(3.0 * load * variability, _TINY))
    mean_s = load / (1.0 - load) * service_s * (variability / 2.0) * smoothing
    return _wait(mean_s, _probability(load, arrival_cv2, service_cv2), utilization)


def many_server_wait(
    rate: Number, service_s: Number, servers: Number, arrival_cv2: Number = 1.0, service_cv2: Number = 1.0
) -> Wait:
    """Wait before ``servers`` (>= 1) equal servers with one queue, as requests before an engine's running set.

    Allen-Cunneen's mean with Sakasegawa's approximation of the Erlang-C probability, load^(sqrt(2 (c + 1)) - 1)
    (Sakasegawa, "An approximation formula L_q = alpha rho^beta / (1 - rho)", 1977); exact for one server.
    """
    utilization = in_progress(rate, service_s) / servers
    load = clamp(utilization, 0.0, _FULLEST)
    exponent = sqrt(2.0 * (servers + 1.0)) - 1.0
    probability = exp(exponent * _log(greater(load, _TINY)))
    mean_s = probability * service_s / (servers * (1.0 - load)) * ((arrival_cv2 + service_cv2) / 2.0)
    return _wait(mean_s, probability, utilization)


def percentile_of_sum(points: Points, wait_probability: Number, wait_scale: Number, q: float) -> Number:
    """The q-quantile (0 < q < 1) of an independent sum: a distribution by strata plus an exponential wait.

    ``points`` are values at the strata (``strata.py``), ascending, >= 0; their distribution is linear between them at
    the strata's middle probabilities. The wait is 0 with probability 1 - ``wait_probability``, else exponential with
    mean ``wait_scale`` (same unit as ``points``). A forward recursion carries P(sum > t) from point to point, so the
    cost is one exponential a point and one a halving. The result is found to 1e-9 of a segment and grows with q.
    """
    excess = 1.0 - q
    scale = greater(wait_scale, _TINY)
    left = points[0]
    # Mass above and below ``left``, the latter discounted: E[exp(-(left - D) / scale); D <= left].
    above: Number = 1.0 - STRATUM_WEIGHTS[0] / 2.0
    carried: Number = STRATUM_WEIGHTS[0] / 2.0
    found = _Segment(left, 0.0 * scale, above, carried, 0.0)
    beyond: Flag = above + wait_probability * carried > excess
    for i in range(1, len(STRATUM_WEIGHTS)):
        mass = (STRATUM_WEIGHTS[i - 1] + STRATUM_WEIGHTS[i]) / 2.0
        width = greater(points[i] - left, 0.0)
        found = _Segment(
            choose(beyond, left, found.left),
            choose(beyond, width, found.width),
            choose(beyond, above, found.above),
            choose(beyond, carried, found.carried),
            choose(beyond, mass, found.mass),
        )
        carried = carried * exp(-width / scale) + mass * _mean_discount(greater(width, _TINY), width, scale)
        above = above - mass
        left = points[i]
        beyond = above + wait_probability * carried > excess
    inside = _solve(found, wait_probability, scale, excess)
    last = greater(wait_probability * (carried + above), 0.0)
    tail = left + scale * greater(_log(greater(last, _TINY) / excess), 0.0)
    return choose(beyond, tail, inside)


class _Segment(msgspec.Struct, frozen=True):
    """The stretch between two points in which a quantile lies."""

    left: Number
    width: Number
    above: Number
    carried: Number
    mass: Number


def _solve(segment: _Segment, wait_probability: Number, scale: Number, excess: float) -> Number:
    """Bisection for the smallest distance into the segment at which P(sum > t) is no more than ``excess``."""
    width = greater(segment.width, _TINY)
    low, high = 0.0 * segment.width, segment.width
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        waiting = segment.carried * exp(-middle / scale) + segment.mass * _mean_discount(middle, width, scale)
        exceeds = segment.above - segment.mass * (middle / width) + wait_probability * waiting > excess
        low = choose(exceeds, middle, low)
        high = choose(exceeds, high, middle)
    return segment.left + high


def _mean_discount(distance: Number, width: Number, scale: Number) -> Number:
    """Integral of exp(-y / scale) over 0..distance, divided by width; series form where it would cancel."""
    exact = scale * (1.0 - exp(-distance / scale))
    ratio = distance / scale
    return choose(ratio < _CANCELS, distance, exact) / greater(width, _TINY)


def _wait(mean_s: Number, probability: Number, utilization: Number) -> Wait:
    return Wait(
        mean_s=mean_s,
        probability=probability,
        scale_s=mean_s / greater(probability, _TINY),
        utilization=utilization,
        saturated=utilization >= 1.0,
    )


def _probability(load: Number, arrival_cv2: Number, service_cv2: Number) -> Number:
    """Probability that a single server is found busy (Kraemer and Langenbach-Belz; the load itself for Poisson)."""
    square = load * load
    smooth = (1.0 + arrival_cv2 + load * service_cv2) / (
        1.0 + load * (service_cv2 - 1.0) + square * (4.0 * arrival_cv2 + service_cv2)
    )
    bursty = 4.0 * load / greater(arrival_cv2 + square * (4.0 * arrival_cv2 + service_cv2), _TINY)
    factor = choose(arrival_cv2 <= 1.0, smooth, bursty)
    return clamp(load + (arrival_cv2 - 1.0) * load * (1.0 - load) * factor, 0.0, 1.0)


def _log(value: Number) -> Number:
    """Natural logarithm of a positive number; a float goes through the array loop, so that both agree to the bit."""
    return np.log(value) if isinstance(value, np.ndarray) else float(np.log(np.array([value]))[0])
