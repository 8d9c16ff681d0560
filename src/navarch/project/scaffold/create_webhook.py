"""Adds webhooks to a kind: `navarch create webhook`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold.create_api import KindClass, add_parts, find_class, free_module, header_of
from navarch.project.scaffold.init import ScaffoldReport
from navarch.project.scaffold.names import check_group, check_kind, check_version
from navarch.project.scaffold.record import refuse_open_conflicts
from navarch.project.scaffold.scaffolds import (
    ConversionScaffold,
    KindScaffold,
    Scaffolds,
    TypesScaffold,
    WebhookScaffold,
    WebhookType,
)

__all__ = ["NewWebhooks", "create_webhooks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhooks:
    """What a user asks `navarch create webhook` for."""

    group: str
    version: str
    kind: str
    types: tuple[WebhookType, ...] = ()
    conversion: bool = False
    spokes: tuple[str, ...] = ()
    """The versions to convert from and to this one; all others if empty."""
    force: bool = False


def create_webhooks(project: Project, request: NewWebhooks) -> ScaffoldReport:
    """Writes a module and a test for each webhook. Raises `ConfigError` for one that exists, and for an unknown kind."""
    refuse_open_conflicts(project.root)
    if request.group:
        check_group(request.group)
    check_version(request.version)
    check_kind(request.kind)
    if not request.types and not request.conversion:
        raise ConfigError(
            "expected a webhook to create, got none; add --defaulting, --programmatic-validation or --conversion"
        )
    if request.spokes and not request.conversion:
        raise ConfigError("--spoke: expected --conversion beside it, got none; add it")
    scaffolds = Scaffolds.read(project.root)
    cls = find_class(project, scaffolds, request.group, request.version, request.kind)
    header = header_of(project)
    for kind in request.types:
        scaffolds = _without_existing(scaffolds, cls, kind, force=request.force)
    parts: list[KindScaffold] = [_webhook(scaffolds, request, cls, kind, header) for kind in request.types]
    if request.conversion:
        parts += _conversions(scaffolds, request, cls, header)
    return add_parts(project, scaffolds, parts, force=request.force)


def _without_existing(scaffolds: Scaffolds, cls: KindClass, kind: WebhookType, *, force: bool) -> Scaffolds:
    """Returns the scaffolds without this webhook, which `force` replaces. Raises `ConfigError` without `force`."""
    key = (cls.group, cls.version, cls.kind)
    same = [
        part for part in scaffolds.parts if isinstance(part, WebhookScaffold) and (part.key, part.type) == (key, kind)
    ]
    if same and not force:
        raise ConfigError(
            f"{cls.kind} {cls.version} has a {kind} webhook already, in webhooks/{same[0].module}.py; edit it, or replace it: "
            f"--force"
        )
    return scaffolds.without(*same)


def _webhook(
    scaffolds: Scaffolds, request: NewWebhooks, cls: KindClass, kind: WebhookType, header: str
) -> WebhookScaffold:
    return WebhookScaffold(
        group=cls.group,
        version=cls.version,
        kind=cls.kind,
        class_module=cls.module,
        header=header,
        module=free_module(scaffolds, f"{cls.kind.lower()}_{kind}", request.group, cls.version),
        type=kind,
        is_own=cls.is_own,
        namespaced=cls.namespaced,
    )


def _conversions(
    scaffolds: Scaffolds, request: NewWebhooks, cls: KindClass, header: str
) -> Iterator[ConversionScaffold]:
    """Yields the conversion of each spoke. Versions are connected in one way, so a connected spoke is left out."""
    if not cls.is_own:
        raise ConfigError(f"--conversion: expected a kind of this project, got {cls.kind} of {cls.group or 'core'}")
    versions = {each.version: each for each in scaffolds.types() if (each.group, each.kind) == (cls.group, cls.kind)}
    connected = _connected(scaffolds, cls)
    spokes = request.spokes or tuple(each for each in versions if each not in connected)
    if not spokes:
        raise ConfigError(
            f"--conversion: expected another version of {cls.kind} that nothing converts yet, got "
            f"{', '.join(versions)}; create one: navarch create api --group {request.group} --version v2 --kind {cls.kind}"
        )
    for spoke in dict.fromkeys(spokes):
        if spoke not in versions or spoke == cls.version:
            others = [each for each in versions if each != cls.version]
            raise ConfigError(
                f"--spoke: expected another version of {cls.kind} ({', '.join(others) or 'there is none'}), got {spoke!r}"
            )
        if spoke in connected:
            raise ConfigError(
                f"--spoke: {cls.kind} {spoke} and {cls.version} are converted already; remove that conversion first: navarch "
                f"delete webhook --group {request.group} --version {spoke} --kind {cls.kind} --conversion"
            )
        yield _conversion(scaffolds, versions[spoke], cls, header)


def _conversion(scaffolds: Scaffolds, spoke: TypesScaffold, cls: KindClass, header: str) -> ConversionScaffold:
    return ConversionScaffold(
        group=cls.group,
        version=spoke.version,
        kind=cls.kind,
        class_module=spoke.class_module,
        header=header,
        module=free_module(scaffolds, f"{cls.kind.lower()}_{spoke.version}_conversion", spoke.short_group, cls.version),
        hub_version=cls.version,
        hub_module=cls.module,
    )


def _connected(scaffolds: Scaffolds, cls: KindClass) -> set[str]:
    """Returns the versions that are converted from and to this one, also through others; itself included."""
    pairs = [
        {part.version, part.hub_version}
        for part in scaffolds.parts
        if isinstance(part, ConversionScaffold) and (part.group, part.kind) == (cls.group, cls.kind)
    ]
    found = {cls.version}
    while True:
        more = found.union(*(pair for pair in pairs if pair & found))
        if more == found:
            return found
        found = more
