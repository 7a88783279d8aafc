"""References from one catalog file into another: each must lead to an entry that is there."""

from collections.abc import Container, Iterable, Iterator, Mapping

from service.catalog.engines import EngineTable
from service.catalog.models import Model
from service.domain.accelerator import Accelerator
from service.domain.engine import EngineName
from service.domain.errors import CatalogError
from service.domain.instance_type import InstanceType
from service.domain.offer import Offer, Provider
from service.domain.quantization import Quantization

Reference = tuple[str, str, str, Container[str]]
"""File, place in it, id referred to, and the ids there are."""


def check_references(  # noqa: PLR0913 - one argument a catalog
    accelerators: Mapping[str, Accelerator],
    quantizations: Mapping[str, Quantization],
    engines: Mapping[EngineName, EngineTable],
    providers: Mapping[str, Provider],
    offers: Iterable[Offer],
    instances: Iterable[InstanceType],
    models: Iterable[Model],
) -> None:
    """Raise ``CatalogError`` with file and place of the first reference that leads nowhere."""
    found = (
        *_of_offers(offers, providers, accelerators),
        *_of_instances(instances, accelerators),
        *_of_models(models, quantizations),
        *_of_engines(engines, accelerators, quantizations),
    )
    for file, place, name, known in found:
        if name not in known:
            msg = f"{file}: {place}: {name} is in no file"
            raise CatalogError(msg)


def _of_offers(offers: Iterable[Offer], providers: Container[str], accelerators: Container[str]) -> Iterator[Reference]:
    for offer in offers:
        file = f"offers/{offer.provider}.json"
        yield file, offer.id, offer.provider, providers
        for gpu in (offer.gpu, *offer.gpu_candidates):
            if gpu is not None:
                yield file, offer.id, gpu, accelerators


def _of_instances(instances: Iterable[InstanceType], accelerators: Container[str]) -> Iterator[Reference]:
    for instance in instances:
        for gpu in (instance.gpu, *instance.gpu_candidates):
            if gpu is not None:
                yield "instances.json", f"{instance.cloud}/{instance.instance_type}", gpu, accelerators


def _of_models(models: Iterable[Model], quantizations: Container[str]) -> Iterator[Reference]:
    for model in models:
        stored = (model.architecture.checkpoint_format, model.architecture.checkpoint_kv_cache)
        for name in stored:
            if name is not None:
                yield "models", model.id, name, quantizations


def _of_engines(
    engines: Mapping[EngineName, EngineTable], accelerators: Container[str], quantizations: Container[str]
) -> Iterator[Reference]:
    targets = {"card": accelerators, "weights": quantizations, "kv_cache": quantizations}
    for engine, table in engines.items():
        for row in table.file.support:
            for name in row.ids:
                if row.what in targets and not name.endswith("*"):
                    yield f"engines/{engine}.json", f"support: {row.what}", name, targets[row.what]
