"""The floor of the HTTP layer: a POST that reads a body of any size and answers prepared bytes, and does nothing else.

Budgets are ratios to this application, measured in the same run, since absolute rates of shared machines swing. It has
the product's own server settings, body checks, observation and headers:

    gunicorn -c deploy/gunicorn.conf.py loadtests.noop:app
"""

import os
from datetime import date
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from service.api.application import http_application
from service.api.call import Call, Runtime
from service.api.health import Check
from service.api.operation import operation
from service.api.reply import Reply
from service.api.revisions import Revisions
from service.log import configure_logging
from service.settings import read_settings

_OVERHEAD_BYTES = len(b'{"padding":""}')


class AnswerSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much to answer."""

    answer_bytes: Annotated[int, Meta(ge=_OVERHEAD_BYTES, le=1_000_000)] = 4_000


_prepared: dict[int, bytes] = {}


def _answer(size_bytes: int) -> bytes:
    if size_bytes not in _prepared:
        _prepared[size_bytes] = b'{"padding":"' + b"x" * (size_bytes - _OVERHEAD_BYTES) + b'"}'
    return _prepared[size_bytes]


@operation("POST", "/noop", tag="operations", answer=dict[str, str])
def do_nothing(call: Call[None], body: dict[str, Any], query: AnswerSize) -> Reply:
    """Answer prepared bytes."""
    del call, body
    return Reply(_answer(query.answer_bytes))


configure_logging(read_settings(os.environ).log_level)
app = http_application(
    [do_nothing],
    Runtime(Revisions(), lambda: date(2026, 1, 1)),
    checks=lambda: {"floor": Check("ready")},
)
