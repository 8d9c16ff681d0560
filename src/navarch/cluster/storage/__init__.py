"""Storage of the embedded server: in memory, in a file, or in a real etcd."""

from navarch.cluster.storage.protocol import (
    EVENT_SECONDS,
    EVENTS_PREFIX,
    ChangedError,
    CompactedError,
    Event,
    Storage,
    StorageError,
    StoragePage,
    Stored,
    TooLargeError,
    Watcher,
    WriteError,
)

__all__ = [
    "EVENTS_PREFIX",
    "EVENT_SECONDS",
    "ChangedError",
    "CompactedError",
    "Event",
    "Storage",
    "StorageError",
    "StoragePage",
    "Stored",
    "TooLargeError",
    "Watcher",
    "WriteError",
]
