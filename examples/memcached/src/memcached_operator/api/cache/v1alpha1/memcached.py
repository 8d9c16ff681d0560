"""Memcached v1alpha1: what users write, and what the operator reports."""

from typing import Annotated

from navarch import Meta, Resource, Spec, Status


class MemcachedSpec(Spec):
    size: Annotated[int, Meta(ge=0, le=64)] = 1
    """How many memcached pods to run."""


class MemcachedStatus(Status):  # observedGeneration and conditions come with it
    nodes: list[str] = []
    """Names of the memcached pods."""


class Memcached(
    Resource[MemcachedSpec, MemcachedStatus],
    group="cache.example.com",
    version="v1alpha1",
    short_names=("mc",),
):
    """A set of memcached pods."""
