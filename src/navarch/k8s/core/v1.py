"""core/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import Condition, IntOrString, ListMap, ListSet, Model, Object, ObjectMeta, field
from navarch.api.quantity import Quantity
from navarch.api.times import MicroTime
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "Affinity",
    "AppArmorProfile",
    "AttachedVolume",
    "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource",
    "AzureFileVolumeSource",
    "Binding",
    "CSIPersistentVolumeSource",
    "CSIVolumeSource",
    "Capabilities",
    "CephFSPersistentVolumeSource",
    "CephFSVolumeSource",
    "CinderPersistentVolumeSource",
    "CinderVolumeSource",
    "ClientIPConfig",
    "ClusterTrustBundleProjection",
    "ComponentCondition",
    "ComponentStatus",
    "ConfigMap",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapNodeConfigSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerImage",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "DaemonEndpoint",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "Event",
    "EventSeries",
    "EventSource",
    "ExecAction",
    "FCVolumeSource",
    "FileKeySelector",
    "FlexPersistentVolumeSource",
    "FlexVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GRPCAction",
    "GitRepoVolumeSource",
    "GlusterfsPersistentVolumeSource",
    "GlusterfsVolumeSource",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "HostPathVolumeSource",
    "ISCSIPersistentVolumeSource",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "LinuxContainerUser",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "LocalObjectReference",
    "LocalVolumeSource",
    "ModifyVolumeStatus",
    "NFSVolumeSource",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
    "ObjectFieldSelector",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimCondition",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "PhotonPersistentDiskVolumeSource",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCertificateProjection",
    "PodCondition",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSecurityContext",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodTemplateSpec",
    "PortStatus",
    "PortworxVolumeSource",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "QuobyteVolumeSource",
    "RBDPersistentVolumeSource",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerCondition",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "ScaleIOPersistentVolumeSource",
    "ScaleIOVolumeSource",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "SeccompProfile",
    "Secret",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretReference",
    "SecretVolumeSource",
    "SecurityContext",
    "Service",
    "ServiceAccount",
    "ServiceAccountTokenProjection",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
    "SleepAction",
    "StorageOSPersistentVolumeSource",
    "StorageOSVolumeSource",
    "Sysctl",
    "TCPSocketAction",
    "Taint",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeNodeAffinity",
    "VolumeProjection",
    "VolumeResourceRequirements",
    "VolumeStatus",
    "VsphereVirtualDiskVolumeSource",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]


class AWSElasticBlockStoreVolumeSource(Model):
    volume_id: str = field(name="volumeID")
    fs_type: str | None = None
    partition: int | None = None
    read_only: bool | None = None


class NodeSelectorRequirement(Model):
    key: str
    operator: str
    values: list[str] | None = None


class NodeSelectorTerm(Model):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Model):
    node_selector_terms: list[NodeSelectorTerm]


class PreferredSchedulingTerm(Model):
    preference: NodeSelectorTerm
    weight: int


class NodeAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Model):
    topology_key: str
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] | None = None


class WeightedPodAffinityTerm(Model):
    pod_affinity_term: PodAffinityTerm
    weight: int


class PodAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None


class PodAntiAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None


class Affinity(Model):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class AppArmorProfile(Model):
    type: str
    localhost_profile: str | None = None


class AttachedVolume(Model):
    device_path: str
    name: str


class AzureDiskVolumeSource(Model):
    disk_name: str
    disk_uri: str = field(name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    kind: str | None = None
    read_only: bool | None = None


class AzureFilePersistentVolumeSource(Model):
    secret_name: str
    share_name: str
    read_only: bool | None = None
    secret_namespace: str | None = None


class AzureFileVolumeSource(Model):
    secret_name: str
    share_name: str
    read_only: bool | None = None


class ObjectReference(Model):
    api_version: str | None = None
    field_path: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    resource_version: str | None = None
    uid: str | None = None


class Binding(Object, group="", version="v1", plural="bindings", has_status=False):
    target: ObjectReference


class SecretReference(Model):
    name: str | None = None
    namespace: str | None = None


class CSIPersistentVolumeSource(Model):
    driver: str
    volume_handle: str
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    fs_type: str | None = None
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] | None = None


class LocalObjectReference(Model):
    name: str | None = None


class CSIVolumeSource(Model):
    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] | None = None


class Capabilities(Model):
    add: list[str] | None = None
    drop: list[str] | None = None


class CephFSPersistentVolumeSource(Model):
    monitors: list[str]
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


class CephFSVolumeSource(Model):
    monitors: list[str]
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class CinderPersistentVolumeSource(Model):
    volume_id: str = field(name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None


class CinderVolumeSource(Model):
    volume_id: str = field(name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class ClientIPConfig(Model):
    timeout_seconds: int | None = None


class ClusterTrustBundleProjection(Model):
    path: str
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    signer_name: str | None = None


class ComponentCondition(Model):
    status: str
    type: str
    error: str | None = None
    message: str | None = None


class ComponentStatus(
    Object,
    group="",
    version="v1",
    plural="componentstatuses",
    namespaced=False,
    has_status=False,
    short_names=("cs",),
):
    conditions: Annotated[list[ComponentCondition], ListMap("type")] | None = None


class ConfigMap(Object, group="", version="v1", plural="configmaps", has_status=False, short_names=("cm",)):
    binary_data: dict[str, bytes] | None = None
    data: dict[str, str] | None = None
    immutable: bool | None = None


class ConfigMapEnvSource(Model):
    name: str | None = None
    optional: bool | None = None


class ConfigMapKeySelector(Model):
    key: str
    name: str | None = None
    optional: bool | None = None


class ConfigMapNodeConfigSource(Model):
    kubelet_config_key: str
    name: str
    namespace: str
    resource_version: str | None = None
    uid: str | None = None


class KeyToPath(Model):
    key: str
    path: str
    mode: int | None = None


class ConfigMapProjection(Model):
    items: list[KeyToPath] | None = None
    name: str | None = None
    optional: bool | None = None


class ConfigMapVolumeSource(Model):
    default_mode: int | None = None
    items: list[KeyToPath] | None = None
    name: str | None = None
    optional: bool | None = None


class ContainerPort(Model):
    container_port: int
    host_ip: str | None = field(name="hostIP", default=None)
    host_port: int | None = None
    name: str | None = None
    protocol: str | None = None


class ContainerResizePolicy(Model):
    resource_name: str
    restart_policy: str


class ContainerRestartRuleOnExitCodes(Model):
    operator: str
    values: Annotated[list[int], ListSet()] | None = None


class ContainerRestartRule(Model):
    action: str
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SecretEnvSource(Model):
    name: str | None = None
    optional: bool | None = None


class EnvFromSource(Model):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None


class FileKeySelector(Model):
    key: str
    path: str
    volume_name: str
    optional: bool | None = None


class ObjectFieldSelector(Model):
    field_path: str
    api_version: str | None = None


class ResourceFieldSelector(Model):
    resource: str
    container_name: str | None = None
    divisor: Quantity | None = None


class SecretKeySelector(Model):
    key: str
    name: str | None = None
    optional: bool | None = None


class EnvVarSource(Model):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Model):
    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None


class ExecAction(Model):
    command: list[str] | None = None


class HTTPHeader(Model):
    name: str
    value: str


class HTTPGetAction(Model):
    port: IntOrString
    host: str | None = None
    http_headers: list[HTTPHeader] | None = None
    path: str | None = None
    scheme: str | None = None


class SleepAction(Model):
    seconds: int


class TCPSocketAction(Model):
    port: IntOrString
    host: str | None = None


class LifecycleHandler(Model):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Model):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(Model):
    port: int
    service: str | None = None


class Probe(Model):
    exec: ExecAction | None = None
    failure_threshold: int | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int | None = None


class ResourceClaim(Model):
    name: str
    request: str | None = None


class ResourceRequirements(Model):
    claims: Annotated[list[ResourceClaim], ListMap("name")] | None = None
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None


class SELinuxOptions(Model):
    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class SeccompProfile(Model):
    type: str
    localhost_profile: str | None = None


class WindowsSecurityContextOptions(Model):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Model):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(Model):
    device_path: str
    name: str


class VolumeMount(Model):
    mount_path: str
    name: str
    mount_propagation: str | None = None
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(Model):
    name: str
    args: list[str] | None = None
    command: list[str] | None = None
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_from: list[EnvFromSource] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol")] | None = None
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: Annotated[list[VolumeDevice], ListMap("devicePath")] | None = None
    volume_mounts: Annotated[list[VolumeMount], ListMap("mountPath")] | None = None
    working_dir: str | None = None


class ContainerExtendedResourceRequest(Model):
    container_name: str
    request_name: str
    resource_name: str


class ContainerImage(Model):
    names: list[str] | None = None
    size_bytes: int | None = None


class ContainerStateRunning(Model):
    started_at: datetime | None = None


class ContainerStateTerminated(Model):
    exit_code: int
    container_id: str | None = field(name="containerID", default=None)
    finished_at: datetime | None = None
    message: str | None = None
    reason: str | None = None
    signal: int | None = None
    started_at: datetime | None = None


class ContainerStateWaiting(Model):
    message: str | None = None
    reason: str | None = None


class ContainerState(Model):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(Model):
    gid: int
    uid: int
    supplemental_groups: list[int] | None = None


class ContainerUser(Model):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Model):
    resource_id: str = field(name="resourceID")
    health: str | None = None
    message: str | None = None


class ResourceStatus(Model):
    name: str
    resources: Annotated[list[ResourceHealth], ListMap("resourceID")] | None = None


class ImageVolumeStatus(Model):
    image_ref: str


class VolumeStatus(Model):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Model):
    mount_path: str
    name: str
    read_only: bool | None = None
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(Model):
    image: str
    image_id: str = field(name="imageID")
    name: str
    ready: bool
    restart_count: int
    allocated_resources: dict[str, Quantity] | None = None
    allocated_resources_status: Annotated[list[ResourceStatus], ListMap("name")] | None = None
    container_id: str | None = field(name="containerID", default=None)
    last_state: ContainerState | None = None
    resources: ResourceRequirements | None = None
    started: bool | None = None
    state: ContainerState | None = None
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: Annotated[list[VolumeMountStatus], ListMap("mountPath")] | None = None


class DaemonEndpoint(Model):
    port: int = field(name="Port")


class DownwardAPIVolumeFile(Model):
    path: str
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIProjection(Model):
    items: list[DownwardAPIVolumeFile] | None = None


class DownwardAPIVolumeSource(Model):
    default_mode: int | None = None
    items: list[DownwardAPIVolumeFile] | None = None


class EmptyDirVolumeSource(Model):
    medium: str | None = None
    size_limit: Quantity | None = None


class EndpointAddress(Model):
    ip: str
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Model):
    port: int
    app_protocol: str | None = None
    name: str | None = None
    protocol: str | None = None


class EndpointSubset(Model):
    addresses: list[EndpointAddress] | None = None
    not_ready_addresses: list[EndpointAddress] | None = None
    ports: list[EndpointPort] | None = None


class Endpoints(Object, group="", version="v1", plural="endpoints", has_status=False, short_names=("ep",)):
    subsets: list[EndpointSubset] | None = None


class EphemeralContainer(Model):
    name: str
    args: list[str] | None = None
    command: list[str] | None = None
    env: Annotated[list[EnvVar], ListMap("name")] | None = None
    env_from: list[EnvFromSource] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol")] | None = None
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    target_container_name: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: Annotated[list[VolumeDevice], ListMap("devicePath")] | None = None
    volume_mounts: Annotated[list[VolumeMount], ListMap("mountPath")] | None = None
    working_dir: str | None = None


class TypedLocalObjectReference(Model):
    kind: str
    name: str
    api_group: str | None = None


class TypedObjectReference(Model):
    kind: str
    name: str
    api_group: str | None = None
    namespace: str | None = None


class VolumeResourceRequirements(Model):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None


class PersistentVolumeClaimSpec(Model):
    access_modes: list[str] | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class PersistentVolumeClaimTemplate(Model):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Model):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class EventSeries(Model):
    count: int | None = None
    last_observed_time: MicroTime | None = None


class EventSource(Model):
    component: str | None = None
    host: str | None = None


class Event(Object, group="", version="v1", plural="events", has_status=False, short_names=("ev",)):
    involved_object: ObjectReference
    action: str | None = None
    count: int | None = None
    event_time: MicroTime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    message: str | None = None
    reason: str | None = None
    related: ObjectReference | None = None
    reporting_component: str | None = None
    reporting_instance: str | None = None
    series: EventSeries | None = None
    source: EventSource | None = None
    type: str | None = None


class FCVolumeSource(Model):
    fs_type: str | None = None
    lun: int | None = None
    read_only: bool | None = None
    target_wwns: list[str] | None = field(name="targetWWNs", default=None)
    wwids: list[str] | None = None


class FlexPersistentVolumeSource(Model):
    driver: str
    fs_type: str | None = None
    options: dict[str, str] | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None


class FlexVolumeSource(Model):
    driver: str
    fs_type: str | None = None
    options: dict[str, str] | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Model):
    dataset_name: str | None = None
    dataset_uuid: str | None = field(name="datasetUUID", default=None)


class GCEPersistentDiskVolumeSource(Model):
    pd_name: str
    fs_type: str | None = None
    partition: int | None = None
    read_only: bool | None = None


class GitRepoVolumeSource(Model):
    repository: str
    directory: str | None = None
    revision: str | None = None


class GlusterfsPersistentVolumeSource(Model):
    endpoints: str
    path: str
    endpoints_namespace: str | None = None
    read_only: bool | None = None


class GlusterfsVolumeSource(Model):
    endpoints: str
    path: str
    read_only: bool | None = None


class HostAlias(Model):
    ip: str
    hostnames: list[str] | None = None


class HostIP(Model):
    ip: str


class HostPathVolumeSource(Model):
    path: str
    type: str | None = None


class ISCSIPersistentVolumeSource(Model):
    iqn: str
    lun: int
    target_portal: str
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iscsi_interface: str | None = None
    portals: list[str] | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None


class ISCSIVolumeSource(Model):
    iqn: str
    lun: int
    target_portal: str
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iscsi_interface: str | None = None
    portals: list[str] | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class ImageVolumeSource(Model):
    pull_policy: str | None = None
    reference: str | None = None


class LimitRangeItem(Model):
    type: str
    default: dict[str, Quantity] | None = None
    default_request: dict[str, Quantity] | None = None
    max: dict[str, Quantity] | None = None
    max_limit_request_ratio: dict[str, Quantity] | None = None
    min: dict[str, Quantity] | None = None


class LimitRangeSpec(Model):
    limits: list[LimitRangeItem]


class LimitRange(Object, group="", version="v1", plural="limitranges", has_status=False, short_names=("limits",)):
    spec: LimitRangeSpec


class PortStatus(Model):
    port: int
    protocol: str
    error: str | None = None


class LoadBalancerIngress(Model):
    hostname: str | None = None
    ip: str | None = None
    ip_mode: str | None = None
    ports: list[PortStatus] | None = None


class LoadBalancerStatus(Model):
    ingress: list[LoadBalancerIngress] | None = None


class LocalVolumeSource(Model):
    path: str
    fs_type: str | None = None


class ModifyVolumeStatus(Model):
    status: str
    target_volume_attributes_class_name: str | None = None


class NFSVolumeSource(Model):
    path: str
    server: str
    read_only: bool | None = None


class NamespaceSpec(Model):
    finalizers: list[str] | None = None


class NamespaceCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class NamespaceStatus(Model):
    conditions: Annotated[list[NamespaceCondition], ListMap("type")] | None = None
    phase: str | None = None


class Namespace(Object, group="", version="v1", plural="namespaces", namespaced=False, short_names=("ns",)):
    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class NodeConfigSource(Model):
    config_map: ConfigMapNodeConfigSource | None = None


class Taint(Model):
    effect: str
    key: str
    time_added: datetime | None = None
    value: str | None = None


class NodeSpec(Model):
    config_source: NodeConfigSource | None = None
    external_id: str | None = field(name="externalID", default=None)
    pod_cidr: str | None = field(name="podCIDR", default=None)
    pod_cidrs: Annotated[list[str], ListSet()] | None = field(name="podCIDRs", default=None)
    provider_id: str | None = field(name="providerID", default=None)
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class NodeAddress(Model):
    address: str
    type: str


class NodeCondition(Model):
    status: str
    type: str
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class NodeConfigStatus(Model):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str | None = None
    last_known_good: NodeConfigSource | None = None


class NodeDaemonEndpoints(Model):
    kubelet_endpoint: DaemonEndpoint | None = None


class NodeFeatures(Model):
    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(Model):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Model):
    features: NodeRuntimeHandlerFeatures | None = None
    name: str | None = None


class NodeSwapStatus(Model):
    capacity: int | None = None


class NodeSystemInfo(Model):
    architecture: str
    boot_id: str = field(name="bootID")
    container_runtime_version: str
    kernel_version: str
    kube_proxy_version: str
    kubelet_version: str
    machine_id: str = field(name="machineID")
    operating_system: str
    os_image: str
    system_uuid: str = field(name="systemUUID")
    swap: NodeSwapStatus | None = None


class NodeStatus(Model):
    addresses: Annotated[list[NodeAddress], ListMap("type")] | None = None
    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    conditions: Annotated[list[NodeCondition], ListMap("type")] | None = None
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints | None = None
    declared_features: list[str] | None = None
    features: NodeFeatures | None = None
    images: list[ContainerImage] | None = None
    node_info: NodeSystemInfo | None = None
    phase: str | None = None
    runtime_handlers: list[NodeRuntimeHandler] | None = None
    volumes_attached: list[AttachedVolume] | None = None
    volumes_in_use: list[str] | None = None


class Node(Object, group="", version="v1", plural="nodes", namespaced=False, short_names=("no",)):
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class NodeAllocatableResourceClaimStatus(Model):
    resource_claim_name: str
    resources: dict[str, Quantity]
    containers: Annotated[list[str], ListSet()] | None = None


class PhotonPersistentDiskVolumeSource(Model):
    pd_id: str = field(name="pdID")
    fs_type: str | None = None


class PortworxVolumeSource(Model):
    volume_id: str = field(name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None


class QuobyteVolumeSource(Model):
    registry: str
    volume: str
    group: str | None = None
    read_only: bool | None = None
    tenant: str | None = None
    user: str | None = None


class RBDPersistentVolumeSource(Model):
    image: str
    monitors: list[str]
    fs_type: str | None = None
    keyring: str | None = None
    pool: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


class ScaleIOPersistentVolumeSource(Model):
    gateway: str
    secret_ref: SecretReference
    system: str
    fs_type: str | None = None
    protection_domain: str | None = None
    read_only: bool | None = None
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    volume_name: str | None = None


class StorageOSPersistentVolumeSource(Model):
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: ObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VolumeNodeAffinity(Model):
    required: NodeSelector | None = None


class VsphereVirtualDiskVolumeSource(Model):
    volume_path: str
    fs_type: str | None = None
    storage_policy_id: str | None = field(name="storagePolicyID", default=None)
    storage_policy_name: str | None = None


class PersistentVolumeSpec(Model):
    access_modes: list[str] | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: dict[str, Quantity] | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: list[str] | None = None
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = field(name="scaleIO", default=None)
    storage_class_name: str | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Model):
    last_phase_transition_time: datetime | None = None
    message: str | None = None
    phase: str | None = None
    reason: str | None = None


class PersistentVolume(
    Object,
    group="",
    version="v1",
    plural="persistentvolumes",
    namespaced=False,
    short_names=("pv",),
):
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimCondition(Model):
    status: str
    type: str
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class PersistentVolumeClaimStatus(Model):
    access_modes: list[str] | None = None
    allocated_resource_statuses: dict[str, str] | None = None
    allocated_resources: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    conditions: Annotated[list[PersistentVolumeClaimCondition], ListMap("type")] | None = None
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str | None = None


class PersistentVolumeClaim(Object, group="", version="v1", plural="persistentvolumeclaims", short_names=("pvc",)):
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class PersistentVolumeClaimVolumeSource(Model):
    claim_name: str
    read_only: bool | None = None


class PodDNSConfigOption(Model):
    name: str | None = None
    value: str | None = None


class PodDNSConfig(Model):
    nameservers: list[str] | None = None
    options: list[PodDNSConfigOption] | None = None
    searches: list[str] | None = None


class PodOS(Model):
    name: str


class PodReadinessGate(Model):
    condition_type: str


class PodResourceClaim(Model):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Model):
    name: str


class PodSchedulingGroup(Model):
    pod_group_name: str | None = None


class Sysctl(Model):
    name: str
    value: str


class PodSecurityContext(Model):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: list[int] | None = None
    supplemental_groups_policy: str | None = None
    sysctls: list[Sysctl] | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class Toleration(Model):
    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = None
    value: str | None = None


class TopologySpreadConstraint(Model):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class PodCertificateProjection(Model):
    key_type: str
    signer_name: str
    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    max_expiration_seconds: int | None = None
    user_annotations: dict[str, str] | None = None


class SecretProjection(Model):
    items: list[KeyToPath] | None = None
    name: str | None = None
    optional: bool | None = None


class ServiceAccountTokenProjection(Model):
    path: str
    audience: str | None = None
    expiration_seconds: int | None = None


class VolumeProjection(Model):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = field(name="downwardAPI", default=None)
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Model):
    default_mode: int | None = None
    sources: list[VolumeProjection] | None = None


class RBDVolumeSource(Model):
    image: str
    monitors: list[str]
    fs_type: str | None = None
    keyring: str | None = None
    pool: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class ScaleIOVolumeSource(Model):
    gateway: str
    secret_ref: LocalObjectReference
    system: str
    fs_type: str | None = None
    protection_domain: str | None = None
    read_only: bool | None = None
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    volume_name: str | None = None


class SecretVolumeSource(Model):
    default_mode: int | None = None
    items: list[KeyToPath] | None = None
    optional: bool | None = None
    secret_name: str | None = None


class StorageOSVolumeSource(Model):
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class Volume(Model):
    name: str
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(name="downwardAPI", default=None)
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = field(name="scaleIO", default=None)
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PodSpec(Model):
    containers: Annotated[list[Container], ListMap("name")]
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    dns_config: PodDNSConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: Annotated[list[EphemeralContainer], ListMap("name")] | None = None
    host_aliases: Annotated[list[HostAlias], ListMap("ip")] | None = None
    host_ipc: bool | None = field(name="hostIPC", default=None)
    host_network: bool | None = None
    host_pid: bool | None = field(name="hostPID", default=None)
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: Annotated[list[LocalObjectReference], ListMap("name")] | None = None
    init_containers: Annotated[list[Container], ListMap("name")] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    os: PodOS | None = None
    overhead: dict[str, Quantity] | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    readiness_gates: list[PodReadinessGate] | None = None
    resource_claims: Annotated[list[PodResourceClaim], ListMap("name")] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: Annotated[list[PodSchedulingGate], ListMap("name")] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = field(name="setHostnameAsFQDN", default=None)
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: int | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: (
        Annotated[list[TopologySpreadConstraint], ListMap("topologyKey", "whenUnsatisfiable")] | None
    ) = None
    volumes: Annotated[list[Volume], ListMap("name")] | None = None


class PodCondition(Model):
    status: str
    type: str
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str | None = None
    observed_generation: int | None = None
    reason: str | None = None


class PodExtendedResourceClaimStatus(Model):
    request_mappings: list[ContainerExtendedResourceRequest]
    resource_claim_name: str


class PodIP(Model):
    ip: str


class PodResourceClaimStatus(Model):
    name: str
    resource_claim_name: str | None = None


class PodStatus(Model):
    allocated_resources: dict[str, Quantity] | None = None
    conditions: Annotated[list[PodCondition], ListMap("type")] | None = None
    container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str | None = field(name="hostIP", default=None)
    host_ips: list[HostIP] | None = field(name="hostIPs", default=None)
    init_container_statuses: list[ContainerStatus] | None = None
    message: str | None = None
    node_allocatable_resource_claim_statuses: list[NodeAllocatableResourceClaimStatus] | None = None
    nominated_node_name: str | None = None
    observed_generation: int | None = None
    phase: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    pod_ips: Annotated[list[PodIP], ListMap("ip")] | None = field(name="podIPs", default=None)
    qos_class: str | None = None
    reason: str | None = None
    resize: str | None = None
    resource_claim_statuses: Annotated[list[PodResourceClaimStatus], ListMap("name")] | None = None
    resources: ResourceRequirements | None = None
    start_time: datetime | None = None


class Pod(Object, group="", version="v1", plural="pods", short_names=("po",), categories=("all",)):
    spec: PodSpec
    status: PodStatus = field(default_factory=PodStatus)


class PodTemplateSpec(Model):
    spec: PodSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class PodTemplate(Object, group="", version="v1", plural="podtemplates", has_status=False):
    template: PodTemplateSpec | None = None


class ReplicationControllerSpec(Model):
    min_ready_seconds: int | None = None
    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class ReplicationControllerStatus(Model):
    available_replicas: int | None = None
    conditions: Annotated[list[ReplicationControllerCondition], ListMap("type")] | None = None
    fully_labeled_replicas: int | None = None
    observed_generation: int | None = None
    ready_replicas: int | None = None
    replicas: int = 0


class ReplicationController(
    Object,
    group="",
    version="v1",
    plural="replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
):
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = field(default_factory=ReplicationControllerStatus)


class ScopedResourceSelectorRequirement(Model):
    operator: str
    scope_name: str
    values: list[str] | None = None


class ScopeSelector(Model):
    match_expressions: list[ScopedResourceSelectorRequirement] | None = None


class ResourceQuotaSpec(Model):
    hard: dict[str, Quantity] | None = None
    scope_selector: ScopeSelector | None = None
    scopes: list[str] | None = None


class ResourceQuotaStatus(Model):
    hard: dict[str, Quantity] | None = None
    used: dict[str, Quantity] | None = None


class ResourceQuota(Object, group="", version="v1", plural="resourcequotas", short_names=("quota",)):
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class Secret(Object, group="", version="v1", plural="secrets", has_status=False, sensitive=("data", "string_data")):
    data: dict[str, bytes] | None = None
    immutable: bool | None = None
    string_data: dict[str, str] | None = None
    type: str | None = None


class ServicePort(Model):
    port: int
    app_protocol: str | None = None
    name: str | None = None
    node_port: int | None = None
    protocol: str | None = None
    target_port: IntOrString | None = None


class SessionAffinityConfig(Model):
    client_ip: ClientIPConfig | None = field(name="clientIP", default=None)


class ServiceSpec(Model):
    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str | None = field(name="clusterIP", default=None)
    cluster_ips: list[str] | None = field(name="clusterIPs", default=None)
    external_ips: list[str] | None = field(name="externalIPs", default=None)
    external_name: str | None = None
    external_traffic_policy: str | None = None
    health_check_node_port: int | None = None
    internal_traffic_policy: str | None = None
    ip_families: list[str] | None = None
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = field(name="loadBalancerIP", default=None)
    load_balancer_source_ranges: list[str] | None = None
    ports: Annotated[list[ServicePort], ListMap("port", "protocol")] | None = None
    publish_not_ready_addresses: bool | None = None
    selector: dict[str, str] | None = None
    session_affinity: str | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: str | None = None


class ServiceStatus(Model):
    conditions: Annotated[list[Condition], ListMap("type")] | None = None
    load_balancer: LoadBalancerStatus | None = None


class Service(Object, group="", version="v1", plural="services", short_names=("svc",), categories=("all",)):
    spec: ServiceSpec = field(default_factory=ServiceSpec)
    status: ServiceStatus = field(default_factory=ServiceStatus)


class ServiceAccount(Object, group="", version="v1", plural="serviceaccounts", has_status=False, short_names=("sa",)):
    automount_service_account_token: bool | None = None
    image_pull_secrets: list[LocalObjectReference] | None = None
    secrets: Annotated[list[ObjectReference], ListMap("name")] | None = None


class TopologySelectorLabelRequirement(Model):
    key: str
    values: list[str]


class TopologySelectorTerm(Model):
    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None
