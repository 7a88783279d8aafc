"""A distribution carried as sixteen points: conditional means of fixed strata of probability, finer in the tail.

A formula is evaluated at each point; the weighted average of the results is their mean. The widths make the points of
strata 13 and 15 sit at probability 0.95 and 0.99, where latency targets are; sixteen equal strata would put both into
one point, 40 % off.
"""

STRATUM_WEIGHTS = (*(0.09,) * 10, 0.02, 0.02, 0.02, 0.025, 0.01, 0.005)
"""Probability of each stratum, from the lowest values to the highest; sums to 1."""
