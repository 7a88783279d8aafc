"""The Pareto front: options that no other option beats in every respect."""

import numpy as np

from service.domain.numeric import FloatArray


def pareto_front(costs: FloatArray) -> list[int]:
    """Rows of ``costs`` (shape ``(n, k)``, smaller is better) that no other row dominates, cheapest first.

    A row dominates another when it is nowhere worse and somewhere better; of equal rows the first stays.
    """
    order = np.lexsort(tuple(costs[:, column] for column in range(costs.shape[1] - 1, -1, -1)))
    kept: list[int] = []
    front = np.empty((0, costs.shape[1]))
    for row in order:
        candidate = costs[row]
        # Sorted by the first column, so only rows already kept can dominate (or equal) this one.
        if front.size and bool(np.any(np.all(front <= candidate, axis=1))):
            continue
        kept.append(int(row))
        front = np.vstack([front, candidate])
    return kept
