"""Adds a kind to a project: `navarch create api`."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.project import Project
from navarch.project.scaffold.init import ScaffoldReport
from navarch.project.scaffold.names import (
    check_controller_name,
    check_group,
    check_image,
    check_kind,
    check_plural,
    check_version,
)
from navarch.project.scaffold.record import project_file_with, refuse_open_conflicts, write_scaffolded
from navarch.project.scaffold.render import render_part
from navarch.project.scaffold.scaffolds import (
    ControllerScaffold,
    ConversionScaffold,
    KindScaffold,
    Scaffolds,
    TypesScaffold,
    WebhookScaffold,
    class_module,
)

__all__ = [
    "KindClass",
    "NewApi",
    "add_parts",
    "api_group",
    "create_api",
    "find_class",
    "free_module",
    "header_of",
    "similar_kind",
]

if TYPE_CHECKING:
    from navarch.project.scaffold.third_party import ThirdPartyKind

HEADER_FILE: Final = "hack/boilerplate.py.txt"
_SIMILAR: Final = 0.85
"""How alike a mistyped kind, with its group and version, and a known one have to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApi:
    """What a user asks `navarch create api` for."""

    group: str
    version: str
    kind: str
    plural: str = ""
    namespaced: bool = True
    resource: bool = True
    controller: bool = True
    controller_name: str = ""
    image: str = ""
    port: int = 0
    crd: Path | None = None
    """The file with the CRD of a kind that another project defines."""
    force: bool = False


@dataclass(frozen=True, slots=True)
class KindClass:
    """Where the class of a kind is, and what it declares."""

    group: str
    version: str
    kind: str
    module: str
    namespaced: bool
    is_own: bool


def create_api(project: Project, request: NewApi) -> ScaffoldReport:
    """Writes the class of a kind, its sample, its reconciler and its test, as far as they are asked for.

    Raises `ConfigError` for names that cannot be, for a kind that exists already, and for files that would be overwritten;
    `force` replaces both.
    """
    refuse_open_conflicts(project.root)
    _check(request)
    domain = f".{project.file.domain}"
    if request.resource and request.group.endswith(domain):
        raise ConfigError(
            f"--group: expected the group without the project's domain, got {request.group!r}; write --group "
            f"{request.group.removesuffix(domain)}"
        )
    scaffolds = Scaffolds.read(project.root)
    third_party = None
    if request.crd is not None:
        from navarch.project.scaffold.third_party import read_third_party  # noqa: PLC0415 - takes as long as all the rest

        third_party = read_third_party(project, request.crd, request.group, request.version, request.kind)
    if third_party is not None:
        group = third_party.found.group
    elif request.resource:
        group = api_group(project, request.group)
    else:
        group = find_class(project, scaffolds, request.group, request.version, request.kind).group
    if request.controller and not request.controller_name:
        request = dataclasses.replace(request, controller_name=_default_name(scaffolds, group, request))
    kept = scaffolds.without(*_replaced(scaffolds, group, request))
    parts = _parts(project, kept, request, third_party)
    return add_parts(project, kept, parts, force=request.force, third_party=third_party)


def add_parts(
    project: Project,
    scaffolds: Scaffolds,
    parts: Sequence[KindScaffold],
    *,
    force: bool,
    third_party: ThirdPartyKind | None = None,
) -> ScaffoldReport:
    """Writes the files of these scaffolds and records them. Raises `ConfigError` for files that have other content, and
    for a package that is no longer where it was scaffolded.
    """
    if project.settings.package != scaffolds.project.package:
        raise ConfigError(
            f"expected the package {scaffolds.project.package}, which navarch init wrote, got {project.settings.package} in "
            f"[tool.navarch] of pyproject.toml; new files would not be part of it: restore the name, or write them by hand"
        )
    known = {path for part in scaffolds.parts for path in render_part(scaffolds.project, part)}
    files = {
        path: content
        for part in parts
        for path, content in render_part(scaffolds.project, part).items()
        if path not in known
    }
    differing = [path for path, content in files.items() if read_text(project.root / path) not in {None, content}]
    if differing and not force:
        raise ConfigError(
            f"expected no file of these names, got files with other content: {', '.join(differing)}; move them away, or "
            f"overwrite them: --force"
        )
    models = third_party.write() if third_party is not None else []
    after = scaffolds.adding(*parts)
    file = project_file_with(project.file, after, {part.key for part in parts})
    written = write_scaffolded(project.root, files, after, file)
    return ScaffoldReport(
        project.with_file(file), sorted([*written, *(each.relative_to(project.root).as_posix() for each in models)])
    )


