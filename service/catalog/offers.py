"""Read the offer files into the domain's records: quotes become US dollars per hour of the whole instance.

One file a provider, one offer a line; the head holds what the offers share. See ``data/offers/README.md``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from service.domain.errors import CatalogError
from service.domain.geography import CONTINENT_OF, CONTINENTS
from service.domain.offer import Availability, EarlierPrice, Evidence, Offer, OfferFlag, Tenancy, Term
from service.domain.quote import QuoteUnit, usd_per_hour
from service.domain.units import HOURS_PER_MONTH

Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$")]
"""A date, or a month where the day is not known."""
Sku = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9._-]+$")]
Positive = Annotated[float, msgspec.Meta(gt=0)]

_ANYWHERE = "any"
_RATE_DECIMALS = 2
_LENGTH_OF_DAY = len("2026-01-31")


class OfferSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where and when the rows that name it were read."""

    source: Annotated[str, msgspec.Meta(min_length=1)]
    evidence: Evidence
    as_of: Day | None = None
    valid_until: Day | None = None
    notes: str | None = None


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a region lies; the continent alone where the country is not certain."""

    country: str | None = None
    continent: str | None = None


class Exchange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rate that turns the file's currency into US dollars."""

    usd: Positive
    as_of: Day
    source: str


class OfferDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What rows that say nothing else have."""

    tenancy: Tenancy = "dedicated"
    term: Term = "on_demand"
    per: QuoteUnit = "hour"
    billing: str | None = None
    network: str | None = None
    includes: tuple[str, ...] = ("cpu", "ram")
    currency: str = "USD"
    source: str | None = None


class OfferRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One offer as written in a file."""

    sku: Sku
    instance_type: str | None = None
    gpu: str | None
    gpu_name: str
    candidates: tuple[str, ...] = ()
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 1
    fraction: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    memory_gb: Positive | None = None
    price: Positive | None = None
    per: QuoteUnit | None = None
    hours_per_month: Positive | None = None
    sizes: tuple[int, ...] = ()
    currency: str | None = None
    region: str | None = None
    tenancy: Tenancy | None = None
    term: Term | None = None
    min_term_months: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    billing: str | None = None
    setup_fee: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    verified: bool | None = None
    reliability: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    availability: Availability = "unknown"
    checked_at: Day | None = None
    vcpu: Positive | None = None
    ram_gb: Positive | None = None
    disk: str | None = None
    network: str | None = None
    includes: tuple[str, ...] | None = None
    source: str | None = None
    flags: tuple[OfferFlag, ...] = ()
    notes: str | None = None
    earlier: tuple[tuple[Day, Positive], ...] = ()


class OfferFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All offers of a provider."""

    provider: Sku
    format: Literal[1]
    defaults: OfferDefaults
    exchange: dict[str, Exchange] = {}
    regions: dict[str, Place] = {}
    sources: dict[str, OfferSource]
    offers: tuple[OfferRow, ...]


def load_offers(folder: Path) -> tuple[Offer, ...]:
    """All offers of a folder, sorted by id.

    Raises ``CatalogError`` naming the file and row for unreadable data, a reference to nothing or an id used twice.
    """
    found: dict[str, Offer] = {}
    for path in sorted(folder.glob("*.json")):
        for offer in read_offers(path):
            if offer.id in found:
                msg = f"{path}: {offer.id}: id used twice"
                raise CatalogError(msg)
            found[offer.id] = offer
    return tuple(found[key] for key in sorted(found))


def read_offers(path: Path) -> Iterator[Offer]:
    """Read the offers of one file, in its order; errors as ``load_offers``."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=OfferFile)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{path}: {error}"
        raise CatalogError(msg) from error
    if file.provider != path.stem:
        msg = f"{path}: provider: {file.provider} is not the file's name"
        raise CatalogError(msg)
    for region, place in file.regions.items():
        _continent(place, f"{path}: regions/{region}")
    for position, row in enumerate(file.offers):
        where = f"{path}: offers/{position} ({row.sku})"
        yield _offer(row, file, where)
        for gpus in row.sizes:
            yield _offer(_scaled(row, gpus, file, where), file, where)


def slug(text: str) -> str:
    """Lower-case ``text`` with runs of other characters than ``a-z 0-9 . _`` turned into one dash."""
    return re.sub(r"[^a-z0-9._]+", "-", text.casefold()).strip("-")


