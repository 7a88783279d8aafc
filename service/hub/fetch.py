"""Ask a hub about one model: its ``config.json``, and what its weights add up to; the weights never.

Everything here blocks and belongs in a worker thread. Like ``guard``, import it only where a hub is enabled.
"""

import time
from collections.abc import Callable

import httpx2
from huggingface_hub import HfApi, ModelInfo, get_session, hf_hub_url, hf_raise_for_status, is_offline_mode
from huggingface_hub.constants import SAFETENSORS_INDEX_FILE, SAFETENSORS_SINGLE_FILE
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    SafetensorsParsingError,
)
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # public, not marked as exported

from service.domain.units import MIB
from service.hub.config_json import parse_config
from service.hub.guard import Bounds, OutOfBounds, TooLarge, current, install
from service.hub.records import FailureKind, HubFailure, HubModel
from service.hub.weights import Weights, has_safetensors, weights_of_elements, weights_of_index, weights_of_info

install()

CONFIG_BYTES = 1 * MIB
_INFO_BYTES = 4 * MIB
"""The hub's description of a repository with a thousand files takes some hundred kilobytes."""
HEADER_BYTES = 8 * MIB
"""A safetensors header or index; the largest models (100,000 tensors) need that. A whole file is never read."""
_FORBIDDEN = 403
_MISSING = frozenset({401, 404, 410})
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError, SafetensorsParsingError)
"""What the client library raises on documents that are not what it expects."""


def fetch_model(
    model_id: str, *, endpoint: str, token: str | None, limit_s: float, clock: Callable[[], float]
) -> HubModel | HubFailure:
    """Ask the hub within ``limit_s`` seconds. ``clock``: seconds since the epoch. Never raises for what a hub does."""
    bounds = Bounds(endpoint=endpoint, deadline=time.monotonic() + limit_s, body_bytes=CONFIG_BYTES)
    reset = current.set(bounds)
    try:
        return _Lookup(model_id, endpoint, token, bounds, clock).answer()
    except TooLarge:
        kind: FailureKind = "too_large"
    except HfHubHTTPError as fault:
        kind = _kind(fault)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        kind = "unreachable"
    finally:
        current.reset(reset)
    return HubFailure(id=model_id, kind=kind, fetched_at_s=clock())


def _kind(fault: HfHubHTTPError) -> FailureKind:
    status = fault.response.status_code
    if isinstance(fault, GatedRepoError) or status == _FORBIDDEN:
        return "gated"
    if isinstance(fault, EntryNotFoundError):
        return "bad_config"
    if isinstance(fault, RepositoryNotFoundError) or status in _MISSING:
        return "not_found"
    return "unreachable"


class _Lookup:
    """The requests of one lookup; at most four."""

    def __init__(
        self, model_id: str, endpoint: str, token: str | None, bounds: Bounds, clock: Callable[[], float]
    ) -> None:
        self._id = model_id
        self._endpoint = endpoint
        self._token: str | bool = token or False  # False: do not look for one on disk
        self._bounds = bounds
        self._clock = clock
        self._api = HfApi(endpoint=endpoint, token=self._token)

    def answer(self) -> HubModel | HubFailure:
        if is_offline_mode():
            return HubFailure(id=self._id, kind="unreachable", fetched_at_s=self._clock())
        file = self._get("config.json", CONFIG_BYTES)
        config = parse_config(file.content)
        if config is None:
            return HubFailure(id=self._id, kind="bad_config", fetched_at_s=self._clock())
        info = self._info()
        weights = weights_of_info(info) if info is not None else Weights()
        if not weights.known and (info is None or has_safetensors(info)):
            weights = self._read_headers()
        self._bounds.left_s()
        return HubModel(
            id=self._id if info is None else info.id,
            revision=file.headers.get("x-repo-commit") or (None if info is None else info.sha),
            config=config,
            parameters=weights.parameters,
            elements_by_dtype=weights.elements_by_dtype,
            checkpoint_bytes=weights.checkpoint_bytes,
            fetched_at_s=self._clock(),
        )

    def _info(self) -> ModelInfo | None:
        """Return the hub's description of the repository; None where a mirror serves files alone."""
        self._bounds.body_bytes = _INFO_BYTES
        try:
            info = self._api.model_info(self._id, files_metadata=True)
        except HfHubHTTPError as fault:
            if fault.response.status_code in _MISSING:
                return None
            raise
        except (TooLarge, *_MALFORMED):
            return None  # not the document that the client library expects
        return info if isinstance(info.id, str) and isinstance(info.sha, str | None) else None

    def _read_headers(self) -> Weights:
        """Read the header of a single safetensors file, or the index of several, where the hub itself serves them."""
        try:
            self._bounds.body_bytes = HEADER_BYTES
            header = self._api.parse_safetensors_file_metadata(self._id, SAFETENSORS_SINGLE_FILE)
            return weights_of_elements({str(dtype): count for dtype, count in header.parameter_count.items()})
        except (HfHubHTTPError, OutOfBounds, *_MALFORMED):
            pass
        try:
            return weights_of_index(self._get(SAFETENSORS_INDEX_FILE, HEADER_BYTES).content)
        except (HfHubHTTPError, OutOfBounds):
            return Weights()

    def _get(self, filename: str, body_bytes: int) -> httpx2.Response:
        self._bounds.body_bytes = body_bytes
        response = get_session().get(
            hf_hub_url(self._id, filename, endpoint=self._endpoint), headers=build_hf_headers(token=self._token)
        )
        hf_raise_for_status(response)
        return response
