"""A real Valkey server killed, frozen, emptied, made read-only and filled up, under workers that follow it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from service.store import Follower, GuardedStore, StoreUnavailable, WriteRefused, following, open_store
from service.store.follow import POLL_S

if TYPE_CHECKING:
    from conftest import ValkeyUnderTest

RECOVERY_S = 2.0


class Worker:
    """Answers from what it took over last."""

    def __init__(self, store: GuardedStore, follower: Follower, held: list[tuple[str, bytes]]) -> None:
        self.store = store
        self.follower = follower
        self._held = held

    @property
    def answers_from(self) -> tuple[str, bytes] | None:
        return self._held[-1] if self._held else None


@asynccontextmanager
async def working(url: str, *, interval_s: float = POLL_S) -> AsyncIterator[Worker]:
    store = open_store(url, None)
    held: list[tuple[str, bytes]] = []

    async def take_over(revision: str, payload: bytes) -> None:
        if payload == b"broken":
            raise ValueError(payload)
        held.append((revision, payload))

    try:
        async with following(store, "catalog", take_over, interval_s=interval_s) as follower:
            yield Worker(store, follower, held)
    finally:
        await store.aclose()


async def until(condition: Callable[[], bool], limit_s: float = RECOVERY_S) -> float:
    """Seconds until the condition holds; fails after the limit."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < limit_s, "not within the limit"
        await asyncio.sleep(0.01)
    return time.monotonic() - begun


async def fails_fast(call: Callable[[], Awaitable[object]], fault: type[Exception] = StoreUnavailable) -> None:
    begun = time.monotonic()
    with pytest.raises(fault):
        await call()
    assert time.monotonic() - begun < 1.0


