"""Launch arguments, however a log shows them: a dict, a repr with ``name=value``, or a command line."""

import re
from functools import cache

import msgspec

from service.domain.engine_logs.facts import Setting
from service.domain.engine_logs.scan import WINDOW, line_after

_WHOLE = re.compile(r"[1-9][0-9]{0,12}")

COMMAND_CHARACTERS = 4096
"""Of a command line with its continuation lines."""


@cache
def _shown(name: str) -> re.Pattern[str]:
    """``name=value`` or ``'name': value``."""
    value = r"""('[^'\n]{0,400}'|"[^"\n]{0,400}"|[^\s,()\[\]{}'"]{1,200})"""
    return re.compile(rf"""(?<![\w-])['"]?{name}['"]? ?[=:] ?{value}""")


@cache
def _flag(name: str) -> re.Pattern[str]:
    """``--name value`` or ``--name=value``, or the bare flag."""
    return re.compile(rf"""(?<![\w-])--?{name}(?:=|[ \t]{{1,8}})?((?<=[= \t])[^\s\\-][^\s\\]{{0,399}})?(?![\w-])""")


def shown_at(text: str, at: int) -> str:
    """The argument list that starts at ``at``: the rest of its line."""
    return "" if at < 0 else line_after(text, at)


def command_at(text: str, at: int) -> str:
    """The command line that starts at ``at``, with continuation lines."""
    if at < 0:
        return ""
    lines: list[str] = []
    for line in text[at : at + COMMAND_CHARACTERS].split("\n"):
        lines.append(line.rstrip())
        if not lines[-1].endswith("\\"):
            break
    return "\n".join(lines)


def argument(listed: str, *names: str) -> str | None:
    """Value of the first of ``names`` that ``listed`` shows with one; quotes are taken off."""
    for name in names:
        match = _shown(name).search(listed)
        if match is not None and (value := match[1].strip("'\"")) not in {"None", ""}:
            return value
    return None


def flag(command: str, *names: str) -> str | None:
    """Value of the first of the flags ``names`` on a command line; ``True`` for one without a value."""
    for name in names:
        match = _flag(name).search(command)
        if match is not None:
            return (match[1] or "True").strip("'\"")
    return None


def section(listed: str, name: str) -> str:
    """What follows ``name``: a nested list of arguments."""
    at = listed.find(name)
    return "" if at < 0 else listed[at : at + WINDOW]


class Listing(msgspec.Struct, frozen=True):
    """Every place where one log shows launch arguments, the most telling first."""

    shown: tuple[str, ...]
    command: str = ""

    def get(self, *names: str) -> str | None:
        """Value of the first of ``names`` that any place shows."""
        for listed in self.shown:
            if (value := argument(listed, *names)) is not None:
                return value
        return flag(self.command, *(name.replace("_", "-") for name in names)) if self.command else None

    def whole(self, *names: str) -> int | None:
        """The same as a whole number above zero."""
        return whole(self.get(*names))

    def share(self, *names: str) -> float | None:
        """The same as a fraction."""
        return share(self.get(*names))

    def truth(self, *names: str) -> bool | None:
        """The same as yes or no."""
        return truth(self.get(*names))


def whole(value: str | None) -> int | None:
    """A whole number, if ``value`` is one above zero."""
    return int(value) if value is not None and _WHOLE.fullmatch(value) else None


def share(value: str | None) -> float | None:
    """A fraction above 0 and up to 1, if ``value`` is one."""
    if value is None or not re.fullmatch(r"[01]?\.\d{1,9}|[01]", value):
        return None
    return number if 0.0 < (number := float(value)) <= 1.0 else None


def truth(value: str | None) -> bool | None:
    """A yes or no, if ``value`` is one."""
    return {"true": True, "false": False}.get((value or "").lower())


def given(settings: dict[str, Setting | None]) -> dict[str, Setting]:
    """Only the settings that a log states."""
    return {name: value for name, value in settings.items() if value is not None}
