"""Pod Security admission, from outside: the labels of a namespace decide which pods the API server takes."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from navarch._base.clock import SystemClock
from navarch.testing.cluster import over_https
from security.pod_fragments import RESTRICTED, pod
from security.pod_security_record import DATA, FILE, answered
from security.pod_security_server import (
    LABEL,
    MERGE,
    SECONDS,
    Answer,
    Json,
    Server,
    namespace,
    serving,
    serving_of,
    violated,
)

ESCALATION = "allowPrivilegeEscalation != false"
CAPABILITIES = "unrestricted capabilities"
NON_ROOT = "runAsNonRoot != true"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ["embedded", pytest.param("real", marks=pytest.mark.real)])


@pytest.fixture
async def server(engine: str, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """A server of that engine."""
    async with serving(request.getfixturevalue("rig_cluster") if engine == "real" else None) as made:
        yield made


def strict(*fragments: str) -> Json:
    """A pod that meets every level but for what the fragments say."""
    return pod(*RESTRICTED, *fragments)


def windows(**security: Any) -> Json:
    """A pod for Windows, which must not set what the level restricted asks of others."""
    made = pod("nonRoot")
    made["spec"]["os"] = {"name": "windows"}
    made["spec"]["securityContext"] |= security
    del made["spec"]["containers"][0]["securityContext"]
    return made


def host_process() -> Json:
    made = windows(windowsOptions={"hostProcess": True})
    made["spec"]["hostNetwork"] = True
    return made


VERDICTS: Sequence[tuple[Json, dict[str, str]]] = (
    (strict(), {"restricted:latest": "", "restricted:v1.0": "", "restricted:v1.36": "", "baseline:latest": ""}),
    (
        pod(),
        {
            "privileged:latest": "",
            "baseline:latest": "",
            "baseline:v1.0": "",
            "restricted:v1.0": NON_ROOT,
            "restricted:v1.7": NON_ROOT,
            "restricted:v1.8": f"{ESCALATION}, {NON_ROOT}",
            "restricted:v1.18": f"{ESCALATION}, {NON_ROOT}",
            "restricted:v1.19": f"{ESCALATION}, {NON_ROOT}, seccompProfile",
            "restricted:v1.21": f"{ESCALATION}, {NON_ROOT}, seccompProfile",
            "restricted:v1.22": f"{ESCALATION}, {CAPABILITIES}, {NON_ROOT}, seccompProfile",
            "restricted:latest": f"{ESCALATION}, {CAPABILITIES}, {NON_ROOT}, seccompProfile",
        },
    ),
    (strict("hostNetwork"), {"baseline:latest": "host namespaces", "restricted:latest": "host namespaces"}),
    (strict("hostPID"), {"baseline:v1.0": "host namespaces", "restricted:v1.0": "host namespaces"}),
    (strict("hostIPC"), {"privileged:latest": "", "baseline:latest": "host namespaces"}),
    (pod("app:privileged"), {"privileged:latest": "", "baseline:latest": "privileged", "baseline:v1.0": "privileged"}),
    (pod("setup:privileged"), {"baseline:latest": "privileged"}),
    (pod("app:unprivileged"), {"baseline:latest": ""}),
    (strict("app:addUsual"), {"baseline:latest": "", "restricted:latest": CAPABILITIES, "restricted:v1.21": ""}),
    (strict("app:addBind"), {"baseline:latest": "", "restricted:latest": "", "restricted:v1.22": ""}),
    (
        strict("app:addRaw"),
        {
            "baseline:latest": "non-default capabilities",
            "restricted:v1.21": "non-default capabilities",
            "restricted:v1.22": CAPABILITIES,
        },
    ),
    (strict("app:addAll"), {"baseline:v1.0": "non-default capabilities", "restricted:latest": CAPABILITIES}),
    (pod("app:dropLower", "nonRoot", "seccomp", "app:noEscalation"), {"restricted:latest": CAPABILITIES}),
    (pod("app:dropSome", "nonRoot", "seccomp", "app:noEscalation"), {"restricted:latest": CAPABILITIES}),
    (strict("hostPath"), {"baseline:latest": "hostPath volumes", "restricted:latest": "restricted volume types"}),
    (strict("hostPath", "nfs"), {"baseline:v1.0": "hostPath volumes", "restricted:v1.0": "restricted volume types"}),
    (strict("nfs"), {"baseline:latest": "", "restricted:latest": "restricted volume types"}),
    (strict("iscsi"), {"baseline:latest": "", "restricted:latest": "restricted volume types"}),
    *(
        (strict(volume), {"restricted:latest": "", "restricted:v1.0": ""})
        for volume in [
            "emptyDir",
            "configMap",
            "secret",
            "projected",
            "downwardAPI",
            "claim",
            "csi",
            "ephemeral",
            "image",
        ]
    ),
    (strict("app:hostPort"), {"baseline:latest": "hostPort", "restricted:v1.0": "hostPort"}),
    (strict("setup:noEscalation", "setup:dropAll", "setup:hostPort"), {"restricted:latest": "hostPort"}),
    (strict("app:port"), {"restricted:latest": ""}),
    (strict("appArmorOff"), {"baseline:latest": "forbidden AppArmor profile"}),
    (strict("app:appArmorOff"), {"baseline:v1.0": "forbidden AppArmor profile"}),
    (strict("appArmorNotedOff"), {"baseline:latest": "forbidden AppArmor profile"}),
    (strict("appArmorNoted"), {"restricted:latest": ""}),
    (strict("appArmor", "app:appArmor"), {"restricted:latest": ""}),
    (strict("seLinux", "app:seLinux"), {"restricted:latest": "", "restricted:v1.0": ""}),
    (strict("seLinuxEngine"), {"baseline:v1.30": "seLinuxOptions", "baseline:v1.31": "", "restricted:latest": ""}),
    (strict("app:seLinuxType"), {"baseline:latest": "seLinuxOptions", "baseline:v1.0": "seLinuxOptions"}),
    (strict("seLinuxUser"), {"baseline:latest": "seLinuxOptions"}),
    (strict("app:seLinuxRole"), {"restricted:latest": "seLinuxOptions"}),
    (
        strict("ownUsers", "app:unmaskedProc"),
        {
            "baseline:v1.34": "procMount",
            "baseline:v1.35": "",
            "baseline:latest": "",
            "restricted:v1.34": "procMount",
            "restricted:v1.35": "procMount",
            "restricted:latest": "procMount",
        },
    ),
    (strict("app:maskedProc"), {"baseline:latest": "", "restricted:latest": ""}),
    (
        pod("nonRoot", "app:noEscalation", "app:dropAll", "seccompNotedOff"),
        {"baseline:v1.18": "seccompProfile", "baseline:v1.19": "", "restricted:v1.18": "seccompProfile"},
    ),
    (pod("seccompNotedOfAppOff"), {"baseline:v1.0": "seccompProfile", "baseline:latest": ""}),
    (pod("seccompNotedOfNobody"), {"baseline:v1.0": ""}),
    (pod("seccompNoted"), {"baseline:v1.18": ""}),
    (
        strict("app:seccompOff"),
        {
            "baseline:v1.18": "",
            "baseline:v1.19": "seccompProfile",
            "restricted:v1.18": "",
            "restricted:latest": "seccompProfile",
        },
    ),
    (strict("seccompOff"), {"baseline:latest": "seccompProfile", "restricted:v1.19": "seccompProfile"}),
    (strict("seccompOff", "app:seccompLocal"), {"restricted:latest": "seccompProfile"}),
    (
        pod("nonRoot", "app:noEscalation", "app:dropAll", "app:seccompLocal"),
        {"baseline:latest": "", "restricted:latest": "", "restricted:v1.19": ""},
    ),
    (strict("sysctl0"), {"baseline:v1.0": "", "restricted:latest": ""}),
    (strict("sysctl27"), {"baseline:v1.26": "forbidden sysctls", "baseline:v1.27": ""}),
    (strict("sysctl29"), {"baseline:v1.28": "forbidden sysctls", "baseline:v1.29": ""}),
    (strict("sysctl32"), {"baseline:v1.31": "forbidden sysctls", "baseline:v1.32": "", "restricted:latest": ""}),
    (strict("sysctlOther"), {"baseline:latest": "forbidden sysctls", "restricted:v1.0": "forbidden sysctls"}),
    (strict("app:mayEscalate"), {"baseline:latest": "", "restricted:v1.7": "", "restricted:v1.8": ESCALATION}),
    (strict("mayBeRoot"), {"baseline:latest": "", "restricted:latest": NON_ROOT, "restricted:v1.0": NON_ROOT}),
    (strict("app:mayBeRoot"), {"restricted:latest": NON_ROOT}),
    (strict("app:mayBeRoot", "ownUsers"), {"restricted:v1.34": NON_ROOT, "restricted:v1.35": ""}),
    (strict("mayBeRoot", "app:nonRoot"), {"restricted:latest": NON_ROOT}),
    (pod("seccomp", "app:nonRoot", "app:noEscalation", "app:dropAll"), {"restricted:latest": ""}),
    (strict("user1", "app:user1"), {"restricted:latest": ""}),
    (strict("user0"), {"baseline:latest": "", "restricted:v1.22": "", "restricted:v1.23": "runAsUser=0"}),
    (strict("app:user0"), {"restricted:latest": "runAsUser=0"}),
    (strict("app:user0", "ownUsers"), {"restricted:v1.34": "runAsUser=0", "restricted:v1.35": ""}),
    *(
        (strict(probe), {"baseline:v1.33": "", "baseline:v1.34": "probe or lifecycle host"})
        for probe in (f"app:{each}OfHost" for each in ("probe", "readiness", "startup", "hook", "stop"))
    ),
    (strict("app:probe"), {"restricted:latest": ""}),
    (windows(), {"restricted:v1.24": f"{ESCALATION}, {CAPABILITIES}, seccompProfile", "restricted:v1.25": ""}),
    (
        host_process(),
        {"baseline:latest": "host namespaces, hostProcess", "baseline:v1.0": "host namespaces, hostProcess"},
    ),
    (strict("side:plain"), {"restricted:latest": f"{ESCALATION}, {CAPABILITIES}"}),
    (strict("setup:plain"), {"restricted:latest": f"{ESCALATION}, {CAPABILITIES}"}),
)
"""Pods, and the controls that they violate at each level and version."""


async def test_every_control_judges_pods_by_level_and_version(server: Server) -> None:
    """A pod that violates a control is refused with 403 and the control's name; one that violates none is taken."""
    paths: dict[str, str] = {}
    wrong = []
    for made, expected in VERDICTS:
        for wanted, controls in expected.items():
            if wanted not in paths:
                level, version = wanted.split(":")
                paths[wanted] = await server.namespace(enforce=level, enforce_version=version)
            answer = await server.dry_run(paths[wanted], made)
            refused = f"{wanted}: {controls}" if controls else ""
            code, reason = (403, "Forbidden") if controls else (201, "")
            if answer.verdict != {"code": code, "reason": reason, "violated": refused, "warned": []}:
                wrong.append(f"{wanted} {json.dumps(made['spec'])}: expected {controls or 'none'}, got {answer.body}")
    assert not wrong, "\n".join(wrong)


