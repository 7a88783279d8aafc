"""A catalog published to the store is taken over by a running worker; a store that fails takes no answer away."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from litestar.testing import TestClient

from service.app import CATALOG, create_app
from service.catalog.bundle import bundle_of, snapshot_of
from service.catalog.snapshot import PACKAGED
from service.settings import Settings
from service.store import open_store

if TYPE_CHECKING:
    from conftest import ValkeyUnderTest

OFFER = "lambda/gpu_1x_gh200/any/on_demand"
BUDGET = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "l4-24gb"}
TAKEN_OVER_S = 2.0


def dearer() -> tuple[str, bytes]:
    """The packaged catalog with another price of one offer: its revision and bytes."""
    files = msgspec.json.decode(bundle_of(PACKAGED), type=dict[str, str])
    offers = json.loads(files["offers/lambda.json"])
    for row in offers["offers"]:
        if row["sku"] == "gpu_1x_gh200":
            row["price"] = 98.76
    files["offers/lambda.json"] = json.dumps(offers)
    bundle = msgspec.json.encode(files, order="deterministic")
    return snapshot_of(bundle).catalog_revision, bundle


def publish(settings: Settings, revision: str, bundle: bytes) -> None:
    async def put() -> None:
        store = open_store(settings.redis_url, settings.store_path)
        try:
            await store.publish(CATALOG, revision, bundle)
        finally:
            await store.aclose()

    asyncio.run(put())


def within(limit_s: float, holds: Callable[[], bool]) -> float:
    """Seconds until ``holds``, which must be less than the limit."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < limit_s, "not in time"
        time.sleep(0.02)
    return time.monotonic() - begun


def ready(client: TestClient[Any]) -> dict[str, Any]:
    response = client.get("/health/ready")
    assert response.status_code == 200
    answer: dict[str, Any] = response.json()
    return answer


def price(client: TestClient[Any]) -> float:
    return float(client.get(f"/v1/offers/{OFFER}").json()["price_usd_per_hour"])


@pytest.fixture(params=["sqlite", "redis"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = None if request.param == "sqlite" else request.getfixturevalue("valkey").url
    return Settings(store_path=tmp_path / "store.sqlite", redis_url=url)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(settings), raise_server_exceptions=False) as made:
        yield made


def test_a_published_catalog_is_taken_over_in_time(client: TestClient[Any], settings: Settings) -> None:
    before = ready(client)
    assert before["status"] == "ready"
    packaged = before["checks"]["catalog"]["facts"]["catalog_revision"]
    answer = client.post("/v1/vram-budgets", json=BUDGET)
    assert price(client) < 10
    revision, bundle = dearer()
    assert revision != packaged
    publish(settings, revision, bundle)
    within(TAKEN_OVER_S, lambda: ready(client)["checks"]["catalog"]["facts"]["catalog_revision"] == revision)
    assert price(client) == pytest.approx(98.76)
    assert ready(client)["checks"]["store"]["facts"]["revision"] == revision
    assert client.post("/v1/vram-budgets", json=BUDGET).json()["provenance"]["catalog_revision"] == revision
    pinned = client.get(f"/v1/offers/{OFFER}", params={"catalog_revision": packaged})
    assert pinned.json()["price_usd_per_hour"] < 10
    again = client.post("/v1/vram-budgets", json=BUDGET, params={"catalog_revision": packaged})
    assert again.content == answer.content


def test_a_worker_that_starts_later_takes_over_what_was_published(settings: Settings) -> None:
    revision, bundle = dearer()
    publish(settings, revision, bundle)
    with TestClient(create_app(settings)) as client:
        assert ready(client)["checks"]["catalog"]["facts"]["catalog_revision"] == revision
        assert price(client) == pytest.approx(98.76)


def test_a_broken_catalog_is_refused_and_the_last_good_one_serves(client: TestClient[Any], settings: Settings) -> None:
    packaged = ready(client)["checks"]["catalog"]["facts"]["catalog_revision"]
    publish(settings, "broken", b'{"offers/lambda.json": "{"}')
    within(TAKEN_OVER_S, lambda: ready(client)["status"] == "degraded")
    answer = ready(client)
    assert answer["checks"]["catalog"]["facts"]["catalog_revision"] == packaged
    assert "broken" in answer["checks"]["store"]["why"]
    assert client.post("/v1/vram-budgets", json=BUDGET).status_code == 200
    revision, bundle = dearer()
    publish(settings, revision, bundle)
    within(TAKEN_OVER_S, lambda: ready(client)["status"] == "ready")
    assert price(client) == pytest.approx(98.76)


def test_without_its_redis_a_worker_answers_and_says_so(valkey: "ValkeyUnderTest", tmp_path: Path) -> None:
    settings = Settings(store_path=tmp_path / "store.sqlite", redis_url=valkey.url)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        assert ready(client)["status"] == "ready"
        answer = client.post("/v1/vram-budgets", json=BUDGET)
        valkey.kill()
        try:
            within(5.0, lambda: ready(client)["status"] == "degraded")
            begun = time.monotonic()
            assert client.post("/v1/vram-budgets", json=BUDGET).content == answer.content
            assert time.monotonic() - begun < 0.5, "a request waited for the store"
            assert "redis" in ready(client)["checks"]["store"]["why"].lower()
        finally:
            valkey.start()
        within(10.0, lambda: ready(client)["status"] == "ready")


def test_a_worker_starts_without_its_redis(tmp_path: Path) -> None:
    settings = Settings(store_path=tmp_path / "store.sqlite", redis_url="redis://127.0.0.1:1/0")
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        assert ready(client)["status"] == "degraded"
        assert client.post("/v1/vram-budgets", json=BUDGET).status_code == 200
