"""The program of the operator's helper containers. Its source is passed to the Python of their image, so it stands alone.

`receive` waits, in the pod of a cluster's first member, for the snapshot with the expected checksum. `install` moves the
old data aside and the restored data in place. Both do nothing if they have succeeded before. `keep` serves the files of a
claim until its pod is deleted.
"""

import errno
import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ROOT = Path(os.environ.get("ROOT", "/var/etcd"))
WANTED = os.environ.get("RESTORE_SHA256", "")
PARTIAL = ".partial"
PIECE = 1 << 20
SILENCE_SECONDS = 60
FULL = (errno.ENOSPC, errno.EDQUOT)
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)


class Server(ThreadingHTTPServer):
    """Serves each connection, handshake included, in its own thread; a silent connection is closed."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        host = os.environ["POD_IP"]
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._tls = _tls(Path(os.environ["TLS_FOLDER"])) if os.environ.get("TLS_FOLDER") else None
        super().__init__((host, int(os.environ["PORT"])), handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(SILENCE_SECONDS)
        secured = self._tls.wrap_socket(request, server_side=True) if self._tls is not None else request
        with secured as connection:
            super().finish_request(connection, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as the library calls it
        sys.stderr.write(f"{client_address[0]}: {sys.exc_info()[1]}\n")


def _tls(folder: Path) -> ssl.SSLContext:
    """Returns a context that requires a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "server-ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Handler(BaseHTTPRequestHandler):
    """Responds with a status code and a word; file system errors become responses too."""

    @contextmanager
    def refusals(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            self.answer(404)
        except OSError as error:
            number = error.errno or 0
            self.answer(507 if number in FULL else 500, errno.errorcode.get(number, "").encode())

    def answer(self, code: int, body: bytes = b"") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def save(self, path: Path) -> None:
        """Writes the body to disk; deletes the file if the body is truncated or does not fit."""
        left = int(self.headers.get("Content-Length", "0"))
        try:
            with path.open("wb") as file:
                while left > 0:
                    piece = self.rfile.read(min(PIECE, left))
                    if not piece:
                        raise ConnectionError(errno.EPIPE, "the body is truncated")
                    left -= len(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            self._drain(left)
            raise

    def _drain(self, left: int) -> None:
        """Reads the rest of the body: the client reads no response before it has sent everything."""
        while left > 0 and (piece := self.rfile.read(min(PIECE, left))):
            left -= len(piece)


def receive() -> None:
    """Receives the snapshot, and ends."""
    incoming = ROOT / "incoming"
    incoming.mkdir(exist_ok=True)
    shutil.rmtree(incoming / "data", ignore_errors=True)
    for unfinished in incoming.glob(f"*{PARTIAL}"):
        unfinished.unlink()
    if _digest(incoming / "snapshot.db") != WANTED:
        Server(_Receiver).serve_forever(poll_interval=0.1)


class _Receiver(Handler):
    def do_PUT(self) -> None:
        fresh = ROOT / "incoming" / f"{threading.get_ident()}{PARTIAL}"
        with self.refusals():
            self.save(fresh)
            if _digest(fresh) == WANTED:
                fresh.replace(ROOT / "incoming" / "snapshot.db")
                self.answer(204)
                self.server.shutdown()
            else:
                fresh.unlink()
                self.answer(422)


def _digest(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install() -> None:
    """Installs the restored data; the old data stays beside it, named after the restore."""
    done, data = ROOT / f"restored-{os.environ['RESTORE_ID']}", ROOT / "data"
    before = ROOT / f"data.before-{os.environ['RESTORE_ID']}"
    if done.exists():
        shutil.rmtree(ROOT / "incoming" / "data", ignore_errors=True)
        return
    if data.exists() and not before.exists():
        data.rename(before)
    if not data.exists():
        (ROOT / "incoming" / "data").rename(data)
    done.touch()


def keep() -> None:
    """Serves files; only the pod's user and group may read them, because they contain all data of a cluster."""
    os.umask(0o007)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # the kernel ignores the default action for process 1
    Server(_FileServer).serve_forever()


class _FileServer(Handler):
    """GET, PUT and DELETE files; GET lists names with the prefix `start`; POST renames the file `from`."""

    def do_GET(self) -> None:
        with self.refusals():
            start = self._asked("start")
            if start is not None:
                self.answer(200, json.dumps(_names(start)).encode())
            else:
                self._hand_out(self._path())

    def _hand_out(self, path: Path) -> None:
        with path.open("rb") as file:
            self.send_response(200)
            self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
            self.end_headers()
            try:
                shutil.copyfileobj(file, self.wfile, PIECE)
            except OSError as error:  # no other response can follow: the client notices the truncated body
                raise RuntimeError(f"{path.name} was sent only in part: {error}") from error

    def do_PUT(self) -> None:
        with self.refusals():
            path = self._path()
            path.parent.mkdir(parents=True, exist_ok=True)
            self.save(path)
            self.answer(204)

    def do_POST(self) -> None:
        with self.refusals():
            path = _inside(self._asked("from") or "").replace(self._path())
            _sync(path.parent)
            self.answer(200, str(path.stat().st_size).encode())

    def do_DELETE(self) -> None:
        with self.refusals():
            path = self._path()
            path.unlink()
            _sync(path.parent)
            self.answer(204)

    def _path(self) -> Path:
        return _inside(unquote(urlsplit(self.path).path).lstrip("/"))

    def _asked(self, field: str) -> str | None:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True).get(field)
        return found[0] if found else None


def _inside(name: str) -> Path:
    """Resolves a path below the root; refuses symbolic links that leave it."""
    path = (ROOT / name).resolve()
    if not path.is_relative_to(ROOT.resolve()):
        raise PermissionError(errno.EACCES, "the path is outside of the root")
    return path


def _names(start: str) -> list[str]:
    """Lists files with that prefix; skips unreadable folders."""
    folder = _inside(start.rpartition("/")[0])
    files = [Path(place, name).relative_to(ROOT.resolve()) for place, _, found in os.walk(folder) for name in found]
    return sorted(str(each) for each in files if str(each).startswith(start))


def _sync(folder: Path) -> None:
    """Syncs a folder, if the file system supports it, so that a new name is durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
    finally:
        os.close(opened)


if __name__ == "__main__":
    {"receive": receive, "install": install, "keep": keep}[sys.argv[1]]()
