"""Shared state: published snapshots and cached answers, in a file, a Redis server or memory."""

from service.store.base import (
    Backend,
    HeadMoved,
    RevisionConflict,
    Store,
    StoreError,
    StoreUnavailable,
    WriteRefused,
)
from service.store.follow import Follower, following
from service.store.guarded import GuardedStore
from service.store.health import StoreHealth
from service.store.opening import open_store

__all__ = [
    "Backend",
    "Follower",
    "GuardedStore",
    "HeadMoved",
    "RevisionConflict",
    "Store",
    "StoreError",
    "StoreHealth",
    "StoreUnavailable",
    "WriteRefused",
    "following",
    "open_store",
]
