"""`build_image`: an operator's image for all of its platforms, as an OCI layout in the project."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from navarch.errors import ConfigError
from navarch.oci.documents import (
    CONFIG,
    EMPTY,
    EMPTY_CONTENT,
    INDEX,
    MANIFEST,
    Descriptor,
    ImageIndex,
    ImageManifest,
    Platform,
    encode,
)
from navarch.oci.layers import Layer, pack
from navarch.oci.layout import Layout
from navarch.oci.reference import DOCKER_HUB, Reference
from navarch.project.image.base import PackedLayer
from navarch.project.image.build_cache import BuildCache, lock_file
from navarch.project.image.bytecode import Interpreter, bytecode_of
from navarch.project.image.code_tree import code_tree
from navarch.project.image.image_config import SourceRevision, image_config, labels_of, revision_of
from navarch.project.image.layer_builder import BaseLayers, DependenciesLayer, LayerBuilder
from navarch.project.image.lock_file import ImageLock
from navarch.project.image.project_metadata import ProjectMetadata
from navarch.project.image.sbom import SPDX, spdx_document
from navarch.project.image.targets import machine_of
from navarch.project.project import Project

LAYOUT_FOLDER: Final = "dist/image"
"""The OCI layout in a project; it ignores itself in git."""
LOCK: Final = ".lock"


class BuiltPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """An image for one platform."""

    platform: str
    digest: str
    sbom: str
    """The digest of the SBOM's manifest, whose subject is the image."""
    size: int
    """The bytes of the packed layers."""


class BuiltImage(msgspec.Struct, frozen=True, kw_only=True):
    """What a build has made."""

    name: str
    digest: str
    layout: str
    """The folder of the layout."""
    platforms: list[BuiltPlatform]


class _LockedLayers(msgspec.Struct, frozen=True, kw_only=True):
    base: BaseLayers
    dependencies: DependenciesLayer


def build_image(project: Project, name: str, lock: ImageLock, layers: LayerBuilder, cache: BuildCache) -> BuiltImage:
    """Builds the image for all platforms of the lock, and names it in the layout once it is complete.

    The same commit and lock give the same digest, whatever the folder, the user, the time and the cache. Raises
    `ImageError`; the layout then has the images that it had before.
    """
    reference = Reference.parse(name)
    metadata = ProjectMetadata.of(project)
    for platform in lock.platforms:
        machine_of(platform)
    interpreter = layers.interpreter()

    def locked_layers(platform: str) -> _LockedLayers:
        base = layers.base(platform, interpreter)
        return _LockedLayers(base=base, dependencies=layers.dependencies(platform, base, interpreter))

    with ThreadPoolExecutor(len(lock.platforms)) as pool:
        found = dict(zip(lock.platforms, pool.map(locked_layers, lock.platforms), strict=True))
    folder = project.root / LAYOUT_FOLDER
    with lock_file(folder / LOCK):
        layout = Layout.create(folder)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        assembly = _Assembly(project, metadata, lock, cache=cache, layout=layout, revision=revision_of(project.root))
        built = assembly.image(found, interpreter)
        layout.tag(str(reference), built)
        layout.sweep()
    return BuiltImage(name=str(reference), digest=built.digest, layout=str(folder), platforms=assembly.platforms)


def check_push_name(text: str) -> Reference:
    """Reads the name to push to. Raises `ConfigError` if it has no registry: the default one is nobody's intention."""
    reference = Reference.parse(text)
    if reference.digest:
        raise ConfigError(f"expected the name and tag of an image, got a digest: {text}")
    if reference.registry == DOCKER_HUB and not text.startswith(DOCKER_HUB):
        raise ConfigError(
            f"expected the name of an image with its registry, such as registry.example.com/{text}, got {text!r}; give the "
            f"name, or set `image` of [tool.navarch] in pyproject.toml"
        )
    return reference