async def test_random_pods_get_the_recorded_verdicts(server: Server) -> None:
    """Some hundred pods of random fragments get the verdicts that were recorded from a real server."""
    recorded: list[Json] = json.loads((DATA / FILE).read_text())
    found = await answered(server, recorded)
    wrong = [
        f"{labels['labels']} {one['fragments']}: expected {one['verdict']}, got {other['verdict']}"
        for labels, ours in zip(recorded, found, strict=True)
        for one, other in zip(labels["pods"], ours["pods"], strict=True)
        if one != other
    ]
    assert not wrong, "\n".join(wrong)


async def test_a_refusal_names_the_pod_the_controls_and_the_containers(server: Server) -> None:
    """Who is refused reads what to change, and where."""
    path = await server.namespace(enforce="baseline")
    answer = await server.ask("POST", f"{path}/pods", pod("app:privileged", "setup:addRaw", "hostPID"))
    assert answer.status == 403
    assert answer.body["details"] == {"name": "pod", "kind": "pods"}
    message = answer.body["message"]
    assert message.startswith('pods "pod" is forbidden: violates PodSecurity "baseline:latest": ')
    for part in ('"app"', "securityContext.privileged", '"setup"', '"NET_RAW"', "capabilities.add", "hostPID=true"):
        assert part in message


