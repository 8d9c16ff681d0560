"""Where backups are kept, through obstore; and what its refusals mean."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from obstore import exceptions
from obstore.store import LocalStore, ObjectStore, S3Store

from etcd_operator.backup.faults import PlaceError, StoreError
from etcd_operator.backup.kinds import LocalSource, Place, S3Source
from navarch.client import Client
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import S3Config

__all__ = ["Stores", "explained"]

_REGION: Final = "us-east-1"
_TRIES: Final = 2
_SECONDS: Final = timedelta(seconds=10)
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

    async def open(self, place: Place, client: Client, namespace: str) -> tuple[ObjectStore, str]:
        """The store and the name of the object in it; raises `PlaceError`."""
        if place.s3 is not None:
            return await _s3(place.s3, client, namespace)
        if place.local is not None:
            return self._local(place.local, namespace)
        raise PlaceError("expected a place for backups, got none")

    def _local(self, place: LocalSource, namespace: str) -> tuple[ObjectStore, str]:
        if self._folder is None:
            raise PlaceError("this operator was given no folder for backups: set ETCD_OPERATOR_BACKUPS")
        path = PurePosixPath(place.path)
        if path.is_absolute() or ".." in path.parts:
            raise PlaceError("local.path stays below the operator's folder")
        with explained("opening the operator's folder"):
            return LocalStore(self._folder / namespace, mkdir=True), str(path)


async def _s3(place: S3Source, client: Client, namespace: str) -> tuple[ObjectStore, str]:
    bucket, _, name = place.path.partition("/")
    given = _aws(await _secret(client, place.aws_secret, namespace)) if place.aws_secret else {}
    with explained("opening the store"):
        store = S3Store(
            bucket,
            config=_s3_config(place, given),
            client_options={"allow_http": place.endpoint.startswith("http://"), "connect_timeout": _SECONDS},
            retry_config={"max_retries": _TRIES, "retry_timeout": _SECONDS},
        )
    return store, name


def _s3_config(place: S3Source, given: Mapping[str, str]) -> S3Config:
    config: S3Config = {
        "region": given.get("region", _REGION),
        "virtual_hosted_style_request": not (place.force_path_style or place.endpoint),
    }
    if place.endpoint:
        config["endpoint"] = place.endpoint
    if given:
        config["access_key_id"] = given["aws_access_key_id"]
        config["secret_access_key"] = given["aws_secret_access_key"]
    if "aws_session_token" in given:
        config["session_token"] = given["aws_session_token"]
    return config


async def _secret(client: Client, name: str, namespace: str) -> Mapping[str, bytes]:
    try:
        return (await client.get(Secret, name, namespace=namespace)).data or {}
    except NotFound:
        raise PlaceError(f"there is no Secret {name}") from None


def _aws(data: Mapping[str, bytes]) -> Mapping[str, str]:
    """What AWS' two files say of the default profile."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        for name in ("config", "credentials"):
            parser.read_string(data.get(name, b"").decode())
        found = dict(parser["default"])
    except (configparser.Error, KeyError, UnicodeDecodeError):
        found = {}
    if not {"aws_access_key_id", "aws_secret_access_key"} <= found.keys():
        raise PlaceError("the Secret has no key of AWS in `credentials`, under [default]")
    return found