class _Assembly:
    """Puts the layers of all platforms together in a layout; nothing has a name yet."""

    def __init__(
        self,
        project: Project,
        metadata: ProjectMetadata,
        lock: ImageLock,
        *,
        cache: BuildCache,
        layout: Layout,
        revision: SourceRevision,
    ) -> None:
        self._project = project
        self._metadata = metadata
        self._lock = lock
        self._cache = cache
        self._layout = layout
        self._revision = revision
        self._code: dict[str, Layer] = {}
        self.platforms: list[BuiltPlatform] = []

    def image(self, layers: dict[str, _LockedLayers], interpreter: Interpreter) -> Descriptor:
        """Returns the index over the platforms."""
        images = [self._image(platform, found, interpreter) for platform, found in sorted(layers.items())]
        index = ImageIndex(schema_version=2, media_type=INDEX, manifests=images, annotations=self._labels(""))
        return self._layout.add_document(index)

    def _image(self, name: str, layers: _LockedLayers, interpreter: Interpreter) -> Descriptor:
        platform = Platform.parse(name)
        python = layers.base.python
        code = self._code_layer(layers.base, interpreter)
        packed = [*layers.base.layers, layers.dependencies.layer]
        for each in packed:
            self._copy(each)
        blob = self._layout.add(code.content, code.descriptor.media_type)
        packed.append(PackedLayer(descriptor=blob, diff_id=code.diff_id))
        titles = [*[f"base {self._lock.base}"] * len(layers.base.layers), "dependencies", "code"]
        config = image_config(
            platform,
            self._project.settings.package,
            [(each.diff_id, title) for each, title in zip(packed, titles, strict=True)],
            python=python.executable,
            env=layers.base.env,
            labels=self._labels(self._lock.platforms[name].base),
            created=self._revision.created,
        )
        manifest = ImageManifest(
            schema_version=2,
            media_type=MANIFEST,
            config=self._layout.add(encode(config), CONFIG),
            layers=[each.descriptor for each in packed],
        )
        image = self._layout.add_document(manifest, platform=platform)
        sbom = self._sbom(name, image, layers.dependencies)
        size = sum(each.descriptor.size for each in packed)
        self.platforms.append(BuiltPlatform(platform=name, digest=image.digest, sbom=sbom.digest, size=size))
        return image

    def _code_layer(self, base: BaseLayers, interpreter: Interpreter) -> Layer:
        """Returns the layer of the code: one for all platforms whose Python has its packages at the same place."""
        site = base.python.site
        if site.path not in self._code:
            tree = code_tree(self._project, self._metadata, site)
            tree.update(bytecode_of(tree, interpreter, site.path))
            self._code[site.path] = pack(tree)
        return self._code[site.path]

    def _sbom(self, name: str, image: Descriptor, dependencies: DependenciesLayer) -> Descriptor:
        document = spdx_document(
            self._metadata,
            name,
            self._lock.platforms[name],
            dependencies.licenses,
            base=self._lock.base,
            created=self._revision.created,
        )
        manifest = ImageManifest(
            schema_version=2,
            media_type=MANIFEST,
            artifact_type=SPDX,
            config=self._layout.add(EMPTY_CONTENT, EMPTY),
            layers=[self._layout.add(document, SPDX)],
            subject=msgspec.structs.replace(image, platform=None),
            annotations={"org.opencontainers.image.created": self._revision.created},
        )
        return self._layout.add_referrer(manifest)

    def _copy(self, layer: PackedLayer) -> None:
        """Copies a layer out of the cache, and checks it on the way."""
        if layer.descriptor.digest not in self._layout:
            source = self._cache.layers.path(layer.descriptor.digest)
            with source.open("rb") as content, self._layout.writing(layer.descriptor) as file:
                shutil.copyfileobj(content, file, 2**20)

    def _labels(self, base_digest: str) -> dict[str, str]:
        return labels_of(self._metadata, self._revision, base=self._lock.base, base_digest=base_digest)
