"""Many clients at once: threads over one pool, and the asyncio client."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from conftest import address, run


def test_threads_share_a_pool(r, protocol):
    pool = redis.BlockingConnectionPool(**address(), protocol=protocol, max_connections=8, decode_responses=True)
    shared = redis.Redis(connection_pool=pool)

    def work(worker):
        for i in range(200):
            shared.incr("total")
            shared.hincrby("by-worker", worker, 1)
            shared.set(f"own:{worker}", i)
            assert shared.get(f"own:{worker}") == str(i)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(16)))
    assert r.get("total") == "3200"
    assert r.hgetall("by-worker") == {str(worker): "200" for worker in range(16)}
    pool.disconnect()


def test_asyncio_commands(r, protocol):
    async def conversation(client):
        assert await client.ping() is True
        assert await client.set("k", "v", ex=100) is True
        assert await client.get("k") == "v"
        await client.hset("h", mapping={"a": "1", "b": "2"})
        assert await client.hgetall("h") == {"a": "1", "b": "2"}
        assert sorted([name async for name in client.scan_iter()]) == ["h", "k"]
        with pytest.raises(redis.ResponseError):
            await client.incr("h")
        assert (await client.info("server"))["redis_mode"] == "standalone"

    run(protocol, conversation)


def test_asyncio_pipeline(r, protocol):
    async def conversation(client):
        async with client.pipeline(transaction=False) as p:
            for i in range(500):
                p.hset("h", f"f{i}", i)
            assert await p.execute() == [1] * 500
        assert await client.hlen("h") == 500

    run(protocol, conversation)


def test_asyncio_many_at_once(r, protocol):
    async def conversation(client):
        replies = await asyncio.gather(*(client.incr("n") for _ in range(300)))
        assert sorted(replies) == list(range(1, 301))

    run(protocol, conversation)
