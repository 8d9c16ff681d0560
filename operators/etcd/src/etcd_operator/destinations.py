"""Where snapshots are, and how often they are taken: clusters, backups and restores say it alike."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final

import msgspec

from navarch import Meta, Model, Quantity, Rule

_PATH = Meta(min_length=1, max_length=1024)
BUCKET: Final = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""The name of a bucket becomes part of the name of a host: with another character, that could be any host."""
_LETTER: Final = r"[^/\\\x00-\x1f\x7f]"
_NOT_DOT: Final = r"[^/.\\\x00-\x1f\x7f]"
_FOLDER: Final = rf"(?:\.?{_NOT_DOT}{_LETTER}*|\.\.{_LETTER}+)"
"""Neither empty nor `.` nor `..`, and without a backslash or a control character."""
_NAMES: Final = rf"{_FOLDER}(?:/{_FOLDER})*"
_OBJECT: Final = f"{BUCKET}/{_NAMES}"
_SERVER: Final = r"https?://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~/-]*)?"
"""A host, without a user, a query or a fragment."""
_IN_BUCKET = Meta(pattern="^[^/]+/.*[^/]$")
_IN_FOLDER = Meta(pattern="^[^/].*[^/]$")
_ENDPOINT = Meta(max_length=1024)
_LONGEST: Final = 100 * 365 * 24 * 3600
"""In seconds. What is asked for beyond it has no end that a clock knows."""
_SCHEDULE: Final = (
    r"^$|^((TZ|CRON_TZ)=\S+ +)?"
    r"(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every [0-9a-z.]+|(\S+ +){4}\S+)$"
)
ONE_DESTINATION: Final = Rule(
    "[has(self.s3), has(self.gcs), has(self.abs), has(self.pvc), has(self.local)].filter(given, given).size() == 1",
    message="expected exactly one of s3, gcs, abs, pvc and local",
)


def matches_destination(field: str) -> Rule:
    """CoreOS' field says the place a second time: it may be left out, and must not say another one."""
    return Rule(
        f"!has(self.{field}) || self.{field} == "
        "(has(self.s3) ? 'S3' : has(self.gcs) ? 'GCS' : has(self.abs) ? 'ABS' : has(self.pvc) ? 'PVC' : 'Local')",
        message=f"{field} is another one than the place that is given: leave it out, or change one of them",
    )


def _bucket_rules(secret: str) -> tuple[Rule, ...]:
    """What the API server refuses of a place in a bucket. They are rules and no patterns: what was stored before is still
    read, and the operator says what is wrong with it.
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
    """S3, or what speaks like it."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """The bucket, a slash, and the name of the object."""
    aws_secret: str = ""
    """A Secret with `credentials` and `config`, as the files of AWS' tools. Without it, the operator's own credentials are
    used, where its administrator has allowed that for this namespace and path.
    """
    endpoint: Annotated[str, _ENDPOINT] = ""
    """Where the store is, if it is not AWS'. It needs a Secret."""
    force_path_style: bool = False


class GcsSource(Model, rules=_bucket_rules("gcpSecret")):
    """Google Cloud Storage."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """The bucket, a slash, and the name of the object."""
    gcp_secret: str = ""
    """A Secret with `access-token`, or with the key of a service account as `credentials.json`. Without it, the operator's
    own credentials are used, where its administrator has allowed that for this namespace and path.
    """
    endpoint: Annotated[str, _ENDPOINT] = ""
    """Where the store is, if it is not Google's. It needs a Secret."""


class AbsSource(Model, rules=_bucket_rules("absSecret")):
    """Azure Blob Storage."""

    path: Annotated[str, _PATH, _IN_BUCKET]
    """The container, a slash, and the name of the blob."""
    abs_secret: Annotated[str, Meta(min_length=1)]
    """A Secret with `storage-account` and `storage-key`; and `cloud`, such as `AzureChinaCloud`, if it is not the public one."""
    endpoint: Annotated[str, _ENDPOINT] = ""
    """Where the store is, if it is none of Azure's."""


