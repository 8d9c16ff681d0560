"""No path leads out of a root, whatever is in it: by the kernel's own resolution as by the walk that replaces it."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from navarch.cluster.nodes.shim.program import kernel, openat
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory

_RESOLVERS = {"openat2": openat._openat2, "walk": openat._walk}
_OUT = ("/etc/passwd", "..", "../outside/secret", "a/../../outside/secret", "a/b/../../../outside")
_LEADS_OUT = {
    "absolute": "/etc",
    "up": "../outside",
    "chain": "up",
    "deep": "a/../../outside",
    "magic": "/proc/self/cwd",
}


@pytest.fixture(params=_RESOLVERS, autouse=True)
def resolver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How paths are resolved."""
    name: str = request.param
    if name == "openat2" and openat.resolver is not openat._openat2:
        pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(openat, "resolver", _RESOLVERS[name])
    return name


@pytest.fixture
def root(tmp_path: Path) -> Iterator[ConfinedDirectory]:
    """A directory with links that lead out of it, beside one that holds a secret."""
    (tmp_path / "outside" / "kept").mkdir(parents=True)
    (tmp_path / "outside" / "secret").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "file").write_text("text")
    (inside / "near").symlink_to("a")
    (inside / "a" / "back").symlink_to("../a/file")
    for name, target in _LEADS_OUT.items():
        (inside / name).symlink_to(target)
    (inside / "around").symlink_to("around")
    (inside / "nowhere").symlink_to("missing")
    with ConfinedDirectory.at(inside) as made:
        yield made


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _fault(error: pytest.ExceptionInfo[OSError]) -> str:
    return errno.errorcode[error.value.errno or 0]


@pytest.mark.parametrize("path", _OUT)
@pytest.mark.parametrize("links", ["refuse", "beneath"])
def test_path_that_leads_out_is_refused(root: ConfinedDirectory, path: str, links: openat.Links) -> None:
    """An absolute path, or one with `..`, is refused."""
    with pytest.raises(OSError, match="leads out") as error:
        root.open(path, os.O_RDONLY, links=links)
    assert _fault(error) == "EXDEV"


@pytest.mark.parametrize("name", _LEADS_OUT)
@pytest.mark.parametrize("rest", ["", "/secret", "/new"])
def test_link_that_leads_out_is_refused(root: ConfinedDirectory, tmp_path: Path, name: str, rest: str) -> None:
    """Reading, creating and making directories through such a link is refused."""
    for flags in (os.O_RDONLY, os.O_PATH, os.O_WRONLY | os.O_CREAT):
        with pytest.raises(OSError) as error:
            root.open(name + rest, flags, links="beneath")
        assert _fault(error) in {"EXDEV", "ELOOP"}
    with pytest.raises(OSError):
        root.make_directories(f"{name}{rest}/deep", 0o755, links="beneath")
    assert _names(tmp_path / "outside") == ["kept", "secret"]


def test_link_that_stays_is_followed_where_that_is_asked_for(root: ConfinedDirectory) -> None:
    """A link is refused otherwise, at the end of a path as within it."""
    for path in ("near/file", "a/back", "near/back"):
        fd = root.open(path, os.O_RDONLY, links="beneath")
        assert os.read(fd, 10) == b"text"
        os.close(fd)
        with pytest.raises(OSError) as error:
            root.open(path, os.O_RDONLY)
        assert _fault(error) == "ELOOP"


def test_link_that_leads_nowhere_ends(root: ConfinedDirectory) -> None:
    """A circle of links is an error, and nothing is created at the end of a link."""
    with pytest.raises(OSError) as error:
        root.open("around", os.O_RDONLY, links="beneath")
    assert _fault(error) == "ELOOP"
    with pytest.raises(FileNotFoundError):
        root.make_directories("nowhere/x", 0o755, links="beneath")
    assert not root.exists("missing")


def test_root_can_stand_for_the_machines_own(root: ConfinedDirectory) -> None:
    """As after chroot, absolute links begin at the root, and `..` ends there."""
    root.make_directories("a/../etc", 0o700, links="in_root")
    root.make_directories("/absolute/deep", 0o700, links="in_root")
    root.make_directories("/a/../../../x", 0o700, links="in_root")
    assert {"etc", "x"} <= {*root.list()}
    assert root.list("etc") == ["deep"]
    fd = root.open("/absolute", os.O_PATH, links="in_root")
    assert os.path.samestat(os.fstat(fd), root.stat("etc"))
    os.close(fd)


def test_directories_have_the_mode_that_is_asked_for(root: ConfinedDirectory) -> None:
    """The umask does not matter; existing directories keep their mode."""
    root.make_directories("a/new/deep", 0o777)
    assert [stat.S_IMODE(root.stat(path).st_mode) for path in ("a/new", "a/new/deep")] == [0o777, 0o777]
    assert stat.S_IMODE(root.stat("a").st_mode) != 0o777


