"""Backup destinations and policies, as EtcdCluster, EtcdBackup and EtcdRestore share them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec

from navarch import Meta, Model, Quantity, Rule

_PATH = Meta(min_length=1, max_length=1024)
BUCKET: Final = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""The bucket becomes part of a host name; another character could change the host."""
_LETTER: Final = r"[^/\\\x00-\x1f\x7f]"
_NOT_DOT: Final = r"[^/.\\\x00-\x1f\x7f]"
_FOLDER: Final = rf"(?:\.?{_NOT_DOT}{_LETTER}*|\.\.{_LETTER}+)"
"""A path segment: neither empty nor `.` nor `..`, without backslash and control characters."""
_NAMES: Final = rf"{_FOLDER}(?:/{_FOLDER})*"
_OBJECT: Final = f"{BUCKET}/{_NAMES}"
_SERVER: Final = r"https?://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~/-]*)?"
"""A URL without user, query and fragment."""
_IN_BUCKET = Meta(pattern="^[^/]+/.*[^/]$")
_IN_FOLDER = Meta(pattern="^[^/].*[^/]$")
_ENDPOINT = Meta(max_length=1024)
_LONGEST: Final = 100 * 365 * 24 * 3600
"""The longest duration in seconds; a longer one would overflow a date."""
_SCHEDULE: Final = (
    r"^$|^((TZ|CRON_TZ)=\S+ +)?"
    r"(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every [0-9a-z.]+|(\S+ +){4}\S+)$"
)
ONE_DESTINATION: Final = Rule(
    "[has(self.s3), has(self.gcs), has(self.abs), has(self.pvc), has(self.local)].filter(given, given).size() == 1",
    message="expected exactly one of s3, gcs, abs, pvc and local",
)


def matches_destination(field: str) -> Rule:
    """Returns the rule that CoreOS' redundant field, if set, names the destination that is given."""
    return Rule(
        f"!has(self.{field}) || self.{field} == "
        "(has(self.s3) ? 'S3' : has(self.gcs) ? 'GCS' : has(self.abs) ? 'ABS' : has(self.pvc) ? 'PVC' : 'Local')",
        message=f"{field} differs from the destination that is given: omit it, or change one of them",
    )


def _bucket_rules(secret: str) -> tuple[Rule, ...]:
    """Returns the rules of a destination in a bucket. They are CEL rules, not patterns of the model: an older stored object
    still decodes, and its status reports the error.
    """
    return (
        Rule(
            f"!has(self.endpoint) || self.endpoint == '' || (has(self.{secret}) && self.{secret} != '')",
            message=f"an endpoint needs a Secret of this namespace: set {secret}",
        ),
        Rule(
            f"!has(self.endpoint) || self.endpoint == '' || self.endpoint.matches(r'^{_SERVER}$')",
            message="expected an endpoint such as https://store.example.com, without user, query and fragment",
        ),
        Rule(
            f"self.path.matches(r'^{_OBJECT}$')",
            message="expected a path such as bucket/folder/etcd.db, without empty folders, `.` and `..`",
        ),
    )


class S3Source(Model, rules=_bucket_rules("awsSecret")):
    """S3, or a compatible store."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """`bucket/object`."""
    aws_secret: str = ""
    """A Secret with `credentials` and `config`, as the files of AWS' tools. Without it, the operator uses its own
    credentials, if its administrator has allowed that for this namespace and path.
    """
    endpoint: Annotated[str, _ENDPOINT] = ""
    """The URL of a store other than AWS. It needs a Secret."""
    force_path_style: bool = False


class GcsSource(Model, rules=_bucket_rules("gcpSecret")):
    """Google Cloud Storage."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """`bucket/object`."""
    gcp_secret: str = ""
    """A Secret with `access-token`, or with the key of a service account as `credentials.json`. Without it, the operator
    uses its own credentials, if its administrator has allowed that for this namespace and path.
    """
    endpoint: Annotated[str, _ENDPOINT] = ""
    """The URL of a store other than Google's. It needs a Secret."""


class AbsSource(Model, rules=_bucket_rules("absSecret")):
    """Azure Blob Storage."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """`container/blob`."""
    abs_secret: Annotated[str, Meta(min_length=1)]
    """A Secret with `storage-account` and `storage-key`; and `cloud`, such as `AzureChinaCloud`, if it is not the public one."""
    endpoint: Annotated[str, _ENDPOINT] = ""
    """The URL of a store other than Azure's."""