def test_a_hint_brings_a_publication_before_the_next_poll(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        async with working(valkey.url, interval_s=30.0) as one, working(valkey.url, interval_s=30.0) as two:
            assert one.answers_from is None
            await asyncio.sleep(0.3)  # both listen
            await one.store.publish("catalog", "r1", b"one")
            await until(lambda: one.answers_from == two.answers_from == ("r1", b"one"))

    asyncio.run(scenario())


def test_a_publication_whose_hint_was_lost_comes_with_the_poll(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        async with working(valkey.url) as one, working(valkey.url) as two:
            # Set behind the script's back, as a server that took over from another would have it.
            assert valkey.command("SET", "llm-sizing:v1:{catalog}:revision:r2", "two") == "+OK"
            assert valkey.command("SET", "llm-sizing:v1:{catalog}:head", "r2") == "+OK"
            await until(lambda: one.answers_from == two.answers_from == ("r2", b"two"))
            assert one.follower.health.status == "ok"
            assert one.follower.health.revision == "r2"

    asyncio.run(scenario())


def test_a_killed_server_costs_nothing_and_is_found_again(
    valkey: "ValkeyUnderTest", caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with working(valkey.url) as worker:
            await worker.store.publish("catalog", "r1", b"one")
            await until(lambda: worker.answers_from == ("r1", b"one"))
            valkey.kill()
            await until(lambda: worker.follower.health.status == "degraded")
            why = worker.follower.health.why
            assert why is not None
            assert why.code == "store_unreachable"
            assert str(valkey.port) not in str(why.params), "an address in the health report"
            await fails_fast(lambda: worker.store.publish("catalog", "r2", b"two"))
            await fails_fast(lambda: worker.store.head("catalog"))
            begun = time.monotonic()
            refused = await asyncio.gather(
                *(worker.store.cache_get(f"k{n}") for n in range(500)), return_exceptions=True
            )
            assert {type(fault) for fault in refused} == {StoreUnavailable}
            assert time.monotonic() - begun < 0.5, "every call waited for the dead server"
            assert worker.answers_from == ("r1", b"one")
            assert await worker.store.get_revision("catalog", "r1") == b"one", "what cannot change was forgotten"
            valkey.start()
            assert await until(lambda: worker.follower.health.status == "ok") < RECOVERY_S
            assert worker.answers_from == ("r1", b"one")

    with caplog.at_level(logging.INFO, "service.store"):
        asyncio.run(scenario())
    assert len([record for record in caplog.records if "store degraded" in record.message]) == 1, "logged at each poll"


def test_a_server_that_came_back_empty_gets_the_snapshot_back(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        async with working(valkey.url) as one, working(valkey.url) as two:
            await one.store.publish("catalog", "r1", b"one")
            await until(lambda: one.answers_from == two.answers_from == ("r1", b"one"))
            valkey.kill()
            valkey.start()
            await until(lambda: valkey.command("EXISTS", "llm-sizing:v1:{catalog}:head") == ":1")
            async with working(valkey.url) as newcomer:
                assert newcomer.answers_from == ("r1", b"one")
            await until(lambda: one.follower.health.status == two.follower.health.status == "ok")
            assert one.answers_from == two.answers_from == ("r1", b"one")

    asyncio.run(scenario())


def test_a_frozen_server_holds_nobody_up(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        async with working(valkey.url) as worker:
            await worker.store.publish("catalog", "r1", b"one")
            await until(lambda: worker.answers_from == ("r1", b"one"))
            valkey.freeze()
            try:
                await fails_fast(lambda: worker.store.publish("catalog", "r2", b"two"))
                await until(lambda: worker.follower.health.status == "degraded")
                begun = time.monotonic()
                async with working(valkey.url) as newcomer:
                    assert time.monotonic() - begun < 1.0, "a frozen store held up the start"
                    assert newcomer.follower.health.status == "degraded"
                    assert newcomer.answers_from is None
                assert worker.answers_from == ("r1", b"one")
            finally:
                valkey.thaw()
            await until(lambda: worker.follower.health.status == "ok")
            await worker.store.publish("catalog", "r3", b"three")
            await until(lambda: worker.answers_from == ("r3", b"three"))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    ],
    ids=["read-only", "out of memory"],
)
def test_a_server_that_takes_no_writes_still_serves_reads(
    valkey: "ValkeyUnderTest", breaks: tuple[str, ...], mends: tuple[str, ...]
) -> None:
    async def scenario() -> None:
        async with working(valkey.url) as worker:
            await worker.store.publish("catalog", "r1", b"one")
            await until(lambda: worker.answers_from == ("r1", b"one"))
            assert valkey.command(*breaks) == "+OK"
            try:
                for _ in range(5):
                    await fails_fast(lambda: worker.store.publish("catalog", "r2", b"two"), WriteRefused)
                    await fails_fast(lambda: worker.store.cache_put("k", b"v", 60.0), WriteRefused)
                assert await worker.store.head("catalog") == "r1", "a refused publication left a trace"
                assert await worker.store.get_revision("catalog", "r2") is None
                assert worker.follower.health.status == "ok"
                assert worker.answers_from == ("r1", b"one")
            finally:
                assert valkey.command(*mends) == "+OK"
            await worker.store.publish("catalog", "r2", b"two")
            await until(lambda: worker.answers_from == ("r2", b"two"))

    asyncio.run(scenario())


def test_a_revision_that_no_worker_can_use_changes_nothing(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        async with working(valkey.url) as worker:
            await worker.store.publish("catalog", "r1", b"one")
            await worker.store.publish("catalog", "r2", b"broken")
            await until(lambda: worker.follower.health.status == "degraded")
            assert worker.follower.health.why is not None
            assert worker.follower.health.why.code == "store_revision_refused"
            await worker.store.publish("catalog", "r3", b"three")
            await until(lambda: worker.answers_from == ("r3", b"three"))
            await until(lambda: worker.follower.health.status == "ok")
            assert valkey.command("SET", "llm-sizing:v1:{catalog}:head", "evicted") == "+OK"
            await until(lambda: worker.follower.health.status == "degraded")
            assert worker.follower.health.why is not None
            assert worker.follower.health.why.code == "store_revision_missing"
            assert worker.answers_from == ("r3", b"three")

    asyncio.run(scenario())


def test_a_service_starts_without_its_server(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        valkey.kill()
        begun = time.monotonic()
        async with working(valkey.url) as worker:
            assert time.monotonic() - begun < 1.0
            assert worker.follower.health.status == "degraded"
            valkey.start()
            await until(lambda: worker.follower.health.status == "ok")
            await worker.store.publish("catalog", "r1", b"one")
            await until(lambda: worker.answers_from == ("r1", b"one"))

    asyncio.run(scenario())


def test_readers_never_see_half_a_publication(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        writers = [open_store(valkey.url, None) for _ in range(2)]
        reader = open_store(valkey.url, None)
        done = asyncio.Event()

        async def write(store: GuardedStore, name: str) -> None:
            for n in range(60):
                await store.publish("catalog", f"{n}-{name}", f"{n}-{name}".encode() * 1000)

        async def read() -> int:
            seen = 0
            while not done.is_set():
                head = await reader.head("catalog")
                if head is not None:
                    assert await reader.get_revision("catalog", head) == head.encode() * 1000
                    seen += 1
            return seen

        reading = asyncio.create_task(read())
        await asyncio.gather(write(writers[0], "a"), write(writers[1], "b"))
        done.set()
        assert await reading > 5
        assert len(await reader.revisions("catalog")) == 32
        for store in (*writers, reader):
            await store.aclose()

    asyncio.run(scenario())


def test_a_burst_of_calls_shares_sixteen_connections(valkey: "ValkeyUnderTest") -> None:
    async def scenario() -> None:
        store = open_store(valkey.url, None)
        await store.cache_put("k", bytes(4096), 60.0)
        payloads = await asyncio.gather(*(store.cache_get("k") for _ in range(300)))
        assert set(payloads) == {bytes(4096)}
        await store.aclose()

    asyncio.run(scenario())


def test_a_malformed_address_is_a_mistake_of_the_settings() -> None:
    with pytest.raises(ValueError, match="scheme"):
        open_store("http://127.0.0.1", None)
