"""`StoreOpener` opens the store of a backup destination: a bucket, a local folder or a claim."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from obstore import exceptions
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from etcd_operator.backup.claim_mounts import ClaimMounter, StoreRequest, orphaned_pods
from etcd_operator.backup.credentials import AmbientCredentials, amazon, azure, google
from etcd_operator.backup.snapshot_store import Bucket, DestinationError, SnapshotStore, store_errors
from etcd_operator.connector import endpoint_refusal
from etcd_operator.destinations import (
    AbsSource,
    BackupDestination,
    GcsSource,
    LocalSource,
    S3Source,
    is_in_bucket,
    is_server,
    object_of,
)
from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.tls import secret_access_denied
from navarch import Context
from navarch.api import Object
from navarch.client import Client
from navarch.errors import Forbidden, InvalidValueError, NotFound
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


_SECONDS: Final = timedelta(seconds=10)
_RETRIES: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": _SECONDS}


class StoreOpener:
    """Opens stores. `local` destinations are below `folder`, one subfolder per namespace; None refuses them.

    Pods of `image`, which contains Python, mount claims. `ambient` holds the rules for the operator's own credentials.
    """

    def __init__(
        self, folder: Path | None = None, image: str = PYTHON_IMAGE, ambient: AmbientCredentials | None = None
    ) -> None:
        self._folder = folder
        self._ambient = ambient or AmbientCredentials()
        self._claims = ClaimMounter(image)

    @property
    def has_folder(self) -> bool:
        """True if `local` destinations are available."""
        return self._folder is not None

    @asynccontextmanager
    async def opened(self, place: BackupDestination, visit: StoreRequest) -> AsyncIterator[tuple[SnapshotStore, str]]:
        """Opens the store for the block, and yields it with the name of the object; raises `BackupError`."""
        if place.pvc is None:
            yield await self.open(place, visit.ctx.client, visit.owner.namespace)
            return
        async with self._claims.opened(place.pvc, visit) as files:
            yield files, place.pvc.path

    async def tidy(self, owner: Object, ctx: Context) -> None:
        """Deletes the pods that an earlier process of the operator left of this backup or restore."""
        for pod in await orphaned_pods(owner, ctx):
            await ctx.delete(pod)

    async def open(self, place: BackupDestination, client: Client, namespace: str) -> tuple[Bucket, str]:
        """Opens a bucket or folder, which needs no pod and no cleanup."""
        if place.local is not None:
            return self._local(place.local, namespace)
        return Bucket(await _BucketOpener(client, namespace, self._ambient).opened(place)), object_of(place)

    def _local(self, place: LocalSource, namespace: str) -> tuple[Bucket, str]:
        if self._folder is None:
            raise DestinationError("the operator has no folder for backups: set ETCD_OPERATOR_BACKUPS")
        path = PurePosixPath(place.path)
        if path.is_absolute() or ".." in path.parts:
            raise DestinationError("expected a local.path below the operator's folder")
        with store_errors("opening the operator's folder"):
            return Bucket(LocalStore(self._folder / namespace, mkdir=True)), str(path)


class _BucketOpener:
    """Opens buckets for one namespace, with a Secret of it or with the operator's own credentials."""

    def __init__(self, client: Client, namespace: str, ambient: AmbientCredentials) -> None:
        self._client = client
        self._namespace = namespace
        self._ambient = ambient

    async def opened(self, place: BackupDestination) -> ObjectStore:
        """Opens the bucket; raises `DestinationError`. It repeats the CRD's rules, because an older object may predate them."""
        source = place.s3 or place.gcs or place.abs
        if source is None:
            raise DestinationError("expected a destination for backups, got none")
        if not is_in_bucket(source.path):
            raise DestinationError("expected a path such as bucket/folder/etcd.db, without empty folders, `.` and `..`")
        if source.endpoint and not is_server(source.endpoint):
            raise DestinationError(
                "expected an endpoint such as https://store.example.com, without user, query and fragment"
            )
        name = _secret_of(source)
        secret = await self._secret(name) if name else None
        if source.endpoint and secret is not None and (message := await endpoint_refusal(source.endpoint)):
            raise DestinationError(message)
        try:
            return self._store(source, secret)
        except exceptions.BaseError:
            given = f"what the Secret {name} has" if secret is not None else "the operator's own credentials"
            raise DestinationError(f"the store cannot be opened with {given}") from None

    def _store(self, source: S3Source | GcsSource | AbsSource, secret: Secret | None) -> ObjectStore:
        match source:
            case S3Source():
                return self._s3(source, secret)
            case GcsSource():
                return self._gcs(source, secret)
            case _:
                return self._abs(source, secret)

    def _s3(self, source: S3Source, secret: Secret | None) -> ObjectStore:
        if secret is None:
            self._ambient.refuse_others(source, self._namespace)
        config, provider = amazon(secret) if secret is not None else ({}, None)
        config["virtual_hosted_style_request"] = not (source.force_path_style or source.endpoint)
        if source.endpoint:
            config["endpoint"] = source.endpoint
        options = _reach(source.endpoint)
        return S3Store(
            _name(source), config=config, client_options=options, retry_config=_RETRIES, credential_provider=provider
        )

    def _gcs(self, source: GcsSource, secret: Secret | None) -> ObjectStore:
        if secret is None:
            self._ambient.refuse_others(source, self._namespace)
        config, provider = google(secret, self._client.clock.now) if secret is not None else ({}, None)
        config = {**config, **({"base_url": source.endpoint} if source.endpoint else {})}
        options = _reach(source.endpoint)
        return GCSStore(
            _name(source), config=config, client_options=options, retry_config=_RETRIES, credential_provider=provider
        )

    def _abs(self, source: AbsSource, secret: Secret | None) -> ObjectStore:
        if secret is None:
            raise DestinationError("expected a Secret with `storage-account` and `storage-key`: set absSecret")
        config, provider = azure(secret)
        if source.endpoint:
            config["endpoint"] = source.endpoint
        options = _reach(source.endpoint)
        return AzureStore(
            _name(source), config=config, client_options=options, retry_config=_RETRIES, credential_provider=provider
        )

    async def _secret(self, name: str) -> Secret:
        try:
            return await self._client.get(Secret, name, namespace=self._namespace)
        except NotFound:
            raise DestinationError(f"Secret {name} does not exist") from None
        except InvalidValueError as error:
            raise DestinationError(f"the name of the Secret is invalid: {error}") from None
        except Forbidden as error:
            raise DestinationError(secret_access_denied(f"get Secret {name}", self._namespace, error)) from None


def _secret_of(source: S3Source | GcsSource | AbsSource) -> str:
    match source:
        case S3Source():
            return source.aws_secret
        case GcsSource():
            return source.gcp_secret
        case _:
            return source.abs_secret


def _name(source: S3Source | GcsSource | AbsSource) -> str:
    """Returns the name of the bucket or container."""
    return source.path.partition("/")[0]


def _reach(endpoint: str) -> ClientConfig:
    """Returns client options that allow plain HTTP only for an http:// endpoint, whatever the environment says."""
    return {"allow_http": endpoint.startswith("http://"), "connect_timeout": _SECONDS}
