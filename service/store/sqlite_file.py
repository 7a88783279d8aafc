"""One connection to the store's SQLite file: made safely, shared by processes, opened anew when it is replaced."""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TABLES = (
    """CREATE TABLE IF NOT EXISTS revisions_v1 (
        kind TEXT NOT NULL, revision TEXT NOT NULL, payload BLOB NOT NULL, place INTEGER NOT NULL,
        PRIMARY KEY (kind, revision))""",
    "CREATE TABLE IF NOT EXISTS heads_v1 (kind TEXT PRIMARY KEY, revision TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cache_v1 (key TEXT PRIMARY KEY, expires_at REAL NOT NULL, payload BLOB NOT NULL)",
)
"""``v1`` is ``service.store.base.SCHEMA_VERSION``: a later schema stands in tables of its own beside these."""

_OPENING = threading.Lock()
"""One thread of a process at a time makes the file: closing it again would drop another connection's POSIX locks."""


class SqliteFile:
    """A lazily opened connection that one thread at a time may use."""

    def __init__(self, path: Path, *, wait_s: float) -> None:
        """Name the file; ``wait_s``: how long opening, and each statement, waits for the lock of another process."""
        self._path = path
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; a transaction left open by a fault is rolled back, a broken connection dropped."""
        with self._lock:
            if self._connection is None or self._identity != _identity(self._path):
                self._drop()
                with _OPENING:
                    self._connection = _connect(self._path, self._wait_s)
                self._identity = _identity(self._path)
            try:
                yield self._connection
            except sqlite3.Error:
                self._drop()
                raise
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; the next use would open it again."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: Path, wait_s: float) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "a store file may not be a link", str(path))
    # SQLite would make the file with the umask's permissions; its -wal and -shm files copy the mode.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, wait_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:  # the switch to WAL does not honour SQLite's own busy timeout
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'cache_v1'").fetchone():
                connection.execute("BEGIN IMMEDIATE")
                for table in _TABLES:
                    connection.execute(table)
                connection.execute("COMMIT")
        except sqlite3.OperationalError as fault:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            busy = fault.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