def _check(request: NewApi) -> None:
    if request.group:
        check_group(request.group)
    check_version(request.version)
    check_kind(request.kind)
    if request.plural:
        check_plural(request.plural)
    if request.controller_name:
        check_controller_name(request.controller_name)
    if request.image:
        check_image(request.image)
    if not request.resource and not request.controller:
        raise ConfigError(
            "expected a resource, a controller or both, got --no-resource and --no-controller; leave one of them out"
        )
    if request.crd is not None and request.resource:
        raise ConfigError("--crd: expected a kind that another project defines; add --no-resource")
    if request.image and not (request.resource and request.controller and request.namespaced):
        raise ConfigError(
            "--image: expected a new namespaced kind with a controller, which runs the image; leave out --no-resource, "
            "--no-controller and --no-namespaced"
        )
    if request.port and not request.image:
        raise ConfigError("--port: expected --image beside it, got none; add --image memcached:1.6-alpine")
    if not 0 <= request.port <= 65535:
        raise ConfigError(f"--port: expected a number from 1 to 65535, got {request.port}")


def _replaced(scaffolds: Scaffolds, group: str, request: NewApi) -> list[KindScaffold]:
    """Returns the scaffolds that `force` replaces. Raises `ConfigError` for a kind or controller that exists already."""
    same_kind = [part for part in scaffolds.parts if (part.group, part.kind) == (group, request.kind)]
    types = [part for part in same_kind if isinstance(part, TypesScaffold) and part.version == request.version]
    found: list[KindScaffold] = []
    if request.resource and types:
        if not request.force:
            raise ConfigError(
                f"{request.kind} {group}/{request.version} exists already, in {types[0].class_module}; choose another "
                f"version or kind, or replace it: --force"
            )
        found += types
    named = [part for part in scaffolds.controllers() if part.controller_name == request.controller_name]
    if request.controller and named:
        if not (request.force and named[0].key == (group, request.version, request.kind)):
            raise ConfigError(
                f"{named[0].kind} has the controller {request.controller_name!r} already, for {named[0].version}, in "
                f"controllers/{named[0].module}.py; leave it as it is: --no-controller, or add another: --controller-name"
            )
        found += named
    return found


def _default_name(scaffolds: Scaffolds, group: str, request: NewApi) -> str:
    """Returns the kind's name for its controller, with the group before it if a kind of another group has that name."""
    name = request.kind.lower()
    others = {
        part.controller_name for part in scaffolds.controllers() if (part.group, part.kind) != (group, request.kind)
    }
    return f"{request.group.replace('.', '-')}-{name}" if name in others and request.group else name


def _parts(
    project: Project, scaffolds: Scaffolds, request: NewApi, third_party: ThirdPartyKind | None
) -> Sequence[KindScaffold]:
    header = header_of(project)
    found: list[KindScaffold] = []
    if request.resource:
        types = _types(project, scaffolds, request, header)
        found.append(types)
        cls = KindClass(types.group, types.version, types.kind, types.class_module, types.namespaced, is_own=True)
        if types.base_module:
            found.append(_conversion(scaffolds, types))
    elif third_party is not None:
        it = third_party.found
        cls = KindClass(it.group, it.version, it.kind, third_party.module, it.namespaced, is_own=False)
    else:
        cls = find_class(project, scaffolds, request.group, request.version, request.kind)
    if request.controller:
        found.append(
            ControllerScaffold(
                group=cls.group,
                version=cls.version,
                kind=cls.kind,
                class_module=cls.module,
                header=header,
                module=free_module(scaffolds, request.controller_name, request.group, cls.version),
                name=request.controller_name if request.controller_name != request.kind.lower() else "",
                is_own=cls.is_own,
                namespaced=cls.namespaced,
                image=request.image,
                port=request.port,
            )
        )
    return found


def _types(project: Project, scaffolds: Scaffolds, request: NewApi, header: str) -> TypesScaffold:
    group = api_group(project, request.group)
    same_kind = [each for each in scaffolds.types() if (each.group, each.kind) == (group, request.kind)]
    same_resource = [each for each in scaffolds.types() if each.group == group and each.kind != request.kind]
    for other in same_resource:
        if other.kind.lower() == request.kind.lower():
            raise ConfigError(
                f"--kind: {request.kind} and {other.kind} are the same in lower case, which names modules and resources; "
                f"choose another kind"
            )
    base = same_kind[-1] if same_kind else None
    if base is not None and base.namespaced != request.namespaced:
        raise ConfigError(
            f"{request.kind} is {'namespaced' if base.namespaced else 'cluster-scoped'} in {base.version}; a kind has one "
            f"scope in all of its versions: {'--namespaced' if base.namespaced else '--no-namespaced'}"
        )
    return TypesScaffold(
        group=group,
        version=request.version,
        kind=request.kind,
        class_module=class_module(scaffolds.project.package, request.group, request.version, request.kind),
        header=header,
        short_group=request.group,
        plural=request.plural or (base.plural if base else ""),
        namespaced=request.namespaced,
        image=request.image or (base.image if base else ""),
        base_module=base.class_module if base else "",
    )


