"""Controls of the level baseline: each returns what a pod, or a pod template, violates of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from navarch.api.strconv import go_quoted
from navarch.cluster.server.wire.request import Json

_FIELDS = ("initContainers", "containers", "ephemeralContainers")


class ControlViolation(NamedTuple):
    """A control that a pod does not meet: `reason` names the control, `detail` the fields and who has set them."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


def told(violations: Iterable[ControlViolation]) -> str:
    """All violations of a pod in one line."""
    return ", ".join(map(str, violations))


def annotations_of(pod: Json) -> dict[str, str]:
    """The annotations; a pod template may even have no metadata."""
    return (pod.get("metadata") or {}).get("annotations") or {}


def containers_of(pod: Json) -> Iterator[Json]:
    """All containers of a pod, of every kind."""
    for field in _FIELDS:
        yield from pod["spec"].get(field) or ()


def security_of(spec: Json) -> Json:
    """The security context of the spec of a pod, or of a container; empty if there is none."""
    return spec.get("securityContext") or {}


def security_contexts(pod: Json) -> Iterator[tuple[Json | None, Json]]:
    """The security context of the pod itself, with None, and those of its containers."""
    yield None, security_of(pod["spec"])
    for container in containers_of(pod):
        yield container, security_of(container)


def listed(values: Iterable[str]) -> str:
    """Values in quotes; control characters in them are escaped."""
    return ", ".join(map(go_quoted, values))


def named(what: str, names: list[str]) -> str:
    """Things of one kind by their names.

    >>> print(named("container", ["a", "b"]))
    containers "a", "b"
    """
    return f"{what}{'' if len(names) == 1 else 's'} {listed(names)}"


class Setters:
    """Collects the security contexts with a forbidden value: the pod's and its containers', with the values."""

    def __init__(self) -> None:
        self.has_pod = False
        self.containers: list[str] = []
        self.values: set[str] = set()

    def __bool__(self) -> bool:
        return self.has_pod or bool(self.containers)

    def __str__(self) -> str:
        pod = ["pod"] if self.has_pod else []
        return " and ".join([*pod, *([named("container", self.containers)] if self.containers else [])])

    def add(self, container: Json | None, *values: str) -> None:
        """A container, or the pod itself for None."""
        if container is None:
            self.has_pod = True
        else:
            self.containers.append(container["name"])
        self.values.update(values)


Check = Callable[[Json], ControlViolation | None]
"""Of a pod or a pod template."""

_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
PROFILE_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})
_APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_ANNOTATION: Final = "container.seccomp.security.alpha.kubernetes.io/"
_HOST_NAMESPACES: Final = ("hostNetwork", "hostPID", "hostIPC")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")


def unless_in_user_namespace(check: Check) -> Check:
    """The check for pods whose root is root on the node; others pass."""
    return lambda pod: None if pod["spec"].get("hostUsers") is False else check(pod)


def bad_profile_types(pod: Json, field: str) -> Setters:
    """Collects the security contexts whose seccomp or AppArmor profile has a type outside `PROFILE_TYPES`."""
    found = Setters()
    for container, context in security_contexts(pod):
        profile = context.get(field)
        if profile is not None and profile.get("type", "") not in PROFILE_TYPES:
            found.add(container, profile.get("type", ""))
    return found


def app_armor_profile(pod: Json) -> ControlViolation | None:
    """AppArmor profiles are not turned off, neither by fields nor by annotations."""
    setters = bad_profile_types(pod, "appArmorProfile")
    annotations = [
        f"{key}={value}"
        for key, value in sorted(annotations_of(pod).items())
        if key.startswith(_APP_ARMOR_ANNOTATION) and not _is_app_armor_annotation(value)
    ]
    if not setters and not annotations:
        return None
    values = [*sorted(setters.values), *annotations]
    who = [*([str(setters)] if setters else []), *(["annotations"] if annotations else [])]
    reason = "forbidden AppArmor profile" if len(values) == 1 else "forbidden AppArmor profiles"
    return ControlViolation(reason, f"{' and '.join(who)}: AppArmor profile must not be {listed(values)}")


def _is_app_armor_annotation(profile: str) -> bool:
    return profile in {"", "runtime/default"} or profile.startswith("localhost/")


def capabilities(pod: Json) -> ControlViolation | None:
    """No capabilities are added beyond those that containers commonly have."""
    setters = Setters()
    for container in containers_of(pod):
        added = (security_of(container).get("capabilities") or {}).get("add") or ()
        if extra := [each for each in added if each not in _CAPABILITIES]:
            setters.add(container, *extra)
    if not setters:
        return None
    detail = f"{setters}: securityContext.capabilities.add must not have {listed(sorted(setters.values))}"
    return ControlViolation("non-default capabilities", detail)


def host_namespaces(pod: Json) -> ControlViolation | None:
    """A pod shares neither network, nor processes, nor IPC with its node."""
    shared = [f"{field}=true" for field in _HOST_NAMESPACES if pod["spec"].get(field)]
    return ControlViolation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: Json) -> ControlViolation | None:
    """No volume is a directory of the node."""
    volumes = [each["name"] for each in pod["spec"].get("volumes") or () if each.get("hostPath") is not None]
    return ControlViolation("hostPath volumes", named("volume", volumes)) if volumes else None


