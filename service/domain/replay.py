"""Bodies with which the single endpoints give the parts of one option again."""

from typing import cast

import msgspec

from service.domain.cost import CostProjectionRequest
from service.domain.numeric import as_float
from service.domain.question import Ask
from service.domain.recommendation import Replay
from service.domain.subject import Subject
from service.domain.workload import Traffic


def replay(ask: Ask, model: object, subject: Subject, traffic: Traffic, costs: CostProjectionRequest) -> Replay:
    """Requests of a VRAM budget, of a performance estimate at one replica's share, and of a cost projection.

    ``model`` names it as the caller did, or the repository that publishes it in the option's format.
    """
    layout = subject.deployment.layout
    deployment: dict[str, object] = {
        "model": model,
        "gpu": subject.accelerator.id,
        "weights": subject.weights.id,
        "kv_cache": subject.kv_cache.id,
        "parallelism": {
            "tensor": int(as_float(layout.tensor)),
            "pipeline": int(as_float(layout.pipeline)),
            "data": int(as_float(layout.data)),
            "expert": as_float(layout.expert) > 0.0,
        },
        "engine": msgspec.to_builtins(msgspec.structs.replace(ask.question.engine, version=subject.behaviour.version)),
        "evaluated_on": ask.evaluated_on,
    }
    if deployment["model"] is None:
        del deployment["model"]
    work = ask.question.work
    performance = {**deployment, "traffic": _given(traffic), "kind": work.kind}
    if work.targets is not None:
        performance["targets"] = _given(work.targets)
    if work.application is not None:
        performance["application"] = _given(work.application)
    return Replay(
        vram_budget=deployment,
        performance_estimate=performance,
        cost_projection={**_given(costs), "evaluated_on": ask.evaluated_on},
    )


def _given(part: msgspec.Struct) -> dict[str, object]:
    """A request part without the members that stand at their defaults."""
    defaults = dict(zip(reversed(part.__struct_fields__), reversed(part.__struct_defaults__), strict=False))
    found: dict[str, object] = {}
    # The members of a tagged part begin with its tag, which is no field.
    for name, member in cast("dict[str, object]", msgspec.to_builtins(part)).items():
        value = getattr(part, name, member)
        if name not in defaults or value != defaults[name]:
            found[name] = _given(value) if isinstance(value, msgspec.Struct) else member
    return found
