"""A claim that is cancelled leaves no job to a worker that does not exist: what had come is given back, and its attempt does not count."""

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from faces import Face
from server import Server

import holdfast.asyncio
from holdfast import ClosedError, Queue, QueueConfig, Store

CONFIG = QueueConfig(indexes=["due"], attempts_max=1)
ROUNDS = 200


@pytest.fixture
def face() -> Face:
    return Face(True)


@pytest.fixture
def queue(store: Any, loop: asyncio.AbstractEventLoop) -> Any:
    queue = holdfast.asyncio.Queue(store, CONFIG)
    loop.run_until_complete(queue.create_index("due", "job:"))
    return queue


async def check_that_it_can_be_done(store: Any, queue: Any, key: str) -> None:
    """The job is pending, as if it had never been claimed, and its first attempt is the first that a handler sees."""
    fields = (await store.get(key)).to_dict()
    assert fields.pop("run_at") and fields == {"state": "pending"}
    job = await queue.next("w-2", 0)
    assert (job.key, job.token) == (key, 1)
    await job.complete()


async def test_cancelled_around_the_moment_of_an_add(store: Any, queue: Any, blocked: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    chance = random.Random()
    for number in range(ROUNDS):
        waiting = asyncio.ensure_future(queue.next("w-1", 30_000))
        if number % 4:
            await eventually(lambda: blocked(1))
        adding = asyncio.ensure_future(queue.add(f"job:{number}", {}))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(adding, waiting, return_exceptions=True)
        if waiting.cancelled():
            await check_that_it_can_be_done(store, queue, f"job:{number}")
        else:
            assert waiting.result().token == 1
            await waiting.result().complete()
        assert await blocked(0)


async def test_timeouts_around_the_moment_of_an_add(store: Any, queue: Any) -> None:
    for number in range(50):
        adding = asyncio.ensure_future(queue.add(f"job:{number}", {}))
        try:
            job = await asyncio.wait_for(queue.next("w-1", 30_000), number / 10_000)
        except asyncio.TimeoutError:
            await adding
            await check_that_it_can_be_done(store, queue, f"job:{number}")
        else:
            await job.complete()
            await adding


async def test_a_claim_that_does_not_wait_is_given_back_too(store: Any, queue: Any) -> None:
    for number in range(50):
        await queue.add(f"job:{number}", {})
        claiming = asyncio.ensure_future(queue.next("w-1", 0))
        for _ in range(number % 10):
            await asyncio.sleep(0)
        claiming.cancel()
        await asyncio.wait([claiming])
        if claiming.cancelled():
            await check_that_it_can_be_done(store, queue, f"job:{number}")
        else:
            await claiming.result().complete()


async def test_several_cancellations_are_one(store: Any, queue: Any, blocked: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    for number in range(20):
        waiting = asyncio.ensure_future(queue.next("w-1", 30_000))
        await eventually(lambda: blocked(1))
        adding = asyncio.ensure_future(queue.add(f"job:{number}", {}))
        while not waiting.done():
            waiting.cancel()
            await asyncio.sleep(0)
        await adding
        assert waiting.cancelled()
        await check_that_it_can_be_done(store, queue, f"job:{number}")


async def test_a_connection_whose_wait_was_ended_is_used_again(store: Any, queue: Any, server: Server, blocked: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    async def cancel_one() -> None:
        waiting = asyncio.ensure_future(queue.next("w-1", 30_000))
        await eventually(lambda: blocked(1))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    await cancel_one()
    made = (await store.client.info("stats"))["total_connections_received"]
    for _ in range(5):
        await cancel_one()
    assert (await store.client.info("stats"))["total_connections_received"] == made


async def test_a_user_without_client_unblock_ends_the_connection(
    store: Any, queue: Any, connect: Callable[..., Coroutine[Any, Any, Any]], blocked: Callable[[int], Coroutine[Any, Any, bool]]
) -> None:
    await store.client.execute_command("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-client|unblock")
    narrow = await connect(username="narrow", password="secret")
    waiting = asyncio.ensure_future(holdfast.asyncio.Queue(narrow, CONFIG).next("w-1", 30_000))
    await eventually(lambda: blocked(1))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: blocked(0))
    await store.client.execute_command("ACL", "DELUSER", "narrow")


async def test_a_store_that_is_closed_gives_back_first(store: Any, queue: Any, connect: Callable[..., Coroutine[Any, Any, Any]], blocked: Any) -> None:
    for number in range(20):
        closing = await connect()
        waiting = asyncio.ensure_future(holdfast.asyncio.Queue(closing, CONFIG).next("w-1", 30_000))
        await eventually(lambda: blocked(1))
        adding = asyncio.ensure_future(queue.add(f"job:{number}", {}))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        await closing.close()
        await asyncio.gather(adding, waiting, return_exceptions=True)
        if waiting.exception() is None:
            await store.client.hset(f"job:{number}", "state", "completed")
        else:
            assert isinstance(waiting.exception(), ClosedError)
            await check_that_it_can_be_done(store, queue, f"job:{number}")


def test_a_blocking_store_that_is_closed_gives_back_first(server: Server) -> None:
    with Store.connect(server.url) as store:
        prepare(store)
        for number in range(20):
            closing, ended = Store.connect(server.url), list[object]()

            def wait() -> None:
                try:
                    ended.append(Queue(closing, CONFIG).next("w-1", 30_000))
                except ClosedError as error:
                    ended.append(error)

            thread = threading.Thread(target=wait)
            thread.start()
            while store.client.info("clients")["blocked_clients"] != 1:
                pass
            adding = threading.Thread(target=Queue(store, CONFIG).add, args=(f"job:{number}", {}))
            adding.start()
            closing.close()
            adding.join()
            thread.join()
            # Unless the worker got the job, it is as if it had not been claimed.
            assert not isinstance(ended[0], ClosedError) or set(store.get(f"job:{number}") or ()) == {"state", "run_at"}
            store.delete(f"job:{number}")


#: Ends a loop around the moment of an add, while a worker waits: asyncio.run cancels what is under way.
ENDING_LOOPS = """
import asyncio, sys
import holdfast.asyncio
from holdfast import Queue, QueueConfig, Store

store, config = Store.connect(sys.argv[1]), QueueConfig(indexes=["due"], attempts_max=1)
got = []

async def wait_and_add(number):
    mine = await holdfast.asyncio.Store.connect(sys.argv[1])
    queue = holdfast.asyncio.Queue(mine, config)
    waiting = asyncio.ensure_future(queue.next("w-1", 30_000))
    # A claim may end after the last look at it, and before its loop does.
    waiting.add_done_callback(lambda claim: claim.cancelled() or got.append((number, claim.result().key)))
    while (await mine.client.info("clients"))["blocked_clients"] != 1:
        pass
    adding = asyncio.ensure_future(queue.add(f"job:{number}", {}))
    for _ in range(number % 12):
        await asyncio.sleep(0)

for number in range(60):
    key = f"job:{number}"
    asyncio.run(wait_and_add(number))
    # The end of the loop may have cancelled the add, too.
    if (number, key) not in got and (record := store.get(key)) is not None:
        assert set(record) == {"state", "run_at"}, "it was claimed"
    store.delete(key)
"""

#: Interrupts a thread that waits, as Ctrl-C does, at once, while it sends or reads; and then adds a job.
INTERRUPTED = """
import signal, sys, threading
from holdfast import Queue, QueueConfig, Store

store, other = Store.connect(sys.argv[1]), Store.connect(sys.argv[1])
queue = Queue(store, QueueConfig(indexes=["due"], attempts_max=1))

def interrupt(main):
    while other.client.info("clients")["blocked_clients"] != 1:
        pass
    signal.pthread_kill(main, signal.SIGINT)

for number in range(50):
    thread = threading.Thread(target=interrupt, args=(threading.get_ident(),))
    thread.start()
    try:
        queue.next("w-1", 30_000)
        raise AssertionError("there is no job")
    except KeyboardInterrupt:
        queue.add(f"job:{number}", {})
    assert store.client.info("clients")["blocked_clients"] == 0
    thread.join()
    assert set(store.get(f"job:{number}")) == {"state", "run_at"}, "it was claimed"
    store.delete(f"job:{number}")
"""


@pytest.mark.parametrize("program", [ENDING_LOOPS, INTERRUPTED], ids=["a loop that ends", "a thread that is interrupted"])
def test_a_program_that_ends_gives_back(program: str, server: Server) -> None:
    with Store.connect(server.url) as store:
        prepare(store)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    words = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", program, server.url]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr


def prepare(store: Store) -> None:
    for index in store.indexes():
        store.drop_index(index)
    store.client.flushall()
    Queue(store, CONFIG).create_index("due", "job:")
