"""`Image`: the name of an image, and what runs for it: a program of this machine, or an unpacked image."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from navarch.errors import InvalidValueError
from navarch.oci.reference import Reference


class ImageReference(NamedTuple):
    """The reference of an image in a container, split into repository and tag.

    >>> ImageReference.of("quay.io/coreos/etcd:v3.5.1")
    ImageReference(repository='quay.io/coreos/etcd', tag='v3.5.1')
    >>> ImageReference.of("localhost:5000/app")
    ImageReference(repository='localhost:5000/app', tag='')
    """

    repository: str
    tag: str

    @classmethod
    def of(cls, text: str) -> ImageReference:
        """Splits the text; drops a digest, which programs of this machine do not have."""
        name, _, _ = text.partition("@")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            return cls(name, "")
        return cls(head, tag)


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image name and its program.

    `name` is a repository (`example.com/team/app`) or its last part, which then matches every repository that ends with
    it. An image with a `version` matches only tags of that version; `v3.5` and `3.5.1-0` match 3.5.1 too. The node runs
    `argv`, then `always`, then the container's `args` or, if it has none, `args`. `always` may contain `$(POD_IP)`,
    `$(POD_NAME)` and `$(POD_NAMESPACE)`.

    An unpacked image has its files in the folder `root`, and in `argv` and `args` its entrypoint and command. `name` and
    `version` are then exactly its repository and tag, and its `digests` name it too.
    """

    name: str
    argv: tuple[str, ...]
    version: str = ""
    args: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    env: dict[str, str] = {}
    root: str = ""
    digests: tuple[str, ...] = ()
    """The digest under which it was loaded first: of an index, or of the image itself, which comes last."""
    user: str = ""
    working_dir: str = ""

    def __post_init__(self) -> None:
        if not self.name or not (self.root or (self.argv and self.argv[0])):
            raise InvalidValueError("expected an image with a name and a program, got one without them")
        texts = (self.name, self.version, *self.argv, *self.args, *self.always, *self.env, *self.env.values())
        if any("\0" in text for text in texts) or any(not name or "=" in name for name in self.env):
            raise InvalidValueError(
                f"expected arguments and variables without NUL, and names of variables without '=', got others for {self.name!r}"
            )

    @property
    def identity(self) -> str:
        """Returns the name with the version or, without one, with the digest, as `navarch cluster image` lists it."""
        if self.root and not self.version:
            return self.image_id
        return f"{self.name}:{self.version}" if self.version else self.name

    def is_part_of(self, other: Image) -> bool:
        """Returns whether this is the other unpacked image without its tag."""
        return bool(self.root) and not self.version and (self.name, self.root) == (other.name, other.root)

    @property
    def image_id(self) -> str:
        """Returns what the status of a container says: the repository with the digest, or the name of a program."""
        return f"{self.name}@{self.digests[0]}" if self.digests else self.identity

    @property
    def folder(self) -> str:
        """Returns the folder of its program and of the programs beside it; an unpacked image has none."""
        return "" if self.root else os.path.dirname(self.argv[0])  # noqa: PTH120 - an empty one stays empty

    def fits(self, text: str) -> bool:
        """Returns whether the reference of a container means this image."""
        if self.root:
            return self._is(text)
        reference = ImageReference.of(text)
        named = reference.repository == self.name or reference.repository.endswith(f"/{self.name}")
        return named and _is_version(self.version, reference.tag)

    def _is(self, text: str) -> bool:
        try:
            reference = Reference.parse(text)
        except InvalidValueError:
            return False
        same = reference.digest in self.digests if reference.digest else reference.tag == self.version
        return same and reference.name == self.name


def _is_version(version: str, tag: str) -> bool:
    if not version or tag in {"", "latest"}:
        return True
    given = tag.removeprefix("v")
    return given == version or given.startswith(f"{version}-") or version.startswith(f"{given}.")


def values_of(address: str, name: str, namespace: str) -> Mapping[str, str]:
    """Returns the values of the references in `always`."""
    return {"POD_IP": address, "POD_NAME": name, "POD_NAMESPACE": namespace}