async def test_a_generated_name_is_told(server: Server) -> None:
    """A pod whose name the server makes up is refused as well."""
    path = await server.namespace(enforce="baseline")
    made = pod("hostPID")
    made["metadata"] = {"generateName": "some-"}
    answer = await server.ask("POST", f"{path}/pods", made)
    assert answer.status == 403
    assert answer.body["details"]["name"].startswith("some-")
    assert violated(answer.body["message"]) == "baseline:latest: host namespaces"


async def test_no_way_to_create_a_pod_goes_around_the_level(server: Server) -> None:
    """An apply is a creation, too, and null is no value that hides another one."""
    path = await server.namespace(enforce="baseline")
    made = pod("app:privileged")
    applied = await server.ask("PATCH", f"{path}/pods/pod", made, media_type=APPLY, query={"fieldManager": "somebody"})
    assert applied.status == 403
    assert violated(applied.body["message"]) == "baseline:latest: privileged"
    made["spec"]["initContainers"] = made["metadata"]["annotations"] = None
    assert (await server.ask("POST", f"{path}/pods", made)).status == 403
    assert (await server.ask("GET", f"{path}/pods/pod")).status == 404


def _policy(name: str, namespace: str) -> tuple[Json, Json]:
    """A policy that lets pods of a namespace share the processes of their node, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    change = """[JSONPatch{op: "add", path: "/spec/hostPID", value: true}]"""
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": change}}],
    }
    return (
        {**head, "kind": "MutatingAdmissionPolicy", "spec": spec},
        {**head, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": name}},
    )


async def test_pods_are_judged_as_admission_has_changed_them(server: Server) -> None:
    """What a mutating policy adds to a pod counts like what was sent."""
    path = await server.namespace(enforce="baseline")
    name = path.rpartition("/")[2]
    root = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
    policy, binding = _policy(f"{name}.example.com", name)
    assert (await server.ask("POST", f"{root}ies", policy)).status == 201
    assert (await server.ask("POST", f"{root}ybindings", binding)).status == 201
    try:
        answer = await server.until_refused(path, pod())
    finally:
        await server.ask("DELETE", f"{root}ybindings/{name}.example.com")
        await server.ask("DELETE", f"{root}ies/{name}.example.com")
    assert violated(answer.body["message"]) == "baseline:latest: host namespaces"


async def test_a_namespace_without_labels_takes_every_pod(server: Server) -> None:
    """Nothing is enforced that nobody has asked for."""
    path = await server.namespace()
    answer = await server.ask("POST", f"{path}/pods", pod("app:privileged", "hostNetwork", "hostPath"))
    assert (answer.status, answer.warnings) == (201, ())


async def test_a_pod_below_the_level_of_warnings_is_taken_with_a_warning(server: Server) -> None:
    """`warn` warns and does not refuse; its version is its own."""
    path = await server.namespace(enforce="baseline", warn="restricted", warn_version="v1.7")
    answer = await server.dry_run(path, pod())
    assert answer.verdict == {"code": 201, "reason": "", "violated": "", "warned": [f"restricted:v1.7: {NON_ROOT}"]}
    answer = await server.dry_run(path, pod("hostPID"))
    assert (answer.verdict["violated"], answer.verdict["warned"]) == ("baseline:latest: host namespaces", [])


async def test_audit_neither_refuses_nor_warns(server: Server) -> None:
    """`audit` is for the audit log alone."""
    path = await server.namespace(audit="restricted")
    answer = await server.dry_run(path, pod("app:privileged"))
    assert (answer.status, answer.warnings) == (201, ())


def _template(made: Json) -> Json:
    return {"metadata": {"labels": {"app": "some"}}, "spec": {**made["spec"], "restartPolicy": "Always"}}


def _once(made: Json) -> Json:
    return {"template": {"spec": {**made["spec"], "restartPolicy": "Never"}}}


_SELECTOR = {"matchLabels": {"app": "some"}}
WORKLOADS: dict[str, Callable[[Json], Json]] = {
    "apps/v1/Deployment": lambda made: {"spec": {"selector": _SELECTOR, "template": _template(made)}},
    "apps/v1/ReplicaSet": lambda made: {"spec": {"replicas": 0, "selector": _SELECTOR, "template": _template(made)}},
    "apps/v1/DaemonSet": lambda made: {"spec": {"selector": _SELECTOR, "template": _template(made)}},
    "apps/v1/StatefulSet": lambda made: {
        "spec": {"serviceName": "", "replicas": 0, "selector": _SELECTOR, "template": _template(made)}
    },
    "batch/v1/Job": lambda made: {"spec": {"suspend": True, **_once(made)}},
    "batch/v1/CronJob": lambda made: {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": _once(made)}}},
    "v1/ReplicationController": lambda made: {
        "spec": {"replicas": 0, "selector": {"app": "some"}, "template": _template(made)}
    },
    "v1/PodTemplate": lambda made: {"template": _template(made)},
}


def _workload(kind: str, made: Json) -> Json:
    api_version, _, name = kind.rpartition("/")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "some"}, **WORKLOADS[kind](made)}


def _plural(path: str, kind: str) -> str:
    api_version, _, name = kind.rpartition("/")
    root = "/api" if "/" not in api_version else "/apis"
    return f"{root}/{api_version}{path.removeprefix('/api/v1')}/{name.lower()}s"


async def test_workloads_are_warned_of_and_never_refused(server: Server) -> None:
    """What makes pods is taken with a warning of what its pods violate; enforcing a level warns by the same level."""
    path = await server.namespace(enforce="baseline", enforce_version="v1.30")
    for kind in WORKLOADS:
        made = _workload(kind, strict("hostPID", "app:hostPort"))
        answer = await server.ask("POST", _plural(path, kind), made)
        expected = {"code": 201, "reason": "", "violated": "", "warned": ["baseline:v1.30: host namespaces, hostPort"]}
        assert answer.verdict == expected, kind
        changed = {"metadata": {"labels": {"changed": "yes"}}}
        answer = await server.ask("PATCH", f"{_plural(path, kind)}/some", changed, media_type=MERGE)
        assert answer.verdict == {**expected, "code": 200}, kind
        answer = await server.ask("POST", _plural(path, kind), _workload(kind, strict()), query={"dryRun": "All"})
        assert not answer.verdict["warned"], kind


async def test_a_workload_below_the_level_gets_no_pods(server: Server) -> None:
    """Its controller is refused when it creates them, and says so in the status of the ReplicaSet."""
    path = await server.namespace(enforce="baseline")
    made = _workload("apps/v1/ReplicaSet", pod("hostPID"))
    made["spec"]["replicas"] = 1
    place = _plural(path, "apps/v1/ReplicaSet")
    assert (await server.ask("POST", place, made)).status == 201
    clock = SystemClock()
    deadline = clock.monotonic() + SECONDS
    while not (conditions := (await server.ask("GET", f"{place}/some")).body["status"].get("conditions")):
        assert clock.monotonic() < deadline, f"expected a ReplicaSet to report ReplicaFailure within {SECONDS} s"
        await clock.sleep(0.05)
    assert conditions[0]["reason"] == "FailedCreate"
    assert violated(conditions[0]["message"]) == "baseline:latest: host namespaces"
    assert (await server.ask("GET", f"{path}/pods")).body["items"] == []


UNKNOWN_LABELS = [
    *({mode: value} for mode in ("enforce", "audit", "warn") for value in ("Baseline", "", "none", "strict")),
    *(
        {"enforce_version": value}
        for value in ("v1.01", "1.25", "v2.0", "", "v1", "v1.x", "Latest", "v1.99999999999999999999")
    ),
    {"audit_version": "v1.00"},
    {"warn_version": "v1.2.3"},
]


async def test_unknown_levels_and_versions_are_refused(server: Server) -> None:
    """A namespace with labels that mean nothing is refused with 422, naming each label, when it is made and changed."""
    path = await server.namespace()
    for number, labels in enumerate(UNKNOWN_LABELS):
        ((name, value),) = labels.items()
        created = await server.ask("POST", "/api/v1/namespaces", namespace(f"wrong-{number}", labels))
        for answer in (created, await server.label(path, **labels)):
            assert (answer.status, answer.body.get("reason")) == (422, "Invalid"), labels
            (cause,) = answer.body["details"]["causes"]
            assert cause["field"] == f"metadata.labels[{LABEL}{name.replace('_', '-')}]"
            assert cause["reason"] == "FieldValueInvalid"
            assert f'"{value}"' in cause["message"]
    answer = await server.label(path, enforce="x", enforce_version="x", warn="x")
    assert len(answer.body["details"]["causes"]) == 3
    assert (await server.label(path, enforce="restricted", enforce_version="v1.9000000000000000000")).status == 200


async def test_labels_that_no_policy_can_be_read_from_refuse_pods(server: Server) -> None:
    """A write of the status may leave an unknown level behind: restricted is enforced then. Other changes stay possible."""
    path = await server.namespace()
    labels = {"metadata": {"labels": {f"{LABEL}enforce": "unknown"}}}
    assert (await server.ask("PATCH", f"{path}/status", labels, media_type=MERGE)).status == 200
    answer = await server.until_refused(path, pod())
    assert violated(answer.body["message"]).startswith("restricted:latest: ")
    assert (await server.dry_run(path, strict())).status == 201
    other = {"metadata": {"labels": {"other": "label"}}}
    assert (await server.ask("PATCH", path, other, media_type=MERGE)).status == 200
    assert (await server.label(path, enforce="also-unknown")).status == 422


async def _stored(server: Server, path: str, *pods: Json) -> None:
    for each in pods:
        answer = await server.ask("POST", f"{path}/pods", each)
        assert answer.status == 201, answer


async def _until_warned(server: Server, path: str, count: int, **labels: str) -> Answer:
    """The answer to a dry run of new labels, once the server has heard of all pods."""
    clock = SystemClock()
    deadline = clock.monotonic() + SECONDS
    body = {"metadata": {"labels": {f"{LABEL}{name}": value for name, value in labels.items()}}}
    while True:
        answer = await server.ask("PATCH", path, body, media_type=MERGE, query={"dryRun": "All"})
        if len(answer.warnings) == count:
            return answer
        assert clock.monotonic() < deadline, f"expected {count} warnings within {SECONDS} s, got {answer.warnings}"
        await clock.sleep(0.05)


def _last_of(answer: Answer) -> tuple[str, ...]:
    """The warnings of the last attempt: Kubernetes patches again if it began with an object that was no longer the newest."""
    begins = [number for number, line in enumerate(answer.warnings) if line.startswith("existing pods")]
    return answer.warnings[begins[-1] :] if begins else answer.warnings


async def test_a_stricter_level_warns_of_pods_that_violate_it(server: Server) -> None:
    """Who tightens a namespace reads which pods would not be taken any more: pods with the same faults in one line."""
    path = await server.namespace(enforce="privileged")
    name = path.rpartition("/")[2]
    await _stored(
        server,
        path,
        pod("app:privileged", name="one"),
        pod("setup:privileged", name="another"),
        pod("app:privileged", name="third"),
        pod(name="fine"),
        pod("app:hostPort", "hostPID", name="ports"),
        pod("app:hostPort", "hostIPC", name="port"),
        pod("hostPath", name="path"),
    )
    answer = await _until_warned(server, path, 4, enforce="baseline")
    assert answer.warnings == (
        f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "baseline:latest"',
        "another (and 2 other pods): privileged",
        "path: hostPath volumes",
        "port (and 1 other pod): host namespaces, hostPort",
    )
    assert (await server.label(path, enforce="baseline")).warnings == answer.warnings
    assert (await server.label(path, enforce="baseline")).warnings == ()
    assert (await server.label(path, warn="restricted", audit="restricted")).warnings == ()
    assert len(_last_of(await server.label(path, enforce_version="v1.20"))) == 4
    assert len(_last_of(await server.label(path, enforce="restricted"))) == 5
    assert (await server.label(path, enforce="baseline")).warnings == ()
    assert (await server.label(path, enforce="privileged", enforce_version=None)).warnings == ()


def _with_container(**container: Any) -> Json:
    return {"spec": {"ephemeralContainers": [{"name": "debug", "image": "example.com/debug", **container}]}}


async def test_ephemeral_containers_are_judged(server: Server) -> None:
    """Debugging a pod does not open the door that was closed for it, whichever patch is used."""
    path = await server.namespace()
    await _stored(server, path, pod())
    await server.label(path, enforce="baseline")
    await server.until_refused(path, pod("hostPID", name="other"))
    place = f"{path}/pods/pod/ephemeralcontainers"
    privileged = _with_container(securityContext={"privileged": True})
    added = privileged["spec"]["ephemeralContainers"]
    operations: Any = [{"op": "add", "path": "/spec/ephemeralContainers", "value": added}]
    whole = (await server.ask("GET", f"{path}/pods/pod")).body
    del whole["metadata"]["resourceVersion"]
    answers = [
        await server.ask("PATCH", place, privileged, media_type=STRATEGIC),
        await server.ask("PATCH", place, privileged, media_type=MERGE),
        await server.ask("PATCH", place, operations, media_type=JSON_PATCH),
        await server.ask("PUT", place, {**whole, "spec": {**whole["spec"], "ephemeralContainers": added}}),
    ]
    for answer in answers:
        assert answer.status == 403
        assert violated(answer.body["message"]) == "baseline:latest: privileged"
    assert (await server.ask("PATCH", place, _with_container(), media_type=STRATEGIC)).status == 200


async def test_pods_that_are_there_may_change_what_nobody_judges(server: Server) -> None:
    """A pod that violates a new level keeps its labels and status up to date, and gets no other image."""
    path = await server.namespace()
    await _stored(server, path, pod("app:privileged", "hostPID"))
    await server.label(path, enforce="baseline", warn="baseline")
    await server.until_refused(path, pod("hostPID", name="other"))
    place = f"{path}/pods/pod"
    labels = {"metadata": {"labels": {"some": "label"}}}
    assert (await server.ask("PATCH", place, labels, media_type=MERGE)).verdict["warned"] == []
    status = {"status": {"phase": "Running"}}
    assert (await server.ask("PATCH", f"{place}/status", status, media_type=MERGE)).status == 200
    image = {"spec": {"containers": [{"name": "app", "image": "example.com/other"}]}}
    answer = await server.ask("PATCH", place, image, media_type=STRATEGIC)
    assert answer.status == 403
    assert violated(answer.body["message"]) == "baseline:latest: host namespaces, privileged"
    assert (await server.ask("DELETE", place)).status == 200


async def test_names_in_pods_do_not_become_headers(server: Server) -> None:
    """A capability with line breaks in it neither ends a warning's header nor begins another one."""
    path = await server.namespace(warn="restricted")
    made = strict()
    made["spec"]["containers"][0]["securityContext"]["capabilities"]["add"] = ['A"\r\nSet-Cookie: a=b\r\n\r\n', "B\x00"]
    answer = await server.dry_run(path, made)
    assert answer.status == 201
    assert all(text.isprintable() for text in answer.warnings)


