"""The public names: one that comes, goes or is renamed must be meant."""

import importlib
import re

import pytest

from navarch import errors

PUBLIC = {
    "navarch": """
        ALL Atomic Backoff Cached Client Column Condition Config Context Duration ElectionOptions Embedded Endpoints
        Immutable IntOrString Key ListMap ListSet Meta Model Object ObjectMeta OneOf Operator Permanent Preserve
        Quantity RawSchema Resource Result Retry Review Rule Scale SchemaPatch Selectable Spec Status Uses WebhookServer __version__ connect
        field load run
    """,
    "navarch.api": """
        Atomic Column Condition Duration Dynamic Embedded Fields Immutable IntOrString Key Kind Labels ListMap
        ListMeta ListSet ManagedFields Meta MicroTime Model Object ObjectMeta OneOf OwnerReference Preserve
        Quantity RawSchema Resource Rule Scale SchemaPatch Selectable Spec Status WireValue apply_json_patch
        apply_merge_patch controller_of create_json_patch create_merge_patch decode encode field format_time
        from_builtins full_wire is_owned_by owner_reference parse_time set_condition set_controller to_builtins
        truncate_to_seconds
    """,
    "navarch.cache": """
        Cache Cached Change Collection Entry IndexFunction Informer Lookup Namespaces Owner State as_cached entry_of
        only_status_differs
    """,
    "navarch.client": """
        ALL ApiResource Client Config ExecPlugin ExecResult Impersonation JsonPatch Listener Listing LogLines
        MergePatch MetadataOnly ObjectList Options Output PartialObjectMetadata PodStream PortForward
        Preconditions Request Response RetryPolicy Session StrategicPatch Transport Watch WatchEvent WatchOptions
        WebSocket connect in_cluster load
    """,
    "navarch.controller": """
        Backoff ByMetadata Context Controller ControllerOptions Declared Election ElectionOptions Fence FencedTransport Lookup
        Mapper Permanent Predicate Recorder Result Retry any_change wanted_change
    """,
    "navarch.errors": """
        AlreadyExists ApiError BadAnswerError BadRequest Cause ClosedError ConfigError Conflict ConnectError
        ConnectionLostError ContainerError ConversionError CrdError CredentialError DeadlineError DecodeError DefinitionError
        DeployError EtcdAccessError EtcdCompactedError EtcdError EtcdExhaustedError EtcdNotFoundError EtcdRefusedError EtcdUnavailableError
        EtcdUncertainError Forbidden Gone ImageError Invalid InvalidValueError MalformedJsonError MethodNotAllowed
        MissingPermissionsError NavarchError NotAcceptable NotFound NotLeaderError PatchError QueueClosedError RegistryError
        ServerError TlsError TooLarge TooManyRequests TransportError Unauthorized Unavailable
        UnsupportedMediaType ValidationError
    """,
    "navarch.operator": """
        Background CrdPolicy Endpoints Operator Uses WebhookPolicy WebhookServer configurations_of load_operator main
        needed_by remove_webhooks roles_of run serve
    """,
    "navarch.webhook": """
        Certificates DeclaredConversion DeclaredWebhook Operation Review ReviewError ReviewVerdict WebhookOptions
    """,
    "navarch.queue": """
        LOW NORMAL QueueMetrics QueueOptions RECONCILE_BACKOFF Work WorkQueue
    """,
    "navarch.schema": """
        CrdChange DefinitionFault Schema Verdict Webhook check compare_crds compare_versions crd default definition_faults
        prune schema_of validate
    """,
}


def names_of(module: str) -> list[str]:
    """`__all__`, or what a module without one defines itself."""
    found = importlib.import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module]
    return list(getattr(found, "__all__", sorted(own)))


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_those_that_were_meant(module: str) -> None:
    """Add to the list above what is added on purpose; what goes needs a year's warning."""
    assert sorted(names_of(module)) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there(module: str) -> None:
    """In sorted order, once, and importable."""
    found, names = importlib.import_module(module), names_of(module)
    assert len(set(names)) == len(names)
    assert all(hasattr(found, name) for name in names)


def test_error_tree_is_drawn_as_it_is() -> None:
    """The drawing at the top of the module is what people read."""
    path: list[str] = []
    drawn: dict[str, str] = {}
    for bar, name in re.findall(r"^ {4}([ │├└─]*)(\w+)", errors.__doc__ or "", re.MULTILINE):
        del path[len(bar) // 4 :]
        drawn[name] = path[-1] if path else "Exception"
        path.append(name)
    tree = {name: getattr(errors, name) for name in names_of("navarch.errors")}
    real = {name: found.__bases__[0].__name__ for name, found in tree.items() if issubclass(found, BaseException)}
    assert drawn == real
