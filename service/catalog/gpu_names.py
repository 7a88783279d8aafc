"""Which accelerator a name means: ids, marketing names, cloud labels and what nvidia-smi or torch print.

A name is read as family + form factor + memory; the last two may be missing. Several cards may fit: the one commonest
in the offers is taken, the others are listed.
"""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from heapq import nlargest

import msgspec

from service.catalog.gpu_name_words import NameWords, alternatives, read_words, spell
from service.domain.accelerator import Accelerator
from service.domain.units import GIB

MEMORY_TOLERANCE = 0.10
"""How far a memory word may be from a card's label or reported memory."""
SAME_MEMORY = 0.005
"""A memory word this close to a label names it exactly and outranks the merely near."""
_PCIE_FORMS = frozenset({"nvl", "server", "workstation", "maxq", None})
"""Forms whose cards plug into PCIe."""


class GpuMatch(msgspec.Struct, frozen=True):
    """What a name was taken for."""

    id: str
    candidates: tuple[str, ...]
    """All cards the name fits, the chosen one first."""
    exact: bool
    """True where the name fits no other card and nothing of it had to be set aside."""


class GpuIndex(msgspec.Struct, frozen=True):
    """What names are looked up in; built once per catalog by ``build_gpu_index``."""

    cards: dict[str, Accelerator]
    """Whole cards by id, the commonest in the offers first."""
    exact: dict[str, GpuMatch]
    """Ids (slices too) and lower-case names of one card."""
    spelled: dict[str, tuple[str, ...]]
    """Card ids by ``spell``."""
    families: dict[str, tuple[str, ...]]
    """Card ids by ``NameWords.family``."""
    forms: dict[str, str | None]
    vocabulary: frozenset[str]
    """Word pieces that tell cards apart."""


def build_gpu_index(accelerators: Mapping[str, Accelerator], popularity: Mapping[str, int]) -> GpuIndex:
    """Index all ids and aliases; ``popularity`` counts the offers of each card id and decides between candidates."""
    whole = sorted((id_ for id_ in accelerators if "/" not in id_), key=lambda id_: -popularity.get(id_, 0))
    cards = {id_: accelerators[id_] for id_ in whole}
    spelled: dict[str, dict[str, None]] = {}
    families: dict[str, dict[str, None]] = {}
    exact: dict[str, GpuMatch] = {}
    for id_, card in cards.items():
        for name in (id_, *card.aliases, *card.ambiguous_aliases):
            spelled.setdefault(spell(name), {})[id_] = None
            families.setdefault(read_words(name).family, {})[id_] = None
        for name in card.aliases:
            exact[name.lower()] = GpuMatch(id_, (id_,), exact=True)
    for id_ in accelerators:
        exact[id_] = GpuMatch(id_, (id_,), exact=True)
    families.pop("", None)
    return GpuIndex(
        cards=cards,
        exact=exact,
        spelled={name: tuple(ids) for name, ids in spelled.items()},
        families={family: tuple(ids) for family, ids in families.items()},
        forms={id_: read_words(id_).form for id_ in cards},
        vocabulary=frozenset(piece for family in families for piece in family.split()),
    )


def resolve_gpu(name: str, index: GpuIndex) -> GpuMatch | None:
    """Find the accelerator that ``name`` means, or None where no card fits.

    A form factor that no such card has is set aside; a memory size that no such card has is not. ``A / B`` lists
    alternatives, of which any may be meant, ``A + B`` a mixed machine: both give all the cards named.
    """
    match = index.exact.get(name) or index.exact.get(name.strip().lower())
    if match is not None:
        return match
    strict, found = _candidates(name, index)
    if not found:
        named = {id_ for part in alternatives(name) for id_ in _candidates(part, index)[1]}
        found = tuple(id_ for id_ in index.cards if id_ in named)
    return GpuMatch(found[0], found, exact=strict and len(found) == 1) if found else None


def closest_gpus(name: str, index: GpuIndex, n: int = 5) -> tuple[str, ...]:
    """Suggest the ``n`` card ids nearest in spelling to a name that fits none, best first."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(spell(name))
    scores: dict[str, float] = dict.fromkeys(index.cards, 0.0)
    for spelled, ids in index.spelled.items():
        matcher.set_seq1(spelled)
        score = matcher.ratio()
        for id_ in ids:
            scores[id_] = max(score, scores[id_])
    return tuple(nlargest(n, scores, key=lambda id_: scores[id_]))


def _candidates(name: str, index: GpuIndex) -> tuple[bool, tuple[str, ...]]:
    """Whether every word of one name was heeded, and the ids that fit it, best first."""
    words = read_words(name, index.families, index.vocabulary)
    spelled = index.spelled.get(spell(name), ())
    if spelled and words.profile is None:
        return True, spelled
    ids = index.families.get(words.family, ())
    if not words.family and words.profile is not None:
        ids = tuple(index.cards)
    for strict, kin in ((True, _with_form(ids, words.form, index)), (False, ids)):
        fitting = tuple(_with_memory(kin, words, index))
        if fitting:
            return strict, fitting
    return False, ()


def _with_form(ids: tuple[str, ...], form: str | None, index: GpuIndex) -> tuple[str, ...]:
    """Cards of the form factor, else those that have none to tell or go into the same slot."""
    if form is None:
        return ids
    same = tuple(id_ for id_ in ids if index.forms[id_] == form)
    kin = _PCIE_FORMS if form == "pcie" else {None}
    return same or tuple(id_ for id_ in ids if index.forms[id_] in kin)


def _with_memory(ids: tuple[str, ...], words: NameWords, index: GpuIndex) -> Iterator[str]:
    """Cards of the memory size, or slices: those named by profile, else those of that size where no card has it."""
    size = words.memory_gib
    near = ids if size is None else tuple(id_ for id_ in ids if _near(size, index.cards[id_]))
    if words.profile is not None:
        yield from (f"{id_}/{p.name}" for id_ in near for p in index.cards[id_].mig if p.name == words.profile)
    elif near or size is None:
        same = tuple(id_ for id_ in near if size and abs(size / index.cards[id_].memory_label_gb - 1.0) <= SAME_MEMORY)
        yield from same or near
    else:
        for id_ in ids:
            slices = sorted(index.cards[id_].mig, key=lambda profile: -profile.compute_share)
            yield from (f"{id_}/{p.name}" for p in slices if abs(size * GIB / p.memory_bytes - 1.0) <= MEMORY_TOLERANCE)


def _near(size_gib: float, card: Accelerator) -> bool:
    sizes = (card.memory_label_gb, card.memory_bytes / GIB, card.usable_memory_bytes / GIB)
    return any(abs(size_gib - size) <= MEMORY_TOLERANCE * size for size in sizes)
