"""Where backups are kept, through obstore; and what its refusals mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from obstore import exceptions
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from etcd_operator.backup.faults import PlaceError, StoreError
from etcd_operator.backup.secrets import amazon, azure, google
from etcd_operator.places import AbsSource, GcsSource, LocalSource, Place, S3Source, object_of
from navarch.client import Client
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

__all__ = ["Stores", "explained"]

_SECONDS: Final = timedelta(seconds=10)
_RETRIES: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": _SECONDS}
_MEANING: Final[tuple[tuple[type[Exception], str], ...]] = (
    (FileNotFoundError, "there is no such object, bucket or folder"),
    (exceptions.PermissionDeniedError, "the store refuses: these credentials may not do that"),
    (exceptions.UnauthenticatedError, "the store refuses: the credentials are wrong"),
    (exceptions.InvalidPathError, "the store does not take that name"),
    (OSError, "the store cannot be written or read; it may be full"),
    (exceptions.BaseError, "the store failed, is full or cannot be reached"),
)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """What a store raises in the block becomes a `StoreError` in words of ours: its own may quote keys and signatures."""
    try:
        yield
    except (exceptions.BaseError, OSError) as error:
        words = next(words for kind, words in _MEANING if isinstance(error, kind))
        raise StoreError(f"{doing}: {words}") from None


class Stores:
    """Opens stores. Backups to a folder are below `folder`, each namespace in one of its own; None refuses them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def has_folder(self) -> bool:
        """Whether backups can be put into a folder of the operator."""
        return self._folder is not None

    async def open(self, place: Place, client: Client, namespace: str) -> tuple[ObjectStore, str]:
        """The store and the name of the object in it; raises `PlaceError`."""
        if place.local is not None:
            return self._local(place.local, namespace)
        return await _bucket(place, client, namespace), object_of(place)

    def _local(self, place: LocalSource, namespace: str) -> tuple[ObjectStore, str]:
        if self._folder is None:
            raise PlaceError("this operator was given no folder for backups: set ETCD_OPERATOR_BACKUPS")
        path = PurePosixPath(place.path)
        if path.is_absolute() or ".." in path.parts:
            raise PlaceError("local.path stays below the operator's folder")
        with explained("opening the operator's folder"):
            return LocalStore(self._folder / namespace, mkdir=True), str(path)


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
