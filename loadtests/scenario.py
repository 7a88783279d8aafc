"""A scenario file drawn into distinct requests.

A scenario is JSON: a seed and ``requests``, each with a ``path``, a ``share`` of the mix and a ``body``. In a body, an
object with one of these keys alone stands for a drawn value; everything else stands for itself::

    {"$one_of": [...]}             one of the values, each of which may hold draws
    {"$integer": [low, high]}      a whole number, evenly on a logarithmic scale
    {"$number": [low, high]}       a number, likewise
    {"$id_of": "/v1/models"}       an id of that catalog list, as the running service answers it
"""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from loadtests.client import connect, get, post

FOLDER = Path(__file__).parent / "scenarios"
_TRIES = 20
"""Draws per distinct body before a scenario counts as too narrow."""
_PAGE = 500

Ids = Mapping[str, Sequence[str]]


class Drawn(NamedTuple):
    """One request of a scenario."""

    path: str
    body: bytes

    @property
    def request(self) -> bytes:
        """Its bytes."""
        return post(self.path, self.body)


async def catalog_ids(port: int, paths: Sequence[str]) -> Ids:
    """Ids of the catalogs at ``paths``, page by page."""
    connection = await connect(port)
    found: dict[str, list[str]] = {}
    for path in paths:
        ids: list[str] = []
        first = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
        following = first
        while following:
            page = orjson.loads((await connection.exchange(get(following))).body)
            ids += [row["id"] for row in page["items"]]
            following = f"{first}&cursor={page['next_cursor']}" if page["next_cursor"] else ""
        found[path] = ids
    connection.close()
    return found


def catalogs_of(*names: str) -> list[str]:
    """Catalogs that the scenarios draw ids of."""
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            found.update([value["$id_of"]] if "$id_of" in value else [])
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                walk(each)

    for name in names:
        walk(_read(name))
    return sorted(found)


def draw(name: str, count: int, ids: Ids) -> list[Drawn]:
    """``count`` requests of a scenario, no two of one body; the same for the same catalogs.

    Raises ``ValueError`` where the scenario has too few bodies.
    """
    scenario = _read(name)
    dice = random.Random(scenario["seed"])  # noqa: S311 - a sample, no secret
    parts: list[dict[str, Any]] = scenario["requests"]
    shares = [part["share"] for part in parts]
    found: dict[bytes, Drawn] = {}
    for _ in range(count * _TRIES):
        (part,) = dice.choices(parts, shares)
        body = orjson.dumps(_value(part["body"], dice, ids))
        found.setdefault(body, Drawn(part["path"], body))
        if len(found) == count:
            return list(found.values())
    message = f"{name}: only {len(found)} of {count} distinct bodies"
    raise ValueError(message)


def _read(name: str) -> dict[str, Any]:
    scenario: dict[str, Any] = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return scenario


def _value(template: Any, dice: random.Random, ids: Ids) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(template, list):
        return [_value(each, dice, ids) for each in template]
    if not isinstance(template, dict):
        return template
    (kind, given), *more = template.items()
    if more or not kind.startswith("$"):
        return {name: _value(each, dice, ids) for name, each in template.items()}
    if kind == "$one_of":
        return _value(dice.choice(given), dice, ids)
    if kind == "$id_of":
        return dice.choice(ids[given])
    low, high = given
    number = math.exp(dice.uniform(math.log(low), math.log(high)))
    return round(number) if kind == "$integer" else float(f"{number:.4g}")
