"""Where backups are kept: opens buckets, folders and claims."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from obstore import exceptions
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from etcd_operator.backup.claims import Claims, Visit, left_behind
from etcd_operator.backup.faults import PlaceError
from etcd_operator.backup.secrets import amazon, azure, google
from etcd_operator.backup.store import Bucket, Store, explained
from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.places import AbsSource, GcsSource, LocalSource, Place, S3Source, object_of
from navarch import Context
from navarch.api import Object
from navarch.client import Client
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

__all__ = ["Stores"]

_SECONDS: Final = timedelta(seconds=10)
_RETRIES: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": _SECONDS}


class Stores:
    """Opens stores. Backups to a folder are below `folder`, each namespace in one of its own; None refuses them.

    Claims are mounted into pods of `image`, which has a Python.
    """

    def __init__(self, folder: Path | None = None, image: str = PYTHON_IMAGE) -> None:
        self._folder = folder
        self._claims = Claims(image)

    @property
    def has_folder(self) -> bool:
        """Whether backups can be put into a folder of the operator."""
        return self._folder is not None

    @asynccontextmanager
    async def opened(self, place: Place, visit: Visit) -> AsyncIterator[tuple[Store, str]]:
        """The store and the name of the object in it, while the block lasts; raises a `BackupError`."""
        if place.pvc is None:
            yield await self.open(place, visit.ctx.client, visit.owner.namespace)
            return
        async with self._claims.opened(place.pvc, visit) as files:
            yield files, place.pvc.path

    async def tidy(self, owner: Object, ctx: Context) -> None:
        """Deletes what an earlier process of the operator may have left of this backup or restore."""
        for pod in await left_behind(owner, ctx):
            await ctx.delete(pod)

    async def open(self, place: Place, client: Client, namespace: str) -> tuple[Bucket, str]:
        """The same for what needs no pod, and no end."""
        if place.local is not None:
            return self._local(place.local, namespace)
        return Bucket(await _bucket(place, client, namespace)), object_of(place)

    def _local(self, place: LocalSource, namespace: str) -> tuple[Bucket, str]:
        if self._folder is None:
            raise PlaceError("this operator was given no folder for backups: set ETCD_OPERATOR_BACKUPS")
        path = PurePosixPath(place.path)
        if path.is_absolute() or ".." in path.parts:
            raise PlaceError("local.path stays below the operator's folder")
        with explained("opening the operator's folder"):
            return Bucket(LocalStore(self._folder / namespace, mkdir=True)), str(path)


async def _bucket(place: Place, client: Client, namespace: str) -> ObjectStore:
    match place:
        case Place(s3=S3Source() as s3):
            return _s3(s3, await _secret(client, s3.aws_secret, namespace))
        case Place(gcs=GcsSource() as gcs):
            return _gcs(gcs, await _secret(client, gcs.gcp_secret, namespace))
        case Place(abs=AbsSource() as blobs):
            return _abs(blobs, await _secret(client, blobs.abs_secret, namespace))
        case _:
            raise PlaceError("expected a place for backups, got none")


def _s3(place: S3Source, secret: Secret | None) -> ObjectStore:
    config = amazon(secret)
    config["virtual_hosted_style_request"] = not (place.force_path_style or place.endpoint)
    if place.endpoint:
        config["endpoint"] = place.endpoint
    with _usable(place.aws_secret):
        return S3Store(_name(place), config=config, client_options=_reach(place.endpoint), retry_config=_RETRIES)


def _gcs(place: GcsSource, secret: Secret | None) -> ObjectStore:
    config = google(secret)
    if place.endpoint:
        config["base_url"] = place.endpoint
    with _usable(place.gcp_secret):
        return GCSStore(_name(place), config=config, client_options=_reach(place.endpoint), retry_config=_RETRIES)


def _abs(place: AbsSource, secret: Secret | None) -> ObjectStore:
    config = azure(secret)
    if place.endpoint:
        config["endpoint"] = place.endpoint
    with _usable(place.abs_secret):
        return AzureStore(_name(place), config=config, client_options=_reach(place.endpoint), retry_config=_RETRIES)


def _name(place: S3Source | GcsSource | AbsSource) -> str:
    """Of the bucket or container."""
    return place.path.partition("/")[0]


def _reach(endpoint: str) -> ClientConfig:
    return {"allow_http": endpoint.startswith("http://"), "connect_timeout": _SECONDS}


@contextmanager
def _usable(secret: str) -> Iterator[None]:
    """A store that cannot even be opened has been given keys that are none, or an address that is none."""
    try:
        yield
    except exceptions.BaseError:
        raise PlaceError(
            f"the store cannot be opened with {f'what the Secret {secret} has' if secret else 'that endpoint'}"
        ) from None


async def _secret(client: Client, name: str, namespace: str) -> Secret | None:
    if not name:
        return None
    try:
        return await client.get(Secret, name, namespace=namespace)
    except NotFound:
        raise PlaceError(f"there is no Secret {name}") from None
