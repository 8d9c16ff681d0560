"""Programs of pods that listen and connect: `python port_programs.py FUNCTION ARGUMENT...` calls one of these functions."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import random
import select
import signal
import socket
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ANY = "0.0.0.0"
OUTSIDE = "192.0.2.1"
"""An address of documentation: nobody answers there."""
OPENED = 25
"""How many sockets `open_every_socket` has open in the end, at least."""

_kept: list[socket.socket] = []
_libc = ctypes.CDLL(None, use_errno=True)


def say(*words: object) -> None:
    """Writes a line at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _socket(host: str, port: int, kind: int = socket.SOCK_STREAM, *, six_alone: bool | None = None) -> socket.socket:
    """A socket that is bound, and listens if it can."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    _kept.append(found)
    if six_alone is not None:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(six_alone))
    if kind == socket.SOCK_STREAM:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((host, port))
    if kind == socket.SOCK_STREAM:
        found.listen(16)
    return found


def serve(host: str, port: str, word: str, *_: str) -> None:
    """Answers each connection with the word; as Go does on all addresses, with one socket for IPv6 and IPv4."""
    listener = _socket(host, int(port), six_alone=False if ":" in host else None)
    while True:
        with listener.accept()[0] as connection:
            connection.sendall(word.encode())


def serve_peers(port: str, *_: str) -> None:
    """Answers each connection with the address that it comes from."""
    listener = _socket(ANY, int(port))
    while True:
        connection, (host, _port) = listener.accept()
        with connection:
            connection.sendall(host.encode())


def serve_six_alone(port: str, word: str) -> None:
    """Answers each connection with the word, at ::1 alone."""
    listener = _socket("::1", int(port), six_alone=True)
    while True:
        with listener.accept()[0] as connection:
            connection.sendall(word.encode())


def bind_many_of_six_alone() -> None:
    """Binds more sockets to ports of ::1 than a node remembers of all its pods."""
    for port in range(20000, 21100):
        _socket("::1", port, six_alone=True).close()


def serve_once(port: str) -> None:
    """Answers one connection."""
    with _socket(ANY, int(port)).accept()[0] as connection:
        connection.sendall(b"once")


def serve_later(host: str, port: str, word: str, *_: str) -> None:
    """Leaves a process behind that serves when its parent has ended."""
    parent = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        select.select([parent], [], [], 30)
        serve(host, port, word)


def ask_until_answered(host: str, port: str, *, stays: bool = False) -> None:
    """Prints the answer of whoever listens there, as soon as somebody does."""
    for _ in range(1200):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port)), 30) as connection:
            say(b"".join(iter(lambda: connection.recv(100), b"")).decode())
            if stays:
                signal.pause()
            return
        select.select([], [], [], 0.05)
    sys.exit(f"expected somebody at {host}:{port}, got nobody in 60 s")


def ask_and_stay(host: str, port: str) -> None:
    """The same, and does not end: a sidecar."""
    ask_until_answered(host, port, stays=True)


def collect(port: str) -> None:
    """Prints each datagram."""
    listener = _socket(ANY, int(port), socket.SOCK_DGRAM)
    while True:
        say(listener.recvfrom(100)[0].decode())


def send_datagrams(word: str) -> None:
    """Sends datagrams to localhost without end."""
    connected = None
    while True:
        with contextlib.suppress(ConnectionRefusedError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(f"{word} sent".encode(), ("127.0.0.1", 8125))
            connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            connected.connect(("localhost", 8125))
            connected.send(f"{word} connected".encode())
        if connected is not None:
            connected.close()
        select.select([], [], [], 0.05)


# Every way to bind a socket


def open_every_socket(*_: str) -> None:
    """Says which could not be opened, and then `ready`."""
    for number, way in enumerate(_ways()):
        try:
            way()
        except OSError as error:
            say("fault", number, error)
    child = os.fork()
    if child == 0:
        _in_child()
    say("ready")
    signal.pause()


def _ways() -> Iterator[Callable[[], object]]:
    datagram = socket.SOCK_DGRAM
    yield lambda: _socket(ANY, 9001)
    yield lambda: _socket("::", 9001, six_alone=True)
    yield lambda: _socket("::", 9002, six_alone=False)
    yield lambda: _socket("::ffff:0.0.0.0", 9003, six_alone=False)
    yield lambda: _socket("127.0.0.1", 9004)
    yield lambda: _socket("::1", 9004, six_alone=False)
    yield lambda: _socket("127.0.0.53", 9005)
    yield lambda: _socket("::ffff:127.0.0.1", 9006, six_alone=False)
    yield lambda: _socket(ANY, 0)
    yield lambda: _socket("::", 0)
    yield lambda: _listen_unbound(socket.AF_INET)
    yield lambda: _listen_unbound(socket.AF_INET6)
    for kind in (socket.SOCK_STREAM, datagram) * 2:
        yield partial(_shared, ANY, 9007, kind)
    yield lambda: _socket(ANY, 9001, datagram)
    yield lambda: _socket("::", 9008, datagram, six_alone=False)
    yield lambda: _first_datagram(socket.AF_INET, lambda one, to: one.sendto(b"x", to), "127.0.0.1")
    yield lambda: _first_datagram(socket.AF_INET, lambda one, to: one.sendmsg([b"x"], [], 0, to), "127.0.0.1")
    yield lambda: _first_datagram(socket.AF_INET6, lambda one, to: one.sendto(b"x", to), "::1")
    yield _after_a_failed_connection
    yield _after_disconnecting
    yield lambda: _after_what_cannot_be_reached("255.255.255.255", "127.0.0.1", lambda one, to: one.connect(to))
    yield lambda: _after_what_cannot_be_reached("255.255.255.255", "127.0.0.1", lambda one, to: one.sendto(b"x", to))
    yield lambda: _after_what_cannot_be_reached(
        "::ffff:255.255.255.255", "::ffff:127.0.0.1", lambda one, to: one.connect(to)
    )
    yield lambda: _after_what_cannot_be_reached("fe80::1", "::1", lambda one, to: one.connect(to), six_alone=True)
    yield _with_an_unspecified_family
    yield _in_thread


def _listen_unbound(family: int) -> None:
    found = socket.socket(family, socket.SOCK_STREAM)
    _kept.append(found)
    found.listen()


def _shared(host: str, port: int, kind: int) -> None:
    found = socket.socket(socket.AF_INET, kind)
    _kept.append(found)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind((host, port))
    if kind == socket.SOCK_STREAM:
        found.listen()


def _first_datagram(family: int, send: Callable[[socket.socket, tuple[str, int]], int], host: str) -> None:
    found = socket.socket(family, socket.SOCK_DGRAM)
    _kept.append(found)
    send(found, (host, 9))


def _after_a_failed_connection() -> None:
    found = socket.socket()
    _kept.append(found)
    for host in ("127.0.0.1", OUTSIDE):
        found.settimeout(0.05)
        with contextlib.suppress(OSError):
            found.connect((host, 9))
        _disconnect(found)
    found.listen()


def _after_disconnecting() -> None:
    """From somebody outside: the socket had an address of the machine."""
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _kept.append(found)
    with contextlib.suppress(OSError):  # a machine without a network
        found.connect((OUTSIDE, 9))
    _disconnect(found)
    found.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


def _after_what_cannot_be_reached(
    host: str, local: str, reach: Callable[[socket.socket, tuple[str, int]], object], *, six_alone: bool = False
) -> None:
    """The socket was to get an address of the machine."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    _kept.append(found)
    if six_alone:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    with contextlib.suppress(OSError):
        reach(found, (host, 9))
        say("fault: reached", host)
    found.sendmsg([b"x"], [], 0, (local, 9))


