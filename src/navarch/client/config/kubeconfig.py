"""Kubeconfig files: finds, merges and resolves them by kubectl's rules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from navarch.client.config.credentials import reason
from navarch.client.config.document import ConfigEntry, kind_of, named, parse
from navarch.client.config.entries import resolve
from navarch.client.config.environment import SERVICE_ACCOUNT, in_cluster, is_in_cluster
from navarch.client.config.model import Config
from navarch.client.config.tls import FilePath
from navarch.errors import ConfigError


def load(
    path: FilePath | None = None, *, context: str | None = None, service_account: FilePath = SERVICE_ACCOUNT
) -> Config:
    """Returns the configuration that kubectl would use here.

    That is the file given, or those in KUBECONFIG, or ~/.kube/config, with their current context or the named one;
    without any of these files and without a named context, that of the pod. Raises ConfigError if there is none, or if
    it cannot be used.
    """
    if path is not None:
        merged = merge([read(Path(path).expanduser())])
        return _select(merged, context)
    candidates = _candidates()
    merged = merge(read(file) for file in candidates if _exists(file))
    if merged.is_empty and context is None and is_in_cluster():
        return in_cluster(service_account)
    if not merged.files:
        raise ConfigError(_nothing_found(candidates, context))
    return _select(merged, context)


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """One file, or several merged into one."""

    files: tuple[str, ...]
    current: str = ""
    contexts: Mapping[str, ConfigEntry] = {}
    clusters: Mapping[str, ConfigEntry] = {}
    users: Mapping[str, ConfigEntry] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no entries."""
        return not (self.current or self.contexts or self.clusters or self.users)

    @property
    def where(self) -> str:
        """The files, for errors."""
        return " + ".join(self.files)

    def __repr__(self) -> str:
        return f"Kubeconfig({self.where})"


def read(path: Path) -> Kubeconfig:
    """Reads one file. An empty one has no entries. Raises ConfigError for any other document."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links, and paths inside belong to the link
    value = parse(_content(path), str(path))
    if value is not None and not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a kubeconfig (a mapping of kind Config), got {kind_of(value)}")
    root = ConfigEntry(value, str(path), path.parent)
    for key, expected in (("apiVersion", "v1"), ("kind", "Config")):
        if root.text(key) not in {"", expected}:
            raise ConfigError(f"{path}: expected a kubeconfig of {key} {expected}, got {root.text(key)[:80]!r}")
    return Kubeconfig(
        files=(str(path),),
        current=root.text("current-context"),
        contexts=named(root, "contexts", "context"),
        clusters=named(root, "clusters", "cluster"),
        users=named(root, "users", "user"),
    )


def merge(files: Iterable[Kubeconfig]) -> Kubeconfig:
    """Merges files: for each entry, and for the current context, the first file that has it wins as a whole."""
    merged = Kubeconfig(files=())
    for file in files:
        merged = Kubeconfig(
            files=merged.files + file.files,
            current=merged.current or file.current,
            contexts={**file.contexts, **merged.contexts},
            clusters={**file.clusters, **merged.clusters},
            users={**file.users, **merged.users},
        )
    return merged


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: expected a kubeconfig, got: {reason(error)}") from None


def _candidates() -> list[Path]:
    listed = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [Path(name) for name in dict.fromkeys(listed)] or [Path("~/.kube/config").expanduser()]


def _exists(path: Path) -> bool:
    """Returns True if there is a file; the reader reports why it cannot be read."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def _nothing_found(candidates: list[Path], context: str | None) -> str:
    names = ", ".join(map(str, candidates))
    wanted = f"context {context!r}" if context else "a kubeconfig"
    return (
        f"expected {wanted} in {names}, got no such file, and this is not a pod (KUBERNETES_SERVICE_HOST is not set). "
        f"Set KUBECONFIG, or pass a path."
    )


def _select(merged: Kubeconfig, wanted: str | None) -> Config:
    name = merged.current if wanted is None else wanted
    if merged.is_empty:
        raise ConfigError(f"{merged.where}: expected a kubeconfig with contexts, clusters and users, got an empty file")
    if not name:
        raise ConfigError(
            f"{merged.where}: expected a current-context, got none. "
            f"Name a context; there is {_listed(merged.contexts)}, or run `kubectl config use-context NAME`."
        )
    context = _find(merged.contexts, "context", name, merged.where)
    where = f"context {name!r} in {merged.where}"
    if not context.text("cluster"):
        raise ConfigError(f"{where}: expected the name of a cluster, got none. There is {_listed(merged.clusters)}.")
    cluster = _find(merged.clusters, "cluster", context.text("cluster"), where)
    user_name = context.text("user")
    user = _find(merged.users, "user", user_name, where) if user_name else ConfigEntry(None, where, context.folder)
    origin = f"context {name!r} (cluster {context.text('cluster')!r}, user {user_name!r}) in {merged.where}"
    return resolve(context, cluster, user, origin)


def _find(entries: Mapping[str, ConfigEntry], kind: str, name: str, where: str) -> ConfigEntry:
    if name not in entries:
        raise ConfigError(f"{where}: expected a {kind} named {name!r}, got none. There is {_listed(entries)}.")
    return entries[name]


def _listed(entries: Mapping[str, ConfigEntry]) -> str:
    return ", ".join(map(repr, sorted(entries))) or "none at all"
