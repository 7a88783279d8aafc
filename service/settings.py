"""Settings: read once from the environment; every mistake is reported together."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

T = TypeVar("T")

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off", ""})
_MOST_WORKERS = 256


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one deployment of the service runs."""

    redis_url: str | None = None
    """``REDIS_URL``: ``redis://``, ``rediss://`` or ``unix://``; the store that several hosts share. Unset: SQLite."""
    store_path: Path
    """``SIZING_STORE_PATH``: file of the embedded SQLite store that the workers of one host share. Default: a folder of
    the user under ``XDG_STATE_HOME``, or else under the system's temporary folder."""
    hub_endpoint: str = "https://huggingface.co"
    """``HF_ENDPOINT``: the hub, or a mirror of it, that model ids outside the catalog are looked up at."""
    hub_enabled: bool = False
    """``SIZING_HUB_ENABLED``: whether they are looked up at all. Off: the service makes no outgoing request."""
    hub_token: str | None = None
    """``HF_TOKEN``: sent to the hub for gated models; never logged."""
    log_level: str = "INFO"
    """``SIZING_LOG_LEVEL``: DEBUG, INFO (a line per request), WARNING or ERROR."""
    workers: int = 1
    """``SIZING_WORKERS``: worker processes, 1 to 256; one per core serves best."""
    bind: str | None = None
    """``SIZING_BIND``: ``host:port`` or ``unix:path`` to listen on. Unset: gunicorn's default, 127.0.0.1:8000."""


class SettingsError(Exception):
    """The environment holds values that the service cannot run with; the text lists them all."""


def _url(schemes: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not (parts.netloc or parts.path):
            msg = f"expected a URL of scheme {' or '.join(schemes)}"
            raise ValueError(msg)
        return text.rstrip("/")

    return parse


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        msg = "expected true or false"
        raise ValueError(msg)
    return text.lower() in _TRUE


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        msg = f"expected a whole number from 1 to {_MOST_WORKERS}"
        raise ValueError(msg)
    return int(text)


def _level(text: str) -> str:
    if text.upper() not in LOG_LEVELS:
        msg = f"expected one of {', '.join(LOG_LEVELS)}"
        raise ValueError(msg)
    return text.upper()


def _default_store_path(environ: Mapping[str, str]) -> Path:
    state = environ.get("XDG_STATE_HOME")
    folder = Path(state) / "llm-sizing" if state else Path(tempfile.gettempdir()) / f"llm-sizing-{os.getuid()}"
    return folder / "store.sqlite"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of an environment; an empty value counts as unset.

    Raises:
        SettingsError: one or more values are wrong.

    """
    mistakes: list[str] = []

    def read(name: str, parse: Callable[[str], T], default: T) -> T:
        text = environ.get(name, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            mistakes.append(f"{name}={text!r}: {error}")
            return default

    settings = Settings(
        redis_url=read("REDIS_URL", _url(("redis", "rediss", "unix")), None),
        store_path=read("SIZING_STORE_PATH", Path, _default_store_path(environ)),
        hub_endpoint=read("HF_ENDPOINT", _url(("https", "http")), "https://huggingface.co"),
        hub_enabled=read("SIZING_HUB_ENABLED", _flag, False),  # noqa: FBT003 - the default of a flag
        hub_token=read("HF_TOKEN", str, None),
        log_level=read("SIZING_LOG_LEVEL", _level, "INFO"),
        workers=read("SIZING_WORKERS", _workers, 1),
        bind=read("SIZING_BIND", str, None),
    )
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    return settings
