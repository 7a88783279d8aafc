"""Schemathesis hooks: ids are drawn from the service's own lists, refusals of meaning are told apart, cases are counted.

A drawn text at the place of an id hardly ever names anything, so nine of ten are replaced by an id of the catalog; which
one follows from the text, so the same seed gives the same cases. Only texts that the schema allows at that place are
replaced: what makes a case invalid stays as it is, and one id in ten stays unknown. Likewise a drawn config gets the
members that every model has, and a drawn log comes after a real one.
"""

import atexit
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData

SERVICE = os.environ["CONTRACT_SERVICE_URL"]
COUNTS = Path(os.environ["CONTRACT_COUNTS"])
REFUSALS_OF_MEANING = {"unknown_id", "impossible_combination"}
ONE_STAYS_UNKNOWN_OF = 10

BODY_PLACES = {
    ("model",): ("models", 200),
    ("model", "id"): ("models", 200),
    ("gpu",): ("gpus", 200),
    ("weights",): ("weight_formats", 200),
    ("kv_cache",): ("kv_formats", 200),
    ("engine", "version"): ("versions", 100),
    ("engine", "speculative", "draft_model"): ("models", 200),
    ("constraints", "gpus", "*"): ("gpus", 200),
    ("constraints", "providers", "*"): ("providers", 200),
    ("constraints", "regions", "*"): ("countries", 200),
    ("offer",): ("priced_offers", 300),
}
"""Where in a body an id stands, the list that it comes from, and the longest text that the schema allows there."""
QUERY_PLACES = {"gpu": ("gpus", 200), "provider": ("providers", 100)}
LONGEST_REVISION, LONGEST_CURSOR = 64, 500
PATH_PLACES = {f"/v1/{name}/{{id}}": name for name in ("models", "gpus", "quantizations", "engines", "providers")} | {
    "/v1/offers/{id}": "offers",
    "/problems/{code}": "problems",
}
LONGEST_IN_PATH = 10_000

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
}
"""What no schema can ask of a `config.json`, for the names differ by family; whatever else is drawn stays beside it."""
LONGEST_LOG = 1_000_000
CARD_LINE = "  Device 0: NVIDIA H100 80GB HBM3, compute capability 9.0, VMM: yes"
"""A log that names its card needs no `gpu` beside it."""

counts: Counter[tuple[str, str, str, str]] = Counter()


def ask(path: str, query: dict[str, Any]) -> dict[str, Any]:
    url = f"{SERVICE}{path}?{urllib.parse.urlencode(query, doseq=True)}"
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - the service under test
        found: dict[str, Any] = json.load(answer)
    return found


@cache
def entries(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(f"/v1/{name}", {"limit": 500} | ({"slices": "true"} if name == "gpus" else {}))[
        "items"
    ]
    return found


LISTS: dict[str, Callable[[], list[str]]] = {
    "versions": lambda: [row["version"] for engine in entries("engines") for row in engine["versions"]],
    "kv_formats": lambda: ["auto", *(one["id"] for one in entries("quantizations") if one["kv_bits"] is not None)],
    "weight_formats": lambda: [one["id"] for one in entries("quantizations") if one["quantizes"]],
    "priced_offers": lambda: [one["id"] for one in entries("offers") if one["price_usd_per_hour"] is not None],
    "countries": lambda: sorted({one["country"] for one in entries("offers") if one["country"]}),
    "problems": lambda: [one["code"] for one in ask("/problems", {})["items"]],
}
"""Lists that are not all the ids of one catalog."""


@cache
def ids(name: str) -> list[str]:
    return LISTS[name]() if name in LISTS else [one["id"] for one in entries(name)]


@cache
def current_revision() -> str:
    revision: str = ask("/v1/engines", {})["provenance"]["catalog_revision"]
    return revision


def stays_known(text: str) -> bool:
    return _number(text) % ONE_STAYS_UNKNOWN_OF != 0


def _number(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def drawn(text: object, name: str, longest: int) -> object:
    """The id of a list that a text stands for."""
    if not isinstance(text, str) or not 1 <= len(text) <= longest:
        return text
    known = ids(name)
    return known[_number(text) // ONE_STAYS_UNKNOWN_OF % len(known)] if stays_known(text) else text


@cache
def example_logs() -> list[str]:
    """The engine logs of the document's own examples."""
    posted = ask("/openapi.json", {})["paths"]["/v1/engine-logs"]["post"]["requestBody"]["content"]
    return [one["value"]["log"] for one in posted["application/json"]["examples"].values()]


def body_with_ids(value: object, at: tuple[str, ...] = ()) -> object:
    if at == ("model", "config") and isinstance(value, dict):
        return value | CONFIG if stays_known(json.dumps(value)) else value
    if isinstance(value, dict):
        return {name: body_with_ids(member, (*at, name)) for name, member in value.items()}
    if isinstance(value, list):
        return [body_with_ids(member, (*at, "*")) for member in value]
    if at == ("log",) and isinstance(value, str) and len(value) < LONGEST_LOG and stays_known(value):
        return f"{example_logs()[0]}\n{CARD_LINE}\n{value}"
    return drawn(value, *BODY_PLACES[at]) if at in BODY_PLACES else value


def query_with_ids(path: str, query: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: drawn(value, *QUERY_PLACES[name]) if name in QUERY_PLACES else value for name, value in query.items()
    }
    if isinstance(revision := found.get("catalog_revision"), str) and len(revision) <= LONGEST_REVISION:
        found["catalog_revision"] = current_revision()
    if isinstance(cursor := found.get("cursor"), str) and len(cursor) <= LONGEST_CURSOR:
        del found["cursor"]
        if (second := second_page(path, found)) is not None:
            found["cursor"] = second
    return found


def second_page(path: str, query: dict[str, Any]) -> str | None:
    """The cursor that this list hands out under these filters; none where it has one page, or refuses the filters."""
    try:
        found: str | None = ask(path, query | {"limit": 1})["next_cursor"]
    except urllib.error.HTTPError:
        return None
    return found


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, **kwargs: object) -> None:
    del context, kwargs
    if isinstance(case.body, dict) and (body := body_with_ids(case.body)) != case.body:
        case.body = body
    if case.query and (query := query_with_ids(case.path, case.query)) != case.query:
        case.query = query
    if place := PATH_PLACES.get(case.path):
        given = case.path_parameters
        case.path_parameters = {name: drawn(text, place, LONGEST_IN_PATH) for name, text in given.items()}


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext, failure: Exception, case: schemathesis.Case, response: schemathesis.Response
) -> bool:
    """Data that the schema admits may be refused for what no schema can say, if every fault is of that kind."""
    del context, case
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 422:
        return True
    return not {fault["code"] for fault in response.json()["errors"]} <= REFUSALS_OF_MEANING


@schemathesis.hook
def after_call(context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response) -> None:
    del context
    mode = case.meta.generation.mode.value if case.meta else "example"
    counts[case.operation.label, case.method.upper(), mode, str(response.status_code)] += 1


@atexit.register
def write_counts() -> None:
    COUNTS.write_text(json.dumps([[*key, count] for key, count in sorted(counts.items())]), encoding="utf-8")
