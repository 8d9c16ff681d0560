"""What it takes to be let in by members."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from etcd_operator.trust.authority import Pair
from navarch.etcd import EtcdTls

__all__ = ["Keys"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Keys:
    """Who the operator is to the members of a cluster, and whom it takes for one.

    `faults` name the Secret and the key that is missing or wrong: nothing is started then. `authorities` is a fingerprint
    of whom members trust.
    """

    client: Pair | None = None
    trusted: bytes = b""
    server_name: str = ""
    user: str = ""
    password: str = ""
    authorities: str = ""
    faults: tuple[str, ...] = ()

    @contextmanager
    def tls(self) -> Iterator[EtcdTls | None]:
        """As files that only this user can read, while the block lasts; None without TLS."""
        if self.client is None:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="etcd-operator-") as folder:
            texts = {"ca.crt": self.trusted, "tls.crt": self.client.certificate, "tls.key": self.client.key}
            files = {name: Path(folder, name) for name in texts}
            for name, text in texts.items():
                files[name].write_bytes(text)
            yield EtcdTls(
                ca_file=files["ca.crt"],
                certificate_file=files["tls.crt"],
                key_file=files["tls.key"],
                server_name=self.server_name,
            )
