"""What an operator does with its CRDs when it starts."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from navarch.api import Resource, Spec, Status
from navarch.errors import Conflict, CrdError, Forbidden, InvalidValueError, MissingPermissionsError
from navarch.operator.crds import prepare_crds
from navarch.schema import crd
from scripted import Scripted, ScriptedTransport, answer, refusal, scripted


class CacheSpec(Spec):
    size: int = 1
    """How many."""


class Cache(Resource[CacheSpec, Status], group="crds.example.com", version="v1"):
    """A cache."""


class OldCache(Cache, version="v1alpha1", storage=False): ...


class Disk(Resource[CacheSpec, None], group="crds.example.com", version="v1", namespaced=False):
    """A disk."""


DISCOVERED = answer(
    {
        "kind": "APIResourceList",
        "groupVersion": "apiextensions.k8s.io/v1",
        "resources": [
            {
                "name": "customresourcedefinitions",
                "kind": "CustomResourceDefinition",
                "namespaced": False,
                "verbs": ["get"],
            }
        ],
    }
)
SERVED = answer({"kind": "CacheList", "apiVersion": "crds.example.com/v1", "items": []})
MISSING = refusal(404, "NotFound")
NOTHING_OF_THAT_GROUP = Scripted(404, [b"404 page not found\n"])


def in_cluster(*versions: type[Any], established: bool = True, manager: str = "kubectl") -> dict[str, Any]:
    """The CRD as the server shows it."""
    found = crd(*versions)
    found["spec"]["conversion"] = {"strategy": "None"}
    found["metadata"]["resourceVersion"] = "7"
    owned: dict[str, Any] = {"f:spec": {"f:versions": {}}}
    found["metadata"]["managedFields"] = [{"manager": manager, "operation": "Apply", "fieldsV1": owned}]
    found["status"] = {
        "conditions": [{"type": "Established", "status": "True" if established else "False"}],
        "storedVersions": [version.__kind__.version for version in versions if version.__declaration__.storage],
    }
    return found


def methods(transport: ScriptedTransport) -> list[str]:
    return [request.method for request in transport.requests]


def applied(transport: ScriptedTransport) -> dict[str, Any]:
    """The CRD that was sent."""
    (request,) = [request for request in transport.requests if request.method == "PATCH"]
    assert request.body is not None
    found: dict[str, Any] = json.loads(request.body)
    return found


# Installing


async def test_install_applies_a_missing_crd_and_waits_until_it_is_served() -> None:
    """In the name of the operator."""
    client, transport = scripted(
        MISSING, DISCOVERED, answer(in_cluster(Cache)), NOTHING_OF_THAT_GROUP, SERVED, manager="caches"
    )
    await prepare_crds(client, [Cache], "install")
    assert applied(transport)["spec"] == crd(Cache)["spec"]
    assert (
        next(request for request in transport.requests if request.method == "PATCH").query["fieldManager"] == "caches"
    )
    assert not transport.script


async def test_install_makes_one_crd_of_several_versions() -> None:
    """And asks for each class once."""
    client, transport = scripted(MISSING, DISCOVERED, answer(in_cluster(OldCache, Cache)), SERVED, SERVED)
    await prepare_crds(client, [OldCache, Cache, Cache], "install")
    assert [version["name"] for version in applied(transport)["spec"]["versions"]] == ["v1alpha1", "v1"]


async def test_install_writes_nothing_if_the_cluster_has_the_same() -> None:
    """Whatever the server added, in whatever order, and whoever brought it."""
    found = in_cluster(OldCache, Cache)
    found["spec"]["versions"].reverse()
    found["metadata"]["labels"] = {"team": "a"}
    client, transport = scripted(answer(found))
    await prepare_crds(client, [OldCache, Cache], "install")
    assert methods(transport) == ["GET"]


@pytest.mark.parametrize("place", ["schema", "column", "name"])
async def test_install_writes_what_differs(place: str) -> None:
    """Be it the smallest part; and only on top of what was looked at."""
    found = in_cluster(Cache, manager="caches")
    version = found["spec"]["versions"][0]
    if place == "schema":
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["minimum"] = 1
    elif place == "column":
        version["additionalPrinterColumns"] = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    else:
        found["spec"]["names"]["shortNames"] = ["c"]
    client, transport = scripted(answer(found), DISCOVERED, answer(in_cluster(Cache)), SERVED, manager="caches")
    await prepare_crds(client, [Cache], "install")
    assert applied(transport)["spec"] == crd(Cache)["spec"]
    assert applied(transport)["metadata"]["resourceVersion"] == "7"


class LargerSpec(CacheSpec):
    policy: str = "lru"


class LargerCache(Resource[LargerSpec, Status], group="crds.example.com", version="v1", kind="Cache"):
    """A cache of a newer release."""


class OtherCache(Resource[LargerSpec, Status], group="crds.example.com", version="v1", kind="Cache", namespaced=False):
    """A cache of another scope."""


def stricter() -> dict[str, Any]:
    """A CRD that allows more than the class does."""
    found = in_cluster(Cache, manager="caches")
    size = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
    size |= {"type": "number"}
    return found


@pytest.mark.parametrize(
    ("found", "loss"),
    [
        (in_cluster(LargerCache, manager="caches"), "v1 spec.policy: the property is removed"),
        (in_cluster(OtherCache, manager="caches"), "scope: was Cluster, becomes Namespaced"),
        (stricter(), "v1 spec.size: type was number, becomes integer"),
    ],
    ids=["property", "scope", "type"],
)
async def test_install_refuses_a_change_that_breaks_objects_and_force_makes_it(
    found: dict[str, Any], loss: str
) -> None:
    """Also of a CRD of its own; what would be lost is listed, and nothing is written."""
    client, transport = scripted(answer(found), manager="caches")
    with pytest.raises(CrdError) as caught:
        await prepare_crds(client, [Cache], "install")
    assert f"\n  {loss}" in str(caught.value)
    assert 'crds="force"' in str(caught.value)
    assert methods(transport) == ["GET"]
    client, transport = scripted(answer(found), DISCOVERED, answer(in_cluster(Cache)), SERVED, manager="caches")
    await prepare_crds(client, [Cache], "force")
    assert applied(transport)["spec"] == crd(Cache)["spec"]


async def test_install_leaves_a_crd_of_another_manager_alone_and_force_takes_it_over() -> None:
    """Even where nothing would be lost: that manager would put it back."""
    client, transport = scripted(answer(in_cluster(Cache, manager="helm")), manager="caches")
    with pytest.raises(CrdError, match=r"but helm applied it(.|\n)*v1 spec.policy: the property is new(.|\n)*force"):
        await prepare_crds(client, [LargerCache], "install")
    assert methods(transport) == ["GET"]
    served = (DISCOVERED, answer(in_cluster(LargerCache)), SERVED)
    client, transport = scripted(answer(in_cluster(Cache, manager="helm")), *served, manager="caches")
    await prepare_crds(client, [LargerCache], "force")
    assert applied(transport)["spec"] == crd(LargerCache)["spec"]


class OldLargerCache(LargerCache, version="v1alpha1", storage=False): ...


async def test_install_refuses_versions_that_lose_fields_and_force_brings_them() -> None:
    """Nothing converts them, unless the cluster has a webhook that does."""
    client, transport = scripted(MISSING)
    with pytest.raises(
        CrdError, match=r"(.|\n)*v1alpha1 spec.policy: a write as v1 removes it(.|\n)*@operator.convert"
    ):
        await prepare_crds(client, [OldLargerCache, Cache], "install")
    assert methods(transport) == ["GET"]
    served = (DISCOVERED, answer(in_cluster(OldLargerCache, Cache)), SERVED, SERVED)
    client, transport = scripted(MISSING, *served)
    await prepare_crds(client, [OldLargerCache, Cache], "force")
    assert not transport.script
    converted = in_cluster(OldCache, Cache, manager="caches")
    converted["spec"]["conversion"] = {"strategy": "Webhook"}
    client, transport = scripted(answer(converted), *served, manager="caches")
    await prepare_crds(client, [OldLargerCache, Cache], "install")
    assert not transport.script


async def test_install_waits_for_a_crd_that_another_replica_has_just_brought() -> None:
    """It is the same, but not served yet."""
    client, transport = scripted(
        answer(in_cluster(Cache, established=False)), DISCOVERED, answer(in_cluster(Cache)), MISSING, SERVED
    )
    await prepare_crds(client, [Cache], "install")
    assert not transport.script


async def test_install_needs_no_right_to_list_all_objects() -> None:
    """An operator of one namespace learns from discovery that its kind is served."""
    forbidden, kind = refusal(403, "Forbidden"), {"name": "caches", "kind": "Cache", "namespaced": True, "verbs": []}
    served = answer({"kind": "APIResourceList", "groupVersion": "crds.example.com/v1", "resources": [kind]})
    unserved = answer({"kind": "APIResourceList", "groupVersion": "crds.example.com/v1", "resources": []})
    client, transport = scripted(
        *(MISSING, DISCOVERED, answer(in_cluster(Cache)), forbidden, NOTHING_OF_THAT_GROUP),
        *(forbidden, unserved, forbidden, served),
    )
    await prepare_crds(client, [Cache], "install")
    assert not transport.script


async def test_install_looks_again_after_a_conflict() -> None:
    """Another replica was faster: there is nothing left to write."""
    client, transport = scripted(MISSING, DISCOVERED, refusal(409, "Conflict"), answer(in_cluster(Cache)))
    await prepare_crds(client, [Cache], "install")
    assert methods(transport) == ["GET", "GET", "PATCH", "GET"]


async def test_install_gives_up_after_many_conflicts() -> None:
    """Rather than try for ever."""
    once = [MISSING, refusal(409, "Conflict")]
    client, transport = scripted(MISSING, DISCOVERED, *once[1:], *once * 9)
    with pytest.raises(Conflict):
        await prepare_crds(client, [Cache], "install")
    assert not transport.script


async def test_install_does_not_remove_a_version_in_which_objects_are_stored() -> None:
    """As the CRD of a newer operator has it; nothing is written."""
    found = in_cluster(OldCache, Cache, manager="navarch")
    found["status"]["storedVersions"] = ["v1alpha1", "v1"]
    client, transport = scripted(answer(found))
    with pytest.raises(
        CrdError, match=r"caches.crds.example.com: .* still be stored as v1alpha1; keep the classes"
    ) as caught:
        await prepare_crds(client, [Cache], "install")
    assert "navarch migrate caches.crds.example.com" in str(caught.value)
    assert methods(transport) == ["GET"]


async def test_install_does_not_remove_a_version_that_somebody_else_serves() -> None:
    """The version is named, and the way out."""
    client, transport = scripted(answer(in_cluster(OldCache, Cache, manager="helm")))
    with pytest.raises(CrdError, match=r"v1alpha1: the version is no longer served(.|\n)*force"):
        await prepare_crds(client, [Cache], "install")
    assert methods(transport) == ["GET"]


async def test_install_removes_a_version_of_an_earlier_release() -> None:
    """Its own, in which no object is stored."""
    found = in_cluster(OldCache, Cache, manager="caches")
    client, transport = scripted(answer(found), DISCOVERED, answer(in_cluster(Cache)), SERVED, manager="caches")
    await prepare_crds(client, [Cache], "install")
    assert [version["name"] for version in applied(transport)["spec"]["versions"]] == ["v1"]


async def test_install_does_not_write_to_a_crd_that_is_being_deleted() -> None:
    """It would go with it."""
    found = in_cluster(Cache)
    found["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    client, _ = scripted(answer(found))
    with pytest.raises(CrdError, match="being deleted"):
        await prepare_crds(client, [Cache], "install")


def review(*, allowed: bool) -> Scripted:
    status = {"allowed": allowed}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    return answer({**kind, "metadata": {}, "spec": {}, "status": status}, 201)


async def test_forbidden_names_the_permission_that_is_missing() -> None:
    """With a role that grants it."""
    reviews = [review(allowed=False), review(allowed=True), review(allowed=True)]  # create, get, patch
    client, _ = scripted(MISSING, DISCOVERED, refusal(403, "Forbidden"), *reviews, refusal(404, "NotFound"))
    with pytest.raises(MissingPermissionsError) as caught:
        await prepare_crds(client, [Cache], "install")
    assert "customresourcedefinitions.apiextensions.k8s.io  create\n" in str(caught.value)
    assert "kind: ClusterRole" in str(caught.value)


async def test_forbidden_for_another_reason_stays_as_it_is() -> None:
    """A policy may refuse what RBAC allows."""
    client, _ = scripted(refusal(403, "Forbidden", "denied by a policy"), review(allowed=True))
    with pytest.raises(Forbidden, match="denied by a policy"):
        await prepare_crds(client, [Cache], "verify")


# Verifying


async def test_verify_is_content_with_the_same_crd(caplog: pytest.LogCaptureFixture) -> None:
    """It reads, and says nothing; descriptions do not count."""
    found = in_cluster(OldCache, Cache)
    found["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "Something else."
    client, transport = scripted(answer(found))
    await prepare_crds(client, [OldCache, Cache], "verify")
    assert methods(transport) == ["GET"]
    assert not caplog.records


async def test_verify_names_all_crds_that_are_missing() -> None:
    """Not only the first, and what to do."""
    client, _ = scripted(MISSING, NOTHING_OF_THAT_GROUP, MISSING, NOTHING_OF_THAT_GROUP)
    with pytest.raises(CrdError) as caught:
        await prepare_crds(client, [OldCache, Cache, Disk], "verify")
    text = str(caught.value)
    assert "caches.crds.example.com (Cache v1alpha1, Cache v1), disks.crds.example.com (Disk v1)" in text
    assert 'crds="install"' in text


async def test_verify_tells_a_wrong_plural_from_a_missing_crd() -> None:
    """The server serves the kind under another name."""
    served = {"name": "cachen", "kind": "Cache", "namespaced": True, "verbs": ["get"]}
    group = {"kind": "APIResourceList", "groupVersion": "crds.example.com/v1", "resources": [served]}
    client, _ = scripted(MISSING, answer(group))
    with pytest.raises(CrdError, match="expected plural caches, got cachen; write plural='cachen'"):
        await prepare_crds(client, [Cache], "verify")


async def test_verify_names_everything_that_does_not_fit() -> None:
    """Of all CRDs at once."""
    cache, disk = in_cluster(Cache), in_cluster(Disk)
    cache["spec"]["scope"] = "Cluster"
    del cache["spec"]["versions"][0]["subresources"]
    disk["spec"]["names"]["kind"] = "Disc"
    disk["spec"]["versions"][0]["name"] = "v2"
    client, _ = scripted(answer(cache), answer(disk))
    with pytest.raises(CrdError) as caught:
        await prepare_crds(client, [Cache, Disk], "verify")
    assert str(caught.value).splitlines()[1:-1] == [
        "  caches.crds.example.com: expected scope Namespaced, got Cluster",
        "  caches.crds.example.com: expected version v1 to have the subresource status, got none",
        "  disks.crds.example.com: expected kind Disk, got Disc",
        "  disks.crds.example.com: expected version v1 to be served, got v2",
    ]


async def test_verify_refuses_a_version_that_is_there_but_not_served() -> None:
    """Nobody could read it."""
    found = in_cluster(OldCache, Cache)
    found["spec"]["versions"][1]["served"] = False
    client, _ = scripted(answer(found))
    with pytest.raises(CrdError, match="expected version v1 to be served, got v1alpha1"):
        await prepare_crds(client, [OldCache, Cache], "verify")


async def test_verify_refuses_names_that_another_crd_has() -> None:
    """Such a CRD is there, but serves nothing."""
    found = in_cluster(Cache)
    found["status"]["conditions"] = [{"type": "NamesAccepted", "status": "False", "message": '"caches" is taken'}]
    client, _ = scripted(answer(found))
    with pytest.raises(CrdError, match='its names are not accepted: "caches" is taken'):
        await prepare_crds(client, [Cache], "verify")


async def test_verify_warns_of_another_schema_and_says_where(caplog: pytest.LogCaptureFixture) -> None:
    """A release apart is no reason not to start."""
    found = in_cluster(Cache)
    del found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
    client, _ = scripted(answer(found))
    with caplog.at_level(logging.WARNING):
        await prepare_crds(client, [Cache], "verify")
    (record,) = caplog.records
    fields: dict[str, str] = vars(record)["fields"]
    assert fields["crd"] == "caches.crds.example.com"
    assert fields["differs_at"] == "properties.spec.properties.size"


async def test_verify_does_without_the_version_that_is_stored(caplog: pytest.LogCaptureFixture) -> None:
    """An operator may know one version only; the schema is then not compared, which is said."""
    client, _ = scripted(answer(in_cluster(OldCache, Cache)))
    await prepare_crds(client, [OldCache], "verify")
    assert [vars(record)["event"] for record in caplog.records] == ["cannot compare the schema of a CRD"]


# Neither


async def test_ignore_asks_nothing() -> None:
    """Not even whether they are there."""
    client, transport = scripted()
    await prepare_crds(client, [Cache], "ignore")
    assert not transport.requests


async def test_unknown_policy_is_refused() -> None:
    """A typo must not mean anything."""
    client, _ = scripted()
    with pytest.raises(
        InvalidValueError, match="expected crds to be one of install, force, verify, ignore, got 'instal'"
    ):
        await prepare_crds(client, [Cache], "instal")  # type: ignore[arg-type]


def test_schemas_are_imported_only_when_they_are_needed() -> None:
    """An operator that ignores CRDs starts without them."""
    code = "import sys, navarch.operator.crds; sys.exit('navarch.schema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
