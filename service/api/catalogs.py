"""``GET`` of the catalogs: models, gpus, quantizations, engines, providers, offers; lists with filters, and single entries."""

from typing import Annotated

import msgspec
from msgspec import Meta

from service.api.call import Call, Provenance, provenance
from service.api.fault import closest
from service.api.listing import ListQuery, Page, page
from service.api.operation import operation
from service.api.resolve import Gathered, catalog_gpu
from service.api.sizing import SizingQuery
from service.catalog.model_names import closest_models, resolve_model
from service.catalog.snapshot import Snapshot
from service.domain.errors import UnknownId
from service.domain.message import Message
