"""How many requests are in progress at once: the distribution of the number, not its mean alone.

With enough servers the number in progress is that of an infinite-server system: Poisson for Poisson arrivals whatever
the durations (M/G/infinity). Other arrivals spread it by the peakedness (variance over mean) of Whitt, "Heavy-traffic
approximations for service systems with blocking", 1984: z = 1 + (ca² - 1) E[min(S, S')] / E[S], S' being a second
duration. A number of mean m and peakedness z is Poisson (z = 1), negative binomial (z > 1) or binomial (z < 1).
"""

import math
from statistics import NormalDist

import numpy as np

EQUAL_DURATIONS = 1.0
"""E[min(S, S')] / E[S] where all requests last equally long; the spread of durations would lower it (1/2 for exponential
ones), and with it the effect of bursts."""
_STANDARD = NormalDist()
_WIDEST_WINDOW = 20_000
"""Counts summed for an exact quantile; wider distributions use the normal one corrected for skewness (within one of
the exact number where both were computed)."""


def peakedness(arrival_cv2: float) -> float:
    """Variance over mean of the number in progress, >= 0, where all requests last equally long.

    ``arrival_cv2``: squared coefficient of variation of the gaps between arrivals, >= 0.
    """
    return max(0.0, 1.0 + (arrival_cv2 - 1.0) * EQUAL_DURATIONS)


def number_quantiles(mean: float, peakedness: float, levels: tuple[float, ...]) -> tuple[int, ...]:
    """Smallest whole numbers that the number in progress stays at or below with each probability of ``levels``.

    ``mean`` >= 0 (below 1e19), 0 < level < 1. Exact for the distribution named by the module up to 20,000 counts of
    spread.
    """
    spread = math.sqrt(peakedness * mean)
    low = max(0, math.floor(mean - 9.0 * spread - 9.0))
    high = math.ceil(mean + 9.0 * spread + 25.0 * max(1.0, peakedness))
    if peakedness < 1.0:
        trials = math.ceil(mean / (1.0 - peakedness))
        if trials <= mean:
            return (trials,) * len(levels)
        high = min(high, trials)
    if high - low > _WIDEST_WINDOW:
        return tuple(_corrected_normal(mean, peakedness, level) for level in levels)
    distribution = _distribution(mean, peakedness, low, high)
    return tuple(min(high, low + int(np.searchsorted(distribution, level))) for level in levels)


def _distribution(mean: float, peakedness: float, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Cumulative probabilities of low..high, from the ratios p(k) / p(k - 1) = a + b / k of the three families."""
    counts = np.arange(low + 1, high + 1, dtype=np.float64)
    if peakedness < 1.0:
        trials = math.ceil(mean / (1.0 - peakedness))
        odds = mean / (trials - mean)
        ratios = odds * (trials + 1.0 - counts) / counts
    else:
        a = 1.0 - 1.0 / peakedness
        ratios = a + (mean / peakedness - a) / counts
    with np.errstate(divide="ignore"):
        logs = np.concatenate(([0.0], np.cumsum(np.log(np.maximum(ratios, 0.0)))))
    masses = np.exp(logs - logs.max())
    cumulative = np.cumsum(masses)
    return np.asarray(cumulative / cumulative[-1])


def _corrected_normal(mean: float, peakedness: float, level: float) -> int:
    """Cornish-Fisher with the skewness (2 z - 1) / sqrt(z m) that the three families share."""
    score = _STANDARD.inv_cdf(level)
    value = mean + score * math.sqrt(peakedness * mean) + (score * score - 1.0) * (2.0 * peakedness - 1.0) / 6.0
    return max(0, math.ceil(value - 0.5))
