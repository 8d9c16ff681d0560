"""Runs in the first member's pod, before etcd: takes the snapshot that it is told the checksum of, and no other.

It stands alone: its text is handed to whatever Python the pod's image has. `receive` waits for the snapshot; `install`
puts what was made of it in the place of the data, which it moves aside. Both do nothing where that was done before.
"""

import hashlib
import os
import shutil
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(os.environ.get("RESTORE_ROOT", "/var/etcd"))
WANTED = os.environ.get("RESTORE_SHA256", "")
PIECE = 1 << 20


def receive() -> None:
    """Ends once the snapshot is there."""
    incoming = ROOT / "incoming"
    shutil.rmtree(incoming / "data", ignore_errors=True)
    incoming.mkdir(exist_ok=True)
    if _digest(incoming / "snapshot.db") == WANTED:
        return
    server = HTTPServer((os.environ["POD_IP"], int(os.environ["RESTORE_PORT"])), _Receiver)
    if os.environ.get("RESTORE_TLS"):
        server.socket = _tls(Path(os.environ["RESTORE_TLS"])).wrap_socket(server.socket, server_side=True)
    while _digest(incoming / "snapshot.db") != WANTED:
        server.handle_request()


def _tls(folder: Path) -> ssl.SSLContext:
    """As its etcd will have it: whoever has no certificate is not let in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(folder / "server-ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class _Receiver(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        fresh = ROOT / "incoming" / "snapshot.new"
        self._save(fresh, int(self.headers.get("Content-Length", "0")))
        good = _digest(fresh) == WANTED
        if good:
            fresh.replace(ROOT / "incoming" / "snapshot.db")
        self.send_response(204 if good else 422)
        self.end_headers()

    def _save(self, path: Path, left: int) -> None:
        with path.open("wb") as file:
            while left > 0 and (piece := self.rfile.read(min(PIECE, left))):
                file.write(piece)
                left -= len(piece)
            file.flush()
            os.fsync(file.fileno())


def _digest(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install() -> None:
    """The data before stays beside it, under the name of the restore."""
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


if __name__ == "__main__":
    {"receive": receive, "install": install}[sys.argv[1]]()
