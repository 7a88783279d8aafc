"""The Pareto front: options that no other option beats in every respect."""

import numpy as np

from service.domain.numeric import FloatArray


def pareto_front(costs: FloatArray) -> list[int]:
    """Rows of ``costs`` (shape ``(n, k)``, smaller is better) that no other row dominates, cheapest first.

    A row dominates another when it is nowhere worse and somewhere better; of equal rows the first stays.
    """
    order = np.lexsort(tuple(costs[:, column] for column in range(costs.shape[1] - 1, -1, -1)))
    kept: list[int] = []
    front: list[list[float]] = []
    for row, candidate in zip(order.tolist(), costs[order].tolist(), strict=True):
        # Sorted by the first column, so only rows already kept can dominate (or equal) this one.
        if any(all(a <= b for a, b in zip(other, candidate, strict=True)) for other in front):
            continue
        kept.append(row)
        front.append(candidate)
    return kept
