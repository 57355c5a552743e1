"""redis-py's Lock: SET NX to take it, Lua to give it back, extend it and take it again, by token."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import run
from redis.exceptions import LockNotOwnedError


def test_a_lock_is_taken_and_given_back(r):
    lock = r.lock("lock", timeout=100)
    assert lock.acquire(blocking=False) is True
    assert lock.locked() and lock.owned()
    assert r.lock("lock", timeout=100).acquire(blocking=False) is False
    lock.release()
    assert r.exists("lock") == 0


def test_a_lock_that_somebody_else_took(r):
    lock = r.lock("lock", timeout=100)
    lock.acquire()
    r.set("lock", "another token")
    with pytest.raises(LockNotOwnedError):
        lock.release()
    assert r.get("lock") == "another token"


def test_extend_adds_to_what_is_left_or_replaces_it(r):
    lock = r.lock("lock", timeout=100)
    lock.acquire()
    assert lock.extend(100) is True
    assert 100_000 < r.pttl("lock") <= 200_000
    assert lock.extend(1000, replace_ttl=True) is True
    assert 200_000 < r.pttl("lock") <= 1_000_000
    assert lock.reacquire() is True
    assert 0 < r.pttl("lock") <= 100_000
    r.delete("lock")
    with pytest.raises(LockNotOwnedError):
        lock.extend(100)
    r.set("lock", "another token")
    with pytest.raises(LockNotOwnedError):
        lock.reacquire()


def test_locks_survive_a_script_flush(r):
    with r.lock("lock", timeout=100):
        r.script_flush()
    assert r.exists("lock") == 0


def test_a_lock_keeps_threads_apart(r, connect):
    start = threading.Barrier(4)

    def work(_):
        client = connect()
        start.wait(20)
        for _ in range(10):
            with client.lock("lock", timeout=100, sleep=0.001):
                # Without the lock, others would come between the reading and the writing.
                client.set("n", int(client.get("n") or 0) + 1)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert r.get("n") == "40"
    assert r.exists("lock") == 0


def test_asyncio_locks_keep_tasks_apart(r, protocol):
    async def conversation(client):
        async def work():
            for _ in range(3):
                async with client.lock("lock", timeout=100, sleep=0.001):
                    await client.set("n", int(await client.get("n") or 0) + 1)

        await asyncio.gather(*(work() for _ in range(5)))
        assert await client.get("n") == "15"
        lock = client.lock("lock", timeout=100)
        await lock.acquire()
        assert await lock.extend(100) is True
        await client.delete("lock")
        with pytest.raises(LockNotOwnedError):
            await lock.release()

    run(protocol, conversation)
