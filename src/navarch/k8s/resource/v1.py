"""resource/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated, Any

from navarch.api import Condition, ListMap, Model, Object, ObjectMeta, field
from navarch.api.quantity import Quantity
from navarch.k8s.core.v1 import NodeSelector

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounterConsumption",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "NodeAllocatableResourceMapping",
    "OpaqueDeviceConfiguration",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class NetworkDeviceData(Model):
    hardware_address: str | None = None
    interface_name: str | None = None
    ips: list[str] | None = None


class AllocatedDeviceStatus(Model):
    device: str
    driver: str
    pool: str
    conditions: Annotated[list[Condition], ListMap("type")] | None = None
    data: dict[str, Any] | None = None
    network_data: NetworkDeviceData | None = None
    share_id: str | None = field(name="shareID", default=None)


class OpaqueDeviceConfiguration(Model):
    driver: str
    parameters: dict[str, Any]


class DeviceAllocationConfiguration(Model):
    source: str
    opaque: OpaqueDeviceConfiguration | None = None
    requests: list[str] | None = None


class DeviceToleration(Model):
    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = None
    value: str | None = None


class DeviceRequestAllocationResult(Model):
    device: str
    driver: str
    pool: str
    request: str
    admin_access: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    consumed_capacity: dict[str, Quantity] | None = None
    share_id: str | None = field(name="shareID", default=None)
    tolerations: list[DeviceToleration] | None = None


class DeviceAllocationResult(Model):
    config: list[DeviceAllocationConfiguration] | None = None
    results: list[DeviceRequestAllocationResult] | None = None


class AllocationResult(Model):
    allocation_timestamp: datetime | None = None
    devices: DeviceAllocationResult | None = None
    node_selector: NodeSelector | None = None


class CELDeviceSelector(Model):
    expression: str


class CapacityRequestPolicyRange(Model):
    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Model):
    default: Quantity | None = None
    valid_range: CapacityRequestPolicyRange | None = None
    valid_values: list[Quantity] | None = None


class CapacityRequirements(Model):
    requests: dict[str, Quantity] | None = None


class Counter(Model):
    value: Quantity


class CounterSet(Model):
    counters: dict[str, Counter]
    name: str


class DeviceAttribute(Model):
    bool_: bool | None = None
    bools: list[bool] | None = None
    int_: int | None = None
    ints: list[int] | None = None
    string: str | None = None
    strings: list[str] | None = None
    version: str | None = None
    versions: list[str] | None = None


class DeviceCapacity(Model):
    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class DeviceCounterConsumption(Model):
    counter_set: str
    counters: dict[str, Counter]


class DeviceTaint(Model):
    effect: str
    key: str
    time_added: datetime | None = None
    value: str | None = None


class NodeAllocatableResourceMapping(Model):
    allocation_multiplier: Quantity | None = None
    capacity_key: str | None = None


class Device(Model):
    name: str
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    attributes: dict[str, DeviceAttribute] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    binds_to_node: bool | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    taints: list[DeviceTaint] | None = None


class DeviceClaimConfiguration(Model):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: list[str] | None = None


class DeviceConstraint(Model):
    distinct_attribute: str | None = None
    match_attribute: str | None = None
    requests: list[str] | None = None


class DeviceSelector(Model):
    cel: CELDeviceSelector | None = None


class DeviceSubRequest(Model):
    device_class_name: str
    name: str
    allocation_mode: str | None = None
    capacity: CapacityRequirements | None = None
    count: int | None = None
    selectors: list[DeviceSelector] | None = None
    tolerations: list[DeviceToleration] | None = None


class ExactDeviceRequest(Model):
    device_class_name: str
    admin_access: bool | None = None
    allocation_mode: str | None = None
    capacity: CapacityRequirements | None = None
    count: int | None = None
    selectors: list[DeviceSelector] | None = None
    tolerations: list[DeviceToleration] | None = None


class DeviceRequest(Model):
    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceClaim(Model):
    config: list[DeviceClaimConfiguration] | None = None
    constraints: list[DeviceConstraint] | None = None
    requests: list[DeviceRequest] | None = None


class DeviceClassConfiguration(Model):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model):
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: str | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceClass(
    Object,
    group="resource.k8s.io",
    version="v1",
    plural="deviceclasses",
    namespaced=False,
    has_status=False,
):
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class ResourceClaimSpec(Model):
    devices: DeviceClaim | None = None


class ResourceClaimConsumerReference(Model):
    name: str
    resource: str
    uid: str
    api_group: str | None = None


class ResourceClaimStatus(Model):
    allocation: AllocationResult | None = None
    devices: Annotated[list[AllocatedDeviceStatus], ListMap("driver", "device", "pool", "shareID")] | None = None
    reserved_for: Annotated[list[ResourceClaimConsumerReference], ListMap("uid")] | None = None


class ResourceClaim(Object, group="resource.k8s.io", version="v1", plural="resourceclaims"):
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Model):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(
    Object,
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaimtemplates",
    has_status=False,
):
    spec: ResourceClaimTemplateSpec


class ResourcePool(Model):
    generation: int
    name: str
    resource_slice_count: int


class ResourceSliceSpec(Model):
    driver: str
    pool: ResourcePool
    all_nodes: bool | None = None
    devices: list[Device] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(
    Object,
    group="resource.k8s.io",
    version="v1",
    plural="resourceslices",
    namespaced=False,
    has_status=False,
):
    spec: ResourceSliceSpec
