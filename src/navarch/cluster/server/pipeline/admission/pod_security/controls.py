"""The Pod Security Standards as a table: which control checks pods at which level, and from which version on."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from navarch.cluster.server.pipeline.admission.pod_security import baseline, restricted
from navarch.cluster.server.pipeline.admission.pod_security.baseline import Check, unless_in_user_namespace
from navarch.cluster.server.pipeline.admission.pod_security.levels import Level, LevelVersion
from navarch.cluster.server.pipeline.admission.pod_security.restricted import unless_for_windows
from navarch.cluster.server.pipeline.admission.pod_security.violations import Violation
from navarch.cluster.server.wire.request import Json

__all__ = ["CONTROLS", "Control", "violations"]


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


def violations(wanted: LevelVersion, pod: Json) -> list[Violation]:
    """What a pod, or a pod template, violates of a level."""
    minor = _NEWEST if wanted.minor is None else min(wanted.minor, _NEWEST)
    found = [check(pod) for check in _checks(wanted.level, minor)]
    return [each for each in found if each is not None]


@cache
def _checks(level: Level, minor: int) -> tuple[Check, ...]:
    known = [(each, check) for each in CONTROLS if each.level <= level and (check := each.at(minor)) is not None]
    replaced = {control.replaces for control, _ in known}
    return tuple(check for control, check in known if control.name not in replaced)