def host_ports(pod: Json) -> ControlViolation | None:
    """No container has a port of the node."""
    setters = Setters()
    for container in containers_of(pod):
        ports = [str(each["hostPort"]) for each in container.get("ports") or () if each.get("hostPort")]
        if ports:
            setters.add(container, *ports)
    if not setters:
        return None
    return ControlViolation("hostPort", f"{setters}: ports.hostPort must not be {', '.join(sorted(setters.values))}")


def host_probes_and_lifecycle(pod: Json) -> ControlViolation | None:
    """Probes and hooks do not let the node call other hosts."""
    setters = Setters()
    for container in containers_of(pod):
        if hosts := [host for handler in _handlers(container) for host in _hosts(handler)]:
            setters.add(container, *hosts)
    if not setters:
        return None
    detail = f"{setters}: host of probes and lifecycle hooks must not be {listed(sorted(setters.values))}"
    return ControlViolation("probe or lifecycle host", detail)


def _handlers(container: Json) -> Iterator[Json]:
    lifecycle = container.get("lifecycle") or {}
    yield from (container.get(field) or {} for field in _PROBES)
    yield from (lifecycle.get(field) or {} for field in _HOOKS)


def _hosts(handler: Json) -> Iterator[str]:
    for field in ("httpGet", "tcpSocket"):
        if host := (handler.get(field) or {}).get("host"):
            yield host


def privileged(pod: Json) -> ControlViolation | None:
    """No container is privileged."""
    names = [each["name"] for each in containers_of(pod) if security_of(each).get("privileged")]
    if not names:
        return None
    return ControlViolation("privileged", f"{named('container', names)}: securityContext.privileged must not be true")


def proc_mount(pod: Json) -> ControlViolation | None:
    """/proc is masked."""
    setters = Setters()
    for container in containers_of(pod):
        mount = security_of(container).get("procMount")
        if mount not in {None, "Default"}:
            setters.add(container, mount)
    if not setters:
        return None
    return ControlViolation(
        "procMount", f"{setters}: securityContext.procMount must not be {listed(sorted(setters.values))}"
    )


def se_linux_options(*types: str) -> Check:
    """SELinux types are among `types`, or empty; users and roles are not set."""

    def check(pod: Json) -> ControlViolation | None:
        setters = Setters()
        for container, context in security_contexts(pod):
            if bad := [*_bad_se_linux(context.get("seLinuxOptions") or {}, types)]:
                setters.add(container, *bad)
        if not setters:
            return None
        bad_options = ", ".join(sorted(setters.values))
        return ControlViolation(
            "seLinuxOptions", f"{setters}: securityContext.seLinuxOptions must not have {bad_options}"
        )

    return check


def _bad_se_linux(options: Json, types: tuple[str, ...]) -> Iterator[str]:
    if options.get("type") and options["type"] not in types:
        yield f"type {go_quoted(options['type'])}"
    yield from (field for field in ("user", "role") if options.get(field))


def seccomp_annotations(pod: Json) -> ControlViolation | None:
    """Seccomp profiles are not turned off by annotations, which were how to choose them before 1.19."""
    annotations = annotations_of(pod)
    keys = [_SECCOMP_POD_ANNOTATION, *(_SECCOMP_ANNOTATION + each["name"] for each in containers_of(pod))]
    bad = sorted(
        f"{key}={go_quoted(annotations[key])}"
        for key in set(keys)
        if key in annotations and not _is_seccomp_annotation(annotations[key])
    )
    return ControlViolation("seccompProfile", f"annotations must not be {', '.join(bad)}") if bad else None


def _is_seccomp_annotation(profile: str) -> bool:
    return profile in {"runtime/default", "docker/default"} or profile.startswith("localhost/")


def seccomp_profile(pod: Json) -> ControlViolation | None:
    """Seccomp profiles are not turned off."""
    setters = bad_profile_types(pod, "seccompProfile")
    if not setters:
        return None
    types = listed(sorted(setters.values))
    return ControlViolation("seccompProfile", f"{setters}: securityContext.seccompProfile.type must not be {types}")


def sysctls(*allowed: str) -> Check:
    """Kernel parameters that are set are among `allowed`."""

    def check(pod: Json) -> ControlViolation | None:
        names = [each["name"] for each in security_of(pod["spec"]).get("sysctls") or () if each["name"] not in allowed]
        return ControlViolation("forbidden sysctls", ", ".join(names)) if names else None

    return check


def windows_host_process(pod: Json) -> ControlViolation | None:
    """No container of a Windows pod runs on the node itself."""
    setters = Setters()
    for container, context in security_contexts(pod):
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            setters.add(container)
    if not setters:
        return None
    return ControlViolation("hostProcess", f"{setters}: securityContext.windowsOptions.hostProcess must not be true")
