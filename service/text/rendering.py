"""A ``Message`` becomes a sentence of one language."""

import math

from service.domain.message import Message, Param
from service.text.catalogs import CATALOGS

_WHOLE_FROM = 1000.0
_SIGNIFICANT_DIGITS = 4


def number(value: float) -> str:
    """A number for reading: thousands separators, four significant digits below a thousand.

    English and Chinese both write 1,234.5; a language that does not would need its own separators here.
    Years, versions and ports are not quantities: pass them as strings.
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-"
    if abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    text = f"{value:,.{_SIGNIFICANT_DIGITS}g}"
    return text if "e" not in text else f"{value:.10f}".rstrip("0").rstrip(".")


class _Slot:
    """A value on its way into a template: read as people do, unless the template gives its own format."""

    __slots__ = ("language", "value")

    def __init__(self, value: Param, language: str) -> None:
        self.value = value
        self.language = language

    def __format__(self, specification: str) -> str:
        if isinstance(self.value, Message):
            return format(render(self.value, self.language), specification)
        if specification or isinstance(self.value, (str, bool)):
            return format(self.value, specification)
        return number(self.value)


def render(message: Message, language: str) -> str:
    """The sentence of ``message`` in ``language`` (one of ``LANGUAGES``).

    Templates are the catalogs' own, never a caller's text, so ``str.format`` is safe here. A code or value that is
    missing (the tests hold that none is shipped) gives the bare code rather than a failed answer.
    """
    try:
        template = CATALOGS[language][message.code]
        return template.format_map({name: _Slot(value, language) for name, value in message.params.items()})
    except KeyError:
        return message.code
