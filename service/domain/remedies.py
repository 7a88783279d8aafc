"""What would make a deployment fit, in order of least harm. Every remedy was evaluated."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from service.domain.accelerator import Accelerator
from service.domain.assembly import card_of
from service.domain.deployment import Deployment, EngineSettings
from service.domain.engine import FRACTION_FIELDS, EngineRequest
from service.domain.engine_settings import resolve_settings, settings_class
from service.domain.message import Message
from service.domain.numeric import as_float
from service.domain.quantization import Quantization, runs_on
from service.domain.remedy_bounds import REFUSALS, cannot_help, settings_could_help
from service.domain.subject import Subject
from service.domain.verdict import Outcome, weigh_unless_refused
from service.domain.weights import precision
from service.domain.workload_fit import Asked, requests_at_once

SEQUENCE_STEPS = (256, 128, 64, 32, 16)
BATCH_STEPS = (2048, 1024, 512)
FRACTION_STEPS = (0.92, 0.95)
SMALLER_FRACTION_STEPS = (0.9, 0.85, 0.8)
"""What is left beside the budget when graphs and the sampler's warm-up come after the pool."""
TENSOR_STEPS = (2, 4, 8, 16)

Patch = dict[str, "str | int | float | bool | dict[str, str | int | float | bool]"]


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the request that was evaluated and fits."""

    code: str
    message: Message
    patch: Patch
    """The changed fields, as a JSON merge patch of the request."""
    capacity_tokens: int
    """Tokens of the KV pool after the change."""
    max_concurrency: float
    """Requests of max_model_len at once after the change."""


class _Change(msgspec.Struct, frozen=True):
    code: str
    message: Message
    patch: Patch
    subject: Subject


class Proposals(msgspec.Struct, frozen=True):
    """What remedies may propose beside other settings; all may be empty."""

    weights: tuple[Quantization, ...] = ()
    kv_caches: tuple[Quantization, ...] = ()
    larger_cards: tuple[Accelerator, ...] = ()


NO_PROPOSALS = Proposals()


def remedies(subject: Subject, outcome: Outcome, asked: Asked | None, proposals: Proposals) -> tuple[Remedy, ...]:
    """Changes after which the deployment starts and, where one is asked, the workload fits.

    Of the steps of one kind (sequences, fraction, ranks, cards) the first that fits is given.
    """
    found: list[Remedy] = []
    for _, steps in groupby(_changes(subject, outcome, asked, proposals), key=lambda change: change.code):
        likely = [change for change in steps if not cannot_help(subject, outcome, change.subject)]
        # Each step of these goes further than the one before: where the last does not fit, none does.
        if len(likely) > 1 and likely[0].code in _RISING and _remedy(likely[-1], asked) is None:
            continue
        remedy = next((one for change in likely if (one := _remedy(change, asked)) is not None), None)
        if remedy is not None:
            found.append(remedy)
    return tuple(found)


_RISING = frozenset({"lower_max_num_seqs", "lower_max_num_batched_tokens", "larger_gpu"})


def _remedy(change: _Change, asked: Asked | None) -> Remedy | None:
    """The change as a remedy; None where the deployment, or the asked workload, does not fit after it."""
    after = weigh_unless_refused(change.subject)
    if after is None or after.reason_code is not None:
        return None
    if asked is not None:
        at_once = requests_at_once(change.subject, as_float(after.parts.kv_cache), asked)
        if at_once < asked.concurrent_sequences:
            return None
    return Remedy(
        code=change.code,
        message=change.message,
        patch=change.patch,
        capacity_tokens=int(as_float(after.capacity.capacity_tokens)),
        max_concurrency=round(as_float(after.capacity.max_concurrency), 2),
    )


def _changes(subject: Subject, outcome: Outcome, asked: Asked | None, proposals: Proposals) -> Iterator[_Change]:
    if outcome.reason_code is None and asked is not None:
        length = asked.context_tokens
        if length > as_float(subject.deployment.settings.max_model_len):
            # Nothing else lets in a request that is longer than the engine takes.
            changed = _with_settings(subject, max_model_len=float(length))
            message = Message("remedy_longer_context", {"tokens": length})
            yield _Change("raise_max_model_len", message, {"engine": {"max_model_len": length}}, changed)
            return
    yield from _shorter_context(subject, outcome, None if asked is None else asked.context_tokens)
    yield from _thinner_cache(subject, proposals.kv_caches)
    if outcome.reason_code not in REFUSALS and settings_could_help(subject, outcome, asked):
        yield from _smaller_batches(subject)
        yield from _larger_share(subject)
        yield from _smaller_share(subject, outcome)
        yield from _no_graphs(subject)
    yield from _thinner_weights(subject, proposals.weights)
    yield from _more_ranks(subject)
    yield from _larger_cards(subject, outcome, proposals.larger_cards)


def _with_settings(subject: Subject, **fields: float) -> Subject:
    settings: EngineSettings = msgspec.structs.replace(subject.deployment.settings, **fields)
    return _with(subject, msgspec.structs.replace(subject.deployment, settings=settings))


def _with(subject: Subject, deployment: Deployment) -> Subject:
    return msgspec.structs.replace(subject, deployment=deployment)


def _shorter_context(subject: Subject, outcome: Outcome, context_tokens: int | None) -> Iterator[_Change]:
    if outcome.reason_code != "context_does_not_fit":
        return
    longest = outcome.longest_context or 0
    length = context_tokens if context_tokens is not None and context_tokens <= longest else longest
    if length > 0:
        changed = _with_settings(subject, max_model_len=float(length))
        message = Message("remedy_shorter_context", {"tokens": length})
        yield _Change("lower_max_model_len", message, {"engine": {"max_model_len": length}}, changed)


def _thinner_cache(subject: Subject, formats: Sequence[Quantization]) -> Iterator[_Change]:
    now = as_float(subject.deployment.precision.kv_bytes)
    for kv_cache in formats:
        if kv_cache.kv_bits is None or kv_cache.kv_bits / 8.0 >= now or runs_on(subject.accelerator, kv_cache):
            continue
        precise = msgspec.structs.replace(subject.deployment.precision, kv_bytes=kv_cache.kv_bits / 8.0)
        changed = _with(subject, msgspec.structs.replace(subject.deployment, precision=precise))
        changed = msgspec.structs.replace(changed, kv_cache=kv_cache)
        message = Message("remedy_kv_format", {"format": kv_cache.id})
        yield _Change("quantize_kv_cache", message, {"kv_cache": kv_cache.id}, changed)


def _smaller_batches(subject: Subject) -> Iterator[_Change]:
    settings = subject.deployment.settings
    for sequences in SEQUENCE_STEPS:
        if sequences < as_float(settings.max_num_seqs):
            changed = _with_settings(subject, max_num_seqs=float(sequences))
            message = Message("remedy_fewer_sequences", {"sequences": sequences})
            yield _Change("lower_max_num_seqs", message, {"engine": {"max_num_seqs": sequences}}, changed)
    for tokens in BATCH_STEPS:
        if settings.chunked_prefill and tokens < as_float(settings.max_num_batched_tokens):
            changed = _with_settings(
                subject,
                max_num_batched_tokens=float(tokens),
                max_num_seqs=min(as_float(settings.max_num_seqs), 256.0),
            )
            sequences = int(as_float(changed.deployment.settings.max_num_seqs))
            patch: Patch = {"engine": {"max_num_batched_tokens": tokens, "max_num_seqs": sequences}}
            yield _Change(
                "lower_max_num_batched_tokens", Message("remedy_smaller_batch", {"tokens": tokens}), patch, changed
            )


def _larger_share(subject: Subject) -> Iterator[_Change]:
    field = FRACTION_FIELDS.get(subject.behaviour.memory_rule)
    if field is None:
        return
    for fraction in FRACTION_STEPS:
        if fraction > as_float(subject.deployment.settings.memory_fraction):
            changed = _with_settings(subject, memory_fraction=fraction)
            message = Message("remedy_larger_share", {"field": field, "value": fraction})
            yield _Change("raise_memory_fraction", message, {"engine": {field: fraction}}, changed)


def _smaller_share(subject: Subject, outcome: Outcome) -> Iterator[_Change]:
    field = FRACTION_FIELDS.get(subject.behaviour.memory_rule)
    if field is None or outcome.reason_code != "out_of_memory_at_load":
        return
    for fraction in SMALLER_FRACTION_STEPS:
        if fraction < as_float(subject.deployment.settings.memory_fraction):
            changed = _with_settings(subject, memory_fraction=fraction)
            message = Message("remedy_smaller_share", {"field": field, "value": fraction})
            yield _Change("lower_memory_fraction", message, {"engine": {field: fraction}}, changed)


def _no_graphs(subject: Subject) -> Iterator[_Change]:
    if subject.behaviour.graphs_in_budget and as_float(subject.deployment.settings.cuda_graphs) > 0.0:
        changed = _with_settings(subject, cuda_graphs=0.0)
        yield _Change("enforce_eager", Message("remedy_no_graphs"), {"engine": {"enforce_eager": True}}, changed)


def _thinner_weights(subject: Subject, formats: Sequence[Quantization]) -> Iterator[_Change]:
    for weights in sorted(formats, key=lambda each: -each.bits_per_weight):
        thinner = weights.quantizes and weights.bits_per_weight < subject.weights.bits_per_weight
        if not thinner or runs_on(subject.accelerator, weights) is not None:
            continue
        precise = precision(subject.architecture, weights, subject.kv_cache, subject.checkpoint_bytes)
        changed = _with(subject, msgspec.structs.replace(subject.deployment, precision=precise))
        changed = msgspec.structs.replace(changed, weights=weights)
        code = "quantize_weights" if weights.made_by_engine else "quantized_checkpoint"
        message = Message(f"remedy_{code}", {"format": weights.id, "risk": weights.quality_risk})
        yield _Change(code, message, {"weights": weights.id}, changed)


def _more_ranks(subject: Subject) -> Iterator[_Change]:
    layout = subject.deployment.layout
    most = subject.accelerator.max_gpus_per_node
    for tensor in TENSOR_STEPS:
        if as_float(layout.tensor) < tensor <= most:
            wider = msgspec.structs.replace(layout, tensor=float(tensor))
            changed = _with(subject, msgspec.structs.replace(subject.deployment, layout=wider))
            message = Message("remedy_more_ranks", {"ranks": tensor, "gpu": subject.accelerator.id})
            yield _Change("raise_tensor_parallel", message, {"parallelism": {"tensor": tensor}}, changed)


def _larger_cards(subject: Subject, outcome: Outcome, cards: Sequence[Accelerator]) -> Iterator[_Change]:
    """Cards with more memory, smallest first; not those that the weights as they are exceed."""
    now, weights = as_float(subject.deployment.card.usable_memory_bytes), as_float(outcome.counted.weights)
    larger = (each for each in cards if each.usable_memory_bytes > max(now, weights))
    request = subject.request or EngineRequest(name=subject.behaviour.engine)
    layout, drafted = subject.deployment.layout, as_float(subject.deployment.settings.draft_bytes)
    known: dict[tuple[object, ...], EngineSettings] = {}
    for accelerator in sorted(larger, key=lambda each: each.usable_memory_bytes):
        kind = settings_class(accelerator, subject.behaviour)
        if kind not in known:
            args = (request, subject.architecture, accelerator, layout, subject.behaviour, drafted)
            known[kind], _ = resolve_settings(*args)
        card = card_of(accelerator, subject.weights)
        deployment = msgspec.structs.replace(subject.deployment, card=card, settings=known[kind])
        changed = msgspec.structs.replace(_with(subject, deployment), accelerator=accelerator)
        message = Message("remedy_larger_card", {"gpu": accelerator.id})
        yield _Change("larger_gpu", message, {"gpu": accelerator.id}, changed)