def _scaled(row: OfferRow, gpus: int, file: OfferFile, where: str) -> OfferRow:
    """Repeat a row with more accelerators, where the price is per accelerator and the host grows with them."""
    if row.gpus != 1 or not (row.per or file.defaults.per).startswith("gpu_") or gpus <= 1:
        msg = f"{where}: sizes: only for a row of one accelerator with a price per accelerator"
        raise CatalogError(msg)
    return msgspec.structs.replace(
        row,
        sku=f"{row.sku}-x{gpus}",
        instance_type=f"{gpus}x {row.instance_type or row.sku}",
        gpus=gpus,
        vcpu=row.vcpu and row.vcpu * gpus,
        ram_gb=row.ram_gb and row.ram_gb * gpus,
        flags=(*row.flags, "size_not_quoted"),
    )


def _offer(row: OfferRow, file: OfferFile, where: str) -> Offer:
    defaults = file.defaults
    source = _named(file.sources, row.source or defaults.source, f"{where}: source")
    place = _named(file.regions, row.region, f"{where}: region") if row.region else Place()
    currency = row.currency or defaults.currency
    rate = 1.0 if currency == "USD" else _named(file.exchange, currency, f"{where}: currency").usd
    unit = row.per or defaults.per
    hours = (row.hours_per_month or HOURS_PER_MONTH) if unit.endswith("month") else None
    term = row.term or defaults.term

    def hourly(price: float) -> float:
        return usd_per_hour(
            price, unit, gpus=row.gpus, hours_per_month=hours or HOURS_PER_MONTH, usd_per_currency_unit=rate
        )

    return Offer(
        id=f"{file.provider}/{row.sku}/{slug(row.region) if row.region else _ANYWHERE}/{term}",
        provider=file.provider,
        instance_type=row.instance_type or row.sku,
        gpu=row.gpu,
        gpu_candidates=row.candidates,
        gpu_name=row.gpu_name,
        gpus=row.gpus,
        gpu_fraction=row.fraction,
        gpu_memory_gb=row.memory_gb,
        price_usd_per_hour=None if row.price is None else hourly(row.price),
        price_as_quoted=row.price,
        quoted_unit=unit,
        hours_per_month_used=None if row.price is None else hours,
        currency=currency,
        region=row.region,
        country=place.country,
        continent=_continent(place, where),
        tenancy=row.tenancy or defaults.tenancy,
        term=term,
        min_term_months=row.min_term_months,
        billing_increment=row.billing or defaults.billing,
        setup_fee_usd=round(row.setup_fee * rate, _RATE_DECIMALS),
        interruptible=term == "spot",
        verified=row.verified,
        reliability=row.reliability,
        availability=row.availability,
        availability_checked_at=row.checked_at and _first_day(row.checked_at),
        vcpu=row.vcpu,
        ram_gb=row.ram_gb,
        disk_note=row.disk,
        network_note=row.network or defaults.network,
        includes=defaults.includes if row.includes is None else row.includes,
        as_of=source.as_of and _first_day(source.as_of),
        valid_until=source.valid_until,
        evidence=source.evidence,
        source=source.source,
        flags=_flags(row, source),
        notes="; ".join(filter(None, (row.notes, source.notes))) or None,
        earlier_prices=tuple(EarlierPrice(_first_day(day), hourly(price)) for day, price in row.earlier),
    )


def _flags(row: OfferRow, source: OfferSource) -> tuple[OfferFlag, ...]:
    """List the flags of the row and those that follow from what it does not tell."""
    derived: dict[OfferFlag, bool] = {
        "gpu_ambiguous": bool(row.candidates),
        "quote_required": row.price is None,
        "undated": source.as_of is None,
        "day_unknown": source.as_of is not None and len(source.as_of) < _LENGTH_OF_DAY,
    }
    return (*row.flags, *(flag for flag, holds in derived.items() if holds))


def _first_day(day: str) -> str:
    return day if len(day) == _LENGTH_OF_DAY else f"{day}-01"


def _continent(place: Place, where: str) -> str | None:
    if place.country is None:
        if place.continent is not None and place.continent not in CONTINENTS:
            msg = f"{where}: continent: {place.continent} is none of {', '.join(CONTINENTS)}"
            raise CatalogError(msg)
        return place.continent
    return _named(CONTINENT_OF, place.country, f"{where}: country")


Value = TypeVar("Value")


def _named(table: dict[str, Value], key: str | None, where: str) -> Value:
    if key is None or key not in table:
        msg = f"{where}: {key} is not among {', '.join(sorted(table)) or 'the entries of the head'}"
        raise CatalogError(msg)
    return table[key]
