"""`navarch migrate` rewrites stored objects, and reports to people and to programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.programs import Program
from navarch import Resource, Spec, Status
from navarch.api import Dynamic
from navarch.schema import crd
from navarch.testing import Cluster


class ShelfSpec(Spec):
    boards: int = 1


class FirstShelf(Resource[ShelfSpec, Status], group="shelves.example.com", version="v1alpha1", kind="Shelf"): ...


class OldShelf(
    Resource[ShelfSpec, Status], group="shelves.example.com", version="v1alpha1", kind="Shelf", storage=False
): ...


class Shelf(Resource[ShelfSpec, Status], group="shelves.example.com", version="v1"): ...


NAME = Shelf.__kind__.resource


@pytest.fixture
async def kubeconfig(http_cluster: Cluster, tmp_path: Path) -> str:
    """A cluster with two objects in an old version."""
    await http_cluster.client.install(crd(FirstShelf))
    for name in ("a", "b"):
        await http_cluster.create(FirstShelf(name=name))
    await http_cluster.client.install(crd(OldShelf, Shelf))
    file = tmp_path / "kubeconfig"
    assert http_cluster.access is not None
    file.write_bytes(http_cluster.access.kubeconfig_file())
    return str(file)


def test_programs_get_json(program: Program, kubeconfig: str) -> None:
    """First what would happen, then what happened; a second run has nothing to do."""
    arguments = ("migrate", "Shelf", "--kubeconfig", kubeconfig)
    (tried,) = program.json(*arguments, "--dry-run")
    assert (tried["crd"], tried["version"], tried["oldVersions"]) == (NAME, "v1", ["v1alpha1"])
    assert (tried["completed"], tried["failed"], tried["failures"]) == (False, 0, [])
    (done,) = program.json(*arguments)
    assert (done["rewritten"], done["completed"]) == (2, True)
    (again,) = program.json(*arguments)
    assert (again["rewritten"], again["unchanged"], again["completed"], again["oldVersions"]) == (0, 0, True, [])


def test_people_get_a_table(program: Program, kubeconfig: str) -> None:
    """One row for each CRD, with the versions in which objects may be stored then."""
    result = program.run("migrate", NAME, "--kubeconfig", kubeconfig, "--rate", "1000")
    assert result.returncode == 0, result.stderr
    assert [line.split() for line in result.stdout.splitlines()][1] == [NAME, "v1", "2", "0", "0", "0", "0", "v1"]


def test_unknown_kind_is_refused_with_those_that_there_are(program: Program, kubeconfig: str) -> None:
    """In one sentence."""
    result = program.run("migrate", "Cupboard", "--kubeconfig", kubeconfig)
    assert result.returncode == 1
    assert f"expected one CRD called 'Cupboard', got none; there are {NAME}" in result.stderr


async def test_object_that_is_refused_makes_the_command_fail(
    program: Program, kubeconfig: str, http_cluster: Cluster
) -> None:
    """With its name and the cause; the other one is rewritten, and the old version stays."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-b"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["shelves.example.com"],
                        "apiVersions": ["*"],
                        "operations": ["UPDATE"],
                        "resources": [Shelf.__kind__.plural],
                    }
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'b'", "message": "b is not to be touched"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-b"},
        "spec": {"policyName": "no-b", "validationActions": ["Deny"]},
    }
    for manifest in (policy, binding):
        await http_cluster.create(Dynamic(manifest))
    result = program.run("migrate", NAME, "--kubeconfig", kubeconfig, "--output", "json")
    assert result.returncode == 1
    (state,) = json.loads(result.stdout)
    assert (state["rewritten"], state["failed"], state["completed"]) == (1, 1, False)
    assert "b is not to be touched" in state["failures"][0]
    assert "objects that could not be rewritten: 1; repair them and migrate again" in result.stderr
