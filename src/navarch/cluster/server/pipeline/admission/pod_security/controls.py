"""Levels, the labels that choose them, and the controls of each level by version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from navarch.cluster.server.pipeline.admission.pod_security import baseline, restricted
from navarch.cluster.server.pipeline.admission.pod_security.baseline import (
    Check,
    ControlViolation,
    unless_in_user_namespace,
)
from navarch.cluster.server.pipeline.admission.pod_security.restricted import unless_for_windows
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.errors import Cause

LABEL_PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LARGEST_INT: Final = 2**63 - 1


class Level(IntEnum):
    """A level; a greater level forbids everything that a lesser one forbids."""

    PRIVILEGED = 0
    BASELINE = 1
    RESTRICTED = 2


_LEVELS: Final = {each.name.lower(): each for each in Level}


class LevelVersion(NamedTuple):
    """A level as a minor version of Kubernetes 1 defined it; None is the latest version.

    >>> str(LevelVersion(Level.BASELINE, 25))
    'baseline:v1.25'
    """

    level: Level
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level.name.lower()}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


PRIVILEGED: Final = LevelVersion(Level.PRIVILEGED)


class LevelPolicy(NamedTuple):
    """The levels of a namespace: `enforce` refuses, `audit` records, `warn` warns."""

    enforce: LevelVersion = PRIVILEGED
    audit: LevelVersion = PRIVILEGED
    warn: LevelVersion = PRIVILEGED

    @property
    def is_privileged(self) -> bool:
        """Tells whether every level is privileged."""
        return all(each.level == Level.PRIVILEGED for each in self)


_DEFAULT: Final = LevelPolicy()


class _LevelLabels:
    """Reads the labels of one namespace and collects a cause for each value that it does not understand."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self.causes: list[Cause] = []

    def read(self, mode: str, *, fallback: Level) -> LevelVersion:
        """The level and version of a mode; `fallback` is the level in place of an unknown one."""
        level, version = Level.PRIVILEGED, None
        if (name := self._labels.get(f"{LABEL_PREFIX}{mode}")) is not None:
            level = _LEVELS.get(name, fallback)
            if name not in _LEVELS:
                self._refuse(mode, name, f"must be one of {', '.join(_LEVELS)}")
        if (text := self._labels.get(f"{LABEL_PREFIX}{mode}-version", "latest")) != "latest":
            match = _VERSION.fullmatch(text)
            version = int(match[1]) if match and int(match[1]) <= _LARGEST_INT else None
            if version is None:
                self._refuse(f"{mode}-version", text, 'must be "latest" or "v1.x"')
        return LevelVersion(level, version)

    def _refuse(self, label: str, value: str, why: str) -> None:
        self.causes.append(invalid(f"metadata.labels[{LABEL_PREFIX}{label}]", value, why))


def policy_of(labels: Mapping[str, str] | None) -> tuple[LevelPolicy, list[Cause]]:
    """The policy that labels ask for, and what is wrong with them.

    An unknown level is enforced as restricted, and neither audited nor warned of. A namespace that enforces a level and
    says nothing about warnings warns by the same level, since pods of its workloads will be refused.
    """
    if not labels or not any(label.startswith(LABEL_PREFIX) for label in labels):
        return _DEFAULT, []
    found = _LevelLabels(labels)
    enforce = found.read("enforce", fallback=Level.RESTRICTED)
    is_understood = not any(cause.field.endswith("/enforce]") for cause in found.causes)
    audit = found.read("audit", fallback=Level.PRIVILEGED)
    warn = found.read("warn", fallback=Level.PRIVILEGED)
    if f"{LABEL_PREFIX}warn" not in labels and is_understood and enforce.level > warn.level:
        has_version = f"{LABEL_PREFIX}warn-version" in labels
        warn = LevelVersion(enforce.level, warn.minor if has_version else enforce.minor)
    return LevelPolicy(enforce, audit, warn), found.causes


class Control(NamedTuple):
    """A control and its revisions, each with the first minor version that has it.

    `replaces` names the control of baseline that need not be checked where this one is.
    """

    name: str
    level: Level
    revisions: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        """The revision that a version has; None if the control is younger."""
        known = [check for first, check in self.revisions if first <= minor]
        return known[-1] if known else None


