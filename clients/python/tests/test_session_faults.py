"""The proof of sessions: many clients count through connections that are cut at random bytes, while the server is killed and started
again. At the end every counter is the number of increments that were asked for."""

import asyncio
import hashlib
import random
import time
from contextlib import suppress
from typing import Any

import pytest
from faces import Face
from proxy import Proxy
from server import Server

from holdfast import ServerError, UnavailableError

CLIENTS = 16
INCREMENTS = 40
KILLS = 3
SCRIPT = "return redis.call('INCR', KEYS[1])"
SHA = hashlib.sha1(SCRIPT.encode()).hexdigest()


@pytest.mark.parametrize("protocol", [3], ids=["both-protocols"])
async def test_every_increment_counts_once(store: Any, face: Face, server: Server) -> None:
    if missing := server.lacks("session.open", "session.call"):
        pytest.skip(f"the server has no {missing[0]}")
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    proxy = Proxy(server.port, seed)
    done = 0

    async def count(client: int) -> None:
        nonlocal done
        choice = random.Random(seed + client)
        own = await _connect(face, proxy.url, choice.choice([2, 3]))
        session = await own.sessions.open()

        async def increment(n: int) -> None:
            nonlocal done
            assert await _increment(session, choice.randrange(4)) > 0
            # Of a counter of its own a client knows every reply.
            assert await session.call("INCR", f"own:{client}") == n
            done += 1

        # Half of the clients have several requests under way.
        for n in range(1, INCREMENTS + 1):
            if client % 2 == 0:
                await increment(n)
            else:
                await asyncio.gather(increment(n), _increment(session, choice.randrange(4)), _increment(session, 0))
        with suppress(UnavailableError):
            await session.close()  # or it expires
        await own.close()

    async def kill() -> None:
        for kill in range(1, KILLS + 1):
            deadline = time.monotonic() + 60
            while done < CLIENTS * INCREMENTS * kill / (KILLS + 1):
                assert time.monotonic() < deadline, "no increment is answered"
                await asyncio.sleep(0.001)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.run)

    try:
        await asyncio.gather(kill(), *(count(client) for client in range(CLIENTS)))
    finally:
        proxy.end()

    async def get(*words: str) -> int:
        return int(await face.command(store.client, *words) or 0)

    shared = await get("GET", "plain") + await get("HGET", "hash", "field") + await get("GET", "script")
    assert shared == CLIENTS // 2 * INCREMENTS + CLIENTS // 2 * INCREMENTS * 3
    assert [await get("GET", f"own:{client}") for client in range(CLIENTS)] == [INCREMENTS] * CLIENTS
    assert proxy.cuts > CLIENTS, "connections were cut"


async def _connect(face: Face, url: str, protocol: int) -> Any:
    """A store is made without a session, so that a connection that is cut meanwhile is an error."""
    while True:
        try:
            return await face.connect(url, protocol=protocol, connections_max=2)
        except UnavailableError:
            pass


async def _increment(session: Any, kind: int) -> Any:
    if kind == 0:
        return await session.call("INCR", "plain")
    if kind == 1:
        return await session.call("HINCRBY", "hash", "field", 1)
    if kind == 2:
        return await session.call("EVAL", SCRIPT, 1, "script")
    try:
        return await session.call("EVALSHA", SHA, 1, "script")
    except ServerError as error:
        assert error.code == "NOSCRIPT"  # which is a reply: nothing has run
        return await session.call("EVAL", SCRIPT, 1, "script")
