"""What an engine refuses to run: card, architecture, weight format or KV format in this version."""

from typing import Literal

import msgspec

from service.domain.accelerator import Accelerator
from service.domain.engine import EngineBehaviour, SupportRule
from service.domain.message import Message
from service.domain.quantization import Quantization, runs_on

RefusalCode = Literal["engine_unsupported", "weights_format_unsupported", "kv_format_unsupported"]


class Refusal(msgspec.Struct, frozen=True):
    """Why an engine does not run a deployment at all."""

    reason_code: RefusalCode
    reason: Message


def engine_refusal(
    behaviour: EngineBehaviour,
    model_type: str,
    accelerator: Accelerator,
    weights: Quantization,
    kv_cache: Quantization,
) -> Refusal | None:
    """Why the engine refuses this card, model, weight or KV format; None where it runs."""
    subjects = {
        "vendor": accelerator.vendor,
        "card": accelerator.id,
        "model_type": model_type,
        "weights": weights.id,
        "kv_cache": kv_cache.id,
    }
    for rule in behaviour.support:
        subject = subjects[rule.what]
        named = subject in rule.ids or (rule.prefixes and subject.startswith(rule.prefixes))
        if rule.what == "vendor":
            named = not named
        if named and _refuses(rule, accelerator):
            return _refusal(behaviour, rule, subject, accelerator)
    if kv_cache.kv_bits is None:
        return Refusal("kv_format_unsupported", Message("kv_format_unknown", {"kv_cache": kv_cache.id}))
    unfit = runs_on(accelerator, weights)
    return None if unfit is None else Refusal("weights_format_unsupported", unfit)


def _refuses(rule: SupportRule, accelerator: Accelerator) -> bool:
    """Whether a rule that names the subject forbids it on this card."""
    if rule.what == "vendor" or (rule.vendors and accelerator.vendor not in rule.vendors):
        return rule.what == "vendor"
    capability, lowest = accelerator.compute_capability, rule.min_compute_capability
    return rule.absent or (capability is not None and lowest is not None and capability < lowest)


def _refusal(behaviour: EngineBehaviour, rule: SupportRule, subject: str, accelerator: Accelerator) -> Refusal:
    code: RefusalCode = "engine_unsupported"
    if rule.what == "weights":
        code = "weights_format_unsupported"
    elif rule.what == "kv_cache":
        code = "kv_format_unsupported"
    params: dict[str, str | float] = {
        "engine": behaviour.engine,
        "version": behaviour.version,
        "subject": subject,
        "gpu": accelerator.id,
    }
    if rule.absent and rule.since is not None:
        return Refusal(code, Message("engine_runs_it_from", {**params, "since": rule.since}))
    if not rule.absent and rule.what != "vendor":
        needed = {"needed": rule.min_compute_capability or 0.0, "has": accelerator.compute_capability or 0.0}
        return Refusal(code, Message("engine_needs_compute_capability", {**params, **needed}))
    return Refusal(code, Message("engine_does_not_run_it", params))
