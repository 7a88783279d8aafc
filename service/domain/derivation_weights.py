"""How the weight bytes of one accelerator come about, tensor class by tensor class."""

from service.domain.derivation import Derived, derived
from service.domain.numeric import Number, as_float, ceil
from service.domain.subject import Subject
from service.domain.verdict import Outcome
from service.domain.vram_budget import stage_share_of
from service.domain.weights import (
    ABSORBED_BYTES,
    absorbed_elements,
    expert_padding,
    expert_slices,
    kv_projection_parameters,
    padded_vocabulary,
    rotary_table_elements,
)

SHARDING = (
    "Megatron-LM sharding (arXiv 1909.08053) as vLLM's linear layers and distributed/utils.py get_pp_indices do it"
)
_SHARDED = frozenset({"dense_mlp", "shared_experts", "state_mixer", "vision"})
_REPLICATED = frozenset({"attention_replicated", "router", "norms"})
_AT_THE_ENDS = frozenset({"embedding", "lm_head"})

Step = tuple[str, dict[str, Number]]
"""An expression and the values of its names."""


def weight_steps(subject: Subject, outcome: Outcome, weights: dict[str, int]) -> tuple[Derived, ...]:
    """One step for each class of ``weights`` (the answer's), and their sum."""
    found = []
    for name, size in weights.items():
        step = _class_step(subject, name)
        if step is None:
            continue
        expression, inputs = step
        share = as_float(stage_share_of(subject, outcome, name))
        if share != 1.0:
            expression, inputs = f"({expression}) * share_of_stage", {**inputs, "share_of_stage": share}
        found.append(derived(f"/weights/{name}", expression, inputs, size, "bytes", SHARDING))
    total = derived(
        "/per_gpu/weights_bytes",
        " + ".join(weights) or "0",
        {name: float(size) for name, size in weights.items()},
        sum(weights.values()),
        "bytes",
        SHARDING,
    )
    return (*found, total)


def _class_step(subject: Subject, name: str) -> Step | None:
    """Bytes of one rank if it held every layer; None for what is not made of the model's parameters."""
    architecture, deployment = subject.architecture, subject.deployment
    sizes = deployment.precision.weight_bytes
    if name == "attention":
        return _attention_step(subject)
    if name == "routed_experts":
        return _experts_step(subject)
    if name == "rotary_tables":
        elements = rotary_table_elements(architecture)
        return "table_elements * bytes_per_element", {"table_elements": elements, "bytes_per_element": sizes["norms"]}
    if name not in _SHARDED | _REPLICATED | _AT_THE_ENDS:
        return None
    # A tied head is the embedding once more, on the last stage.
    tied = name == "lm_head" and not architecture.parameters.lm_head
    inputs: dict[str, Number] = {
        "parameters": float(getattr(architecture.parameters, "embedding" if tied else name)),
        "bytes_per_parameter": sizes["embedding" if tied else name],  # type: ignore[index]
    }
    expression = "parameters * bytes_per_parameter"
    if name in _AT_THE_ENDS:
        expression += " * padded_vocabulary / vocabulary"
        inputs |= {
            "padded_vocabulary": float(padded_vocabulary(architecture)),
            "vocabulary": float(architecture.vocab_size),
        }
    if name not in _REPLICATED:
        expression, inputs = f"{expression} / tensor", {**inputs, "tensor": deployment.layout.tensor}
    return expression, inputs


def _attention_step(subject: Subject) -> Step:
    architecture, deployment = subject.architecture, subject.deployment
    tensor = as_float(deployment.layout.tensor)
    inputs: dict[str, Number] = {
        "parameters": float(architecture.parameters.attention),
        "bytes_per_parameter": deployment.precision.weight_bytes["attention"],
        "tensor": tensor,
    }
    expression = "parameters * bytes_per_parameter / tensor"
    heads = max((group.kv_heads for group in architecture.cache), default=1)
    if as_float(ceil(heads / tensor)) * tensor != heads:
        # Ranks beyond the KV heads repeat them.
        expression = (
            "((parameters - kv_parameters) / tensor + kv_parameters * ceil(kv_heads / tensor) / kv_heads)"
            " * bytes_per_parameter"
        )
        inputs |= {"kv_parameters": kv_projection_parameters(architecture), "kv_heads": float(heads)}
    copied = absorbed_elements(architecture)
    if copied:
        expression += " + second_copy_elements * second_copy_bytes / tensor"
        inputs |= {"second_copy_elements": copied, "second_copy_bytes": ABSORBED_BYTES}
    return expression, inputs


def _experts_step(subject: Subject) -> Step:
    architecture, deployment = subject.architecture, subject.deployment
    layout = deployment.layout
    inputs: dict[str, Number] = {
        "parameters": float(architecture.parameters.routed_experts),
        "bytes_per_parameter": deployment.precision.weight_bytes["routed_experts"],
    }
    if as_float(layout.expert) > 0.0:
        expression = "parameters * bytes_per_parameter * ceil(experts / (tensor * data)) / experts"
        inputs |= {"experts": float(max(architecture.experts, 1)), "tensor": layout.tensor, "data": layout.data}
    elif subject.behaviour.experts_span_data:
        expression = "parameters * bytes_per_parameter / (tensor * data)"
        inputs |= {"tensor": layout.tensor, "data": layout.data}
    else:
        expression, inputs = "parameters * bytes_per_parameter / tensor", {**inputs, "tensor": layout.tensor}
    slices = expert_slices(layout, span_data=subject.behaviour.experts_span_data)
    padding = expert_padding(architecture, slices, deployment.precision, deployment.settings.expert_width_multiple)
    if as_float(padding) != 1.0:
        expression, inputs = f"{expression} * kernel_padding", {**inputs, "kernel_padding": padding}
    return expression, inputs
