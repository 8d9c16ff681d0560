"""Which namespaces may use the operator's own cloud credentials, and below which prefixes: what its administrator configured.

Ambient credentials come from the operator's environment, the metadata server of its machine, or its workload identity.
Without a rule nobody has them: whoever may create an EtcdBackup would read and write all that the operator may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from etcd_operator.backup.faults import PlaceError
from etcd_operator.places import BUCKET, GcsSource, S3Source, names_nothing_else
from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError

__all__ = ["AmbientCredentials", "Prefix"]

_FORM: Final = re.compile(rf"(s3|gs)://({BUCKET})(?:/(.*))?", re.DOTALL)
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Prefix:
    """A bucket, or a folder of one: `s3://bucket/team-a` has `team-a/etcd.db` in it, and neither `team-ab/x` nor `team-a`."""

    scheme: str
    bucket: str
    folders: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Prefix:
        """Raises `ConfigError` for anything but `s3://bucket/folder/` or `gs://bucket/folder/`."""
        found = _FORM.fullmatch(text)
        folders = (found[3] or "") if found else ""
        path = folders.removesuffix("/")
        if found is None or (folders and not names_nothing_else(path)):
            raise ConfigError(
                f"expected a prefix such as s3://bucket/folder/ or gs://bucket/folder/, got {text[:100]!r}"
            )
        return cls(found[1], found[2], tuple(path.split("/")) if path else ())

    def covers(self, scheme: str, path: str) -> bool:
        """Whether the object at that path, which begins with its bucket, is in it; compared folder by folder."""
        bucket, *folders = path.split("/")
        inside = tuple(folders[: len(self.folders)]) == self.folders and len(folders) > len(self.folders)
        return (scheme, bucket) == (self.scheme, self.bucket) and inside


class AmbientCredentials:
    """The rules in a file: YAML or JSON, namespaces with a list of prefixes each. Where there is no file there are none.

    It is read at each use: what the administrator takes back is no longer allowed from then on.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def rules(self) -> Mapping[str, tuple[Prefix, ...]]:
        """By namespace; raises `ConfigError`."""
        if self._file is None:
            return {}
        try:
            with self._file.open("rb") as file:
                content = yaml.safe_load(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, yaml.YAMLError, RecursionError, ValueError) as error:
            raise ConfigError(f"{self._file} cannot be read: {type(error).__name__}") from None
        if content is None:
            return {}
        if not isinstance(content, dict):
            raise ConfigError(f"expected namespaces with a list of prefixes each in {self._file}")
        return {_namespace(name): tuple(map(Prefix.of, _texts(name, each))) for name, each in content.items()}

    def refuse_others(self, source: S3Source | GcsSource, namespace: str) -> None:
        """Raises `PlaceError` unless the namespace has a rule for that object, and no endpoint is given."""
        secret = "awsSecret" if isinstance(source, S3Source) else "gcpSecret"
        if source.endpoint:
            raise PlaceError(f"an endpoint needs a Secret of the same namespace: set {secret}")
        try:
            prefixes = self.rules().get(namespace, ())
        except ConfigError as error:
            raise PlaceError(f"the operator's own credentials cannot be used: {error}") from None
        scheme = "s3" if isinstance(source, S3Source) else "gs"
        if not any(prefix.covers(scheme, source.path) for prefix in prefixes):
            words = f"the namespace {namespace} may not use the operator's own credentials for {scheme}://{source.path}"
            raise PlaceError(f"{words}: set {secret}, or have its administrator allow a prefix (ETCD_OPERATOR_AMBIENT)")


def _namespace(name: object) -> str:
    if not isinstance(name, str) or not DNS_LABEL.allows(name):
        raise ConfigError(f"expected the name of a namespace, got {str(name)[:100]!r}; patterns are not taken")
    return name


def _texts(name: object, prefixes: object) -> list[str]:
    if not isinstance(prefixes, list) or not all(isinstance(each, str) for each in prefixes):
        raise ConfigError(f"expected a list of prefixes for {name}, such as [s3://bucket/folder/]")
    return prefixes
