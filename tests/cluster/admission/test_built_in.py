"""Built-in parts of admission, where the recorded answers do not reach."""

from __future__ import annotations

from typing import Any

from cluster.admission.engines import MERGE, Ours, ours

Json = dict[str, Any]
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_PODS = "/api/v1/namespaces/default/pods"


async def _claim(engine: Ours, name: str) -> None:
    await engine.make(_CLASSES, "storage.k8s.io/v1", "StorageClass", name, provisioner="x/y", **_growing(name))
    spec: Json = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "volumeName": f"pv-{name}"}
    spec |= {"resources": {"requests": {"storage": "1Gi"}}}
    await engine.make(_CLAIMS, "v1", "PersistentVolumeClaim", name, spec=spec)
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert (await engine.ask("PATCH", f"{_CLAIMS}/{name}/status", bound, media_type=MERGE)).code == 200


def _growing(name: str) -> Json:
    return {"allowVolumeExpansion": True} if name == "growing" else {}


async def test_a_claim_grows_only_if_its_class_says_so() -> None:
    """A claim grows only if its StorageClass allows expansion; the error is the real one."""
    larger = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    async with ours() as engine:
        for name in ("growing", "fixed"):
            await _claim(engine, name)
        assert (await engine.ask("PATCH", f"{_CLAIMS}/growing", larger, media_type=MERGE)).code == 200
        refused = await engine.ask("PATCH", f"{_CLAIMS}/fixed", larger, media_type=MERGE)
    assert refused.code == 403
    assert refused.body["message"] == (
        'persistentvolumeclaims "fixed" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize"
    )


async def test_mirror_pods_have_no_account() -> None:
    """Mirror pods, which come from files on a node, get no service account and no secrets."""
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    spec: Json = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n"}
    async with ours() as engine:
        with_account = {"metadata": {"name": "a", **metadata}, "spec": {**spec, "serviceAccountName": "default"}}
        refused = await engine.ask("POST", _PODS, {"apiVersion": "v1", "kind": "Pod", **with_account})
        without = {"metadata": {"name": "b", **metadata}, "spec": spec}
        made = await engine.ask("POST", _PODS, {"apiVersion": "v1", "kind": "Pod", **without})
    assert refused.body["message"] == 'pods "a" is forbidden: a mirror pod may not reference service accounts'
    assert made.code == 201, made.body
    assert "volumes" not in made.body["spec"]


async def test_an_update_keeps_the_priority_that_it_does_not_mention() -> None:
    """An update without the priority keeps the stored one."""
    value: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    value["spec"] = {"containers": [{"name": "c", "image": "x"}], "priorityClassName": "system-node-critical"}
    async with ours() as engine:
        made = (await engine.ask("POST", _PODS, value)).body
        for field in ("priority", "preemptionPolicy"):
            del made["spec"][field]
        made["metadata"]["labels"] = {"a": "b"}
        updated = await engine.ask("PUT", f"{_PODS}/a", made)
    assert updated.code == 200, updated.body
    assert updated.body["spec"]["priority"] == 2_000_001_000
