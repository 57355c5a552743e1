"""MULTI, EXEC and WATCH through redis-py's pipelines and its `transaction` helper, also when clients get in each other's way."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from conftest import run


def test_a_pipeline_is_a_transaction(r):
    with r.pipeline() as p:
        p.set("k", "1").incr("k").hset("h", mapping={"a": 1, "b": 2}).hgetall("h").get("absent").expire("k", 100)
        assert p.execute() == [True, 2, 2, {"a": "1", "b": "2"}, None, True]


def test_an_error_at_run_time_stops_nothing(r):
    with r.pipeline() as p:
        p.set("text", "abc").incr("text").set("after", "x")
        first, second, third = p.execute(raise_on_error=False)
    assert (first, third) == (True, True)
    assert isinstance(second, redis.ResponseError)
    assert r.get("after") == "x"


def test_watch_finds_a_change(r):
    r.set("k", "1")
    with r.pipeline() as p:
        p.watch("k")
        assert p.get("k") == "1"
        r.set("k", "2")
        p.multi()
        p.set("k", "mine")
        with pytest.raises(redis.WatchError):
            p.execute()
    assert r.get("k") == "2"


def test_unwatch(r):
    with r.pipeline() as p:
        p.watch("k")
        r.set("k", "theirs")
        p.unwatch()
        p.set("k", "mine")
        assert p.execute() == [True]


def test_a_pipeline_that_is_left_forgets_what_it_watched(connect):
    only = connect(single_connection_client=True)
    with only.pipeline() as p:
        p.watch("k")
        p.set("k", "changed by the one who watches")
    with only.pipeline() as p:
        assert p.get("k").execute() == ["changed by the one who watches"]


def test_transaction_tries_again(r, connect):
    other, attempts = connect(), []
    r.set("k", "1")

    def double(p):
        value = int(p.get("k"))
        attempts.append(value)
        if len(attempts) < 3:
            other.incr("k")
        p.multi()
        p.set("k", value * 2)

    assert r.transaction(double, "k") == [True]
    assert attempts == [1, 2, 3]
    assert r.get("k") == "6"


def test_transactions_of_many_threads_lose_nothing(r, connect):
    start = threading.Barrier(6)

    def work(worker):
        client = connect()

        def add(p):
            total, own = p.get("total"), p.hget("by-worker", worker)
            p.multi()
            p.set("total", int(total or 0) + 1)
            p.hset("by-worker", worker, int(own or 0) + 1)

        start.wait(20)
        for _ in range(25):
            client.transaction(add, "total", "by-worker")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert r.get("total") == "150"
    assert r.hgetall("by-worker") == {str(worker): "25" for worker in range(6)}


def test_asyncio_transactions_lose_nothing(r, protocol):
    async def conversation(client):
        async def work():
            async def add(p):
                value = int(await p.get("total") or 0)
                p.multi()
                p.set("total", value + 1)

            for _ in range(5):
                await client.transaction(add, "total")

        await asyncio.gather(*(work() for _ in range(6)))
        assert await client.get("total") == "30"

    run(protocol, conversation)


def test_asyncio_watch_finds_a_change(r, protocol):
    async def conversation(client):
        async with client.pipeline() as p:
            await p.watch("k")
            await client.set("k", "theirs")
            p.multi()
            p.set("k", "mine")
            with pytest.raises(redis.WatchError):
                await p.execute()
        assert await client.get("k") == "theirs"

    run(protocol, conversation)
