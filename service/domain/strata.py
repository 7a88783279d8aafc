"""A distribution carried as sixteen points: conditional means of fixed strata of probability, finer in the tail.

A formula is evaluated at each point (a float or an array of candidates a point); the weighted average of the results is
their mean, and their percentiles are read off the same results. The widths make the points of strata 13 and 15 sit at
probability 0.95 and 0.99, where latency targets are; sixteen equal strata would put both into one point, 40 % off.
"""

from collections.abc import Sequence

from service.domain.numeric import FloatArray, Number, choose, sqrt

STRATUM_WEIGHTS = (*(0.09,) * 10, 0.02, 0.02, 0.02, 0.025, 0.01, 0.005)
"""Probability of each stratum, from the lowest values to the highest; sums to 1."""
STRATA = len(STRATUM_WEIGHTS)

Points = Sequence[Number] | FloatArray
"""``STRATA`` ascending values: floats, arrays of shape (n,), or one array of shape (STRATA, n)."""


def average(points: Points) -> Number:
    """Mean of a quantity given at the strata."""
    total: Number = 0.0
    for weight, point in zip(STRATUM_WEIGHTS, points, strict=True):
        total = total + weight * point
    return total


def sum_of_independent(a: Points, b: Points) -> tuple[Number, ...]:
    """Points of the sum of two independent quantities.

    At each stratum the deviations from the means add as their squares do (exact for normal quantities, and where one
    of the two hardly varies); then all are shifted so that the mean is exact. Within 7 % at p50, p95 and p99 for
    log-normals of cv up to 2.
    """
    mean_a, mean_b = average(a), average(b)
    joint = []
    for point_a, point_b in zip(a, b, strict=True):
        squares = _signed_square(point_a - mean_a) + _signed_square(point_b - mean_b)
        joint.append(_signed_root(squares))
    shift = mean_a + mean_b - average(joint)
    return tuple(point + shift for point in joint)


def _signed_square(value: Number) -> Number:
    return value * _magnitude(value)


def _signed_root(value: Number) -> Number:
    root = sqrt(_magnitude(value))
    return choose(value < 0.0, -root, root)


def _magnitude(value: Number) -> Number:
    return choose(value < 0.0, -value, value)
