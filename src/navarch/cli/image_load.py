"""`navarch image load`: gives an image to an embedded cluster, without a registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from navarch.cli.output import Output, notes, print_rows

if TYPE_CHECKING:
    from navarch.oci.documents import Descriptor
    from navarch.oci.layout import Layout
    from navarch.oci.reference import Reference

_LAYOUT: Final = Path("dist", "image")


def load(
    source: Annotated[
        str,
        typer.Argument(
            metavar="[NAME | oci:PATH]",
            help="The built image of this project, under its own name or another; or an OCI layout or archive.",
        ),
    ] = "",
    cluster: Annotated[str, typer.Option(help="The name of the embedded cluster.")] = "default",
    alias: Annotated[str, typer.Option("--as", metavar="NAME", help="Load it under this name.")] = "",
    output: Output = "table",
) -> None:
    """Load an image into an embedded cluster. Its pods run the image's own files; a running cluster uses it at once."""
    from navarch.cli.cluster_folders import existing  # noqa: PLC0415 - the help starts sooner
    from navarch.cluster.embedded.components import unpacked_images  # noqa: PLC0415 - as above
    from navarch.cluster.nodes.images import Images  # noqa: PLC0415 - as above
    from navarch.cluster.nodes.images.loader import load_image  # noqa: PLC0415 - as above

    folder = existing(cluster)
    images, unpacked = Images.load(folder.images), unpacked_images(folder.machines)
    rows = []
    with _images_of(source, alias) as (layout, chosen), notes().status("unpacking"):
        for name, descriptor in chosen:
            loaded = load_image(images, unpacked, layout, descriptor, name)
            rows.append({"image": loaded.identity, "digest": loaded.digests[0], "cluster": folder.name})
    print_rows(rows, output, empty="there is no image")


def load_built_image(host: str, root: Path, image: str, *, dry_run: bool = False) -> str:
    """Loads the project's built image of that name into the embedded cluster at that host; returns its name with the digest.

    A dry run only returns the name. Returns an empty text if the cluster is no embedded one of this user, or if no such image was built.
    """
    from navarch.cli.cluster_folders import all_folders  # noqa: PLC0415 - the help starts sooner
    from navarch.cluster.embedded.components import unpacked_images  # noqa: PLC0415 - as above
    from navarch.cluster.nodes.images import Images  # noqa: PLC0415 - as above
    from navarch.cluster.nodes.images.loader import load_image  # noqa: PLC0415 - as above
    from navarch.oci.archive import opened  # noqa: PLC0415 - as above
    from navarch.oci.reference import Reference  # noqa: PLC0415 - as above

    served = ((each, each.running()) for each in all_folders())
    folder = next((each for each, process in served if process and urlsplit(process.url).netloc == host), None)
    if folder is None or not (root / _LAYOUT).is_dir():
        return ""
    meant = Reference.parse(image)
    with _reading(root), opened(root / _LAYOUT) as layout:
        for descriptor in layout.roots:
            name = _name(descriptor)
            if name and _is_meant(Reference.parse(name), descriptor, meant):
                if not dry_run:
                    load_image(Images.load(folder.images), unpacked_images(folder.machines), layout, descriptor, name)
                return image if meant.digest else f"{image}@{descriptor.digest}"
    return ""


def _is_meant(name: Reference, descriptor: Descriptor, meant: Reference) -> bool:
    same = descriptor.digest == meant.digest if meant.digest else name.tag == meant.tag
    return name.name == meant.name and same


@contextmanager
def _images_of(source: str, alias: str) -> Iterator[tuple[Layout, list[tuple[str, Descriptor]]]]:
    """Opens a layout, and returns the images to load with their names: all of `oci:PATH`, else a built one."""
    from navarch.oci.archive import opened  # noqa: PLC0415 - as above
    from navarch.project.image.push import find_image  # noqa: PLC0415 - as above
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    if source.startswith("oci:"):
        with opened(Path(source.removeprefix("oci:"))) as layout:
            yield layout, _named_images(layout, alias)
        return
    project = Project.find(Path.cwd())
    name = source or project.settings.image
    find_image(project, name)
    with _reading(project.root):
        layout, descriptor = find_image(project, name)
        yield layout, [(alias or name, descriptor)]


def _reading(root: Path) -> AbstractContextManager[None]:
    """Waits until no build changes the project's images, and keeps others from it."""
    from navarch.project.image.build import LAYOUT_FOLDER, LOCK  # noqa: PLC0415 - as above
    from navarch.project.image.build_cache import lock_file  # noqa: PLC0415 - as above

    return lock_file(root / LAYOUT_FOLDER / LOCK, shared=True)


def _named_images(layout: Layout, alias: str) -> list[tuple[str, Descriptor]]:
    from navarch.errors import ImageError  # noqa: PLC0415 - as above

    images = [each for each in layout.roots if layout.manifest(each).subject is None]  # no SBOMs and signatures
    chosen = [(alias or _name(each), each) for each in images]
    if not chosen:
        raise ImageError(f"{layout.folder}: expected an image, got an empty layout")
    if alias and len(chosen) > 1:
        there = ", ".join(_name(each) or each.digest for each in images)
        raise ImageError(f"{layout.folder}: expected one image for --as, got {there}")
    if not all(name for name, _ in chosen):
        raise ImageError(f"{layout.folder}: expected images with names, got one without; give it one with --as NAME")
    return chosen


def _name(descriptor: Descriptor) -> str:
    """Returns the name of an image in a layout; a bare tag, as skopeo writes it, is none."""
    from navarch.oci.layout import CONTAINERD_NAME, NAME  # noqa: PLC0415 - as above

    name = descriptor.annotations.get(CONTAINERD_NAME) or descriptor.annotations.get(NAME, "")
    return name if ":" in name or "/" in name else ""
