"""`kubernetes`, the official client: its typed API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client as k8s
from kubernetes import config as k8s_config
from kubernetes import utils
from kubernetes.client import exceptions
from kubernetes.config.incluster_config import InClusterConfigLoader

from conformance.clients.mounting import Mount

MINE = {"suite": "clients"}


@pytest.fixture
def core(api: k8s.ApiClient) -> k8s.CoreV1Api:
    return k8s.CoreV1Api(api)


def config_map(name: str, **data: str) -> k8s.V1ConfigMap:
    return k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name, labels=MINE), data=data)


def deployment(name: str, image: str = "nginx:1") -> k8s.V1Deployment:
    container = k8s.V1Container(name="web", image=image, ports=[k8s.V1ContainerPort(container_port=80)])
    template = k8s.V1PodTemplateSpec(
        metadata=k8s.V1ObjectMeta(labels={"app": name}), spec=k8s.V1PodSpec(containers=[container])
    )
    selector = k8s.V1LabelSelector(match_labels={"app": name})
    return k8s.V1Deployment(
        metadata=k8s.V1ObjectMeta(name=name),
        spec=k8s.V1DeploymentSpec(replicas=2, selector=selector, template=template),
    )


def body_of(error: exceptions.ApiException) -> dict[str, Any]:
    """The Status that came with the refusal."""
    found = json.loads(error.body)
    assert found["kind"] == "Status"
    assert found["status"] == "Failure"
    assert found["code"] == error.status
    return dict(found)


def test_official_client_logs_in(kubeconfig: str, certificate_kubeconfig: str) -> None:
    """With a token and with a client certificate."""
    for file in (kubeconfig, certificate_kubeconfig):
        with k8s_config.new_client_from_config(file) as api:
            review = k8s.AuthenticationV1Api(api).create_self_subject_review(k8s.V1SelfSubjectReview())
            assert "system:masters" in review.status.user_info.groups
            assert k8s.VersionApi(api).get_code().git_version == "v1.36.4"


def test_official_client_finds_the_cluster_from_inside(mount: Mount, namespace: str) -> None:
    """By the token, the authority and the environment of a pod; it is the ServiceAccount then."""
    inside = k8s.Configuration()
    InClusterConfigLoader(mount.token, mount.authority, environ=mount.environment).load_and_set(inside)
    with k8s.ApiClient(inside) as api:
        review = k8s.AuthenticationV1Api(api).create_self_subject_review(k8s.V1SelfSubjectReview())
        assert review.status.user_info.username == f"system:serviceaccount:{namespace}:robot"
        with pytest.raises(exceptions.ForbiddenException) as caught:
            k8s.CoreV1Api(api).list_namespaced_secret(namespace)
    assert body_of(caught.value)["details"] == {"kind": "secrets"}


def test_official_client_goes_through_the_life_of_an_object(core: k8s.CoreV1Api, namespace: str) -> None:
    """Created, read, replaced, deleted, and gone."""
    made = core.create_namespaced_config_map(namespace, config_map("a", colour="red"))
    assert made.metadata.uid
    made.data["colour"] = "blue"
    replaced = core.replace_namespaced_config_map("a", namespace, made)
    assert core.read_namespaced_config_map("a", namespace).data == {"colour": "blue"}
    assert int(replaced.metadata.resource_version) > int(made.metadata.resource_version)
    core.delete_namespaced_config_map("a", namespace)
    with pytest.raises(exceptions.NotFoundException) as caught:
        core.read_namespaced_config_map("a", namespace)
    assert body_of(caught.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 404,
    }


def test_official_client_is_told_what_is_wrong(core: k8s.CoreV1Api, namespace: str) -> None:
    """The class of the exception and the causes in its body say it."""
    made = core.create_namespaced_config_map(namespace, config_map("a"))
    with pytest.raises(exceptions.ConflictException) as caught:
        core.create_namespaced_config_map(namespace, config_map("a"))
    assert body_of(caught.value)["reason"] == "AlreadyExists"
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
    with pytest.raises(exceptions.ConflictException) as caught:
        core.replace_namespaced_config_map("a", namespace, made)
    assert body_of(caught.value)["reason"] == "Conflict"
    with pytest.raises(exceptions.UnprocessableEntityException) as caught:
        core.create_namespaced_config_map(namespace, config_map("Not_A_Name"))
    assert [cause["field"] for cause in body_of(caught.value)["details"]["causes"]] == ["metadata.name"]
    with pytest.raises(exceptions.UnprocessableEntityException) as caught:
        core.patch_namespaced_config_map("a", namespace, {"dta": {}}, field_validation="Strict")
    assert 'unknown field "dta"' in body_of(caught.value)["message"]


def test_official_client_with_a_wrong_token_is_nobody(kubeconfig: str) -> None:
    """Not even anonymous."""
    wrong = yaml.safe_load(Path(kubeconfig).read_text())
    wrong["users"][0]["user"] = {"token": "nobody"}
    with (
        k8s_config.new_client_from_config_dict(wrong) as api,
        pytest.raises(exceptions.UnauthorizedException) as caught,
    ):
        k8s.CoreV1Api(api).list_namespace()
    assert body_of(caught.value)["reason"] == "Unauthorized"


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
        ("application/merge-patch+json", {"spec": {"replicas": 5}}),
        ("application/strategic-merge-patch+json", {"spec": {"replicas": 5}}),
        (None, {"spec": {"replicas": 5}}),
        (None, [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
    ],
)
def test_official_client_patches(api: k8s.ApiClient, namespace: str, content_type: str | None, patch: Any) -> None:
    """In every form that it knows, named or guessed from the body."""
    apps = k8s.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("web"))
    patched = apps.patch_namespaced_deployment("web", namespace, patch, _content_type=content_type)
    assert patched.spec.replicas == 5
    assert patched.metadata.generation == 2


def test_official_client_applies(api: k8s.ApiClient, namespace: str) -> None:
    """As a manager of fields: refused where another one is, unless forced; what is left out goes."""
    apps, wanted = k8s.AppsV1Api(api), api.sanitize_for_serialization(deployment("web"))
    wanted |= {"apiVersion": "apps/v1", "kind": "Deployment"}

    def apply(manager: str, **options: Any) -> k8s.V1Deployment:
        return apps.patch_namespaced_deployment(
            "web", namespace, wanted, field_manager=manager, _content_type="application/apply-patch+yaml", **options
        )

    assert apply("first").spec.replicas == 2
    wanted["spec"]["replicas"] = 3
    with pytest.raises(exceptions.ConflictException) as caught:
        apply("second")
    assert body_of(caught.value)["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".spec.replicas"}
    ]
    forced = apply("second", force=True)
    assert forced.spec.replicas == 3
    assert {"first", "second"} <= {entry.manager for entry in forced.metadata.managed_fields}


def test_official_client_lists_in_pages_and_by_selectors(core: k8s.CoreV1Api, namespace: str) -> None:
    """Every object once, and only those asked for."""
    for name in "abcde":
        core.create_namespaced_config_map(namespace, config_map(name))
    page = core.list_namespaced_config_map(namespace, label_selector="suite=clients", limit=2)
    names = [each.metadata.name for each in page.items]
    while page.metadata._continue:
        page = core.list_namespaced_config_map(
            namespace, label_selector="suite=clients", limit=2, _continue=page.metadata._continue
        )
        names += [each.metadata.name for each in page.items]
    assert names == list("abcde")
    by_name = core.list_namespaced_config_map(namespace, field_selector="metadata.name=c")
    assert [each.metadata.name for each in by_name.items] == ["c"]
    everywhere = core.list_config_map_for_all_namespaces(label_selector="suite in (clients),other notin (x)")
    assert {each.metadata.name for each in everywhere.items if each.metadata.namespace == namespace} == set("abcde")


def test_official_client_deletes_as_it_is_asked_to(core: k8s.CoreV1Api, namespace: str) -> None:
    """With options, with preconditions, and many at once."""
    for name in "abc":
        core.create_namespaced_config_map(namespace, config_map(name))
    options = k8s.V1DeleteOptions(preconditions=k8s.V1Preconditions(uid="another"))
    with pytest.raises(exceptions.ConflictException):
        core.delete_namespaced_config_map("a", namespace, body=options)
    core.delete_namespaced_config_map("a", namespace, dry_run="All")
    core.patch_namespaced_config_map("b", namespace, {"metadata": {"finalizers": ["example.com/wait"]}})
    core.delete_collection_namespaced_config_map(
        namespace, label_selector="suite=clients", body=k8s.V1DeleteOptions(propagation_policy="Background")
    )
    left = core.list_namespaced_config_map(namespace, label_selector="suite=clients").items
    assert [(each.metadata.name, bool(each.metadata.deletion_timestamp)) for each in left] == [("b", True)]
    core.patch_namespaced_config_map("b", namespace, {"metadata": {"finalizers": None}})
    assert core.list_namespaced_config_map(namespace, label_selector="suite=clients").items == []


def test_official_client_writes_status(core: k8s.CoreV1Api, namespace: str) -> None:
    """Replaced or patched, and nothing but the status."""
    made = core.create_namespaced_service(
        namespace,
        k8s.V1Service(
            metadata=k8s.V1ObjectMeta(name="web"),
            spec=k8s.V1ServiceSpec(type="LoadBalancer", ports=[k8s.V1ServicePort(port=80)]),
        ),
    )
    ingress = k8s.V1LoadBalancerIngress(hostname="web.example.com")
    made.status, made.spec.ports[0].port = (
        k8s.V1ServiceStatus(load_balancer=k8s.V1LoadBalancerStatus(ingress=[ingress])),
        81,
    )
    written = core.replace_namespaced_service_status("web", namespace, made)
    assert written.status.load_balancer.ingress[0].hostname == "web.example.com"
    assert written.spec.ports[0].port == 80
    patch = {
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Test",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        }
    }
    patched = core.patch_namespaced_service_status("web", namespace, patch)
    assert patched.status.conditions[0].last_transition_time.year == 2026


def test_official_client_scales(api: k8s.ApiClient, namespace: str) -> None:
    """By the subresource, which changes the replicas and nothing else."""
    apps = k8s.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("web"))
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert scaled.spec.replicas == 4
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 4


def test_official_client_asks_about_access(api: k8s.ApiClient, core: k8s.CoreV1Api, namespace: str) -> None:
    """Tokens of ServiceAccounts, whose they are, and what they may."""
    account = k8s.V1ServiceAccount(metadata=k8s.V1ObjectMeta(name="robot"))
    core.create_namespaced_service_account(namespace, account)
    request = k8s.AuthenticationV1TokenRequest(spec=k8s.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("robot", namespace, request).status.token
    review = k8s.V1TokenReview(spec=k8s.V1TokenReviewSpec(token=token))
    user = k8s.AuthenticationV1Api(api).create_token_review(review).status.user
    assert user.username == f"system:serviceaccount:{namespace}:robot"
    may = k8s.V1ResourceAttributes(namespace=namespace, verb="delete", resource="pods")
    own = k8s.V1SelfSubjectAccessReview(spec=k8s.V1SelfSubjectAccessReviewSpec(resource_attributes=may))
    theirs = k8s.V1SubjectAccessReview(spec=k8s.V1SubjectAccessReviewSpec(user=user.username, resource_attributes=may))
    access = k8s.AuthorizationV1Api(api)
    assert access.create_self_subject_access_review(own).status.allowed
    assert not access.create_subject_access_review(theirs).status.allowed
    rules = k8s.V1SelfSubjectRulesReview(spec=k8s.V1SelfSubjectRulesReviewSpec(namespace=namespace))
    found = access.create_self_subject_rules_review(rules).status.resource_rules
    assert any(rule.verbs == ["*"] and rule.resources == ["*"] for rule in found)


def test_official_client_creates_what_stands_in_a_file(
    api: k8s.ApiClient, core: k8s.CoreV1Api, namespace: str, tmp_path: Path
) -> None:
    """Several documents of several kinds, created and applied."""
    file = tmp_path / "all.yaml"
    file.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n---\n"
        "apiVersion: v1\nkind: List\nitems:\n"
        "- apiVersion: v1\n  kind: Service\n  metadata: {name: b}\n  spec: {ports: [{port: 80}]}\n"
    )
    utils.create_from_yaml(api, str(file), namespace=namespace)
    assert core.read_namespaced_service("b", namespace).spec.ports[0].target_port == 80
    with pytest.raises(utils.FailToCreateError, match="AlreadyExists"):
        utils.create_from_yaml(api, str(file), namespace=namespace)
    utils.create_from_yaml(api, str(file), namespace=namespace, apply=True)
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "v"}
