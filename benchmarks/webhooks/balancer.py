"""What a Service does: accepts connections at BENCH_PORT, and forwards each to the next of the replicas at BENCH_REPLICAS."""

import asyncio
import itertools
import os

import uvloop

_replicas = itertools.cycle([int(port) for port in os.environ["BENCH_REPLICAS"].split(",")])


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


async def _accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        answers, requests = await asyncio.open_connection("127.0.0.1", next(_replicas))
    except OSError:
        writer.close()
        return
    await asyncio.gather(_forward(reader, requests), _forward(answers, writer))


async def _run() -> None:
    server = await asyncio.start_server(_accept, "127.0.0.1", int(os.environ["BENCH_PORT"]), backlog=1024)
    async with server:
        await server.serve_forever()


uvloop.run(_run())
