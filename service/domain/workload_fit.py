"""Whether so many requests of such a length fit the KV pool at once."""

import math

import msgspec

from service.domain.numeric import as_float
from service.domain.subject import Subject
from service.domain.verdict import longest_context, request_bytes


class Asked(msgspec.Struct, frozen=True):
    """A number of requests of one length, at once."""

    context_tokens: int
    concurrent_sequences: int


class WorkloadFit(msgspec.Struct, frozen=True, kw_only=True):
    """An asked concurrency against the KV pool; it never changes the verdict."""

    fits: bool
    required_tokens: int
    """Asked context x asked sequences."""
    shortfall_sequences: int
    """Asked sequences that do not fit at once."""
    max_context_at_concurrency: int
    """Longest context at which the asked sequences fit at once."""
    max_concurrency_at_context: int
    """Requests of the asked context that fit at once, over all data ranks."""


def workload_fit(subject: Subject, pool_bytes: float, asked: Asked) -> WorkloadFit:
    """Compare while they decode: windows and recurrent states at their own size, the rest at the whole context.

    Requests spread evenly over data ranks. A context beyond ``max_model_len`` never fits.
    """
    settings, ranks = subject.deployment.settings, int(as_float(subject.deployment.layout.data))
    if not subject.architecture.cache:
        longest = int(as_float(settings.max_model_len))
    else:
        per_rank = math.ceil(asked.concurrent_sequences / ranks)
        longest = longest_context(subject, max(pool_bytes, 0.0), per_rank, resident=True)
    at_once = requests_at_once(subject, pool_bytes, asked)
    return WorkloadFit(
        fits=at_once >= asked.concurrent_sequences,
        required_tokens=asked.context_tokens * asked.concurrent_sequences,
        shortfall_sequences=max(asked.concurrent_sequences - at_once, 0),
        max_context_at_concurrency=longest,
        max_concurrency_at_context=at_once,
    )


def requests_at_once(subject: Subject, pool_bytes: float, asked: Asked) -> int:
    """Requests of the asked context that fit at once, over all data ranks; the asked number for a model without a cache."""
    if asked.context_tokens > as_float(subject.deployment.settings.max_model_len):
        return 0
    if not subject.architecture.cache:
        return asked.concurrent_sequences
    pool = max(pool_bytes, 0.0)
    each = request_bytes(subject, pool, asked.context_tokens, resident=True)
    return int(pool // each) * int(as_float(subject.deployment.layout.data)) if each > 0.0 else 0
