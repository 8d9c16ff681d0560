"""Short names for what a pod template says."""

from __future__ import annotations

import hashlib

import msgspec

from navarch.api import Model, to_builtins

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' own: no vowels, so that no words come about."""


def hash_of(part: Model, collisions: int | None) -> str:
    """The same for the same content, always; with another number of collisions another.

    >>> from navarch.k8s.core.v1 import Container, PodSpec
    >>> hash_of(PodSpec(containers=[Container(name="a")]), None) == hash_of(PodSpec(containers=[Container(name="a")]), 0)
    True
    """
    content = msgspec.json.encode(to_builtins(part), order="sorted")
    digest = hashlib.blake2b(content + str(collisions or 0).encode(), digest_size=4).digest()
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(int.from_bytes(digest)))
