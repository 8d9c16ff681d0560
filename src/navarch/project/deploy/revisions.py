"""`RevisionHistory`: the last revisions of a deployment, each a Secret in the operator's namespace.

A revision is `pending` from before the first object is applied until the operator works: whoever finds one that is pending
knows that its objects may be there, or not.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from navarch.api import Dynamic, Kind
from navarch.client import Client, MergePatch
from navarch.errors import AlreadyExists, ConfigError, NotFound
from navarch.project.deploy.release import MANAGED_BY, Release

__all__ = ["KEPT", "SECRETS", "Revision", "RevisionHistory", "State", "last_deployed", "since_last_deployed"]

KEPT: Final = 5
"""How many revisions are kept; the last one that was deployed is always among them."""
SECRETS: Final = Kind("", "v1", "Secret", plural="secrets")
_PROJECT: Final = "navarch.dev/project"
_NUMBER: Final = "navarch.dev/revision"
_STATE: Final = "navarch.dev/state"
_TYPE: Final = "navarch.dev/revision"
_DATA: Final = "release"
_GZIP: Final = 16 + zlib.MAX_WBITS
_MOST_BYTES: Final = 64 * 2**20

State = Literal["pending", "deployed", "failed"]
"""`failed`: everything is applied, but the operator did not work in time."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision as its Secret has it."""

    number: int
    state: State
    created: str
    release: Release


class RevisionHistory:
    """The revisions of one project in one namespace."""

    def __init__(self, client: Client, project: str, namespace: str) -> None:
        self._client = client
        self._project = project
        self._namespace = namespace

    def secret(self, number: int) -> str:
        """Returns the name of the Secret of that revision."""
        return f"{self._project}.v{number}"

    async def read(self) -> list[Revision]:
        """Returns all revisions, the newest last; none if the namespace does not exist. Raises `ConfigError`."""
        labels = {_PROJECT: self._project, MANAGED_BY: "navarch"}
        found = await self._client.list(SECRETS, namespace=self._namespace, labels=labels)
        return sorted((_decoded(each) for each in found if each.get("type") == _TYPE), key=lambda each: each.number)

    async def begin(self, release: Release, known: Sequence[Revision]) -> Revision:
        """Returns the pending revision of this release: the newest one if that has the same release, else a new one.

        Raises `ConfigError` if another process begins one at the same moment.
        """
        if known and _packed(known[-1].release) == _packed(release):
            await self.set_state(known[-1], "pending")
            return msgspec.structs.replace(known[-1], state="pending")
        number = known[-1].number + 1 if known else 1
        try:
            made = await self._client.create(self._manifest(number, release))
        except AlreadyExists:
            raise ConfigError(
                f"{self._project}: expected to begin revision {number} in namespace {self._namespace}, but somebody else "
                f"has just begun it; wait until that deployment has ended, then run the command again"
            ) from None
        return _decoded(made)

    async def set_state(self, revision: Revision, state: State) -> None:
        """Writes the state of a revision."""
        change = {"metadata": {"labels": {_STATE: state}}}
        await self._client.patch(SECRETS, self.secret(revision.number), MergePatch(change), namespace=self._namespace)

    async def trim(self) -> None:
        """Deletes old revisions."""
        known = await self.read()
        deployed = last_deployed(known)
        for each in known[:-KEPT]:
            if each is not deployed:
                await self._delete(each.number)

    async def delete_all(self) -> None:
        """Deletes every revision, the oldest first."""
        for each in await self.read():
            await self._delete(each.number)

    async def _delete(self, number: int) -> None:
        try:
            await self._client.delete(SECRETS, self.secret(number), namespace=self._namespace)
        except NotFound:
            return

    def _manifest(self, number: int, release: Release) -> Dynamic:
        packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
        packed = packer.compress(msgspec.json.encode(release)) + packer.flush()
        labels = {MANAGED_BY: "navarch", _PROJECT: self._project, _NUMBER: str(number), _STATE: "pending"}
        return Dynamic(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self.secret(number), "namespace": self._namespace, "labels": labels},
                "type": _TYPE,
                "immutable": True,
                "data": {_DATA: b64encode(packed).decode()},
            }
        )


def _packed(release: Release) -> bytes:
    return msgspec.json.encode(release, order="sorted")


def last_deployed(known: Sequence[Revision]) -> Revision | None:
    """Returns the newest revision whose operator has worked."""
    return next((each for each in reversed(known) if each.state == "deployed"), None)


def since_last_deployed(known: Sequence[Revision]) -> list[Revision]:
    """Returns the revisions whose objects may be in the cluster: the last deployed one, and all later ones."""
    deployed = last_deployed(known)
    return [each for each in known if deployed is None or each.number >= deployed.number]


def _decoded(secret: Any) -> Revision:
    labels = secret.labels
    try:
        unpacker = zlib.decompressobj(_GZIP)
        text = unpacker.decompress(b64decode(secret["data"][_DATA]), _MOST_BYTES)
        return msgspec.convert(
            {
                "number": int(labels[_NUMBER]),
                "state": labels[_STATE],
                "created": secret.metadata.get("creationTimestamp", ""),
                "release": msgspec.json.decode(text),
            },
            Revision,
        )
    except (KeyError, TypeError, ValueError, zlib.error, msgspec.DecodeError) as error:
        raise ConfigError(
            f"Secret {secret.namespace}/{secret.name}: expected a revision of a deployment, got something else "
            f"({type(error).__name__}); delete it, and deploy again"
        ) from None
