"""`navarch image lock | build | push | inspect | load`: images, without a container engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from navarch.cli.image_load import load
from navarch.cli.output import Output, notes, print_json, print_table
from navarch.cli.registry_options import PlainHttp, registry_options

if TYPE_CHECKING:
    from navarch.oci.documents import Descriptor
    from navarch.oci.layout import Layout
    from navarch.project.image.base import BaseSource
    from navarch.project.image.build_cache import BuildCache
    from navarch.project.image.pip import PipOptions
    from navarch.project.image.push import PushedImage
    from navarch.project.project import Project

image = typer.Typer(no_args_is_help=True, help="Images of projects, without a container engine.")

ImageName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="The image; by default `image` of [tool.navarch].", show_default=False)
]
IndexUrl = Annotated[str, typer.Option(metavar="URL", help="The package index; by default pip's.")]
ExtraIndexUrls = Annotated[list[str] | None, typer.Option("--extra-index-url", metavar="URL", help="A further index.")]
FindLinks = Annotated[
    list[str] | None, typer.Option(metavar="FOLDER", help="A folder or page of wheels; may be repeated.")
]
NoIndex = Annotated[bool, typer.Option("--no-index", help="Take wheels from --find-links alone.")]
Mirror = Annotated[str, typer.Option(metavar="URL", help="The mirror of Debian; by default apt's.")]


@image.command()
def lock(
    *,
    index_url: IndexUrl = "",
    extra_index_url: ExtraIndexUrls = None,
    find_links: FindLinks = None,
    no_index: NoIndex = False,
    mirror: Mirror = "",
    plain_http: PlainHttp = False,
    output: Output = "table",
) -> None:
    """Write image.lock: the newest base and wheels that the project accepts, by digest, for each platform.

    It belongs into version control. Packages come from pip's and apt's own sources; pip's settings apply.
    """
    from navarch.project.image.lock import differing_versions, lock_image  # noqa: PLC0415 - the help starts sooner

    project = _project()
    pip = _pip_options(index_url, extra_index_url, find_links, no_index=no_index)
    with _progress() as progress:
        base = _base(project, _cache(), mirror, plain_http=plain_http)
        found = lock_image(project, base, pip, progress)
    changed = found.write(project)
    for line in differing_versions(found):
        notes().print(f"note: {line}", markup=False)
    rows = [
        {
            "platform": name,
            "python": each.python,
            "glibc": each.glibc,
            "packages": len(each.packages),
            "wheels": len(each.wheels),
        }
        for name, each in sorted(found.platforms.items())
    ]
    if output == "json":
        print_json({"file": "image.lock", "changed": changed, "base": found.base, "platforms": rows})
        return
    print_table(rows)
    notes().print("image.lock is written" if changed else "image.lock is up to date")


@image.command()
def build(
    name: ImageName = "",
    *,
    index_url: IndexUrl = "",
    extra_index_url: ExtraIndexUrls = None,
    find_links: FindLinks = None,
    no_index: NoIndex = False,
    mirror: Mirror = "",
    plain_http: PlainHttp = False,
    push: Annotated[bool, typer.Option("--push", help="Push it, too.")] = False,
    output: Output = "table",
) -> None:
    """Build the image from image.lock and the code in src, for all platforms: dist/image.

    The same commit gives the same digest. Layers that are in the cache are not built again.
    """
    from navarch.project.image.build import build_image, check_push_name  # noqa: PLC0415 - the help starts sooner
    from navarch.project.image.layer_builder import LayerBuilder  # noqa: PLC0415 - as above
    from navarch.project.image.lock_file import ImageLock, inputs_of  # noqa: PLC0415 - as above

    project = _project()
    pip = _pip_options(index_url, extra_index_url, find_links, no_index=no_index)
    wanted = name or project.settings.image
    if push:
        check_push_name(wanted)
    locked = ImageLock.read(project, inputs_of(project))
    cache = _cache()
    with _progress() as progress:
        base = partial(_base, project, cache, mirror, plain_http=plain_http)
        layers = LayerBuilder(locked, base, cache, pip, progress)
        built = build_image(project, wanted, locked, layers, cache)
    pushed = _push(project, wanted, plain_http=plain_http) if push else None
    if output == "json":
        print_json({**msgspec.structs.asdict(built), **({"pushed": pushed} if pushed is not None else {})})
        return
    print_table(
        [{"platform": each.platform, "size": _size(each.size), "digest": each.digest} for each in built.platforms]
    )
    notes().print(f"built {built.name}@{built.digest}", markup=False)
    if pushed is not None:
        _note_push(pushed)


@image.command()
def push(name: ImageName = "", *, plain_http: PlainHttp = False, output: Output = "table") -> None:
    """Push the built image and its SBOMs to its registry; what the registry has is not sent again.

    Credentials come from Docker's configuration. With another NAME, the project's image is pushed under that one.
    """
    project = _project()
    pushed = _push(project, name or project.settings.image, plain_http=plain_http)
    if output == "json":
        print_json(pushed)
        return
    typer.echo(pushed.reference)
    _note_push(pushed)


@image.command()
def inspect(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME | oci:PATH]", help="A built image, or the layout of another one.", show_default=False
        ),
    ] = "",
    *,
    output: Output = "table",
) -> None:
    """Show the platforms, layers and packages of an image."""
    from navarch.project.image.inspect import inspect_image  # noqa: PLC0415 - as above

    layout, root = _find(name)
    found = inspect_image(layout, root)
    if output == "json":
        print_json(found)
        return
    layers = [
        {
            "platform": each.platform,
            "layer": layer.digest[:19],
            "size": _size(layer.size),
            "created by": layer.created_by,
        }
        for each in found.platforms
        for layer in each.layers
    ]
    print_table(layers or [{"platform": "-", "layer": "-", "size": "-", "created by": "-"}])
    packages = [
        {"platform": each.platform, **msgspec.structs.asdict(package)}
        for each in found.platforms
        for package in each.packages
    ]
    if packages:
        typer.echo()
        print_table(packages)
    notes().print(f"{found.digest}", markup=False)


image.command()(load)


def _push(project: Project, name: str, *, plain_http: bool) -> PushedImage:
    import asyncio  # noqa: PLC0415 - the help starts sooner

    from navarch.oci.registry import RegistryClient, TransferProgress  # noqa: PLC0415 - as above
    from navarch.project.image.push import push_image  # noqa: PLC0415 - as above

    with _progress() as progress:

        def moved(state: TransferProgress) -> None:
            if state.outcome == "moving":
                digest, size = state.descriptor.digest[7:19], _size(state.descriptor.size)
                progress(f"sending {digest}: {_size(state.done)} of {size}")

        async def send() -> PushedImage:
            async with RegistryClient(registry_options(plain_http=plain_http)) as client:
                return await push_image(client, project, name, moved)

        return asyncio.run(send())


def _note_push(pushed: PushedImage) -> None:
    sizes = f"sent {_size(pushed.sent_bytes)}, the registry had {_size(pushed.skipped_bytes)}"
    notes().print(f"pushed {pushed.image}: {sizes}", markup=False)


def _project() -> Project:
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    return Project.find(Path.cwd())


def _cache() -> BuildCache:
    from navarch.project.image.build_cache import BuildCache, cache_folder  # noqa: PLC0415 - as above

    return BuildCache(cache_folder())


def _pip_options(
    index_url: str, extra_index_urls: list[str] | None, find_links: list[str] | None, *, no_index: bool
) -> PipOptions:
    from navarch.project.image.pip import PipOptions  # noqa: PLC0415 - as above

    return PipOptions(
        index_url=index_url,
        extra_index_urls=tuple(extra_index_urls or ()),
        find_links=tuple(find_links or ()),
        no_index=no_index,
    )


def _base(project: Project, cache: BuildCache, mirror: str, *, plain_http: bool) -> BaseSource:
    from navarch.project.image.base_sources import open_base  # noqa: PLC0415 - as above
    from navarch.project.image.debian.archive import DebianOptions  # noqa: PLC0415 - as above

    return open_base(project, cache, registry_options(plain_http=plain_http), DebianOptions(mirror=mirror or None))


def _find(name: str) -> tuple[Layout, Descriptor]:
    """Returns an image of a layout: the only one of `oci:PATH`, else a built one of the project."""
    from navarch.errors import ImageError  # noqa: PLC0415 - as above
    from navarch.oci.layout import Layout  # noqa: PLC0415 - as above
    from navarch.project.image.push import find_image  # noqa: PLC0415 - as above

    if not name.startswith("oci:"):
        project = _project()
        return find_image(project, name or project.settings.image)
    layout = Layout.open(Path(name.removeprefix("oci:")))
    roots = list(layout.names.values())
    if len(roots) != 1:
        raise ImageError(f"{name}: expected a layout with one named image, got {', '.join(layout.names) or 'none'}")
    return layout, roots[0]


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what takes its time; several threads may report."""
    console = notes()
    with console.status("") as shown:
        yield shown.update


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
