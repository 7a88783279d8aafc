"""Find the catalog's model for a repository name: itself, or what a quantized or fine-tuned repository is made of."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from heapq import nlargest

import msgspec

from service.catalog.model_name_words import ModelWords, read_model_words
from service.catalog.models import Model
from service.domain.message import Message

_SHORTEST_BASE = 2
_FOREIGN_WORDS = frozenset({
    "vl", "vision", "omni", "embedding", "embed", "reranker", "rerank", "asr", "audio", "tts", "moe", "guard",
    "reward", "rm", "ocr", "nano", "mini", "small", "medium", "large", "super", "ultra", "distill", "next", "flash",
    "pro", "lite", "mamba", "linear",
})  # fmt: skip
"""Words that make another model of a name that a catalog id is part of."""

_FAMILY_VERSION = re.compile(r"^([a-z]{3,})(\d.*)$")
_GRAM = 3
_LONGEST_NAME = 200


class ModelMatch(msgspec.Struct, frozen=True):
    """A name understood."""

    model: Model
    weights: str | None
    """Quantization id that the name tells and the catalog's entry does not already have."""
    exact: bool
    """The name is the entry's id, in any case of letters."""
    how: Message
    """What was read into the name."""


def resolve_model(name: str, models: Mapping[str, Model]) -> ModelMatch | None:
    """Find the model that ``name`` means; None where none fits, or several of different architecture do.

    The id itself in any case; else the same words without format, variant, date and fine-tuning; else the longest id
    whose words stand in the name (``Hermes-3-Llama-3.1-8B``). Codes: ``model_is``, ``model_read_as``,
    ``model_read_as_format``.
    """
    found = models.get(name) or _by_case(name, models)
    if found is not None:
        return ModelMatch(found, None, exact=True, how=Message("model_is", {"id": found.id}))
    words = read_model_words(name)
    if words.refused or not words.stem:
        return None
    model = _best(_alike(words, models), words, name) or _best(_part_of(words, models), words, name)
    if model is None:
        return None
    weights = words.weights if words.weights != model.architecture.checkpoint_format else None
    values = {"name": name[:_LONGEST_NAME], "id": model.id}
    how = Message("model_read_as", values)
    if weights is not None:
        how = Message("model_read_as_format", {**values, "weights": weights})
    return ModelMatch(model, weights, exact=False, how=how)


def _by_case(name: str, models: Mapping[str, Model]) -> Model | None:
    lower = name.strip().lower()
    return next((model for id_, model in models.items() if id_.lower() == lower), None)


def _alike(words: ModelWords, models: Mapping[str, Model]) -> list[Model]:
    """Models of the same words, in the same order or, failing that, in any."""
    same = [model for id_, model in models.items() if read_model_words(id_).joined == words.joined]
    if same:
        return same
    mixed = sorted(words.stem)
    return [model for id_, model in models.items() if sorted(read_model_words(id_).stem) == mixed]


def _part_of(words: ModelWords, models: Mapping[str, Model]) -> list[Model]:
    """Models whose words stand together in the name, those with most words; other sizes and kinds in it refuse."""
    found: dict[int, list[Model]] = {}
    whole = _pieces(words)
    for id_, model in models.items():
        part = _pieces(read_model_words(id_))
        if len(part) >= _SHORTEST_BASE and any(map(_is_size, part)):
            rest = _without(whole, part)
            if rest is not None and not any(_is_size(word) or word in _FOREIGN_WORDS for word in rest):
                found.setdefault(len(part), []).append(model)
    return found[max(found)] if found else []


@lru_cache(maxsize=4096)
def _pieces(words: ModelWords) -> tuple[str, ...]:
    """Words with a version taken off the family: ``llama3`` is ``llama``, ``3``."""
    return tuple(piece for word in words.stem for piece in _FAMILY_VERSION.sub(r"\1 \2", word).split())


def _is_size(word: str) -> bool:
    """Whether a word is a parameter count: ``8b``, ``0.6b``, ``8x7b``, ``a3b``, ``135m``."""
    digits = word.removeprefix("a").removesuffix("b").removesuffix("m").removesuffix("t")
    return word[-1:] in {"b", "m", "t"} and digits.replace(".", "").replace("x", "").isdecimal()


def _without(whole: tuple[str, ...], part: tuple[str, ...]) -> tuple[str, ...] | None:
    """Words of ``whole`` around ``part``; None where it is not in there."""
    for start in range(len(whole) - len(part) + 1):
        if whole[start : start + len(part)] == part:
            return whole[:start] + whole[start + len(part) :]
    return None


def _best(candidates: list[Model], words: ModelWords, name: str) -> Model | None:
    """The candidate nearest in date, variant and organisation, 16-bit ones first; None where architectures differ."""
    if not candidates:
        return None
    organisation = name.rpartition("/")[0].lower()

    def nearness(model: Model) -> tuple[bool, bool, bool, bool, int]:
        own = read_model_words(model.id)
        return (
            own.dates == words.dates,
            own.variant == words.variant,
            own.weights is None,
            model.id.lower().startswith(f"{organisation}/"),
            -len(own.variant) - len(own.dates),
        )

    best = max(candidates, key=nearness)
    close = [model for model in candidates if nearness(model)[:2] == nearness(best)[:2]]
    return best if len({_shape(model) for model in close}) == 1 else None


def _shape(model: Model) -> tuple[object, ...]:
    """What must agree for two models to be one as far as memory and time go."""
    architecture = model.architecture
    counts = architecture.parameters
    return (
        architecture.layers,
        architecture.hidden_size,
        counts.total - counts.vision - counts.lm_head,
        architecture.cache,
    )


def closest_models(name: str, models: Mapping[str, Model], n: int = 5) -> tuple[str, ...]:
    """Suggest the ``n`` ids most alike in spelling, best first: Dice similarity of three-letter pieces."""
    wanted = _grams(name[:_LONGEST_NAME])
    return tuple(nlargest(n, models, key=lambda id_: _dice(wanted, _grams(id_))))


@lru_cache(maxsize=4096)
def _grams(name: str) -> frozenset[str]:
    """Three-letter pieces of a name, the organisation left out where there is one."""
    plain = f" {name.lower().rpartition('/')[2]} "
    return frozenset(plain[index : index + _GRAM] for index in range(len(plain) - _GRAM + 1))


def _dice(left: Iterable[str], right: frozenset[str]) -> float:
    shared = len(right.intersection(left))
    return 2.0 * shared / (len(frozenset(left)) + len(right) or 1)