def large_pod() -> Json:
    """A pod of 256 containers with long names, none of which is restricted."""
    names = ["".join(each) for each in itertools.product("ab", repeat=8)]
    return pod(*(f"{name * 6}:plain" for name in names))


async def test_warnings_of_a_large_pod_are_bounded(server: Server) -> None:
    """Headers stay small, however many containers a pod has."""
    path = await server.namespace(warn="restricted")
    answer = await server.dry_run(path, large_pod())
    assert answer.status == 201
    assert 0 < sum(map(len, answer.warnings)) <= 4096


async def test_the_audit_log_has_the_verdicts() -> None:
    """Records of pods name the level that was enforced; those of violations of `audit` name the controls."""
    async with over_https() as cluster, serving_of(cluster) as server:
        path = await server.namespace(enforce="baseline", audit="restricted", audit_version="v1.7")
        place = path.rpartition("/")[2]
        await server.dry_run(path, pod("hostPID"))
        await server.dry_run(path, strict())
        await server.dry_run(await server.namespace(), pod())
        await server.dry_run(await server.namespace(audit="restricted"), large_pod())
        await server.ask("POST", _plural(path, "v1/PodTemplate"), _workload("v1/PodTemplate", pod("hostPID")))
        refused, taken = cluster.audit.records(verb="create", resource="pods", namespace=place)
        (template,) = cluster.audit.records(verb="create", resource="podtemplates")
        *_, other, large = cluster.audit.records(verb="create", resource="pods")
    assert _annotations(refused)[f"{LABEL}enforce-policy"] == "baseline:latest"
    assert (
        violated(_annotations(refused)[f"{LABEL}audit-violations"]) == f"restricted:v1.7: host namespaces, {NON_ROOT}"
    )
    assert _annotations(taken) == {f"{LABEL}enforce-policy": "baseline:latest"}
    assert _annotations(other) == {f"{LABEL}enforce-policy": "privileged:latest"}
    assert 4096 <= len(_annotations(large)[f"{LABEL}audit-violations"]) < 5000
    assert [*_annotations(template)] == [f"{LABEL}audit-violations"]


def _annotations(record: Any) -> Json:
    found: Json = record.to_json()["annotations"]
    return found