class PvcSource(
    Model,
    rules=(
        Rule(
            "has(self.size) || !has(self.className) || self.className == ''",
            message="className is for a claim that the operator creates: set its size too",
        ),
    ),
):
    """A PersistentVolumeClaim of this namespace; a short-lived pod mounts it."""

    claim_name: Annotated[str, Meta(min_length=1, max_length=253, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
    path: Annotated[str, _PATH, _IN_FOLDER]
    """The file in the claim."""
    size: Quantity | None = None
    """The operator creates a missing claim with this size, and never deletes it."""
    class_name: str = ""
    """The storage class of a created claim; the default class if empty."""


class LocalSource(Model):
    """A folder of the operator, such as a claim that is mounted into its pod."""

    path: Annotated[str, _PATH, _IN_FOLDER]
    """The file, below the operator's folder for backups."""


Source = S3Source | GcsSource | AbsSource | PvcSource | LocalSource


class BackupDestination(Model):
    """The destination of a snapshot: exactly one of these."""

    s3: S3Source | None = None
    gcs: GcsSource | None = None
    abs: AbsSource | None = None
    pvc: PvcSource | None = None
    local: LocalSource | None = None


class BackupPolicy(
    Model,
    rules=(
        Rule(
            "!(has(self.schedule) && self.schedule != '' && "
            "has(self.backupIntervalInSecond) && self.backupIntervalInSecond > 0)",
            message="expected either schedule or backupIntervalInSecond",
        ),
        *(
            Rule(f"!has(self.{field}) || self.{field} <= {_LONGEST}", message=f"expected {field} of at most 100 years")
            for field in ("timeoutInSecond", "backupIntervalInSecond", "maxAgeInSecond")
        ),
    ),
):
    """The schedule and the retention of backups."""

    timeout_in_second: Annotated[int, Meta(ge=0)] = 0
    """The timeout of one backup; 0 means 60 seconds, or 300 on a claim, whose pod may take as long again to start."""
    backup_interval_in_second: Annotated[int, Meta(ge=0)] = 0
    """The interval between backups. Without it and without a schedule there is one backup."""
    schedule: Annotated[str, Meta(max_length=128, pattern=_SCHEDULE)] = ""
    """A cron schedule, such as `0 2 * * *`."""
    time_zone: Annotated[str, Meta(max_length=64)] = ""
    """The time zone of the schedule, such as `Europe/Berlin`; UTC if empty."""
    max_backups: Annotated[int, Meta(ge=0)] = 0
    """The number of snapshots to keep; 0 keeps all. The newest, and up to ten of earlier clusters, always stay."""
    max_age_in_second: Annotated[int, Meta(ge=0)] = 0
    """Older snapshots are deleted; 0 keeps all."""

    @property
    def interval(self) -> timedelta:
        """The interval; 0 if there is none."""
        return timedelta(seconds=min(self.backup_interval_in_second, _LONGEST))

    @property
    def max_age(self) -> timedelta:
        """The maximal age; 0 keeps all."""
        return timedelta(seconds=min(self.max_age_in_second, _LONGEST))

    @property
    def is_repeated(self) -> bool:
        """True if there is a schedule or an interval."""
        return bool(self.schedule or self.backup_interval_in_second)


class ClusterBackup(BackupDestination, rules=(ONE_DESTINATION,)):
    """The backups of a cluster. Without a schedule or an interval, only upgrades use the destination."""

    policy: BackupPolicy = BackupPolicy()
    before_upgrade: bool = True
    """An upgrade waits for a successful snapshot."""


def source_of(place: BackupDestination) -> Source | None:
    """Returns the source that is set."""
    return place.s3 or place.gcs or place.abs or place.pvc or place.local


def path_of(place: BackupDestination) -> str:
    """Returns the path of the spec, which tells whether a snapshot is at the current destination."""
    source = source_of(place)
    if isinstance(source, PvcSource):
        return f"{source.claim_name}/{source.path}"
    return source.path if source is not None else ""


def sources(place: BackupDestination) -> dict[str, Any]:
    """Returns the fields of the destination, for another object that has them."""
    return {"s3": place.s3, "gcs": place.gcs, "abs": place.abs, "pvc": place.pvc, "local": place.local}


def object_of(place: BackupDestination) -> str:
    """Returns the name of the object in its store.

    >>> object_of(BackupDestination(s3=S3Source(path="bucket/some/etcd.db")))
    'some/etcd.db'
    """
    source = source_of(place)
    return source.path.removeprefix(_bucket(source)) if source is not None else ""


def with_object(place: BackupDestination, name: str) -> BackupDestination:
    """Returns the same store with another object name.

    >>> with_object(BackupDestination(s3=S3Source(path="bucket/some/etcd.db")), "other").s3.path
    'bucket/other'
    """
    given = {field: source for field, source in sources(place).items() if source is not None}
    return BackupDestination(
        **{field: msgspec.structs.replace(source, path=f"{_bucket(source)}{name}") for field, source in given.items()}
    )


def is_plain_path(path: str) -> bool:
    """Reports whether every store interprets the path literally.

    >>> [is_plain_path(each) for each in ("some/etcd.db", "a//b", "a/../b", "./a", "a/", "...")]
    [True, False, False, False, False, True]
    """
    return re.fullmatch(_NAMES, path) is not None


def is_in_bucket(path: str) -> bool:
    """Reports whether the path is `bucket/object`; a CEL rule checks the same."""
    return re.fullmatch(_OBJECT, path) is not None


def is_server(endpoint: str) -> bool:
    """Reports whether the endpoint is the URL of a host; a CEL rule checks the same."""
    return re.fullmatch(_SERVER, endpoint) is not None


def _bucket(source: Source) -> str:
    """Returns the bucket or container of the path with its slash; empty for a claim or folder."""
    return "" if isinstance(source, PvcSource | LocalSource) else f"{source.path.partition('/')[0]}/"
