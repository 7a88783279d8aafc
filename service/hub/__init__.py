"""Models outside the catalog, looked up on a Hugging Face hub: their config and the counts of their weights."""

from service.hub.ids import is_hub_id
from service.hub.records import FailureKind, HubFailure, HubModel
from service.hub.resolver import HubResolver

__all__ = ["FailureKind", "HubFailure", "HubModel", "HubResolver", "is_hub_id"]
