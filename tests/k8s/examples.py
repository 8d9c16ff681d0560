"""One object of each kind that operators meet, made with the typed classes."""

from __future__ import annotations

from datetime import UTC, datetime

from navarch.api import Object, ObjectMeta
from navarch.api.quantity import Quantity
from navarch.api.times import MicroTime
from navarch.k8s.apiextensions import v1 as apiextensions
from navarch.k8s.apps import v1 as apps
from navarch.k8s.autoscaling import v2 as autoscaling
from navarch.k8s.batch import v1 as batch
from navarch.k8s.coordination import v1 as coordination
from navarch.k8s.core import v1 as core
from navarch.k8s.discovery import v1 as discovery
from navarch.k8s.events import v1 as events
from navarch.k8s.meta import v1 as meta
from navarch.k8s.networking import v1 as networking
from navarch.k8s.policy import v1 as policy
from navarch.k8s.rbac import v1 as rbac
from navarch.k8s.scheduling import v1 as scheduling
from navarch.k8s.storage import v1 as storage

NAMESPACE = "kinds"
LABELS = {"app": "web"}
SELECTOR = meta.LabelSelector(match_labels=LABELS)
NOW = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
CLAIM = core.PersistentVolumeClaimSpec(
    access_modes=["ReadWriteOnce"],
    resources=core.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
)


def pod_template(restart_policy: str = "Always") -> core.PodTemplateSpec:
    """A pod that uses a bit of everything."""
    container = core.Container(
        name="web",
        image="nginx",
        ports=[core.ContainerPort(container_port=80, name="http")],
        env=[
            core.EnvVar(name="PLAIN", value=""),
            core.EnvVar(
                name="POD_IP",
                value_from=core.EnvVarSource(field_ref=core.ObjectFieldSelector(field_path="status.podIP")),
            ),
        ],
        resources=core.ResourceRequirements(
            requests={"cpu": Quantity("0.5"), "memory": Quantity("128Mi")}, limits={"cpu": Quantity(2)}
        ),
        readiness_probe=core.Probe(http_get=core.HTTPGetAction(path="/", port="http")),
        volume_mounts=[core.VolumeMount(name="scratch", mount_path="/scratch")],
    )
    volumes = [core.Volume(name="scratch", empty_dir=core.EmptyDirVolumeSource(size_limit=Quantity("10M")))]
    spec = core.PodSpec(
        containers=[container], volumes=volumes, host_ipc=False, host_pid=False, restart_policy=restart_policy
    )
    return core.PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=spec)


def workloads() -> list[Object]:
    """What runs pods."""
    job = batch.JobSpec(template=pod_template("Never"), backoff_limit=0)
    return [
        core.Pod(name="pod", spec=pod_template().spec),
        apps.Deployment(
            name="deployment",
            spec=apps.DeploymentSpec(
                replicas=1,
                selector=SELECTOR,
                template=pod_template(),
                strategy=apps.DeploymentStrategy(
                    rolling_update=apps.RollingUpdateDeployment(max_surge="25%", max_unavailable=0)
                ),
            ),
        ),
        apps.StatefulSet(
            name="stateful",
            spec=apps.StatefulSetSpec(
                selector=SELECTOR,
                service_name="headless",
                template=pod_template(),
                volume_claim_templates=[core.PersistentVolumeClaim(name="data", spec=CLAIM)],
            ),
        ),
        apps.DaemonSet(name="daemon", spec=apps.DaemonSetSpec(selector=SELECTOR, template=pod_template())),
        batch.Job(name="job", spec=job),
        batch.CronJob(
            name="cron",
            spec=batch.CronJobSpec(schedule="0 0 1 1 *", job_template=batch.JobTemplateSpec(spec=job)),
        ),
        policy.PodDisruptionBudget(
            name="budget", spec=policy.PodDisruptionBudgetSpec(selector=SELECTOR, max_unavailable="50%")
        ),
        autoscaling.HorizontalPodAutoscaler(
            name="autoscaler",
            spec=autoscaling.HorizontalPodAutoscalerSpec(
                max_replicas=3,
                scale_target_ref=autoscaling.CrossVersionObjectReference(
                    api_version="apps/v1", kind="Deployment", name="deployment"
                ),
            ),
        ),
    ]


