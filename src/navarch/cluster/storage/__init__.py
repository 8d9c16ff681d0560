"""Storage of the embedded server: in memory, in a file, or in a real etcd."""

from navarch.cluster.storage.protocol import (
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
