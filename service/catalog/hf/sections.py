"""Where in a config the language model is: vision-language, speech and omni configs nest it."""

import re
from collections.abc import Mapping

import msgspec

from service.catalog.hf.fields import Fields
from service.catalog.hf.traits import Traits, traits_of

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "lm_config")
_DEEPEST = 3
_DEFAULT_TYPE = "unknown"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What a ``model_type`` looks like; anything else is not passed on."""


class Sections(msgspec.Struct, frozen=True):
    """The language model's own fields, and those around it."""

    model_type: str
    """Of the whole config: what engines look up."""
    whole: Fields
    text: Fields
    traits: Traits


def read_sections(config: Mapping[str, object]) -> Sections:
    """Find the language model and its family; a type that is not known is reported as an estimate."""
    whole = Fields(config)
    text, model_type = whole, whole.text("model_type")
    inner_type = model_type
    for _ in range(_DEEPEST):
        nested = text.section(*_NESTED)
        if nested is None:
            break
        text = nested
        inner_type = text.text("model_type") or inner_type
    traits, known = _traits(model_type, inner_type)
    if not known:
        whole.estimated.append("model_type")
    shown = model_type if model_type and _PLAIN.fullmatch(model_type) else _DEFAULT_TYPE
    return Sections(model_type=shown, whole=whole, text=text, traits=traits)


def _traits(outer: str | None, inner: str | None) -> tuple[Traits, bool]:
    """Traits of the inner type where it is known, else of the outer one (``qwen3_omni_moe_thinker_text``)."""
    for name in (inner, outer):
        if name is not None:
            traits, known = traits_of(name)
            if known:
                return traits, True
    return traits_of(_DEFAULT_TYPE)
