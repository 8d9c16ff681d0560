"""Where the embedded server keeps objects: in memory, in a file, or in a real etcd."""

from navarch.cluster.storage.protocol import (
    ChangedError,
    CompactedError,
    Event,
    Page,
    Storage,
    StorageError,
    Stored,
    TooLargeError,
    Watcher,
    WriteError,
)

__all__ = [
    "ChangedError",
    "CompactedError",
    "Event",
    "Page",
    "Storage",
    "StorageError",
    "Stored",
    "TooLargeError",
    "Watcher",
    "WriteError",
]
