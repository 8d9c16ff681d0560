"""`Reference`: the name of an image in a registry."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from navarch.errors import InvalidValueError

DOCKER_HUB: Final = "docker.io"
_DOCKER_HUB_NAMES: Final = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_LONGEST_REPOSITORY: Final = 255
_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:.]+\])(?::[0-9]{{1,5}})?", re.ASCII)
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*", re.ASCII)
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


class Reference(NamedTuple):
    """An image in a registry, by its tag, its digest, or both; the digest then decides.

    >>> Reference.parse("registry.example.com:5000/team/app:v1")
    Reference(registry='registry.example.com:5000', repository='team/app', tag='v1', digest='')
    >>> str(Reference.parse("memcached"))
    'docker.io/library/memcached:latest'
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Reads a reference; adds what it leaves out, as Docker does. Raises `InvalidValueError` with the faulty part."""
        name, at, digest = text.partition("@")
        if at and not is_digest(digest):
            raise _invalid(text, f"a digest `sha256:` and 64 hexadecimal digits after @, got {digest!r}")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            head, tag = name, ""
        elif not is_tag(tag):
            raise _invalid(text, f"a tag of at most 128 letters, digits, `_`, `.` and `-`, got {tag!r}")
        registry, repository = _split(head)
        if not _HOST.fullmatch(registry):
            raise _invalid(text, f"the host of a registry, got {registry!r}")
        check_repository(repository, whole=text)
        return cls(registry, repository, tag or ("" if at else "latest"), digest)

    @property
    def version(self) -> str:
        """Returns what the protocol asks for: the digest or, without one, the tag."""
        return self.digest or self.tag

    @property
    def name(self) -> str:
        """Returns registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def is_digest(text: str) -> bool:
    """Returns whether the text is a SHA-256 digest, the only kind that registries use."""
    return _DIGEST.fullmatch(text) is not None


def is_tag(text: str) -> bool:
    """Returns whether the text is a tag."""
    return _TAG.fullmatch(text) is not None


def check_repository(text: str, *, whole: str = "") -> None:
    """Raises `InvalidValueError` if the text is no name of a repository."""
    if len(text) > _LONGEST_REPOSITORY or not _REPOSITORY.fullmatch(text):
        remedy = f"; in lower case: {text.lower()}" if _REPOSITORY.fullmatch(text.lower()) else ""
        raise _invalid(
            whole or text,
            f"a repository of lower-case letters, digits, `.`, `_`, `-` and `/`, at most {_LONGEST_REPOSITORY} "
            f"characters, got {text!r}{remedy}",
        )


def _split(name: str) -> tuple[str, str]:
    """Splits off the registry: what comes before the first slash, if it looks like a host and not like a folder."""
    head, slash, rest = name.partition("/")
    if slash and ("." in head or ":" in head or head == "localhost"):
        if head in _DOCKER_HUB_NAMES:
            return DOCKER_HUB, rest if "/" in rest else f"library/{rest}"
        return head, rest
    return DOCKER_HUB, name if slash else f"library/{name}"


def _invalid(text: str, expected: str) -> InvalidValueError:
    return InvalidValueError(f"{text!r} is no name of an image: expected {expected}")
