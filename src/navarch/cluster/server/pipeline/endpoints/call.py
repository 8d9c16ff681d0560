"""`ResourceCall`: one request on a resource, with everything that its endpoint needs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.objects.registry import Registry, seen
from navarch.cluster.server.objects.request_bodies import decode_object
from navarch.cluster.server.objects.response_bodies import ResponseForm, asked_form, shaped
from navarch.cluster.server.objects.types import Catalog, ResourceType, WriteContext
from navarch.cluster.server.objects.watches import Watches
from navarch.cluster.server.pipeline.admission.attributes import Admission, Attributes
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import ApiRequest, Json, Reply, RequestInfo, User
from navarch.cluster.server.wire.status_errors import forbidden
from navarch.cluster.storage import Stored

T = TypeVar("T")
_WEIGHT_OF_SELECTORS = 4


def random_uuid(rng: random.Random) -> str:
    """A UUID of version 4, in a sixth of the time that the standard library takes: every request and object has one."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class RequestAuthorizer(Protocol):
    """Who may what."""

    def why_not(self, user: User, info: RequestInfo) -> str | None:
        """None if it is allowed, else why it is not, in Kubernetes' words."""
        ...


class Kernel(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    catalog: Catalog
    watches: Watches
    admission: Admission
    authorizer: RequestAuthorizer
    clock: Clock
    rng: random.Random


class ResourceCall(msgspec.Struct):
    """A request on `resource` by `user`."""

    kernel: Kernel
    request: ApiRequest
    info: RequestInfo
    resource: ResourceType
    user: User
    warnings: list[str] = msgspec.field(default_factory=list)
    dry_run: bool = False
    """Whether nothing is to be stored."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the request's audit record."""
    _now: str = ""

    def __post_init__(self) -> None:
        self.dry_run = "All" in self.request.query.get("dryRun", ())

    @property
    def manager(self) -> str:
        """Who owns the fields that are written: as the request says, else the first word of its user agent."""
        given = self.request.parameter("fieldManager")
        return given or self.request.headers.get("user-agent", "").split("/")[0] or "unknown"

    @property
    def operation(self) -> WriteContext:
        """For strategies."""
        return WriteContext(
            user=self.user,
            namespace=self.info.namespace,
            dry_run=self.dry_run,
            manager=self.manager,
            now=self.now(),
        )

    def require(self, verb: str) -> None:
        """403 for a user who may not do this with the object of the request, whatever the request itself is."""
        info = replace(self.info, verb=verb)
        why_not = self.kernel.authorizer.why_not(self.user, info)
        if why_not is not None:
            raise forbidden(info.group, info.resource, info.name, why_not)

    async def decoded(self) -> Json:
        """The object in the body, checked against its schema; see `decode_object`."""
        return await self.read_body(lambda: decode_object(self.request, self.resource, self.warnings))

    async def read_body(self, step: Callable[[], T]) -> T:
        """Runs a step that decodes the body; see `RequestBudget.run`."""
        return await current_budget().run(step, size=len(self.request.body))

    async def read_query(self, step: Callable[[], T]) -> T:
        """Runs a step that parses selectors; each character of them takes several times as long as one of a body."""
        return await current_budget().run(step, size=_WEIGHT_OF_SELECTORS * len(self.request.raw_query))

    def form(self) -> ResponseForm:
        """In which form the answer is wanted."""
        accept, resource = self.request.headers.get("accept", ""), self.resource
        return asked_form(accept, has_protobuf=not resource.is_custom, has_table=bool(resource.columns))

    def now(self) -> str:
        """The time of the request, as objects have it."""
        if not self._now:
            self._now = format_time(truncate_to_seconds(self.kernel.clock.now()))
        return self._now

    async def answer(self, stored: Stored, status: int = 200) -> Reply:
        """A stored object as the answer."""
        return self._reply(await seen(self.resource, stored), status)

    def answer_value(self, value: Json, status: int = 200) -> Reply:
        """An object that is not stored as the answer."""
        return self._reply(msgspec.json.encode(value), status)

    def _reply(self, data: bytes, status: int) -> Reply:
        form = self.form()
        body = shaped(data, self.resource, form, self.request)
        return Reply(status, body, content_type=form.media_type, warnings=self.warnings)

    async def admitted(self, operation: str, value: Json | None, old: Json | None, options: Json) -> Attributes:
        """The attributes after mutating admission."""
        attributes = self._attributes(operation, value, old, options)
        budget = current_budget()
        await budget.yield_loop()
        changed = await self.kernel.admission.mutate(attributes, self.warnings)
        await budget.yield_loop()
        return attributes if changed is value else replace(attributes, value=changed)

    async def validated(self, attributes: Attributes, value: Json | None) -> None:
        """Refuses what validating admission does not let pass."""
        attributes = attributes if attributes.value is value else replace(attributes, value=value)
        budget = current_budget()
        await budget.yield_loop()
        await self.kernel.admission.validate(attributes, self.warnings)
        await budget.yield_loop()

    def _attributes(self, operation: str, value: Json | None, old: Json | None, options: Json) -> Attributes:
        return Attributes(
            operation=operation,
            resource=self.resource,
            subresource=self.info.subresource,
            namespace=self.info.namespace,
            name=self.info.name or _name(value),
            value=value,
            old=old,
            options=options,
            dry_run=self.dry_run,
            user=self.user,
            annotations=self.annotations,
        )


def _name(value: Json | None) -> str:
    return str(value["metadata"].get("name", "")) if value else ""
