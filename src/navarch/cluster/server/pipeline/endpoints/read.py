"""get, list and watch."""

from __future__ import annotations

from navarch.cluster.server.objects.list_pages import (
    asked_limit,
    list_page,
    parsed_integer,
    parsed_version,
    refuse_future,
)
from navarch.cluster.server.objects.registry import seen_all
from navarch.cluster.server.objects.response_bodies import PROTOBUF, list_reply
from navarch.cluster.server.objects.selectors import selection_of, selectors_of
from navarch.cluster.server.objects.watches import WatchParameters
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import refuse_list_options, refuse_watch_options
from navarch.cluster.server.wire.request import Reply
from navarch.cluster.server.wire.status_errors import StatusError

_LEAST_SECONDS = 1800.0


async def get(call: ResourceCall) -> Reply:
    """One object."""
    await check_read_version(call)
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    return await call.answer(found.stored)


async def check_read_version(call: ResourceCall) -> None:
    """Refuses a version that is none with 500, as the real server does, and one that has not come yet with 504.

    Kinds without a watch cache are answered as for lists.
    """
    try:
        wanted = parsed_version(call.request.parameter("resourceVersion"))
    except StatusError as refusal:
        if not call.resource.has_watch_cache:
            raise
        raise StatusError(500, "", refusal.message.removeprefix("invalid resource version: ")) from None
    if wanted:
        await refuse_future(call.kernel.registry.storage, wanted)


async def list_all(call: ResourceCall) -> Reply:
    """The objects that are meant, or a page of them."""
    asked_limit(call.request)
    parsed_integer(call.request, "timeoutSeconds")
    selectors = await call.read_query(lambda: selectors_of(call.request))
    refuse_list_options(call.request)
    selection, form = selection_of(selectors, call.resource), call.form()
    storage = call.kernel.registry.storage
    listed = await list_page(storage, call.resource, call.request, selection, call.info.namespace)
    items = await seen_all(call.resource, listed.items)
    body = list_reply(items, listed.metadata, call.resource, form, call.request)
    return Reply(200, body, content_type=form.media_type, warnings=call.warnings)


async def watch(call: ResourceCall) -> Reply:
    """What happens to the objects that are meant, from a revision on, or beginning with what is there."""
    asked = await _watch_request(call)
    lines = call.kernel.watches.lines_of(asked)
    content_type = f"{PROTOBUF};stream=watch" if asked.form.media_type == PROTOBUF else asked.form.media_type
    return Reply(200, content_type=content_type, warnings=call.warnings, stream=lines)


async def _watch_request(call: ResourceCall) -> WatchParameters:
    request = call.request
    version, initial = request.parameter("resourceVersion"), request.flag("sendInitialEvents")
    refuse_watch_options(request)
    after = parsed_version(version)
    bookmarks = request.flag("allowWatchBookmarks")
    selectors = await call.read_query(lambda: selectors_of(request))
    return WatchParameters(
        resource=call.resource,
        namespace=call.info.namespace,
        selection=selection_of(selectors, call.resource),
        form=call.form(),
        request=request,
        after=None if initial or (not after and not request.parameter("sendInitialEvents")) else after,
        bookmarks=bookmarks,
        marks_initial_end=initial and bookmarks,
        seconds=_seconds(call),
    )


def _seconds(call: ResourceCall) -> float:
    """As long as was asked for; else some time between half an hour and an hour, so that not all end at once."""
    seconds = parsed_integer(call.request, "timeoutSeconds")
    return float(seconds) if seconds > 0 else _LEAST_SECONDS * (1 + call.kernel.rng.random())