def test_file_is_never_written_through_a_link(root: ConfinedDirectory, tmp_path: Path) -> None:
    """Creating, rewriting and paths with a NUL never write through a link."""
    root.symlink("../outside/secret", "trap")
    with pytest.raises(FileExistsError):
        root.create("trap", b"x", 0o600)
    for path in ("trap", "up/secret", "up/new", "a\0b"):
        with pytest.raises(OSError):
            root.rewrite(path, b"x", 0o600)
    assert (tmp_path / "outside" / "secret").read_text() == "secret"
    assert _names(tmp_path / "outside") == ["kept", "secret"]


def test_file_is_changed_in_place(root: ConfinedDirectory) -> None:
    """A rewritten file keeps its inode, since it may be mounted."""
    before = root.stat("a/file")
    root.rewrite("a/file", b"longer than before", 0o640)
    root.rewrite("a/file", b"new", 0o640)
    assert root.read("a/file", 100) == b"new"
    assert root.read("a/file", 2, from_end=True) == b"ew"
    assert root.stat("a/file").st_ino == before.st_ino


def test_what_is_no_file_is_not_read(root: ConfinedDirectory, tmp_path: Path) -> None:
    """A pipe would keep its reader waiting, a link would show another file."""
    os.mkfifo(tmp_path / "inside" / "pipe")
    for path in ("pipe", "a", "near/file", "up/secret"):
        with pytest.raises(OSError):
            root.read(path, 10)
    with pytest.raises(OSError):
        root.rewrite("pipe", b"x", 0o600)


def test_removal_follows_no_link(root: ConfinedDirectory, tmp_path: Path) -> None:
    """No link is followed: neither a removed one, nor one inside, nor one on the way."""
    root.symlink("../../outside", "a/b/out")
    root.remove_all("a")
    root.remove_all("up")
    root.remove_all("missing")
    with pytest.raises(OSError):
        root.remove_all("deep/kept")
    for path in (".", "", "/", ".."):
        with pytest.raises(OSError):
            root.remove_all(path)
    assert _names(tmp_path / "outside") == ["kept", "secret"]
    assert not {"a", "up"} & {*root.list()}


def test_deep_and_closed_directories_are_removed(root: ConfinedDirectory) -> None:
    """A container leaves whatever it likes: far more levels than a path can have, and directories without rights."""
    inner = root.open_directory("a")
    for _ in range(2500):
        os.mkdir("d", dir_fd=inner.fd)
        child = inner.open_directory("d")
        inner.close()
        inner = child
    os.fchmod(inner.fd, 0)
    inner.close()
    root.remove_all("a")
    assert "a" not in root.list()
    assert not [name for name in root.list() if name.startswith("..removed")]


def test_group_is_given_to_no_other_files(root: ConfinedDirectory, tmp_path: Path) -> None:
    """Files behind links and files with another name keep their group."""
    if os.geteuid() != 0:
        pytest.skip("giving files away takes root")
    (tmp_path / "outside" / "linked").write_text("x")
    os.link(tmp_path / "outside" / "linked", tmp_path / "inside" / "hard")
    root.give_to_group(4711)
    outside = [tmp_path / "outside", *(tmp_path / "outside").iterdir()]
    assert not [path for path in outside if path.stat().st_gid == 4711]
    assert [root.stat(path).st_gid for path in (".", "a", "a/b", "a/file")] == [4711] * 4


def test_link_can_be_replaced_and_read(root: ConfinedDirectory) -> None:
    """A link such as `..data` is replaced and read."""
    root.symlink("a", "fresh")
    root.move("fresh", "near")
    assert root.link_target("near") == "a"
    assert (root.link_target("a"), root.link_target("missing")) == (None, None)


def test_directory_that_becomes_a_link_meanwhile_leads_nowhere_else(root: ConfinedDirectory, tmp_path: Path) -> None:
    """Somebody swaps it all the time; whatever is created or removed is beneath the root."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "x").mkdir()
    (inside / "trap").symlink_to(outside)
    stopping = threading.Event()
    swapping = threading.Thread(target=_swap, args=(inside, stopping))
    swapping.start()
    try:
        for number in range(300):
            _try_all(root, f"x/{number}")
    finally:
        stopping.set()
        swapping.join()
    assert _names(outside) == ["kept", "secret"]
    assert (outside / "secret").read_text() == "secret"


def _swap(inside: Path, stopping: threading.Event) -> None:
    """Exchanges the directory and the link in one step each time, so that there is always one of them."""
    number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
    names = [ctypes.c_char_p(bytes(inside / name)) for name in ("x", "trap")]
    while not stopping.is_set():
        kernel.call(number, -100, names[0], -100, names[1], 2)


def _try_all(root: ConfinedDirectory, path: str) -> None:
    acts: tuple[Callable[[], None], ...] = (
        lambda: root.make_directories(path, 0o755, links="beneath"),
        lambda: root.rewrite(f"{path}/file", b"x", 0o600),
        lambda: root.remove_all("x/kept"),
        lambda: root.remove_all("x/secret"),
    )
    for act in acts:
        try:
            act()
        except OSError:
            continue
