"""The JSON documents of an image: descriptors, manifests, indexes and configurations."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Final, TypeVar

import msgspec

from navarch.errors import ImageError
from navarch.oci.reference import is_digest

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
LAYER_GZIP: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY: Final = "application/vnd.oci.empty.v1+json"
EMPTY_CONTENT: Final = b"{}"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
MANIFEST_TYPES: Final = (MANIFEST, INDEX, DOCKER_MANIFEST, DOCKER_INDEX)
INDEX_TYPES: Final = frozenset({INDEX, DOCKER_INDEX})
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
LARGEST_MANIFEST: Final = 4 * 2**20
"""The bytes that a registry accepts of one manifest, and that we read of one."""


class Platform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What an image runs on."""

    architecture: str
    os: str = msgspec.field(default_factory=lambda: "linux")  # a factory, so that it is always written
    variant: str = ""

    @classmethod
    def parse(cls, text: str) -> Platform:
        """Reads `linux/amd64` or `linux/arm64/v8`; raises `ImageError`."""
        parts = text.split("/")
        if len(parts) not in {2, 3} or not all(parts):
            raise ImageError(f"expected a platform as linux/amd64, got {text!r}")
        return cls(os=parts[0], architecture=parts[1], variant=parts[2] if len(parts) > 2 else "")

    @classmethod
    def of_machine(cls) -> Platform:
        """Returns the platform of this machine."""
        machine = os.uname().machine
        return cls(architecture=_ARCHITECTURES.get(machine, machine))

    def fits(self, wanted: Platform) -> bool:
        """Returns whether an image for this platform is the wanted one; no variant is any."""
        same = (self.os, self.architecture) == (wanted.os, wanted.architecture)
        return same and (not wanted.variant or not self.variant or self.variant == wanted.variant)

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Names a blob or a manifest by its digest."""

    media_type: str
    digest: str
    size: int
    platform: Platform | None = None
    artifact_type: str = ""
    annotations: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not is_digest(self.digest) or self.size < 0:
            raise ValueError(f"expected a sha256 digest and a size, got {self.digest!r} and {self.size}")


class ImageManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One image for one platform, or another artifact."""

    schema_version: int
    media_type: str = ""
    artifact_type: str = ""
    config: Descriptor
    layers: list[Descriptor]
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


class ImageIndex(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The manifests of one image for several platforms, or of several images."""

    schema_version: int
    media_type: str = ""
    artifact_type: str = ""
    manifests: list[Descriptor]
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


class ProcessConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="pascal"):
    """How a container of the image starts."""

    user: str = ""
    env: list[str] | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    working_dir: str = ""
    labels: dict[str, str] | None = None
    exposed_ports: dict[str, dict[str, Any]] | None = None
    volumes: dict[str, dict[str, Any]] | None = None
    stop_signal: str = ""


class RootFs(msgspec.Struct, frozen=True, kw_only=True):
    """The digests of the layers before compression."""

    type: str
    diff_ids: list[str]


class LayerHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What made a layer."""

    created: str = ""
    created_by: str = ""
    comment: str = ""
    empty_layer: bool = False


class ImageConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The configuration of an image for one platform."""

    architecture: str
    os: str
    variant: str = ""
    created: str = ""
    author: str = ""
    config: ProcessConfig | None = None
    rootfs: RootFs
    history: list[LayerHistory] | None = None

    @property
    def platform(self) -> Platform:
        """Returns what the image runs on."""
        return Platform(os=self.os, architecture=self.architecture, variant=self.variant)


Document = ImageManifest | ImageIndex


def digest_of(content: bytes | memoryview) -> str:
    """Returns the digest of the content, as descriptors have it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def descriptor_of(content: bytes, media_type: str, *, platform: Platform | None = None) -> Descriptor:
    """Returns the descriptor of the content."""
    return Descriptor(media_type=media_type, digest=digest_of(content), size=len(content), platform=platform)


def encode(document: ImageManifest | ImageIndex | ImageConfig) -> bytes:
    """Returns the document as JSON: the same document gives the same bytes."""
    return msgspec.json.encode(document, order="deterministic")


def decode_manifest(content: bytes, media_type: str, *, where: str) -> Document:
    """Reads a manifest or an index; the type is the one in the document or, without one, the given.

    Raises `ImageError` for another type, and for content that is none; `where` begins its text.
    """
    if len(content) > LARGEST_MANIFEST:
        raise ImageError(f"{where}: expected a manifest of at most {LARGEST_MANIFEST} bytes, got {len(content)}")
    stated = _decode(content, _StatedType, where).media_type or media_type.partition(";")[0].strip()
    if stated in INDEX_TYPES:
        return _decode(content, ImageIndex, where)
    if stated in {MANIFEST, DOCKER_MANIFEST}:
        return _decode(content, ImageManifest, where)
    raise ImageError(f"{where}: expected an image or an index of OCI or Docker (schema 2), got {stated or 'no type'}")


def decode_config(content: bytes, *, where: str) -> ImageConfig:
    """Reads the configuration of an image; raises `ImageError`, which `where` begins."""
    return _decode(content, ImageConfig, where)


class _StatedType(msgspec.Struct, rename="camel"):
    media_type: str = ""


_T = TypeVar("_T")


def _decode(content: bytes, kind: type[_T], where: str) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ImageError(f"{where}: expected {_NAMES[kind]} as JSON, got something else: {error}") from None


_NAMES: Final[dict[type, str]] = {
    _StatedType: "a manifest",
    ImageManifest: "a manifest",
    ImageIndex: "an index",
    ImageConfig: "an image configuration",
}
