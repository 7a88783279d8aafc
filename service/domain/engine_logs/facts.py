"""What a start-up log states: how the engine was launched, what it printed, how the start ended.

Only figures, known flags and names cut to a safe alphabet get in here: nothing else of a log leaves the parsers.
"""

from typing import Literal

import msgspec

from service.domain.engine import EngineName

Setting = int | float | bool

FailureCode = Literal[
    "free_memory_below_budget",
    "no_room_for_kv",
    "context_does_not_fit",
    "out_of_memory",
    "out_of_memory_at_warm_up",
]
"""out_of_memory: an allocation failed, while loading or later. out_of_memory_at_warm_up: the sampler's dummy run did.
The others are named as in a VRAM budget."""

Mark = Literal[
    "unit_gb",
    "several_starts",
    "graphs_in_budget",
    "graphs_beside_budget",
    "padded_groups",
    "fixed_pool",
    "lora",
    "draft_model",
    "weights_with_libraries",
]
"""unit_gb: sizes are printed in GB and are GiB. several_starts: the last of them is read. graphs_in_budget,
graphs_beside_budget: the log says whether the CUDA graph estimate is taken off the pool. padded_groups: layers of unequal
kinds share blocks, some of them padded. fixed_pool: the pool's size was given. lora, draft_model: adapters or a draft are
loaded too. weights_with_libraries: one figure for weights and everything outside torch."""


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine was started, as far as the log tells; names as printed, not yet looked up."""

    engine: EngineName
    version: str | None = None
    models: tuple[str, ...] = ()
    """Names that the model may have, likeliest first."""
    gpus: tuple[str, ...] = ()
    """Names that the card may have, likeliest first."""
    weights: str | None = None
    """Weight format or method."""
    dtype: str | None = None
    kv_cache: str | None = None
    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    expert: bool | None = None
    settings: dict[str, Setting] = {}
    """Launch settings by their names in an engine request."""
    speculative_method: str | None = None
    speculative_tokens: int | None = None
    draft_models: tuple[str, ...] = ()
    max_loras: int | None = None
    max_lora_rank: int | None = None


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the log, of the rank that binds: largest parts, smallest pool. None: not printed."""

    total_bytes: int | None = None
    free_bytes: int | None = None
    """Free on the card before weights are loaded."""
    budget_bytes: int | None = None
    weights_bytes: int | None = None
    activation_bytes: int | None = None
    cuda_graph_bytes: int | None = None
    """As captured; some versions print a negative difference."""
    graph_estimate_bytes: int | None = None
    """As profiled before the pool is sized."""
    non_torch_bytes: int | None = None
    kv_cache_bytes: int | None = None
    """Below zero where the other parts exceed the budget."""
    capacity_tokens: int | None = None
    block_size: int | None = None
    max_concurrency: float | None = None
    at_tokens: int | None = None
    """Length that ``max_concurrency`` is printed for."""
    longest_context: int | None = None
    """Engine's estimate of the longest max_model_len that fits."""
    needed_kv_bytes: int | None = None
    """Pool that one request of max_model_len needs."""
    layers_on_card: int | None = None
    layers: int | None = None
    """Layers, the output layer counted, of which ``layers_on_card`` are not in host memory."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How a start failed."""

    code: FailureCode
    tried_bytes: int | None = None
    """Allocation that failed."""
    free_bytes: int | None = None


class Spread(msgspec.Struct, frozen=True):
    """A figure that differs between ranks."""

    low: int
    high: int


class LogFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read from one log."""

    launched: Launched
    printed: Printed
    failure: Failure | None = None
    started: bool | None = None
    """True: the log shows a start; False: it shows a failure; None: it ends before either."""
    marks: frozenset[Mark] = frozenset()
    spreads: dict[str, Spread] = {}
    """By field of ``Printed``: what more than 1 % lies between over the ranks."""
