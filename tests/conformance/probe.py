"""What the image of the rig's node does, for machines without containers: the same commands, as far as tests use them."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import queue
import signal
import socket
import struct
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

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


PAGE = """<!DOCTYPE html>
<HTML><head><link rel="stylesheet" HREF=/style.css><title><a href="/title"></title></head>
<!-- <a href="/comment"> --><body background='/back.png'>
<a href="/rewriteme?x=1&amp;y=2#z">one</a><a href="relative">two</a><a href="https://example.com/">three</a><img src="/a.png"/>
<script src="/code.js">"<a href='/script'>"</script></body></HTML>
"""


class Website(BaseHTTPRequestHandler):
    """Answers over HTTP, so that what passes through the API server can be seen on the other side."""

    protocol_version = "HTTP/1.1"
    seen = 0
    released: queue.SimpleQueue[None] = queue.SimpleQueue()

    def do_GET(self) -> None:
        handlers = {
            "/page": lambda: self.answer("text/html; charset=utf-8", PAGE.encode()),
            "/redirect": self.redirect,
            "/drip": self.drip,
            "/release": self.release,
            "/upload": self.upload,
            "/seen": self.report,
            "/switch": self.switch,
            "/refuse": lambda: self.answer("text/plain; charset=utf-8", b"no\n", status=418),
            "/break": self.hang_up,
        }
        handlers.get(urlsplit(self.path).path, self.mirror)()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - the same

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def begin(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def answer(self, kind: str, body: bytes, *headers: tuple[str, str], status: int = 200) -> None:
        self.begin(status, ("Content-Type", kind), ("Content-Length", str(len(body))), *headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        if self.headers["Transfer-Encoding"]:
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers["Content-Length"] or 0)
        while left and (piece := self.rfile.read1(min(left, 65536))):
            left -= len(piece)
            yield piece

    def mirror(self) -> None:
        """Says what was asked."""
        asked = {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers}
        told = {"method": self.command, "target": self.path, "host": asked.pop("host"), "headers": asked}
        told["body"] = b"".join(self.pieces()).decode()
        headers = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Access-Control-Allow-Origin", "*")]
        self.answer("application/json", json.dumps(told).encode(), *headers, ("Cache-Control", "max-age=60"))

    def redirect(self) -> None:
        self.begin(302, ("Location", parse_qs(urlsplit(self.path).query)["to"][0]), ("Content-Length", "0"))

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def drip(self) -> None:
        """A line, and another when it is released."""
        self.begin(200, ("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked"))
        self.chunk(b"one\n")
        self.released.get()
        self.chunk(b"two\n")
        self.chunk(b"")

    def release(self) -> None:
        self.released.put(None)
        self.begin(200, ("Content-Length", "0"))

    def upload(self) -> None:
        """Counts what comes while it comes."""
        Website.seen = 0
        for piece in self.pieces():
            Website.seen += len(piece)
        self.report()

    def report(self) -> None:
        self.answer("text/plain", str(Website.seen).encode())

    def switch(self) -> None:
        """Leaves HTTP for an echo of whatever is sent, after a line with what was asked."""
        self.begin(101, ("Connection", "Upgrade"), ("Upgrade", self.headers["Upgrade"]))
        forwarded, secret = self.headers["X-Forwarded-For"], self.headers["Authorization"] or ""
        self.wfile.write(f"{self.path}|{forwarded}|{secret}\n".encode())
        while data := self.rfile.read1(65536):
            self.wfile.write(data)
        self.close_connection = True

    def hang_up(self) -> None:
        """Ends the connection in the middle of an answer."""
        self.begin(200, ("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked"))
        self.chunk(b"half")
        self.close_connection = True


def website(port: str, address: str) -> None:
    """HTTP until SIGTERM."""
    server = ThreadingHTTPServer((address, int(port)), Website)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pause()


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
    if command in {"pause", "lines", "tick", "size", "http"}:
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
        "http": lambda port: website(port, address),
    }
    commands[command](*rest)


if __name__ == "__main__":
    main()
