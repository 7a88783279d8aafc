"""The one exception of the config reader."""

from service.domain.errors import ImpossibleCombination
from service.domain.message import Message


class ConfigError(ImpossibleCombination):
    """A ``config.json`` that does not describe a model.

    ``pointer`` is relative to the config; the message names the key that is missing, wrong or contradicts another.
    """


def missing(pointer: str, key: str) -> ConfigError:
    """No key of this meaning; ``key`` is the name used most."""
    return ConfigError(f"{pointer}/{key}", Message("config_key_missing", {"key": key}))


def wrong_type(pointer: str, key: str, expected: str) -> ConfigError:
    """A value of another JSON type than ``expected``."""
    return ConfigError(
        f"{pointer}/{escaped(key)}", Message("config_key_type", {"key": shown(key), "expected": expected})
    )


def out_of_range(pointer: str, key: str, low: int, high: int) -> ConfigError:
    """A number that no model has."""
    message = Message("config_key_range", {"key": shown(key), "low": low, "high": high})
    return ConfigError(f"{pointer}/{escaped(key)}", message)


def contradiction(pointer: str, key: str, other: str) -> ConfigError:
    """Two keys that cannot both be true, as fewer entries in a per-layer list than there are layers."""
    return ConfigError(
        f"{pointer}/{escaped(key)}", Message("config_keys_contradict", {"key": shown(key), "other": other})
    )


def shown(text: str) -> str:
    """A caller's text, short enough for a message."""
    return text[:80]


def escaped(key: str) -> str:
    """A key as a token of a JSON pointer (RFC 6901)."""
    return shown(key).replace("~", "~0").replace("/", "~1")
