"""Waiting in queues, for one deployment or many: Little's law, one-server and many-server waits.

Every argument may be a float or an array of candidates; both give the same bits. A load at or above capacity has no
steady state: the result says ``saturated``, and its numbers are those just below capacity (finite, of no meaning).
"""

import msgspec

from service.domain.numeric import Flag, Number, choose, clamp, exp, greater, log, sqrt

_FULLEST = 1.0 - 1e-9
"""Utilization at which the numbers of a saturated queue are given."""
_TINY = 1e-12


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
    probability = exp(exponent * log(greater(load, _TINY)))
    mean_s = probability * service_s / (servers * (1.0 - load)) * ((arrival_cv2 + service_cv2) / 2.0)
    return _wait(mean_s, probability, utilization)


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
