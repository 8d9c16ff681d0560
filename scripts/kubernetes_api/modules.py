"""Classes as the text of Python modules, in the project's own format."""

from __future__ import annotations

from collections.abc import Iterable

from kubernetes_api.kinds import ServedKind
from kubernetes_api.naming import class_name, module_of
from kubernetes_api.structs import Catalogue, Field, StructClass
from navarch.k8s.published import Published

WIDTH = 120
COMMAND = "python -m kubernetes_api generate"


def generate(published: Published) -> dict[str, str]:
    """The modules of all groups and versions, by their path under `navarch/k8s`."""
    version = published.version()["gitVersion"]
    modules = Catalogue(published).modules
    texts = {f"{group}/{name}.py": _module(classes, version) for (group, name), classes in modules.items()}
    for group in sorted({group for group, _ in modules}):
        texts[f"{group}/__init__.py"] = f'"""The group {group}: import one of its versions."""\n'
    return texts


def _module(classes: list[StructClass], version: str) -> str:
    module = module_of(classes[0].schema)
    ordered = _in_order_of_need(classes)
    defined: set[str] = set()
    bodies = []
    for struct in ordered:
        bodies.append(_class(struct, defined))
        defined.add(struct.schema)
    docstring = f'"""{"/".join(module)} of Kubernetes {version}. Generated: `{COMMAND}`."""'
    names = sorted(struct.name for struct in classes)
    exported = "\n".join(["__all__ = [", *(f'    "{name}",' for name in names), "]"])
    head = "\n".join([docstring, "", *_imports(classes, module), "", exported])
    return "\n\n\n".join([head, *bodies]) + "\n"


def _in_order_of_need(classes: list[StructClass]) -> list[StructClass]:
    """Each class right after those it names, so that almost no annotation has to be a string."""
    known = {struct.schema: struct for struct in classes}
    ordered: dict[str, StructClass] = {}
    visited: set[str] = set()

    def visit(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        for needed in sorted(known[name].structs & known.keys()):
            visit(needed)
        ordered[name] = known[name]

    for name in sorted(known):
        visit(name)
    return list(ordered.values())


def _imports(classes: list[StructClass], module: tuple[str, str]) -> list[str]:
    wanted: dict[str, set[str]] = {"navarch.api": set()}
    for struct in classes:
        wanted["navarch.api"].add("Object" if struct.kind else "Model")
        for field in struct.fields:
            for source, name in field.annotation.imports:
                wanted.setdefault(source, set()).add(name)
            if _needs_field(field):
                wanted["navarch.api"].add("field")
        for schema in struct.structs:
            if module_of(schema) != module:
                wanted.setdefault("navarch.k8s.{}.{}".format(*module_of(schema)), set()).add(class_name(schema))
    _refuse_collisions(classes, wanted.values())
    own = [_import(source, names) for source, names in sorted(wanted.items()) if source.startswith("navarch")]
    standard = [_import(source, names) for source, names in sorted(wanted.items()) if not source.startswith("navarch")]
    return [*standard, *([""] if standard else []), *own]


def _refuse_collisions(classes: list[StructClass], imported: Iterable[set[str]]) -> None:
    taken = {struct.name for struct in classes} & set().union(*imported)
    if taken:
        raise ValueError(f"a module would both define and import {', '.join(sorted(taken))}")


def _import(source: str, names: set[str]) -> str:
    ordered = sorted(names, key=lambda name: (name.islower(), name))
    line = f"from {source} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {source} import (", *(f"    {name}," for name in ordered), ")"])


def _class(struct: StructClass, defined: set[str]) -> str:
    lines = [_header(struct)]
    lines += [_field(field, quoted=_is_ahead(struct, field, defined)) for field in struct.fields]
    if not struct.fields:
        lines.append("    pass")
    return "\n".join(lines)


def _is_ahead(struct: StructClass, field: Field, defined: set[str]) -> bool:
    """Whether the field names a class of this module that is not there yet."""
    module = module_of(struct.schema)
    return any(module_of(schema) == module and schema not in defined for schema in field.annotation.structs)


def _header(struct: StructClass) -> str:
    arguments = ["Object", *_keywords(struct.name, struct.kind)] if struct.kind else ["Model"]
    if struct.sensitive:
        arguments.append(f"sensitive={_tuple(struct.sensitive)}")
    line = f"class {struct.name}({', '.join(arguments)}):"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"class {struct.name}(", *(f"    {argument}," for argument in arguments), "):"])


def _keywords(name: str, kind: ServedKind) -> list[str]:
    keywords = [f'group="{kind.group}"', f'version="{kind.version}"', f'plural="{kind.plural}"']
    if kind.singular != name.lower():
        keywords.append(f'singular="{kind.singular}"')
    if not kind.namespaced:
        keywords.append("namespaced=False")
    if not kind.has_status:
        keywords.append("has_status=False")
    for keyword, names in (("short_names", kind.short_names), ("categories", kind.categories)):
        if names:
            keywords.append(f"{keyword}={_tuple(names)}")
    return keywords


def _tuple(names: tuple[str, ...]) -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"({quoted},)" if len(names) == 1 else f"({quoted})"


def _needs_field(field: Field) -> bool:
    return field.renamed or field.default.startswith("default_factory=")


def _field(field: Field, *, quoted: bool) -> str:
    text = f'"{field.annotation.text}"' if quoted else field.annotation.text
    declared = f"    {field.name}: {text}"
    if not _needs_field(field):
        default = f" = {field.default.removeprefix('default=')}" if field.default else ""
        line = declared + default
        return line if len(line) <= WIDTH else f"    {field.name}: (\n        {text}\n    ){default}"
    arguments = ([f'name="{field.wire}"'] if field.renamed else []) + ([field.default] if field.default else [])
    line = f"{declared} = field({', '.join(arguments)})"
    return line if len(line) <= WIDTH else f"{declared} = field(\n        {', '.join(arguments)}\n    )"
