"""What to ask a provider before buying: every unknown becomes a question (``verify[]`` of a recommendation)."""

from service.domain.message import Message
from service.domain.offer import PROVIDER_ATTRIBUTES, Offer, Provider

_STATUS_QUESTIONS = {
    "priced": (),
    "quote_required": ("ask_quote", "ask_stock_of_provider", "ask_configuration_of_provider"),
    "unproven": ("ask_gpu_proof", "ask_quote", "ask_stock_of_provider"),
    "gpu_not_proven": ("ask_gpu_of_plan", "ask_host_price", "ask_stock_of_provider"),
}

_FLAG_QUESTIONS = {
    "gpu_ambiguous": "ask_gpu_variant",
    "memory_conflict": "ask_gpu_memory",
    "min_term_unknown": "ask_minimum_term",
    "unit_doubtful": "ask_what_the_price_covers",
    "accelerator_price_only": "ask_host_price",
    "per_gpu_quote": "ask_sizes",
    "size_not_quoted": "ask_sizes",
}


def questions(provider: Provider) -> tuple[Message, ...]:
    """Ask what is not known of a provider: first why it has no usable price, then each unknown attribute in order."""
    codes = [
        *_STATUS_QUESTIONS[provider.status],
        *(
            f"ask_{name}"
            for name in PROVIDER_ATTRIBUTES
            if name not in provider.attributes or provider.attributes[name].value == "unknown"
        ),
    ]
    return tuple(Message(code, {"provider": provider.name}) for code in codes)


def offer_questions(offer: Offer, provider: Provider) -> tuple[Message, ...]:
    """Ask to confirm one offer: its stock, its price of today, its card, its host and its network."""
    about = {"provider": provider.name, "instance_type": offer.instance_type}
    asked = []
    if offer.availability in {"unknown", "limited"}:
        place = offer.region or offer.country
        asked.append(
            Message("ask_stock_in_region", {**about, "region": place}) if place else Message("ask_stock", dict(about))
        )
    if offer.price_usd_per_hour is not None and offer.evidence not in {"live_api", "operator_quote"}:
        asked.append(
            Message("ask_price_today", {**about, "as_of": offer.as_of})
            if offer.as_of
            else Message("ask_price_undated", dict(about))
        )
    named = dict.fromkeys(_FLAG_QUESTIONS[flag] for flag in offer.flags if flag in _FLAG_QUESTIONS)
    asked += [Message(code, {**about, "candidates": ", ".join(offer.gpu_candidates)}) for code in named]
    if offer.vcpu is None or offer.ram_gb is None:
        asked.append(Message("ask_host_configuration", dict(about)))
    if offer.network_note is None:
        asked.append(Message("ask_network", dict(about)))
    return tuple(asked)
