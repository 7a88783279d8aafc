"""Typed, bounded reading of a ``config.json``: the same width has many names, and any value may be nonsense."""

from collections.abc import Iterator, Mapping
from itertools import islice

from service.catalog.hf.fault import missing, out_of_range, wrong_type

MOST_LAYERS = 2_000
MOST_HIDDEN = 1_048_576
MOST_WIDTH = 8_388_608
"""Inner widths: MLPs, state-space inner sizes, the longest image in tokens."""
MOST_HEADS = 65_536
MOST_EXPERTS = 16_384
MOST_VOCABULARY = 33_554_432
MOST_POSITIONS = 1_000_000_000
"""Bounds far above any model, so that every product of them stays a number that JSON and floats can hold."""

_LONGEST_LIST = 8_192


class Fields:
    """A section of a config. Names are tried in order; null counts as absent, as in ``transformers``."""

    __slots__ = ("_outer", "_values", "estimated", "pointer")

    def __init__(
        self,
        values: Mapping[str, object],
        pointer: str = "",
        estimated: list[str] | None = None,
        outer: Mapping[str, object] | None = None,
    ) -> None:
        """``outer``: the config around this section, for what a nested one leaves out (``tie_word_embeddings``)."""
        self._values = values
        self._outer = outer or {}
        self.pointer = pointer
        self.estimated: list[str] = [] if estimated is None else estimated

    def has(self, *names: str) -> bool:
        """Whether any of the names is given and not null."""
        return any(self._values.get(name) is not None for name in names)

    def raw(self, name: str) -> object:
        """The value as given, or None."""
        return self._values.get(name)

    def integer(self, *names: str, high: int, low: int = 0) -> int | None:
        """Whole number of the first name given, or None. A whole float counts; a boolean does not."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                return self._whole(name, value, low, high)
        return None

    def required(self, *names: str, high: int, low: int = 1) -> int:
        """Whole number that a model cannot be sized without."""
        value = self.integer(*names, low=low, high=high)
        if value is None:
            raise missing(self.pointer, names[0])
        return value

    def assumed(self, *names: str, high: int, default: int) -> int:
        """Whole number, or a default that is reported as an estimate."""
        value = self.integer(*names, high=high, low=1)
        if value is None:
            self.estimated.append(names[0])
            return default
        return value

    def largest(self, *names: str, high: int, low: int = 0) -> int | None:
        """As ``integer``, but a per-layer list gives its largest entry."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, list | tuple):
                return max(self.integers(name, low=low, high=high), default=None)
            if value is not None:
                return self._whole(name, value, low, high)
        return None

    def integers(self, name: str, *, high: int, low: int = 0) -> tuple[int, ...]:
        """A list of whole numbers; empty where absent."""
        return tuple(self._whole(name, value, low, high) for value in self.items(name))

    def items(self, name: str) -> tuple[object, ...]:
        """A list of anything; empty where absent."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise wrong_type(self.pointer, name, "list")
        if len(value) > _LONGEST_LIST:
            raise out_of_range(self.pointer, name, 0, _LONGEST_LIST)
        return tuple(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; empty where absent."""
        values = self.items(name)
        for value in values:
            if not isinstance(value, str):
                raise wrong_type(self.pointer, name, "list of strings")
        return tuple(str(value) for value in values)

    def flag(self, *names: str, default: bool) -> bool:
        """True or false; 0 and 1 count."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                if value in (0, 1):
                    return bool(value)
                raise wrong_type(self.pointer, name, "boolean")
        return default

    def inherited_flag(self, name: str, *, default: bool) -> bool:
        """A flag of this section, else of the config around it."""
        for values in (self._values, self._outer):
            if values.get(name) is not None:
                return Fields(values, self.pointer).flag(name, default=default)
        return default

    def inherited_texts(self, name: str) -> tuple[str, ...]:
        """A list of strings of this section, else of the config around it; anything else in the list is left out."""
        value = self._values.get(name) or self._outer.get(name)
        return tuple(text for text in value[:8] if isinstance(text, str)) if isinstance(value, list | tuple) else ()

    def text(self, *names: str) -> str | None:
        """String of the first name given, or None."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                if isinstance(value, str):
                    return value
                raise wrong_type(self.pointer, name, "string")
        return None

    def section(self, *names: str) -> "Fields | None":
        """An object inside this one, or None."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                if not isinstance(value, Mapping):
                    raise wrong_type(self.pointer, name, "object")
                return Fields(value, f"{self.pointer}/{name}", self.estimated, outer=self._values)
        return None

    def entries(self, most: int) -> Iterator[tuple[str, object]]:
        """Keys and values as given, the first ``most``."""
        return islice(((str(key), value) for key, value in self._values.items()), most)

    def number(self, name: str, *, high: float, low: float = 0.0) -> float | None:
        """A number with a fraction, or None."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(self.pointer, name, "number")
        if not low <= value <= high:
            raise out_of_range(self.pointer, name, int(low), int(high))
        return float(value)

    def _whole(self, name: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(self.pointer, name, "integer")
        if not low <= value <= high:
            raise out_of_range(self.pointer, name, low, high)
        if value != int(value):
            raise wrong_type(self.pointer, name, "integer")
        return int(value)
