"""What every store promises, tried on each of them: memory, a SQLite file and a real Valkey server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from service.store import HeadMoved, RevisionConflict, Store
from service.store.memory import MemoryStore
from service.store.redis import RedisStore
from service.store.sqlite import SqliteStore

Scenario = Callable[[Store], Awaitable[None]]
Trial = Callable[[Scenario], None]


@pytest.fixture(params=["memory", "sqlite", "redis"])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Trial:
    """Run a scenario on a store that keeps three revisions."""

    def opened() -> Store:
        if request.param == "memory":
            return MemoryStore(revisions_kept=3)
        if request.param == "sqlite":
            return SqliteStore(tmp_path / "state" / "store.sqlite3", revisions_kept=3)
        return RedisStore(request.getfixturevalue("valkey").url, revisions_kept=3)

    def run(scenario: Scenario) -> None:
        async def main() -> None:
            store = opened()
            try:
                assert store.backend == request.param
                await scenario(store)
            finally:
                await store.aclose()

        asyncio.run(main())

    return run


def test_an_empty_store_says_so(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        assert await store.head("catalog") is None
        assert await store.get_revision("catalog", "r1") is None
        assert await store.revisions("catalog") == ()
        assert await store.cache_get("k") is None

    trial(scenario)


def test_a_publication_is_the_head_and_stays_readable(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.publish("catalog", "r1", b"\x00one\xff")
        await store.publish("catalog", "r2", b"two")
        await store.put_revision("catalog", "r3", b"three")
        assert await store.head("catalog") == "r2"
        assert await store.head("gpu-profiles") is None
        assert await store.get_revision("catalog", "r1") == b"\x00one\xff"
        assert await store.revisions("catalog") == ("r3", "r2", "r1")

    trial(scenario)


def test_the_oldest_revisions_go_but_never_the_head(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.publish("catalog", "published", b"p")
        for n in range(5):
            await store.put_revision("catalog", f"draft{n}", b"%d" % n)
        assert await store.revisions("catalog") == ("draft4", "draft3", "draft2", "published")
        assert await store.get_revision("catalog", "published") == b"p"
        assert await store.get_revision("catalog", "draft0") is None
        await store.publish("catalog", "draft2", b"2")
        assert await store.revisions("catalog") == ("draft2", "draft4", "draft3")

    trial(scenario)


def test_a_revision_is_immutable(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.publish("catalog", "r1", b"one")
        await store.publish("catalog", "r1", b"one")
        with pytest.raises(RevisionConflict):
            await store.publish("catalog", "r1", b"other")
        assert await store.get_revision("catalog", "r1") == b"one"
        assert await store.revisions("catalog") == ("r1",)

    trial(scenario)


def test_a_guarded_publication_moves_the_expected_head_only(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.publish("catalog", "r1", b"one", expected_head=None)
        await store.publish("catalog", "r2", b"two", expected_head="r1")
        with pytest.raises(HeadMoved):
            await store.publish("catalog", "r3", b"three", expected_head="r1")
        with pytest.raises(HeadMoved):
            await store.publish("catalog", "r3", b"three", expected_head=None)
        assert await store.head("catalog") == "r2"
        assert await store.get_revision("catalog", "r3") is None
        await store.publish("catalog", "r2", b"two", expected_head="r1")  # a repetition whose first answer was lost

    trial(scenario)


def test_of_concurrent_guarded_publications_one_wins(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.publish("catalog", "base", b"base")
        attempts = [store.publish("catalog", f"r{n}", b"%d" % n, expected_head="base") for n in range(12)]
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [HeadMoved] * 11
        winner = f"r{outcomes.index(None)}"
        assert await store.revisions("catalog") == (winner, "base")
        assert await store.head("catalog") == winner

    trial(scenario)


def test_cache_entries_expire(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.cache_put("hub:a/b", b"long", 60.0)
        await store.cache_put("hub:c/d", b"short", 0.05)
        assert await store.cache_get("hub:c/d") == b"short"
        await store.cache_put("hub:a/b", b"newer", 60.0)
        await asyncio.sleep(0.06)
        assert await store.cache_get("hub:c/d") is None
        assert await store.cache_get("hub:a/b") == b"newer"

    trial(scenario)


def test_a_hint_wakes_a_waiting_worker(trial: Trial) -> None:
    async def scenario(store: Store) -> None:
        await store.wait_hint("catalog", 0.05)  # subscribes, where that is needed
        loop = asyncio.get_running_loop()
        begun = loop.time()
        waiting = asyncio.create_task(store.wait_hint("catalog", 5.0))
        await asyncio.sleep(0.05)
        await store.publish("catalog", "r1", b"one")
        await waiting
        assert loop.time() - begun < 1.0
        begun = loop.time()
        await store.wait_hint("catalog", 0.3)
        assert 0.2 < loop.time() - begun < 1.0, "woke, or slept, without a reason"

    trial(scenario)


@pytest.mark.parametrize("name", ["", "a/b", "A", "a b", "../x", "x" * 65, "a:b", "a{b}"])
def test_odd_names_are_refused(trial: Trial, name: str) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(ValueError, match="not a name"):
            await store.publish("catalog", name, b"")
        with pytest.raises(ValueError, match="not a name"):
            await store.put_revision(name, "r1", b"")

    trial(scenario)