def configuration() -> list[Object]:
    """What holds data."""
    return [
        core.ConfigMap(name="config", data={"key": "value", "empty": ""}, binary_data={"binary": b"\x00\xff"}),
        core.Secret(name="secret", data={"password": b"hunter2", "empty": b""}, immutable=True),
        core.ServiceAccount(name="account", automount_service_account_token=False),
        core.PersistentVolumeClaim(name="claim", spec=CLAIM),
        core.ResourceQuota(name="quota", spec=core.ResourceQuotaSpec(hard={"count/widgets.example.com": Quantity(3)})),
        core.LimitRange(
            name="limits",
            spec=core.LimitRangeSpec(
                limits=[core.LimitRangeItem(type="PersistentVolumeClaim", max={"storage": Quantity("1Ti")})]
            ),
        ),
        coordination.Lease(
            name="lease",
            spec=coordination.LeaseSpec(
                holder_identity="me",
                lease_duration_seconds=15,
                renew_time=MicroTime.of(NOW),
                acquire_time=MicroTime.of(NOW),
            ),
        ),
        core.Event(
            name="old-event",
            involved_object=core.ObjectReference(kind="Pod", name="pod", namespace=NAMESPACE),
            first_timestamp=NOW.replace(microsecond=0),
            count=1,
            type="Normal",
            reason="Tested",
        ),
        events.Event(
            name="event",
            event_time=MicroTime.of(NOW),
            regarding=core.ObjectReference(kind="Pod", name="pod", namespace=NAMESPACE),
            reporting_controller="example.com/tests",
            reporting_instance="tests-0",
            action="Testing",
            reason="Tested",
            type="Normal",
        ),
    ]


def network() -> list[Object]:
    """What is reached over the network."""
    backend = networking.IngressBackend(
        service=networking.IngressServiceBackend(name="service", port=networking.ServiceBackendPort(name="http"))
    )
    path = networking.HTTPIngressPath(path_type="Prefix", path="/", backend=backend)
    web_ports = [networking.NetworkPolicyPort(port="http")]
    return [
        core.Service(
            name="service",
            spec=core.ServiceSpec(
                selector=LABELS, ports=[core.ServicePort(name="http", port=80, target_port="http", protocol="TCP")]
            ),
        ),
        core.Service(name="headless", spec=core.ServiceSpec(cluster_ip="None", selector=LABELS)),
        discovery.EndpointSlice(
            name="slice",
            address_type="IPv4",
            endpoints=[discovery.Endpoint(addresses=["10.1.2.3"], conditions=discovery.EndpointConditions(ready=True))],
            ports=[discovery.EndpointPort(name="http", port=80)],
        ),
        networking.NetworkPolicy(
            name="policy",
            spec=networking.NetworkPolicySpec(
                pod_selector=SELECTOR,
                ingress=[
                    networking.NetworkPolicyIngressRule(
                        from_=[
                            networking.NetworkPolicyPeer(
                                ip_block=networking.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])
                            )
                        ],
                        ports=web_ports,
                    )
                ],
            ),
        ),
        networking.Ingress(
            name="ingress",
            spec=networking.IngressSpec(
                rules=[networking.IngressRule(host="example.com", http=networking.HTTPIngressRuleValue(paths=[path]))]
            ),
        ),
    ]


def access() -> list[Object]:
    """Who may do what."""
    rule = rbac.PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
    subject = rbac.Subject(kind="ServiceAccount", name="account", namespace=NAMESPACE)
    return [
        rbac.Role(name="role", rules=[rule]),
        rbac.Role(name="empty-role"),
        rbac.RoleBinding(
            name="binding",
            role_ref=rbac.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="role"),
            subjects=[subject],
        ),
        rbac.ClusterRole(name="kinds", rules=[rule, rbac.PolicyRule(verbs=["get"], non_resource_urls=["/healthz"])]),
        rbac.ClusterRole(
            name="kinds-aggregated", aggregation_rule=rbac.AggregationRule(cluster_role_selectors=[SELECTOR])
        ),
    ]


def cluster_wide() -> list[Object]:
    """What is not in a namespace."""
    schema = apiextensions.JSONSchemaProps(
        type="object",
        properties={
            "spec": apiextensions.JSONSchemaProps(
                type="object",
                properties={"size": apiextensions.JSONSchemaProps(type="integer", default=1, maximum=5)},
                additional_properties=None,
                x_kubernetes_preserve_unknown_fields=True,
            )
        },
    )
    version = apiextensions.CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=apiextensions.CustomResourceValidation(open_api_v3_schema=schema),
    )
    names = apiextensions.CustomResourceDefinitionNames(kind="Widget", plural="widgets")
    return [
        apiextensions.CustomResourceDefinition(
            name="widgets.kinds.example.com",
            spec=apiextensions.CustomResourceDefinitionSpec(
                group="kinds.example.com", names=names, scope="Namespaced", versions=[version]
            ),
        ),
        storage.StorageClass(name="kinds", provisioner="example.com/none", volume_binding_mode="Immediate"),
        scheduling.PriorityClass(name="kinds", value=7, description="for tests"),
        core.PersistentVolume(
            name="kinds",
            spec=core.PersistentVolumeSpec(
                capacity={"storage": Quantity("1Gi")},
                access_modes=["ReadWriteMany"],
                nfs=core.NFSVolumeSource(server="127.0.0.1", path="/"),
            ),
        ),
        core.Node(name="kinds", spec=core.NodeSpec(pod_cidrs=["10.9.0.0/24"], pod_cidr="10.9.0.0/24")),
    ]


def objects() -> list[Object]:
    """All of them; those that have a namespace are in `NAMESPACE`."""
    found = [*configuration(), *access(), *network(), *workloads(), *cluster_wide()]
    for example in found:
        if type(example).__kind__.namespaced:
            example.namespace = NAMESPACE
    return found
