"""A process that starts writers, one per line of its input: the prefix of its keys.

A writer prints its process id, writes a thousand keys, a hundred at a time, and prints each one when it was
acknowledged. When it has ended, in whatever way, this process prints `end`.

    python acknowledging_writer.py <folder>
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from navarch.cluster.storage.file import FileOptions, FileStorage

WRITERS = 100
WRITES = 10


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write_all(folder: Path, prefix: str) -> None:
    storage = await FileStorage.open(folder, FileOptions(snapshot_after=300_000))
    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(write_some(storage, f"{prefix}{number:03d}/"))
    await storage.close()


async def write_some(storage: FileStorage, prefix: str) -> None:
    for number in range(WRITES):
        key = f"{prefix}{number}"
        await storage.put(key, key.encode() * 50, expected=0)
        say(key)


def main(folder: Path) -> None:
    """Forks rather than starts: importing everything again would take longer than writing."""
    for line in sys.stdin:
        if writer := os.fork():
            os.waitpid(writer, 0)
            say("end")
        else:
            say(str(os.getpid()))
            asyncio.run(write_all(folder, line.strip()))
            os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