def _disconnect(one: socket.socket) -> None:
    _libc.connect(one.fileno(), bytes(16), 16)


def _with_an_unspecified_family() -> None:
    found = socket.socket()
    _kept.append(found)
    if _libc.bind(found.fileno(), struct.pack("=H", socket.AF_UNSPEC) + struct.pack("!H", 9009) + bytes(12), 16) != 0:
        raise OSError(ctypes.get_errno(), "bind")
    found.listen()


def _in_thread() -> None:
    thread = threading.Thread(target=_socket, args=(ANY, 9010))
    thread.start()
    thread.join()


def _in_child() -> None:
    _socket(ANY, 9011)
    signal.pause()


# What is refused


def try_what_is_refused(other: str) -> None:
    """Prints what was not refused."""
    for host in (other, OUTSIDE, "224.0.0.1", "255.255.255.255", *_own_addresses()):
        _expect(f"bind {host}", {errno.EADDRNOTAVAIL}, partial(_socket, host, 9100))
        _expect(f"datagrams {host}", {errno.EADDRNOTAVAIL}, partial(_socket, host, 9100, socket.SOCK_DGRAM))
    _expect("bind ::2", {errno.EADDRNOTAVAIL}, lambda: _socket("::2", 9100))
    _socket(ANY, 9101)
    _expect("the same port", {errno.EADDRINUSE}, lambda: _socket(ANY, 9101))
    for family, kind, protocol in (
        (socket.AF_INET, socket.SOCK_STREAM, 262),  # MPTCP
        (socket.AF_INET, socket.SOCK_STREAM, 132),  # SCTP
        (socket.AF_INET6, socket.SOCK_SEQPACKET, 132),
        (socket.AF_INET, socket.SOCK_STREAM, 256),  # SMC
        (socket.AF_INET, socket.SOCK_DGRAM, 136),  # UDP-Lite
        (socket.AF_INET, 6, 33),  # DCCP
        (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
        (socket.AF_PACKET, socket.SOCK_RAW, 0),
        (40, socket.SOCK_STREAM, 0),  # vsock
        (43, socket.SOCK_STREAM, 0),  # SMC
        (30, socket.SOCK_STREAM, 0),  # TIPC
    ):
        refused = {errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EPERM}
        _expect(f"socket {family} {kind} {protocol}", refused, partial(socket.socket, family, kind, protocol))
    fast_open = 0x20000000
    _expect("fast open", {errno.EOPNOTSUPP}, lambda: socket.socket().sendto(b"x", fast_open, ("127.0.0.1", 9101)))
    _expect(
        "fast open", {errno.EOPNOTSUPP}, lambda: socket.socket().sendmsg([b"x"], [], fast_open, ("127.0.0.1", 9101))
    )
    for number in (425, 426, 427):  # io_uring
        _expect(f"call {number}", {errno.ENOSYS}, partial(_call, number))
    if os.uname().machine == "x86_64":
        _expect("x32", {errno.ENOSYS}, lambda: _call(0x40000000 + 41, socket.AF_INET, socket.SOCK_STREAM, 0))
        _expect_end_by_a_call_of_32_bits()


def try_datagrams() -> None:
    """Prints what was not refused."""
    for family in (socket.AF_INET, socket.AF_INET6):
        for protocol in (0, socket.IPPROTO_UDP):
            refused = partial(socket.socket, family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, protocol)
            _expect(f"datagrams {family} {protocol}", {errno.EACCES}, refused)


def _expect_end_by_a_call_of_32_bits() -> None:
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\0\0\0\xcd\x80\xc3")  # getpid by `int 0x80`
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        say("a call of 32 bits was not refused")


def _own_addresses() -> list[str]:
    """Of the machine, by which it would reach others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
        one.connect((OUTSIDE, 9))
        return [one.getsockname()[0]]
    return []


def _expect(what: str, numbers: set[int], work: Callable[[], object]) -> None:
    try:
        work()
    except OSError as error:
        if error.errno not in numbers:
            say(what, error)
    else:
        say(what, "was not refused")


def _call(number: int, *arguments: int) -> None:
    given = [ctypes.c_long(argument) for argument in (*arguments, *(0,) * (6 - len(arguments)))]
    if _libc.syscall(ctypes.c_long(number), *given) < 0:
        raise OSError(ctypes.get_errno(), "call")


# Races


def exchange_sockets() -> None:
    """Another thread exchanges the socket under a descriptor, and the address in memory, while they are bound.

    Says how many network sockets were bound outside, and `done` if some were bound at all.
    """
    harmless, harmful = _sockaddr("127.0.0.1"), _sockaddr(ANY)
    buffer = (ctypes.c_char * 16).from_buffer_copy(harmless)
    current: list[int] = []
    over = threading.Event()
    spot = os.dup(0)
    sys.setswitchinterval(0.0001)

    def exchange() -> None:
        while not over.is_set():
            for one, data in zip(tuple(current), (harmful, harmless), strict=False):
                ctypes.memmove(buffer, data, 16)
                with contextlib.suppress(OSError):  # closed by now
                    os.dup2(one, spot)

    thread = threading.Thread(target=exchange)
    thread.start()
    bound = []
    for round_ in range(150):
        with socket.socket() as net, socket.socket(socket.AF_UNIX) as local:
            current[:] = [local.fileno(), net.fileno()]
            for name in (buffer, struct.pack("=H", socket.AF_UNIX) + b"\0" + str(round_).encode()):
                _libc.bind(spot, name, 16 if name is buffer else 7)
            _libc.listen(spot, 1)
            current.clear()
            bound.append(net.getsockname())
    over.set()
    thread.join()
    outside = [host for host, port in bound if port and not host.startswith("127.")]
    say(f"{len(outside)} outside" if outside else "done" if any(port for _, port in bound) else "none bound")


def _sockaddr(host: str) -> bytes:
    return struct.pack("=H", socket.AF_INET) + bytes(2) + socket.inet_aton(host) + bytes(8)


def block_in_connect() -> None:
    """Connects to a listener that accepts nothing, until nothing more fits in its queue, and then once more."""
    listener = socket.socket()
    listener.bind((ANY, 9300))
    listener.listen(0)

    def connect() -> None:
        with socket.socket() as one:
            one.connect(("127.0.0.1", 9300))
            select.select([], [], [], 1000)

    filling = [socket.socket() for _ in range(3)]
    for one in filling:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", 9300))
    threads = [threading.Thread(target=connect, daemon=True) for _ in range(100)]
    for thread in threads:
        thread.start()
    say("blocking")
    signal.pause()


def flood() -> None:
    """Binds without end, in several processes."""
    for _ in range(3):
        if os.fork() == 0:
            break
    else:
        say("flooding")
    while True:
        with socket.socket() as one:
            one.bind((ANY, 0))


def open_and_leave() -> None:
    """Binds and connects a hundred sockets; ends while a thread still waits for a connection."""
    listener = _socket(ANY, 0)
    listener.listen(0)
    port = listener.getsockname()[1]
    for _ in range(100):
        _socket(ANY, 0, socket.SOCK_DGRAM)
        one = socket.socket()
        _kept.append(one)
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
    thread = threading.Thread(target=lambda: socket.create_connection(("127.0.0.1", port)), daemon=True)
    thread.start()
    thread.join(0.2)
    os._exit(0)


def call_with_nonsense(seed: str) -> None:
    """Makes calls about sockets with arguments that make little sense."""
    rng = random.Random(seed)
    memory = ctypes.create_string_buffer(256)
    numbers = {"x86_64": (41, 42, 44, 46, 49, 50), "aarch64": (198, 203, 206, 211, 200, 201)}[os.uname().machine]
    families = (*range(50), 1, 2, 2, 2, 10, 10, 16)
    made = [socket.socket(family, kind) for family in (1, 2, 10) for kind in (1, 2)]
    for _ in range(3000):
        middle = rng.choice((rng.randbytes(4), bytes(4), b"\x7f\0\0\x01", b"\xc0\0\2\1"))
        data = struct.pack("=H", rng.choice(families)) + rng.randbytes(2) + middle + rng.randbytes(40)
        memory.raw = data.ljust(256, b"\0")
        pointers = (0, 1, ctypes.addressof(memory), ctypes.addressof(memory), 2**63, 2**64 - 1)
        fd = rng.choice((*(one.fileno() for one in made), 0, -1, 9999, 2**40))
        sizes = (0, 1, 2, 15, 16, 24, 28, 110, 128, 129, 4096, 2**31, 2**32 - 1, 2**64 - 1)
        arguments = {
            41: (rng.choice((1, 2, 10, 16)), rng.choice((1, 2, 2050, 2**40 + 2)), rng.choice((0, 6, 17, 2**33))),
            44: (
                fd,
                rng.choice(pointers),
                rng.choice(sizes),
                rng.choice((0, 2**14, -1)),
                rng.choice(pointers),
                rng.choice(sizes),
            ),
        }
        number = rng.choice(numbers[:3] + numbers[4:])
        given = arguments.get({198: 41, 206: 44}.get(number, number), (fd, rng.choice(pointers), rng.choice(sizes)))
        found = _libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(argument % 2**64) for argument in given))
        if number == numbers[0] and found > 2:
            os.close(found)
    say("done")


# Unix sockets


def bind_unix_sockets() -> None:
    """By a path, by a name, and by none; says `done`, or what went wrong."""
    folder = Path(tempfile.mkdtemp(dir="."))
    os.chdir(folder)
    os.umask(0o027)
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind("relative.sock")
        one.listen()
        assert one.getsockname() == "relative.sock"
        assert stat.S_IMODE(Path("relative.sock").stat().st_mode) == 0o750
        other.connect(str(Path("relative.sock").absolute()))
        assert one.accept()[0].getsockname() == "relative.sock"
    for fault, path in ((errno.EADDRINUSE, "relative.sock"), (errno.ENOENT, "/nowhere/at/all/x.sock")):
        with socket.socket(socket.AF_UNIX) as one:
            _expect(path, {fault}, partial(one.bind, path))
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as link:
        one.bind(f"\0navarch-{os.urandom(4).hex()}")
        one.listen()
        link.bind((0, 0))
        assert link.getsockname()[0] != 0
    Path("relative.sock").unlink()
    Path.cwd().rmdir()
    say("done")


def bind_as_somebody() -> None:
    """Prints who owns a Unix socket, its mode, who listens on it, and whether setuid programs work."""
    _socket(ANY, 80)
    os.umask(0o022)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("/data/x.sock")
        one.listen()
        found = Path("/data/x.sock").stat()
        with socket.socket(socket.AF_UNIX) as other:
            other.connect("/data/x.sock")
            peer = struct.unpack("=3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:]
    status = Path("/proc/self/status").read_text().splitlines()
    privileges = next(line for line in status if line.startswith("NoNewPrivs"))
    say(found.st_uid, oct(stat.S_IMODE(found.st_mode)), *peer, privileges)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
