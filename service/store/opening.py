"""Which store a worker uses: Redis where an address is given, else the embedded file, else memory."""

import logging
from pathlib import Path

from service.domain.message import Message
from service.store.base import StoreUnavailable
from service.store.guarded import GuardedStore
from service.store.memory import MemoryStore
from service.store.sqlite import SqliteStore

log = logging.getLogger(__name__)


def open_store(redis_url: str | None, sqlite_path: Path | None) -> GuardedStore:
    """Open the store of this worker; to be called after the fork, once a worker.

    ``ValueError``: the Redis URL is malformed. A server that is down is no error (the store reports ``degraded`` until
    it is there), nor is a file that cannot be written: then memory serves, and the health report says why.
    """
    if redis_url:
        from service.store.redis import RedisStore  # noqa: PLC0415 - 0.4 s of imports that most workers do without

        return GuardedStore(RedisStore(redis_url))
    if sqlite_path is None:
        return GuardedStore(MemoryStore())
    try:
        return GuardedStore(SqliteStore(sqlite_path))
    except StoreUnavailable as fault:
        log.warning("the store file cannot be used (%s): state is kept in memory", fault)
        return GuardedStore(MemoryStore(), fallback_why=Message("store_not_writable", {"reason": str(fault)}))
