"""`navarch deploy`, `status`, `rollback` and `undeploy`, as people and programs run them."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from interrupts import heed_interrupts
from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.oci.layout import Layout
from navarch.testing import Cluster
from oci.tiny_images import add_image, with_programs
from project.small_project import forgotten_code, write_project

NAMESPACE = "cache-operator-system"
DEPLOYMENT = "cache-operator-controller-manager"
DEPLOYMENTS = Kind("apps", "v1", "Deployment", plural="deployments")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", plural="rolebindings")
PODS = Kind("", "v1", "Pod", plural="pods")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", plural="leases")
DIGEST = "registry.example.com/cache@sha256:" + "a" * 64


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, in which the commands run."""
    folder = tmp_path / "project"
    write_project(folder)
    monkeypatch.chdir(folder)
    with forgotten_code():
        yield folder


@pytest.fixture
async def where(http_cluster: Cluster, root: Path, tmp_path: Path) -> tuple[str, str]:
    """The options that choose the cluster."""
    file = tmp_path / "kubeconfig"
    assert http_cluster.access is not None
    file.write_bytes(http_cluster.access.kubeconfig_file())
    return "--kubeconfig", str(file)


async def lead(client: Client) -> None:
    """Takes the Lease as one of the pods: simulated ones run no operator."""
    pods = await client.list(PODS, namespace=NAMESPACE)
    pod = next(each for each in pods if not each.metadata.get("deletionTimestamp"))
    spec = {"holderIdentity": f"{pod.name}_1", "leaseDurationSeconds": 15}
    metadata = {"name": "cache-operator", "namespace": NAMESPACE}
    await client.apply(
        Dynamic({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}),
        force=True,
    )


@pytest.mark.cluster(simulated=1)
async def test_operator_is_deployed_shown_rolled_back_and_undeployed(
    program: Program, where: tuple[str, str], http_cluster: Cluster
) -> None:
    """The whole life of a deployment, with an answer in JSON to each step."""
    first = program.json("deploy", "--wait", "0", *where)
    assert (first["revision"], first["namespace"], first["image"]) == (1, NAMESPACE, "controller:latest")
    assert (first["dryRun"], first["ready"]) == (False, None)
    assert {each["result"] for each in first["changes"]} == {"created"}

    await http_cluster.until(
        DEPLOYMENTS, DEPLOYMENT, lambda found: found["status"]["availableReplicas"] == 2, namespace=NAMESPACE
    )
    waiting = program.run("status", *where)
    assert waiting.returncode == 1
    assert f"no replica has taken the Lease {NAMESPACE}/cache-operator yet" in waiting.stdout

    await lead(http_cluster.client)
    again = program.json("deploy", *where)
    assert (again["revision"], again["ready"]) == (1, True)
    second = program.json("deploy", "--image", DIGEST, "--wait", "0", *where)
    assert (second["revision"], second["image"]) == (2, DIGEST)
    assert [each["name"] for each in second["changes"] if each["result"] == "changed"] == [DEPLOYMENT]

    await http_cluster.until(
        DEPLOYMENTS,
        DEPLOYMENT,
        lambda found: found["status"]["updatedReplicas"] == found["status"]["replicas"] == 2,
        namespace=NAMESPACE,
    )
    await lead(http_cluster.client)
    state = program.json("status", *where)
    assert (state["revision"], state["state"], state["image"]) == (2, "deployed", DIGEST)
    assert (state["replicas"], state["ready"], state["obstacle"], state["faults"]) == (2, 2, "", [])
    assert state["leader"].startswith(DEPLOYMENT)
    assert state["crds"] == [
        {"name": "memcacheds.cache.example.com", "established": True, "storedVersions": ["v1alpha1"]}
    ]
    assert [(each["number"], each["state"]) for each in state["revisions"]] == [(1, "deployed"), (2, "deployed")]
    shown = program.run("status", *where)
    assert shown.returncode == 0
    assert "2/2 ready" in shown.stdout

    third = program.json("rollback", "--wait", "0", *where)
    assert (third["revision"], third["image"]) == (3, "controller:latest")

    asked = program.run("undeploy", *where)
    assert asked.returncode == 1
    assert "kept: CRD memcacheds.cache.example.com with 0 objects" in asked.stderr
    assert "expected an answer, but there is no terminal to ask on; add --yes" in asked.stderr
    gone = program.json("undeploy", "--yes", "--delete-crds", *where)
    assert gone["deleted"]["Deployment"] == 1
    assert gone["deleted"]["CustomResourceDefinition"] == 1
    assert gone["deleted"]["Namespace"] == 1
    missing = program.run("status", *where)
    assert missing.returncode == 1
    assert f"expected a deployment in namespace {NAMESPACE}, got none; deploy it: navarch deploy" in missing.stderr


async def test_dry_run_prints_what_would_change(
    program: Program, where: tuple[str, str], http_cluster: Cluster
) -> None:
    """As a table for people, with a note that nothing was written."""
    told = program.run("deploy", "--dry-run", *where)
    assert told.returncode == 0
    rows = [line.split() for line in told.stdout.splitlines()]
    assert ["Deployment", NAMESPACE, DEPLOYMENT, "created", "-"] in rows
    assert "nothing was written: this was a dry run" in told.stderr
    assert program.json("deploy", "--dry-run", *where)["dryRun"] is True
    assert program.run("status", *where).returncode == 1