_SYSCTLS_0: Final = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_syncookies",
)
_SYSCTLS_27: Final = (*_SYSCTLS_0, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29: Final = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
)
_SYSCTLS_32: Final = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_SE_LINUX_0: Final = ("container_t", "container_init_t", "container_kvm_t")
_SE_LINUX_31: Final = (*_SE_LINUX_0, "container_engine_t")
CONTROLS: Final = (
    Control("appArmorProfile", Level.BASELINE, ((0, baseline.app_armor_profile),)),
    Control("capabilities_baseline", Level.BASELINE, ((0, baseline.capabilities),)),
    Control("hostNamespaces", Level.BASELINE, ((0, baseline.host_namespaces),)),
    Control("hostPathVolumes", Level.BASELINE, ((0, baseline.host_path_volumes),)),
    Control("hostPorts", Level.BASELINE, ((0, baseline.host_ports),)),
    Control("hostProbesAndHostLifecycle", Level.BASELINE, ((34, baseline.host_probes_and_lifecycle),)),
    Control("privileged", Level.BASELINE, ((0, baseline.privileged),)),
    Control(
        "procMount",
        Level.BASELINE,
        ((0, baseline.proc_mount), (35, unless_in_user_namespace(baseline.proc_mount))),
    ),
    Control(
        "seLinuxOptions",
        Level.BASELINE,
        ((0, baseline.se_linux_options(*_SE_LINUX_0)), (31, baseline.se_linux_options(*_SE_LINUX_31))),
    ),
    Control(
        "seccompProfile_baseline",
        Level.BASELINE,
        ((0, baseline.seccomp_annotations), (19, baseline.seccomp_profile)),
    ),
    Control(
        "sysctls",
        Level.BASELINE,
        (
            (0, baseline.sysctls(*_SYSCTLS_0)),
            (27, baseline.sysctls(*_SYSCTLS_27)),
            (29, baseline.sysctls(*_SYSCTLS_29)),
            (32, baseline.sysctls(*_SYSCTLS_32)),
        ),
    ),
    Control("windowsHostProcess", Level.BASELINE, ((0, baseline.windows_host_process),)),
    Control(
        "allowPrivilegeEscalation",
        Level.RESTRICTED,
        (
            (8, restricted.allow_privilege_escalation),
            (25, unless_for_windows(restricted.allow_privilege_escalation)),
        ),
    ),
    Control(
        "capabilities_restricted",
        Level.RESTRICTED,
        ((22, restricted.capabilities), (25, unless_for_windows(restricted.capabilities))),
        replaces="capabilities_baseline",
    ),
    Control("procMount_restricted", Level.RESTRICTED, ((35, baseline.proc_mount),), replaces="procMount"),
    Control("restrictedVolumes", Level.RESTRICTED, ((0, restricted.volume_types),), replaces="hostPathVolumes"),
    Control(
        "runAsNonRoot",
        Level.RESTRICTED,
        ((0, restricted.run_as_non_root), (35, unless_in_user_namespace(restricted.run_as_non_root))),
    ),
    Control(
        "runAsUser",
        Level.RESTRICTED,
        ((23, restricted.run_as_user), (35, unless_in_user_namespace(restricted.run_as_user))),
    ),
    Control(
        "seccompProfile_restricted",
        Level.RESTRICTED,
        ((19, restricted.seccomp_profile), (25, unless_for_windows(restricted.seccomp_profile))),
        replaces="seccompProfile_baseline",
    ),
)
"""In the order in which violations are told."""
_NEWEST: Final = max(first for control in CONTROLS for first, _ in control.revisions)


def violations(wanted: LevelVersion, pod: Json) -> list[ControlViolation]:
    """Returns the violations of a level by a pod or pod template."""
    minor = _NEWEST if wanted.minor is None else min(wanted.minor, _NEWEST)
    found = [check(pod) for check in _checks(wanted.level, minor)]
    return [each for each in found if each is not None]


@cache
def _checks(level: Level, minor: int) -> tuple[Check, ...]:
    known = [(each, check) for each in CONTROLS if each.level <= level and (check := each.at(minor)) is not None]
    replaced = {control.replaces for control, _ in known}
    return tuple(check for control, check in known if control.name not in replaced)
