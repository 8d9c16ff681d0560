"""Checks the names that a user gives a project and its kinds: as Kubernetes and as Python need them."""

from __future__ import annotations

import keyword
import re
import sys
from typing import Final

from navarch.api.names import DNS_1035_LABEL, DNS_LABEL, DNS_SUBDOMAIN
from navarch.errors import ConfigError

__all__ = [
    "check_controller_name",
    "check_domain",
    "check_group",
    "check_image",
    "check_kind",
    "check_plural",
    "check_project_name",
    "check_version",
    "module_of_group",
    "package_of",
]

_KIND: Final = re.compile("[A-Z][A-Za-z0-9]*")
_VERSION: Final = re.compile("v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_NAME_MAX: Final = 63 - len("-controller-manager-metrics-service")
_REQUIRED_PACKAGES: Final = frozenset(
    {"aiohttp", "cryptography", "hypothesis", "msgspec", "mypy", "navarch", "prometheus_client", "pytest"}
    | {"pytest_asyncio", "re2", "ruff", "tests", "uvloop", "yaml"}
)
"""The packages that a project imports or runs: one of the same name would hide them."""
_USED_NAMES: Final = frozenset(
    {"Any", "Context", "Ctx", "Meta", "ObjectMeta", "Operator", "Resource", "Review", "Spec", "Status"}
)
"""The names that scaffolds use beside that of the kind."""


def check_project_name(name: str) -> str:
    """Returns the name. Raises `ConfigError` if no project, package or Service can have it."""
    _check(DNS_1035_LABEL.allows(name), "the name of a project", DNS_1035_LABEL.description, name, _suggestion(name))
    if len(name) > _NAME_MAX:
        raise ConfigError(
            f"the name of a project: expected at most {_NAME_MAX} characters, since names of Services begin with it, got "
            f"{len(name)}: {name!r}; shorten it"
        )
    package = package_of(name)
    if keyword.iskeyword(package):
        raise ConfigError(
            f"the name of a project: expected a name for a Python package, got the keyword {name!r}; {_TRY}"
        )
    if package in sys.stdlib_module_names or package in _REQUIRED_PACKAGES:
        raise ConfigError(
            f"the name of a project: {name!r} would be the package {package}, which hides the module {package} that "
            f"others import; try '{name}-operator'"
        )
    return name


def package_of(project_name: str) -> str:
    """Returns the Python package of a project: `cache_operator` for `cache-operator`."""
    return project_name.replace("-", "_")


def check_domain(domain: str) -> str:
    """Returns the domain. Raises `ConfigError` for one that no group can end with."""
    _check(DNS_SUBDOMAIN.allows(domain), "--domain", DNS_SUBDOMAIN.description, domain, DNS_SUBDOMAIN.suggest(domain))
    return domain


def check_group(group: str) -> str:
    """Returns the group. Raises `ConfigError` for one that is no DNS subdomain, or whose package Python cannot import."""
    _check(DNS_SUBDOMAIN.allows(group), "--group", DNS_SUBDOMAIN.description, group, DNS_SUBDOMAIN.suggest(group))
    module = module_of_group(group)
    if keyword.iskeyword(module) or not module.isidentifier():
        raise ConfigError(
            f"--group: expected a name that a Python package can have, got {group!r}; begin it with a letter, and avoid "
            f"keywords of Python"
        )
    return group


def module_of_group(group: str) -> str:
    """Returns the Python package of a group below `api`."""
    return re.sub("[.-]", "_", group)


def check_version(version: str) -> str:
    """Returns the version. Raises `ConfigError` for one that Kubernetes would not order by its stability."""
    _check(bool(_VERSION.fullmatch(version)), "--version", "a version such as v1alpha1, v1beta2 or v1", version, "")
    return version


def check_kind(kind: str) -> str:
    """Returns the kind. Raises `ConfigError` for one that is no class name, or that hides a name that its module needs."""
    suggestion = "".join(part[:1].upper() + part[1:] for part in re.split("[^A-Za-z0-9]+", kind) if part)
    rule = "a name in PascalCase (letters and digits, at most 63)"
    _check(bool(_KIND.fullmatch(kind)) and len(kind) <= 63, "--kind", rule, kind, suggestion)
    for what, word in ("class", kind), ("module", kind.lower()):
        if keyword.iskeyword(word):
            raise ConfigError(
                f"--kind: {kind!r} would be the {what} {word}, and {word} is a keyword of Python; choose another kind, such as "
                f"{kind}Claim"
            )
    if kind in _USED_NAMES:
        raise ConfigError(
            f"--kind: {kind!r} hides the name {kind} that its modules use; choose another kind, such as My{kind}"
        )
    return kind


def check_plural(plural: str) -> str:
    """Returns the plural. Raises `ConfigError` for one that cannot be part of a path."""
    _check(
        DNS_1035_LABEL.allows(plural), "--plural", DNS_1035_LABEL.description, plural, DNS_1035_LABEL.suggest(plural)
    )
    return plural


def check_controller_name(name: str) -> str:
    """Returns the name of a controller. Raises `ConfigError` for one whose module Python cannot import."""
    _check(DNS_LABEL.allows(name), "--controller-name", DNS_LABEL.description, name, DNS_LABEL.suggest(name))
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or not module.isidentifier():
        raise ConfigError(
            f"--controller-name: expected a name that a Python module can have, got {name!r}; begin it with a letter, and "
            f"avoid keywords of Python"
        )
    return name


def check_image(image: str) -> str:
    """Returns the image. Raises `ConfigError` for text that no image is called."""
    _check(bool(_IMAGE.fullmatch(image)), "--image", "an image such as memcached:1.6-alpine", image, "")
    return image


_TRY: Final = "try another one, such as 'my-operator'"


def _suggestion(name: str) -> str:
    return DNS_1035_LABEL.suggest(name)


def _check(is_valid: bool, where: str, rule: str, got: str, suggestion: str) -> None:
    if is_valid:
        return
    remedy = f"; try {suggestion!r}" if suggestion and suggestion != got else ""
    raise ConfigError(f"{where}: expected {rule}, got {got!r}{remedy}")