async def test_namespace_is_overridden_everywhere(
    program: Program, where: tuple[str, str], root: Path, http_cluster: Cluster
) -> None:
    """Also in subjects of bindings, and in the patches of the user; the files of the project stay as they are."""
    (root / "config/patches").mkdir()
    (root / "config/patches/team.yaml").write_text(
        f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n  labels: {{team: caches}}\n"
    )
    done = program.json("deploy", "--namespace", "shop", "--wait", "0", *where)
    assert done["namespace"] == "shop"
    assert {each["namespace"] for each in done["changes"]} == {"", "shop"}
    bindings = await http_cluster.list(ROLE_BINDINGS, namespace="shop")
    assert {subject["namespace"] for each in bindings for subject in each["subjects"]} == {"shop"}
    namespace = await http_cluster.get(Kind("", "v1", "Namespace", plural="namespaces", namespaced=False), "shop")
    assert namespace.labels["team"] == "caches"
    text = json.dumps(list(await http_cluster.list(DEPLOYMENTS, namespace="shop")))
    assert NAMESPACE not in text
    assert program.run("undeploy", "--yes", *where).returncode == 1
    assert program.run("undeploy", "--yes", "--namespace", "shop", *where).returncode == 0


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--image", "Registry/Cache:v1", "in lower case"),
        ("--image", "cache@sha256:12", "64 hexadecimal digits"),
        ("--namespace", "My_Space", "expected a DNS label"),
    ],
)
def test_invalid_options_are_answered_in_one_line(
    option: str, value: str, text: str, program: Program, root: Path
) -> None:
    """Before the cluster is asked anything."""
    told = program.run("deploy", option, value)
    assert told.returncode == 1
    assert told.stderr.startswith("error: ")
    assert text in told.stderr
    assert "Traceback" not in told.stderr


async def test_operator_that_does_not_work_is_one_error_with_its_cause(
    program: Program, where: tuple[str, str], http_cluster: Cluster
) -> None:
    """On a cluster without nodes; the exit code is 1, and status shows the failed revision."""
    program.run("deploy", "--wait", "0", *where)
    await http_cluster.eventually(
        lambda: http_cluster.list(PODS, namespace=NAMESPACE),
        lambda found: [each["status"]["conditions"][0]["reason"] for each in found] == ["Unschedulable"] * 2,
    )
    told = program.run("deploy", "--wait", "1", *where)
    assert told.returncode == 1
    assert "error: cache-operator: expected the operator to work within " in told.stderr
    assert "but 0 of 2 replicas are ready\nscheduling: Pod" in told.stderr
    assert f"applying Deployment {NAMESPACE}/{DEPLOYMENT}\n" in told.stderr
    assert "Traceback" not in told.stderr
    state = program.json("status", *where, returncode=1)
    assert [each["cause"] for each in state["faults"]] == ["scheduling"]
    assert {each["reason"] for each in state["warnings"]} == {"FailedScheduling"}


async def test_undeploy_asks_and_keeps_everything_without_a_yes(
    program: Program, where: tuple[str, str], http_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it has shown how many objects of which kinds there are."""
    program.run("deploy", "--wait", "0", *where)
    monkeypatch.setattr(sys, "stdin", _Terminal("n\n"))
    refused = program.run("undeploy", *where)
    assert refused.returncode == 1
    rows = [line.split() for line in refused.stderr.splitlines()]
    assert ["Deployment", "1"] in rows
    assert ["Namespace", "1"] in rows
    assert "nothing was deleted" in refused.stderr
    assert await http_cluster.get(DEPLOYMENTS, DEPLOYMENT, namespace=NAMESPACE)


async def test_ctrl_c_leaves_a_deployment_that_the_next_run_completes(
    program: Program, where: tuple[str, str], root: Path, http_cluster: Cluster
) -> None:
    """The command ends with 130, and says how to go on."""
    code, told = interrupted(root, "deploy", "--wait", "0", *where)
    assert code == 130
    assert told.endswith("interrupted; the next navarch deploy completes the deployment\n")
    assert program.json("status", *where, returncode=1)["state"] == "pending"
    done = program.json("deploy", "--wait", "0", *where)
    assert done["revision"] == 1
    assert program.json("status", *where, returncode=1)["state"] == "deployed"


async def test_built_image_is_loaded_into_an_embedded_cluster(program: Program, root: Path) -> None:
    """And named by its digest, so that a build under the same name rolls out; other clusters pull images themselves."""
    layout = Layout.create(root / "dist/image")
    layout.tag("controller:latest", add_image(layout, with_programs("sh"), entrypoint=["/bin/sh"]))
    digest = layout.names["controller:latest"].digest
    program.run("cluster", "up", "--name", "dev", "--nodes", "0")
    where = ("--kubeconfig", str(program.root / "dev" / "kubeconfig"))
    assert program.json("deploy", "--dry-run", *where)["image"] == f"controller:latest@{digest}"
    listed = program.json("cluster", "image", "list", "--name", "dev")
    assert not [row for row in listed if row["from"] == "loaded"]
    done = program.json("deploy", "--wait", "0", *where)
    assert done["image"] == f"controller:latest@{digest}"
    listed = program.json("cluster", "image", "list", "--name", "dev")
    assert [row["image"] for row in listed if row["from"] == "loaded"] == ["docker.io/library/controller:latest"]
    assert program.json("deploy", "--image", "other:v1", "--wait", "0", *where)["image"] == "other:v1"


def interrupted(root: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of the command, and the rest of what it prints, after Ctrl-C while it applies objects."""
    with subprocess.Popen(
        [sys.executable, "-m", "navarch", *arguments],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - it calls one function of C
    ) as process:
        assert process.stderr is not None
        try:
            while "applying ServiceAccount" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            return process.wait(timeout=60), process.stderr.read()
        finally:
            process.kill()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
