"""Models that no catalog holds, as the hub tells about them."""

from service.catalog.hf import architecture_from_config
from service.catalog.model_names import resolve_model
from service.catalog.models import with_parameters
from service.domain.architecture import Architecture
from service.domain.errors import SizingError, UnknownId
from service.domain.message import Message
from service.hub import HubFailure, HubModel, is_hub_id


def missing_model(body: object, snapshot: object) -> str | None:
    """The model id of a body that could be asked of a hub: no catalog has it, and it is ``org/name``."""
    named = getattr(body, "model", None)
    if named is not None and not isinstance(named, str):
        named = None if named.config is not None else named.id
    models = getattr(snapshot, "models", None)
    if named is None or models is None or not is_hub_id(named) or resolve_model(named, models) is not None:
        return None
    return str(named)


def hub_architecture(found: HubModel) -> Architecture:
    """The architecture of a hub's config, with the hub's own parameter count.

    Raises:
        UnknownId: The config is none that can be sized.

    """
    try:
        architecture = architecture_from_config(found.config)
    except SizingError as error:
        raise UnknownId("/model", Message("hub_config_unusable", {"id": found.id})) from error
    return architecture if found.parameters is None else with_parameters(architecture, found.parameters)


def refuse(failure: HubFailure, pointer: str, suggestions: tuple[str, ...]) -> UnknownId:
    """The fault of an id that neither a catalog nor the hub resolves."""
    return UnknownId(pointer, failure.message, suggestions)
