"""The constraints of a recommendation in the domain's terms: accelerators let in, and what an offer may be."""

import numpy as np
from numpy.typing import NDArray

from service.api.fault import closest
from service.api.resolve import Gathered, catalog_gpu
from service.api.wire import Constraints
from service.catalog.providers import closest_providers, resolve_provider
from service.catalog.snapshot import Snapshot
from service.domain.errors import UnknownId
from service.domain.message import Message
from service.domain.offer_terms import DEFAULT_TERMS, OfferTerms

MOST_FAULTS = 20
"""Unknown names told at once; looking for names like them takes milliseconds each."""


def allowed_accelerators(names: tuple[str, ...] | None, snapshot: Snapshot, gathered: Gathered) -> NDArray[np.bool_]:
    """Whether each accelerator of the fleet is among those that the caller names; all are where none is named."""
    if names is None:
        return np.ones(len(snapshot.fleet.accelerators), dtype=bool)
    allowed = np.zeros(len(snapshot.fleet.accelerators), dtype=bool)
    for position, name in enumerate(names):
        if len(gathered.errors) >= MOST_FAULTS:
            break
        pointer = f"/constraints/gpus/{position}"
        card = gathered.attempt(lambda name=name, pointer=pointer: catalog_gpu(name, pointer, snapshot, gathered))  # type: ignore[misc]
        if card is not None:
            allowed[snapshot.fleet.index[card.id]] = True
    return allowed


def purchase_terms(constraints: Constraints, snapshot: Snapshot, gathered: Gathered) -> OfferTerms:
    """The caller's terms over the defaults, each default listed."""
    providers = None
    if constraints.providers is not None:
        found = []
        for position, name in enumerate(constraints.providers):
            if len(gathered.errors) >= MOST_FAULTS:
                break
            pointer = f"/constraints/providers/{position}"
            found.append(gathered.attempt(lambda name=name, pointer=pointer: _provider(name, pointer, snapshot)))  # type: ignore[misc]
        providers = tuple(name for name in found if name is not None)
    if constraints.terms is None:
        gathered.assume("/constraints/terms", ", ".join(DEFAULT_TERMS.terms), Message("assumed_terms"))
    longest_term = constraints.max_min_term_months
    if longest_term is None and constraints.terms is None:
        longest_term = DEFAULT_TERMS.max_min_term_months
        gathered.assume("/constraints/max_min_term_months", longest_term, Message("assumed_min_term"))
    reliability = constraints.min_reliability
    if reliability is None:
        reliability = DEFAULT_TERMS.min_reliability
        gathered.assume("/constraints/min_reliability", reliability, Message("assumed_reliability"))
    return OfferTerms(
        providers=providers,
        regions=constraints.regions,
        tenancy=constraints.tenancy,
        terms=constraints.terms or DEFAULT_TERMS.terms,
        max_min_term_months=longest_term,
        max_age_days=constraints.max_age_days,
        min_reliability=reliability,
        allow_unverified=constraints.allow_unverified,
        allow_undated=constraints.allow_undated,
    )


def _provider(name: str, pointer: str, snapshot: Snapshot) -> str:
    found = resolve_provider(name, snapshot.providers.values())
    if found is None:
        suggestions = closest_providers(name, snapshot.providers.values()) or closest(name, snapshot.providers)
        raise UnknownId(pointer, Message("unknown_provider", {"id": name[:200]}), suggestions)
    return found
