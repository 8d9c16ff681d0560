"""`navarch generate models`: writes typed classes for kinds that others define."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from navarch.cli.connection import connected
from navarch.cli.output import Output, notes, print_json
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.project.generated_files import GenerateReport
    from navarch.project.models import KindVersion

_FOLDER: Final = "models"
_PACKAGE: Final = {"__init__.py": '"""Typed classes of kinds that other projects define."""\n'}
_CLUSTER: Final = "a cluster"


def models(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files or folders with CRDs, as YAML or JSON; - is standard input."),
    ] = None,
    *,
    from_cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A CRD of the cluster, such as issuers.cert-manager.io, or a whole group."),
    ] = None,
    openapi: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="An OpenAPI v3 document of one group and version.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the classes; by default `models` in the project's package.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if a file is not up to date.")] = False,
    output: Output = "table",
    kubeconfig: Annotated[Path | None, typer.Option(help="The kubeconfig; by default the one of kubectl.")] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.")] = None,
) -> None:
    """Write typed classes for kinds that other projects define, from their CRDs or an OpenAPI document.

    Each group is a package with a module for each version. `navarch.schema.crd` of the classes returns the schema that they
    were written from. A module that somebody has edited is reported and left alone.
    """
    from navarch.project.models import model_files, plan_models, write_models  # noqa: PLC0415 - as below

    kinds = _kinds(files or [], from_cluster or [], openapi or [], kubeconfig, context)
    folder = out or _default_folder()
    wanted = model_files(kinds) | ({} if folder.exists() and any(folder.iterdir()) else _PACKAGE)
    report = plan_models(folder, wanted) if check else write_models(folder, wanted)
    if output == "json":
        print_json(_result(folder, report, kinds))
    else:
        _print(folder, report, check=check)
    _refuse(folder, report, check=check)


def _kinds(
    files: list[str], from_cluster: list[str], openapi: list[str], kubeconfig: Path | None, context: str | None
) -> list[KindVersion]:
    from navarch.project.models import kinds_in, kinds_in_openapi  # noqa: PLC0415 - navarch --help starts sooner

    if not (files or from_cluster or openapi):
        raise ConfigError(
            "expected CRDs, got none; give files with CRDs, --from-cluster with names of CRDs, or --openapi with a document"
        )
    manifests = _in_files(files) if files else []
    if from_cluster:
        manifests += asyncio.run(_in_cluster(from_cluster, kubeconfig, context))
    found = kinds_in(manifests)
    for file in openapi:
        found += kinds_in_openapi(Path(file).name, _document(file))
    return found


def _in_files(files: list[str]) -> list[tuple[str, Any]]:
    """Returns the CRDs in the files, with the names of their files. Raises `ConfigError` for a file without any."""
    from navarch.cli.manifests import documents  # noqa: PLC0415 - imports the server's YAML

    found = []
    for file in files:
        read = documents([file])
        faults = [f"{each.file}:{each.line}: {each.fault}" for each in read if each.object is None and not each.parsed]
        if faults:
            raise ConfigError("\n".join(faults))
        crds = [each for each in read if each.object is not None and each.object.kind == "CustomResourceDefinition"]
        if not crds:
            others = sorted({each.object.kind for each in read if each.object is not None})
            raise ConfigError(f"{file}: expected CustomResourceDefinitions, got {', '.join(others) or 'no object'}")
        found += [(Path(each.file).name, each.object) for each in crds]
    return found


async def _in_cluster(names: list[str], kubeconfig: Path | None, context: str | None) -> list[tuple[str, Any]]:
    async with connected(kubeconfig, context) as client:
        return [(_CLUSTER, found) for found in await _find(client, names)]


async def _find(client: Client, names: list[str]) -> list[Any]:
    """Returns the CRDs with these names, and those of these groups."""
    from navarch.k8s.apiextensions.v1 import CustomResourceDefinition  # noqa: PLC0415 - as above
    from navarch.operator.migration import find_crds  # noqa: PLC0415 - as above

    crds = [found async for found in client.list(CustomResourceDefinition.__kind__)]
    of_groups = [found for found in crds if found["spec"]["group"] in names]
    groups = {found["spec"]["group"] for found in of_groups}
    named = await find_crds(client, [name for name in names if name not in groups])
    return list({found.name: found for found in (*of_groups, *named)}.values())


def _document(file: str) -> Any:
    """Returns the content of a JSON or YAML file."""
    import msgspec  # noqa: PLC0415 - navarch --help starts sooner

    from navarch.cluster.server.wire.status_errors import StatusError  # noqa: PLC0415 - as above
    from navarch.cluster.server.wire.yaml_bodies import read_yaml  # noqa: PLC0415 - as above

    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return msgspec.json.decode(content) if content.lstrip().startswith(b"{") else read_yaml(content)
    except (msgspec.DecodeError, StatusError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: expected JSON or YAML, got something else: {error}") from None


def _default_folder() -> Path:
    from navarch.project.project import Project  # noqa: PLC0415 - navarch --help starts sooner

    here = Path.cwd()
    try:
        found = Project.find(here).source / _FOLDER
    except ConfigError:  # no project around: the command is of use in any folder
        return Path(_FOLDER)
    return found.relative_to(here) if found.is_relative_to(here) else found


def _result(folder: Path, report: GenerateReport, kinds: list[KindVersion]) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "written": report.written,
        "unchanged": report.unchanged,
        "edited": report.edited,
        "kinds": [{"apiVersion": each.api_version, "kind": each.kind} for each in kinds],
    }


def _print(folder: Path, report: GenerateReport, *, check: bool) -> None:
    for path in report.written:
        typer.echo(f"{'would be ' if check else ''}written  {folder / path}")
    notes().print(f"{len(report.unchanged)} files are up to date")


def _refuse(folder: Path, report: GenerateReport, *, check: bool) -> None:
    complaints = []
    if check and report.written:
        stale = ", ".join(str(folder / path) for path in report.written)
        complaints.append(f"expected up-to-date classes, got stale ones: {stale}; run the command without --check")
    if report.edited:
        edited = ", ".join(str(folder / path) for path in report.edited)
        complaints.append(
            f"expected modules as they were written, got edited ones, which are left alone: {edited}; move your changes to a "
            f"subclass or a module of your own, remove these files, and run the command again"
        )
    if complaints:
        raise ConfigError("\n".join(complaints))