class PvcSource(
    Model,
    rules=(
        Rule(
            "has(self.size) || !has(self.className) || self.className == ''",
            message="className is for a claim that the operator makes: give its size too",
        ),
    ),
):
    """A claim of this namespace. A pod that lives no longer than it takes mounts it."""

    claim_name: Annotated[str, Meta(min_length=1, max_length=253, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
    path: Annotated[str, _PATH, _IN_FOLDER]
    """The file in it."""
    size: Quantity | None = None
    """A claim that is not there is made with this size, and kept whatever becomes of the backup."""
    class_name: str = ""
    """Of a claim that is made; the default class if there is none."""


class LocalSource(Model):
    """A folder that the operator has, such as a claim that is mounted into it."""

    path: Annotated[str, _PATH, _IN_FOLDER]
    """The file, below the folder that the operator was given for backups."""


Source = S3Source | GcsSource | AbsSource | PvcSource | LocalSource


class BackupDestination(Model):
    """Where a snapshot is: exactly one of these."""

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
    """How often, and how many are kept."""

    timeout_in_second: Annotated[int, Meta(ge=0)] = 0
    """For one backup; 0 are 60 seconds, and 300 on a claim, whose pod may take as long again to start."""
    backup_interval_in_second: Annotated[int, Meta(ge=0)] = 0
    """So long after the last one. Without it and without a schedule there is one backup."""
    schedule: Annotated[str, Meta(max_length=128, pattern=_SCHEDULE)] = ""
    """A line of cron, such as `0 2 * * *`."""
    time_zone: Annotated[str, Meta(max_length=64)] = ""
    """Of the schedule, such as `Europe/Berlin`; UTC if there is none."""
    max_backups: Annotated[int, Meta(ge=0)] = 0
    """How many stay; 0 keeps all. The newest good one always stays, and so do up to ten of earlier clusters."""
    max_age_in_second: Annotated[int, Meta(ge=0)] = 0
    """Older ones go; 0 keeps all."""

    @property
    def interval(self) -> timedelta:
        """Between two; 0 if there is none."""
        return timedelta(seconds=min(self.backup_interval_in_second, _LONGEST))

    @property
    def max_age(self) -> timedelta:
        """Of those that stay; 0 keeps all."""
        return timedelta(seconds=min(self.max_age_in_second, _LONGEST))

    @property
    def is_repeated(self) -> bool:
        """Whether there is more than one."""
        return bool(self.schedule or self.backup_interval_in_second)


class ClusterBackup(BackupDestination, rules=(ONE_DESTINATION,)):
    """The backups of a cluster. Without a schedule or an interval, the place is for those before upgrades alone."""

    policy: BackupPolicy = BackupPolicy()
    before_upgrade: bool = True
    """No member starts with another version before a snapshot counts that was taken for it."""


def source_of(place: BackupDestination) -> Source | None:
    """The one that is given."""
    return place.s3 or place.gcs or place.abs or place.pvc or place.local


def path_of(place: BackupDestination) -> str:
    """Where it is in the words of the spec, which tell where a backup went from where it is to go now."""
    source = source_of(place)
    if isinstance(source, PvcSource):
        return f"{source.claim_name}/{source.path}"
    return source.path if source is not None else ""


def sources(place: BackupDestination) -> dict[str, Any]:
    """The fields of the place, for another object that has them."""
    return {"s3": place.s3, "gcs": place.gcs, "abs": place.abs, "pvc": place.pvc, "local": place.local}


def object_of(place: BackupDestination) -> str:
    """The name of the object in its store.

    >>> object_of(BackupDestination(s3=S3Source(path="bucket/some/etcd.db")))
    'some/etcd.db'
    """
    source = source_of(place)
    return source.path.removeprefix(_bucket(source)) if source is not None else ""


def with_object(place: BackupDestination, name: str) -> BackupDestination:
    """The same store, and the object of that name in it.

    >>> at(BackupDestination(s3=S3Source(path="bucket/some/etcd.db")), "other").s3.path
    'bucket/other'
    """
    given = {field: source for field, source in sources(place).items() if source is not None}
    return BackupDestination(
        **{field: msgspec.structs.replace(source, path=f"{_bucket(source)}{name}") for field, source in given.items()}
    )


def is_plain_path(path: str) -> bool:
    """Whether a path, or what follows the bucket in one, means in every store what it says.

    >>> [names_nothing_else(each) for each in ("some/etcd.db", "a//b", "a/../b", "./a", "a/", "...")]
    [True, False, False, False, False, True]
    """
    return re.fullmatch(_NAMES, path) is not None


def is_in_bucket(path: str) -> bool:
    """Whether it is the name of a bucket, a slash and the name of an object; the API server asks for that too."""
    return re.fullmatch(_OBJECT, path) is not None


def is_server(endpoint: str) -> bool:
    """Whether it is the URL of a host and nothing more; the API server asks for that too."""
    return re.fullmatch(_SERVER, endpoint) is not None


def _bucket(source: Source) -> str:
    """What comes before the name in the path: the bucket or container with its slash; nothing in a claim or folder."""
    return "" if isinstance(source, PvcSource | LocalSource) else f"{source.path.partition('/')[0]}/"
