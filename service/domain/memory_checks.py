"""What can be short when a deployment starts, in the order in which an engine finds out; for one or for many."""

from typing import Literal, NamedTuple

from service.domain.architecture import Architecture
from service.domain.deployment import KvCapacity, MemoryParts
from service.domain.engine import EngineBehaviour
from service.domain.memory import Account
from service.domain.numeric import Flag, Number, greater, lesser

MemoryShortage = Literal[
    "weights_exceed_memory",
    "free_memory_below_budget",
    "no_room_for_kv",
    "context_does_not_fit",
    "out_of_memory_at_load",
]


class Check(NamedTuple):
    """One bound: broken where ``short``, ``value`` bytes being needed of ``limit``."""

    code: MemoryShortage
    short: Flag
    limit: Number
    value: Number


def memory_checks(
    architecture: Architecture, behaviour: EngineBehaviour, counted: Account, parts: MemoryParts, capacity: KvCapacity
) -> tuple[Check, ...]:
    """Weights against the card, the start-up check, room for the pool, one request of max_model_len, graphs and warm-up.

    The last two are vLLM's alone: other engines start, refuse long requests later and capture graphs before the pool or
    from what it leaves. Graph capture and the sampler's warm-up come after the pool is taken; the profiled activation
    peak is free again by then, blocks that the load left with the allocator are not.
    """
    free = parts.total - counted.at_start
    checks = [Check("weights_exceed_memory", counted.weights > free, free, counted.weights)]
    if behaviour.memory_rule == "utilization_of_total":
        checks.append(Check("free_memory_below_budget", parts.budget > free, free, parts.budget))
    if architecture.cache:
        checks.append(
            Check("no_room_for_kv", parts.kv_cache <= 0.0, parts.budget, parts.budget - lesser(parts.kv_cache, 0.0))
        )
    else:
        left = parts.unused + lesser(parts.kv_cache, 0.0)
        checks.append(Check("no_room_for_kv", left < 0.0, parts.total, parts.total - left))
    if behaviour.memory_rule == "utilization_of_total" and architecture.cache:
        needed = capacity.start_bytes
        checks.append(Check("context_does_not_fit", needed > parts.kv_cache, parts.kv_cache, needed))
    if behaviour.memory_rule == "utilization_of_total":
        left = free - counted.weights - counted.non_torch - greater(parts.kv_cache, 0.0)
        later = counted.graph + counted.warm_up + counted.fragments
        checks.append(Check("out_of_memory_at_load", later > left, left, later))
    return tuple(checks)
