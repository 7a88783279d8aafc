"""A deployment put to work: its step costs and the ceiling of its batch, from memory, settings and profile."""

from service.domain.architecture import Architecture
from service.domain.batching import Ceiling, Serving
from service.domain.calibration import Profile
from service.domain.deployment import Deployment, MemoryParts
from service.domain.engine import EngineBehaviour
from service.domain.kv_pool import resident_bytes
from service.domain.numeric import Number, choose, floor, greater, lesser
from service.domain.request_shape import RequestShape
from service.domain.roofline import StepCosts, rows_s, step_costs, step_s
from service.domain.weights import stage_weights

MOST_SEQUENCES = 1e9
"""Stands for no bound: a model without a cache runs any number of requests as far as memory goes."""


def serving(  # noqa: PLR0913 - everything that a service is made of
    architecture: Architecture,
    deployment: Deployment,
    behaviour: EngineBehaviour,
    parts: MemoryParts,
    profile: Profile,
    shape: RequestShape,
    arrival_cv2: float = 1.0,
    *,
    open_loop: bool = True,
) -> Serving:
    """Constants of a deployment that serves requests of one shape.

    ``parts``: its memory (``memory.parts_of``); a deployment that does not fit gets a batch of one, and its numbers
    are of no meaning (the caller says so).
    """
    shares = stage_weights(
        architecture,
        deployment.layout,
        deployment.precision,
        experts_span_data=behaviour.experts_span_data,
        embedding_on_host=behaviour.embedding_on_host,
        expert_width_multiple=deployment.settings.expert_width_multiple,
    )
    costs = step_costs(
        architecture, deployment, shares.by_class, profile, shape, experts_span_data=behaviour.experts_span_data
    )
    return Serving(
        architecture=architecture,
        shape=shape,
        costs=costs,
        limit=_ceiling(
            deployment, shape, cache_sequences(architecture, deployment, behaviour, parts, shape), costs.stages
        ),
        arrival_cv2=arrival_cv2,
        open_loop=open_loop,
        decoding_share=decoding_share(costs, shape),
    )


def decoding_share(costs: StepCosts, shape: RequestShape) -> Number:
    """Share of its stay that a request alone on the deployment decodes, by its idle step times."""
    prompt_s = costs.host_request_s + costs.stages * (
        costs.fixed_s + rows_s(costs, shape.computed_input) + costs.prefill_attention_s
    )
    decode_s = shape.steps * costs.stages * step_s(costs, 1.0, shape.rows_per_step)
    return decode_s / (decode_s + prompt_s)


def cache_sequences(
    architecture: Architecture,
    deployment: Deployment,
    behaviour: EngineBehaviour,
    parts: MemoryParts,
    shape: RequestShape,
) -> Number:
    """Requests in progress that the KV pool of one data rank holds, each at the mean context of a running request."""
    pool = greater(parts.kv_cache, 0.0)
    tokens = lesser(shape.context, deployment.settings.max_model_len)
    each = resident_bytes(architecture, deployment, behaviour, pool, tokens)
    return choose(each > 0.0, floor(pool / greater(each, 1.0)), MOST_SEQUENCES)


def _ceiling(deployment: Deployment, shape: RequestShape, by_cache: Number, stages: Number) -> Ceiling:
    rows = shape.rows_per_step + shape.computed_input / shape.steps
    by_budget = greater(stages * deployment.settings.max_num_batched_tokens / rows, 1.0)
    by_settings = deployment.settings.max_num_seqs
    return Ceiling(
        batch=greater(lesser(lesser(by_settings, by_cache), by_budget), 1.0),
        by_settings=by_settings,
        by_cache=by_cache,
        by_budget=by_budget,
    )
