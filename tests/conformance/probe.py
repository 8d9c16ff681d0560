"""What the image of the rig's node does, for machines without containers: the same commands, as far as tests use them."""

from __future__ import annotations

import os
import signal
import sys


def main(command: str = "", *rest: str) -> None:
    """See scripts/rig/podimage."""
    match command:
        case "pause":
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            while True:
                signal.pause()
        case "echo":
            sys.stdout.write(" ".join(rest) + "\n")
        case "exit":
            sys.exit(int(rest[0]))
        case _:
            sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
