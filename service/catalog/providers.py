"""Read the provider files (one a provider) and find a provider by any of its names."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import msgspec

from service.domain.errors import CatalogError
from service.domain.geography import squeeze
from service.domain.offer import PROVIDER_ATTRIBUTES, Attribute, Provider

_UNKNOWN = Attribute()


def load_providers(folder: Path) -> tuple[Provider, ...]:
    """All providers of a folder, sorted by id, with every attribute present (``unknown`` where the file is silent).

    Raises ``CatalogError`` naming the file and place for unreadable data, an attribute that does not exist, an id that
    is not the file's name, or a name that two providers share.
    """
    providers = tuple(read_provider(path) for path in sorted(folder.glob("*.json")))
    owner: dict[str, str] = {}
    for provider in providers:
        for name in {squeeze(name) for name in (provider.id, provider.name, *provider.aliases)}:
            if owner.setdefault(name, provider.id) != provider.id:
                msg = f"{folder / provider.id}.json: aliases: {name} also names {owner[name]}"
                raise CatalogError(msg)
    return tuple(sorted(providers, key=lambda provider: provider.id))


def read_provider(path: Path) -> Provider:
    """Read one provider; errors as ``load_providers``."""
    try:
        provider = msgspec.convert(_known_members(path), type=Provider)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        msg = f"{path}: {error}"
        raise CatalogError(msg) from error
    if provider.id != path.stem:
        msg = f"{path}: id: {provider.id} is not the file's name"
        raise CatalogError(msg)
    for name, attribute in provider.attributes.items():
        if name not in PROVIDER_ATTRIBUTES:
            msg = f"{path}: attributes/{name}: no such attribute"
            raise CatalogError(msg)
        if attribute.value != "unknown" and not (attribute.source and attribute.evidence):
            msg = f"{path}: attributes/{name}: a known value needs its source and evidence"
            raise CatalogError(msg)
    complete = {name: provider.attributes.get(name, _UNKNOWN) for name in PROVIDER_ATTRIBUTES}
    return msgspec.structs.replace(provider, attributes=complete)


def resolve_provider(name: str, providers: Iterable[Provider]) -> str | None:
    """Id of the provider with that id, name or alias; case, spaces and dashes do not matter. None: no such provider."""
    return _ids_by_name(providers).get(squeeze(name))


def closest_providers(name: str, providers: Iterable[Provider], limit: int = 3) -> tuple[str, ...]:
    """Ids whose names are most like a name that resolves to none, best first."""
    ids = _ids_by_name(providers)
    close = get_close_matches(squeeze(name), sorted(ids), n=limit * 2, cutoff=0.5)
    return tuple(dict.fromkeys(ids[match] for match in close))[:limit]


def _ids_by_name(providers: Iterable[Provider]) -> dict[str, str]:
    return {
        squeeze(name): provider.id for provider in providers for name in (*provider.aliases, provider.name, provider.id)
    }


def _known_members(path: Path) -> dict[str, object]:
    """Decode the file; the domain record takes unknown members silently, a file may not have any."""
    raw = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    if unknown := raw.keys() - set(Provider.__struct_fields__):
        msg = f"{path}: {', '.join(sorted(unknown))}: no such member"
        raise CatalogError(msg)
    return raw
