"""What a hub tells about a model, or why it does not."""

from typing import Literal

import msgspec

from service.domain.message import Message

FailureKind = Literal["not_found", "gated", "unreachable", "refused", "too_large", "bad_config"]
"""``refused``: the id is not ``org/name``; ``not_found`` may be a private repository; ``bad_config``: no or no valid
``config.json``; ``unreachable``: no answer in time, an error of the hub, or a redirect to another host."""

_LONGEST_ECHO = 200


class HubModel(msgspec.Struct, frozen=True, kw_only=True, tag="model", forbid_unknown_fields=True):
    """A repository's ``config.json`` and what its weight files add up to."""

    id: str
    """As the hub spells it."""
    revision: str | None
    """Commit of the repository, where the hub told it."""
    config: dict[str, object]
    """``config.json``; numbers that JSON does not have (``Infinity``, ``NaN``) are None."""
    parameters: int | None
    """Parameters, where the weights' elements are parameters; None where some are packed (see below) or none told."""
    elements_by_dtype: dict[str, int]
    """Elements of the safetensors files by dtype (``BF16``, ``F8_E4M3``, ``U8`` ...), as stored; empty: not told."""
    checkpoint_bytes: int | None
    """Bytes of the weight files that an engine loads."""
    fetched_at_s: float
    """When the hub was asked, seconds since the epoch."""


class HubFailure(msgspec.Struct, frozen=True, kw_only=True, tag="failure", forbid_unknown_fields=True):
    """No model, and why."""

    id: str
    kind: FailureKind
    fetched_at_s: float

    @property
    def message(self) -> Message:
        """The failure for people."""
        return Message(f"hub_{self.kind}", {"id": self.id[:_LONGEST_ECHO]})


HubAnswer = HubModel | HubFailure
