"""Memcached v1alpha1: what users write, and what the operator reports."""

from navarch import Resource, Spec, Status


class MemcachedSpec(Spec):
    """The desired state."""

    foo: str = ""
    """An example of a field: edit it, and add others."""


class MemcachedStatus(Status):
    """The observed state; observedGeneration and conditions come with it."""


class Memcached(Resource[MemcachedSpec, MemcachedStatus], group="cache.example.com", version="v1alpha1"):
    """A Memcached."""
