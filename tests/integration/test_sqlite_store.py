"""The embedded store among processes, and where its file cannot be had."""

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from service.store import StoreUnavailable, WriteRefused, open_store
from service.store.follow import Follower
from service.store.sqlite import SqliteStore

PUBLISHER = """
import asyncio, sys
from pathlib import Path
from service.store import HeadMoved
from service.store.sqlite import SqliteStore

async def main(path, name, rounds):
    store = SqliteStore(Path(path))
    moved = 0
    for n in range(rounds):
        while True:
            head = await store.head("count")
            value = int(await store.get_revision("count", head)) if head else 0
            try:
                await store.publish("count", f"{value + 1}-{name}", b"%d" % (value + 1), expected_head=head)
                break
            except HeadMoved:
                moved += 1
    await store.aclose()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "store.sqlite3"


def test_processes_that_start_at_once_share_one_file_and_lose_no_update(path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", PUBLISHER, str(path), name, "40"], stderr=subprocess.PIPE)
        for name in ("a", "b", "c")
    ]
    for process in processes:
        _, errors = process.communicate(timeout=15.0)
        assert process.returncode == 0, errors.decode()

    async def read() -> tuple[str | None, bytes | None]:
        store = SqliteStore(path)
        head = await store.head("count")
        payload = await store.get_revision("count", head or "")
        await store.aclose()
        return head, payload

    head, payload = asyncio.run(read())
    assert payload == b"120", "an update was lost, or done twice"
    assert head is not None
    assert head.startswith("120-")


def test_the_file_and_its_folder_are_the_owners_alone(path: Path) -> None:
    previous = os.umask(0)
    try:
        store = SqliteStore(path)
        asyncio.run(store.publish("catalog", "r1", b"one"))
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert len(modes) == 3, "not in WAL mode"
    assert set(modes.values()) == {0o600}, modes
    asyncio.run(store.aclose())


def test_reads_go_on_while_another_process_writes(path: Path) -> None:
    async def scenario() -> None:
        store = SqliteStore(path)
        await store.publish("catalog", "r1", b"one")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT OR REPLACE INTO heads_v1 VALUES ('catalog', 'half-done')")
            assert await store.head("catalog") == "r1"
            with pytest.raises(WriteRefused, match="SQLITE_BUSY"):
                await store.publish("catalog", "r2", b"two")
            other.execute("ROLLBACK")
        await store.publish("catalog", "r2", b"two")
        assert await store.head("catalog") == "r2"
        await store.aclose()

    asyncio.run(scenario())


def test_a_file_that_is_replaced_is_opened_anew(path: Path) -> None:
    async def scenario() -> None:
        store, other = SqliteStore(path), None
        await store.publish("catalog", "r1", b"one")
        for file in path.parent.iterdir():
            file.unlink()
        other = SqliteStore(path)
        await other.publish("catalog", "r2", b"two")
        assert await store.head("catalog") == "r2"
        await store.publish("catalog", "r3", b"three", expected_head="r2")
        assert await other.head("catalog") == "r3"
        await store.aclose()
        await other.aclose()

    asyncio.run(scenario())


def test_the_cache_is_bounded_and_drops_what_expires_first(path: Path) -> None:
    now = [1000.0]

    async def scenario() -> None:
        store = SqliteStore(path, cache_bytes=100, clock=lambda: now[0])
        await store.cache_put("soon", bytes(40), 10.0)
        await store.cache_put("later", bytes(40), 20.0)
        await store.cache_put("last", bytes(40), 30.0)
        assert [await store.cache_get(key) is not None for key in ("soon", "later", "last")] == [False, True, True]
        now[0] += 20.0
        assert await store.cache_get("later") is None
        await store.cache_put("new", bytes(60), 5.0)
        assert await store.cache_get("last") is not None, "an expired entry still took room"
        await store.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize("obstacle", ["folder in the way", "no database", "link"])
def test_an_unusable_path_falls_back_to_memory_and_says_so(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / "store.sqlite3"
    if obstacle == "folder in the way":
        path.mkdir()
    elif obstacle == "no database":
        path.write_bytes(b"something else " * 1000)
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable):
        SqliteStore(path)

    async def scenario() -> None:
        store = open_store(None, path)
        follower = Follower(store, "catalog", _accept)
        await follower.poll()
        assert follower.health.status == "degraded"
        assert follower.health.backend == "memory"
        assert follower.health.why is not None
        assert follower.health.why.code == "store_not_writable"
        await store.publish("catalog", "r1", b"one")
        await follower.poll()
        assert follower.health.revision == "r1"
        await store.aclose()

    asyncio.run(scenario())
    if obstacle == "no database":
        assert path.read_bytes().startswith(b"something else"), "a stranger's file was touched"


def test_a_file_gone_bad_is_unavailable_until_it_is_mended(path: Path) -> None:
    async def scenario() -> None:
        store = SqliteStore(path)
        await store.publish("catalog", "r1", b"one")
        for file in path.parent.iterdir():
            file.unlink()
        path.write_bytes(b"not a database " * 1000)
        with pytest.raises(StoreUnavailable):
            await store.head("catalog")
        path.unlink()
        assert await store.head("catalog") is None
        await store.publish("catalog", "r1", b"one")
        await store.aclose()

    asyncio.run(scenario())


def test_threads_of_one_process_may_open_at_once(path: Path) -> None:
    faults: list[BaseException] = []

    def open_and_publish(name: str) -> None:
        async def main() -> None:
            store = SqliteStore(path)
            await store.put_revision("catalog", name, name.encode())
            await store.aclose()

        try:
            asyncio.run(main())
        except BaseException as fault:  # noqa: BLE001 - told to the test
            faults.append(fault)

    threads = [threading.Thread(target=open_and_publish, args=(f"r{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert faults == []


async def _accept(revision: str, payload: bytes) -> None:
    assert revision
    assert payload
