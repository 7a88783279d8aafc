"""``GET`` of the catalogs: models, gpus, quantizations, engines, providers, offers; lists with filters, single entries by id."""

import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from service.api.call import Call, Provenance, provenance
from service.api.fault import closest
from service.api.listing import ListQuery, Page, page
from service.api.operation import operation
from service.api.resolve import Gathered, catalog_gpu, read_offer
from service.api.sizing import RevisionQuery, extended
from service.catalog.engines import BehaviourRow, SupportRow, VersionRow, shown_version
from service.catalog.model_names import closest_models, resolve_model
from service.catalog.models import Kind, Model
from service.catalog.providers import closest_providers, resolve_provider
from service.catalog.quantizations import resolve_quantization
from service.catalog.snapshot import Snapshot
from service.domain.accelerator import Accelerator
from service.domain.engine import EngineName
from service.domain.errors import UnknownId
from service.domain.message import Message
from service.domain.offer import Offer, Provider, Tenancy, Term
from service.domain.offer_terms import age_days, is_stale
from service.domain.quantization import Quantization
from service.domain.units import GIB

Words = Annotated[str, Meta(max_length=200, description="Part of the id or name; letter case does not matter.")]


class ModelQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of the models."""

    q: Words | None = None
    kind: Annotated[Kind | None, Meta(description="What the model does.")] = None
    model_type: Annotated[str, Meta(max_length=100, description="`model_type` of the config.")] | None = None


class GpuQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of the accelerators."""

    q: Words | None = None
    vendor: Annotated[str, Meta(max_length=100)] | None = None
    architecture: Annotated[str, Meta(max_length=100)] | None = None
    min_memory_gib: Annotated[float, Meta(ge=0, le=100_000, description="Memory as the driver reports it.")] | None = (
        None
    )
    slices: Annotated[bool, Meta(description="List MIG slices too.")] = False


class OfferQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of the offers."""

    q: Words | None = None
    provider: Annotated[str, Meta(max_length=100)] | None = None
    gpu: Annotated[str, Meta(max_length=200, description="An accelerator by any of its names.")] | None = None
    term: Term | None = None
    tenancy: Tenancy | None = None
    country: Annotated[str, Meta(max_length=2, description="ISO 3166-1 alpha-2.")] | None = None
    max_usd_per_gpu_hour: Annotated[float, Meta(ge=0, le=1e6)] | None = None


class PlainQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A list with a text filter only."""

    q: Words | None = None


class EngineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An engine: the versions known, and what changed in them."""

    id: EngineName
    newest_version: str
    versions: tuple[VersionRow, ...]
    behaviour: tuple[BehaviourRow, ...]
    """Rows of one field hold for bands of versions that do not overlap."""
    support: tuple[SupportRow, ...]


class OfferEntry(Offer, frozen=True, kw_only=True):
    """An offer with the age of its price."""

    price_usd_per_gpu_hour: float | None
    age_days: int | None
    stale: bool


class ModelDetail(Model, frozen=True, kw_only=True):
    """A model with what it rests on."""

    provenance: Provenance


class GpuDetail(Accelerator, frozen=True, kw_only=True):
    """An accelerator with what it rests on; a request may send it back as `gpu`."""

    provenance: Provenance


class QuantizationDetail(Quantization, frozen=True, kw_only=True):
    """A format with what it rests on."""

    provenance: Provenance


class EngineDetail(EngineEntry, frozen=True, kw_only=True):
    """An engine with what it rests on."""

    provenance: Provenance


class ProviderDetail(Provider, frozen=True, kw_only=True):
    """A provider with what it rests on."""

    provenance: Provenance


class OfferDetail(OfferEntry, frozen=True, kw_only=True):
    """An offer with what it rests on."""

    provenance: Provenance


def _has(text: str | None, *places: str) -> bool:
    return text is None or any(text.lower() in place.lower() for place in places)


def _is(wanted: str | None, value: str | None) -> bool:
    return wanted is None or (value is not None and wanted.lower() == value.lower())


@operation("GET", "/v1/models", tag="catalogs")
def list_models(call: Call[Snapshot], query: ModelQuery) -> Page[Model]:
    """Models of the catalog, in the order of their ids."""
    found = [
        model
        for model in call.snapshot.models.values()
        if _has(query.q, model.id)
        and _is(query.kind, model.kind)
        and _is(query.model_type, model.architecture.model_type)
    ]
    return page(sorted(found, key=lambda model: model.id), query, call)


@operation("GET", "/v1/models/{id:path}", tag="catalogs")
def get_model(call: Call[Snapshot], id: str, query: RevisionQuery) -> ModelDetail:  # noqa: A002 - the contract's name
    """A model by its Hugging Face id, in any letter case; quantized and fine-tuned names give their base."""
    del query
    match = resolve_model(id, call.snapshot.models)
    if match is None:
        raise UnknownId("/id", Message("unknown_model", {"id": id[:200]}), closest_models(id, call.snapshot.models))
    return extended(ModelDetail, match.model, provenance=provenance(call.snapshot, call.today))


@operation("GET", "/v1/gpus", tag="catalogs")
def list_gpus(call: Call[Snapshot], query: GpuQuery) -> Page[Accelerator]:
    """Accelerators of the catalog, in the order of their ids."""
    least = (query.min_memory_gib or 0.0) * GIB
    found = [
        card
        for card in call.snapshot.fleet.accelerators
        if (query.slices or "/" not in card.id)
        and _has(query.q, card.id, *card.aliases)
        and _is(query.vendor, card.vendor)
        and _is(query.architecture, card.architecture)
        and card.memory_bytes >= least
    ]
    return page(found, query, call)


@operation("GET", "/v1/gpus/{id:path}", tag="catalogs")
def get_gpu(call: Call[Snapshot], id: str, query: RevisionQuery) -> GpuDetail:  # noqa: A002 - the contract's name
    """An accelerator by any of its names; a MIG slice as `<card>/<profile>`."""
    del query
    card = catalog_gpu(id, "/id", call.snapshot, Gathered())
    return extended(GpuDetail, card, provenance=provenance(call.snapshot, call.today))


@operation("GET", "/v1/quantizations", tag="catalogs")
def list_quantizations(call: Call[Snapshot], query: PlainQuery) -> Page[Quantization]:
    """Weight and KV formats of the catalog."""
    formats = call.snapshot.quantizations.values()
    return page([one for one in formats if _has(query.q, one.id, *one.aliases)], query, call)


@operation("GET", "/v1/quantizations/{id:path}", tag="catalogs")
def get_quantization(call: Call[Snapshot], id: str, query: RevisionQuery) -> QuantizationDetail:  # noqa: A002
    """A format by its id or any alias."""
    del query
    known = call.snapshot.quantizations
    found = known.get(resolve_quantization(id, call.snapshot.quantization_index) or "")
    if found is None:
        raise UnknownId("/id", Message("unknown_format", {"id": id[:200]}), closest(id, known))
    return extended(QuantizationDetail, found, provenance=provenance(call.snapshot, call.today))


def _engine(name: EngineName, snapshot: Snapshot) -> EngineEntry:
    table = snapshot.engines[name]
    return EngineEntry(
        id=name,
        newest_version=shown_version(name, table.newest),
        versions=table.file.versions,
        behaviour=table.file.behaviour,
        support=table.file.support,
    )


@operation("GET", "/v1/engines", tag="catalogs")
def list_engines(call: Call[Snapshot], query: PlainQuery) -> Page[EngineEntry]:
    """Inference engines with their versions and behaviour."""
    names = sorted(name for name in call.snapshot.engines if _has(query.q, name))
    return page([_engine(name, call.snapshot) for name in names], query, call)


@operation("GET", "/v1/engines/{id:path}", tag="catalogs")
def get_engine(call: Call[Snapshot], id: str, query: RevisionQuery) -> EngineDetail:  # noqa: A002 - the contract's name
    """An engine by its id."""
    del query
    name = next((name for name in call.snapshot.engines if name == id.lower()), None)
    if name is None:
        raise UnknownId("/id", Message("unknown_engine", {"id": id[:200]}), tuple(sorted(call.snapshot.engines)))
    based_on = provenance(call.snapshot, call.today)
    return extended(EngineDetail, _engine(name, call.snapshot), provenance=based_on)


@operation("GET", "/v1/providers", tag="catalogs")
def list_providers(call: Call[Snapshot], query: PlainQuery) -> Page[Provider]:
    """Providers, also those without a proven price, with what is known of how they run their machines."""
    found = [one for one in call.snapshot.providers.values() if _has(query.q, one.id, one.name, *one.aliases)]
    return page(found, query, call)


@operation("GET", "/v1/providers/{id:path}", tag="catalogs")
def get_provider(call: Call[Snapshot], id: str, query: RevisionQuery) -> ProviderDetail:  # noqa: A002
    """A provider by any of its names."""
    del query
    known = call.snapshot.providers
    found = resolve_provider(id, known.values())
    if found is None:
        raise UnknownId("/id", Message("unknown_provider", {"id": id[:200]}), closest_providers(id, known.values()))
    return extended(ProviderDetail, known[found], provenance=provenance(call.snapshot, call.today))


def _offer(offer: Offer, snapshot: Snapshot, today: datetime.date) -> OfferEntry:
    return extended(
        OfferEntry,
        offer,
        price_usd_per_gpu_hour=offer.usd_per_gpu_hour,
        age_days=age_days(offer, today),
        stale=is_stale(offer, snapshot.providers[offer.provider], today),
    )


@operation("GET", "/v1/offers", tag="catalogs")
def list_offers(call: Call[Snapshot], query: OfferQuery) -> Page[OfferEntry]:
    """Offers, in the order of their ids, each with the date, age and source of its price."""
    snapshot = call.snapshot
    gpu = None if query.gpu is None else catalog_gpu(query.gpu, "?gpu", snapshot, Gathered()).id
    provider = None
    if query.provider is not None:
        provider = resolve_provider(query.provider, snapshot.providers.values())
        if provider is None:
            message = Message("unknown_provider", {"id": query.provider})
            raise UnknownId("?provider", message, closest_providers(query.provider, snapshot.providers.values()))
    most = query.max_usd_per_gpu_hour
    found = [
        offer
        for offer in snapshot.market.offers
        if _has(query.q, offer.id, offer.gpu_name)
        and _is(provider, offer.provider)
        and _is(gpu, offer.gpu)
        and _is(query.term, offer.term)
        and _is(query.tenancy, offer.tenancy)
        and _is(query.country, offer.country)
        and (most is None or ((price := offer.usd_per_gpu_hour) is not None and price <= most))
    ]
    cut = page(found, query, call)
    shown = [_offer(offer, snapshot, call.today) for offer in cut.items]
    return Page(shown, cut.total, cut.next_cursor, cut.provenance)


@operation("GET", "/v1/offers/{id:path}", tag="catalogs")
def get_offer(call: Call[Snapshot], id: str, query: RevisionQuery) -> OfferDetail:  # noqa: A002 - the contract's name
    """An offer by its id `provider/sku/region/term`."""
    del query
    offer = read_offer(id, call.snapshot, "/id")
    based_on = provenance(call.snapshot, call.today)
    return extended(OfferDetail, _offer(offer, call.snapshot, call.today), provenance=based_on)


CATALOG_OPERATIONS = (
    list_models,
    get_model,
    list_gpus,
    get_gpu,
    list_quantizations,
    get_quantization,
    list_engines,
    get_engine,
    list_providers,
    get_provider,
    list_offers,
    get_offer,
)
