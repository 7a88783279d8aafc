"""Everything that an answer rests on, read once, cross-checked, indexed and hashed; never changed afterwards."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import EngineTable, load_engines
from service.catalog.gpu_names import GpuIndex, build_gpu_index
from service.catalog.instances import load_instances
from service.catalog.models import Model, load_models
from service.catalog.offers import load_offers
from service.catalog.profiles import load_profiles
from service.catalog.providers import load_providers
from service.catalog.quantizations import build_quantization_index, load_quantizations
from service.catalog.references import check_references
from service.domain.accelerator import Accelerator
from service.domain.calibration import Profiles
from service.domain.engine import EngineName
from service.domain.fleet import Fleet, compile_fleet
from service.domain.instance_type import InstanceType
from service.domain.market import Market, compile_market
from service.domain.offer import Offer, Provider
from service.domain.quantization import Quantization
from service.domain.weights import FLOAT_BYTES

PACKAGED = Path(__file__).parent / "data"
"""The catalogs that ship with the service: the floor it always starts from."""

_DIGEST_CHARACTERS = 16


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """One revision of all catalogs, compared by identity."""

    catalog_revision: str
    profile_revision: str
    models: dict[str, Model]
    accelerators: dict[str, Accelerator]
    """Whole cards and their slices."""
    quantizations: dict[str, Quantization]
    engines: dict[EngineName, EngineTable]
    providers: dict[str, Provider]
    offers: dict[str, Offer]
    instances: tuple[InstanceType, ...]
    profiles: Profiles
    quantized_checkpoints: dict[str, tuple[Model, ...]]
    """Published quantized checkpoints by base model."""
    gpu_index: GpuIndex
    quantization_index: dict[str, str]
    fleet: Fleet
    market: Market
    widely_sold: dict[str, tuple[Accelerator, ...]]
    """By vendor: whole cards that at least three offers sell, the smallest first."""


def load_snapshot(folder: Path = PACKAGED) -> Snapshot:
    """Read and check all catalogs of ``folder``.

    Raises:
        CatalogError: A file is broken or refers to something that no file holds; names the file and the place.

    """
    accelerators = load_accelerators(folder / "accelerators")
    quantizations = load_quantizations(folder / "quantizations.json")
    providers = {provider.id: provider for provider in load_providers(folder / "providers")}
    offers = load_offers(folder / "offers")
    models = load_models(folder / "models")
    engines = load_engines(folder / "engines")
    instances = load_instances(folder / "instances.json")
    check_references(accelerators, quantizations, engines, providers, offers, instances, models.values())
    fleet = compile_fleet(tuple(accelerators.values()), quantizations)
    return Snapshot(
        catalog_revision=_digest(folder, profiles=False),
        profile_revision=_digest(folder, profiles=True),
        models=models,
        accelerators=accelerators,
        quantizations=quantizations,
        engines=engines,
        providers=providers,
        offers={offer.id: offer for offer in offers},
        instances=instances,
        profiles=load_profiles(folder / "profiles"),
        quantized_checkpoints=_quantized_checkpoints(models),
        gpu_index=build_gpu_index(accelerators, Counter(offer.gpu for offer in offers if offer.gpu)),
        quantization_index=build_quantization_index(quantizations.values()),
        fleet=fleet,
        market=compile_market(offers, providers, fleet),
        widely_sold=_widely_sold(accelerators, offers),
    )


def _quantized_checkpoints(models: Mapping[str, Model]) -> dict[str, tuple[Model, ...]]:
    by_base: dict[str, list[Model]] = {}
    for model in models.values():
        if model.base_model and model.architecture.checkpoint_format not in FLOAT_BYTES:
            by_base.setdefault(model.base_model, []).append(model)
    return {base: tuple(sorted(found, key=lambda model: model.id)) for base, found in by_base.items()}


_WIDELY = 3


def _widely_sold(
    accelerators: Mapping[str, Accelerator], offers: Sequence[Offer]
) -> dict[str, tuple[Accelerator, ...]]:
    counted = Counter(offer.gpu for offer in offers if offer.price_usd_per_hour is not None)
    by_vendor: dict[str, list[Accelerator]] = {}
    for accelerator in accelerators.values():
        if counted[accelerator.id] >= _WIDELY and "/" not in accelerator.id:
            by_vendor.setdefault(accelerator.vendor, []).append(accelerator)
    return {
        vendor: tuple(sorted(cards, key=lambda card: (card.usable_memory_bytes, card.id)))
        for vendor, cards in by_vendor.items()
    }


def _digest(folder: Path, *, profiles: bool) -> str:
    """Hash of the names and bytes of all data files, of the profiles or of everything else."""
    digest = sha256()
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        if name.startswith("profiles/") is profiles:
            digest.update(f"{name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]
