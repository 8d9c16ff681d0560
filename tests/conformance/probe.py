"""What the image of the rig's node does, for machines without containers: the same commands, as far as tests use them."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import socket
import struct
import sys
import termios
import threading
from collections.abc import Callable
from functools import partial

ENDING = {signal.SIGTERM, signal.SIGINT}


def say(*words: object, to: int = 1) -> None:
    """A line."""
    os.write(to, f"{' '.join(map(str, words))}\n".encode())


def pause() -> None:
    """Nothing until SIGTERM."""
    signal.sigwait(ENDING)


def cat() -> None:
    """Copies standard input to standard output as it comes."""
    while data := os.read(0, 65536):
        os.write(1, data)


def lines(count: str) -> None:
    """That many lines."""
    for number in range(int(count)):
        say("line", number)
    pause()


def tick() -> None:
    """A line every 100 ms until SIGTERM."""
    for number in itertools.count():
        say("tick", number)
        if signal.sigtimedwait(ENDING, 0.1):
            return


def serve(port: str, address: str) -> None:
    """An echo server."""
    listener = socket.create_server((address, int(port)))
    say("serving on", *listener.getsockname())
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def echo(connection: socket.socket) -> None:
    """Everything comes back, and then the end."""
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def size() -> None:
    """The terminal's size now and whenever it changes."""

    def show(*_: object) -> None:
        rows, columns, _x, _y = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
        say(columns, rows)

    signal.signal(signal.SIGWINCH, show)
    show()
    pause()


def main() -> None:
    """See scripts/rig/podimage. `--address` before the command says where to listen."""
    arguments = sys.argv[1:]
    address = ""
    if arguments[:1] == ["--address"]:
        address, arguments = arguments[1], arguments[2:]
    command, *rest = arguments
    if command in {"pause", "lines", "tick", "size"}:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    commands: dict[str, Callable[..., None]] = {
        "pause": pause,
        "lines": lines,
        "tick": tick,
        "size": size,
        "cat": cat,
        "echo": say,
        "warn": partial(say, to=2),
        "exit": lambda code: sys.exit(int(code)),
        "serve": lambda port: serve(port, address),
    }
    commands[command](*rest)


if __name__ == "__main__":
    main()