def _conversion(scaffolds: Scaffolds, types: TypesScaffold) -> ConversionScaffold:
    base = next(each for each in scaffolds.types() if each.class_module == types.base_module)
    return ConversionScaffold(
        group=types.group,
        version=types.version,
        kind=types.kind,
        class_module=types.class_module,
        header=types.header,
        module=free_module(scaffolds, f"{types.kind.lower()}_{types.version}_conversion", types.short_group, ""),
        hub_version=base.version,
        hub_module=base.class_module,
    )


def api_group(project: Project, group: str) -> str:
    """Returns the group as the API server names it."""
    return ".".join(filter(None, (group, project.file.domain)))


def header_of(project: Project) -> str:
    """Returns the comment that new Python files begin with, as the user has it."""
    text = (read_text(project.root / HEADER_FILE) or "").strip()
    if any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        raise ConfigError(
            f"{HEADER_FILE}: expected a comment, in which each line begins with #, got other text; correct it"
        )
    return f"{text}\n" if text else ""


def free_module(scaffolds: Scaffolds, name: str, group: str, version: str) -> str:
    """Returns the name of a module that no other scaffold has: the short one, else with its group, else with its version."""
    taken = scaffolds.modules()
    short = name.replace("-", "_")
    qualified = "_".join(filter(None, (group.replace(".", "_").replace("-", "_"), short)))
    for candidate in (short, qualified, f"{qualified}_{version}"):
        if candidate not in taken and not keyword.iskeyword(candidate):
            return candidate
    raise ConfigError(
        f"expected a free name for a module, but {qualified}_{version} is taken; choose --controller-name"
    )


def find_class(project: Project, scaffolds: Scaffolds, group: str, version: str, kind: str) -> KindClass:
    """Returns the class of a kind that exists: one of the project, or one of Kubernetes. Raises `ConfigError`."""
    whole = api_group(project, group)
    for types in scaffolds.types():
        if types.key == (whole, version, kind):
            return KindClass(*types.key, types.class_module, types.namespaced, is_own=True)
    for part in scaffolds.parts:  # those of third parties, by the whole group or its first word, as --crd takes them
        if not isinstance(part, ControllerScaffold | WebhookScaffold) or part.is_own:
            continue
        if (part.version, part.kind) == (version, kind) and group in {part.group, part.group.partition(".")[0]}:
            return KindClass(*part.key, part.class_module, part.namespaced, is_own=False)
    builtin = _builtin(group, version, kind)
    if builtin is not None:
        return builtin
    raise ConfigError(
        f"expected a kind of this project or of Kubernetes, got {kind} of {group or 'no group'}/{version}; "
        f"{similar_kind(project, group, version, kind)}create it: "
        f"navarch create api --group {group} --version {version} --kind {kind} --resource --controller, or, if another project "
        f"defines it, with its CRD: --no-resource --controller --crd FILE"
    )


def similar_kind(project: Project, group: str, version: str, kind: str) -> str:
    """Returns the kind that a mistyped one resembles most, as a part of an error message; empty if none resembles it."""
    own = [f"{each.kind} of {each.group or 'no group'}/{each.version}" for each in project.file.resources]
    names = getattr(_builtin_module(group, version), "__all__", ())
    builtin = [f"{each} of {group or 'core'}/{version}" for each in names]
    found = difflib.get_close_matches(f"{kind} of {group or 'no group'}/{version}", [*own, *builtin], 1, _SIMILAR)
    return f"did you mean {found[0]}? If not, " if found else ""


def _builtin(group: str, version: str, kind: str) -> KindClass | None:
    module = _builtin_module(group, version)
    cls: Any = getattr(module, kind, None)
    found = getattr(cls, "__kind__", None)
    if module is None or found is None or ("." in group and found.group != group):
        return None
    return KindClass(found.group, version, kind, module.__name__, found.namespaced, is_own=False)


def _builtin_module(group: str, version: str) -> ModuleType | None:
    """Returns the module of a group and version of Kubernetes; None if there is none."""
    name = f"navarch.k8s.{group.partition('.')[0] or 'core'}.{version}"
    try:
        return None if importlib.util.find_spec(name) is None else importlib.import_module(name)
    except ModuleNotFoundError:
        return None
