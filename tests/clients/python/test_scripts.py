"""Lua scripts as redis-py runs them: registered once, sent by digest, loaded again when the server has forgotten them."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from conftest import COMPARE_AND_SWAP, eventually, run


@pytest.fixture
def swap(r):
    """The compare-and-swap script, unknown to the server."""
    r.script_flush()
    return r.register_script(COMPARE_AND_SWAP)


def test_register_script_loads_what_the_server_forgot(r, swap):
    r.hset("job", "state", "pending")
    assert r.script_exists(swap.sha) == [False]
    assert swap(keys=["job"], args=["state", "pending", "claimed"]) == 1
    assert r.script_exists(swap.sha) == [True]
    assert swap(keys=["job"], args=["state", "pending", "claimed"]) == 0
    r.script_flush()
    assert swap(keys=["job"], args=["state", "claimed", "running"]) == 1
    assert r.hget("job", "state") == "running"


def test_register_script_digest_is_the_servers(r, swap):
    assert r.script_load(COMPARE_AND_SWAP) == swap.sha


@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "multi"])
def test_script_in_a_pipeline(r, swap, transaction):
    with r.pipeline(transaction=transaction) as p:
        p.hset("job", mapping={"state": "pending", "worker": "nobody"})
        swap(keys=["job"], args=["state", "pending", "claimed"], client=p)
        swap(keys=["job"], args=["state", "pending", "claimed"], client=p)
        p.hget("job", "state")
        assert p.execute() == [2, 1, 0, "claimed"]


def test_every_job_is_claimed_once(r, connect, swap):
    jobs = [f"gbe:state:tasks:email-send:job_{i}" for i in range(100)]
    for job in jobs:
        r.hset(job, mapping={"state": "pending", "task_type": "email-send"})
    start = threading.Barrier(8)

    def work(worker):
        client = connect()
        claim = client.register_script(COMPARE_AND_SWAP)
        start.wait(20)
        won = []
        for job in jobs:
            if claim(keys=[job], args=["state", "pending", "claimed"]) == 1:
                client.hset(job, mapping={"worker": worker, "state": "running"})
                won.append(job)
        return won

    with ThreadPoolExecutor(8) as threads:
        winners = list(threads.map(work, range(8)))
    assert sorted(job for won in winners for job in won) == sorted(jobs)
    for worker, won in enumerate(winners):
        for job in won:
            assert r.hgetall(job) == {"state": "running", "task_type": "email-send", "worker": str(worker)}


def test_every_job_is_claimed_once_by_tasks(r, protocol):
    async def conversation(client):
        await client.script_flush()
        claim = client.register_script(COMPARE_AND_SWAP)
        jobs = [f"job:{i}" for i in range(40)]
        for job in jobs:
            await client.hset(job, "state", "pending")

        async def work(worker):
            return [job for job in jobs if await claim(keys=[job], args=["state", "pending", worker])]

        winners = await asyncio.gather(*(work(worker) for worker in range(10)))
        assert sorted(job for won in winners for job in won) == sorted(jobs)
        for worker, won in enumerate(winners):
            for job in won:
                assert await client.hget(job, "state") == str(worker)

    run(protocol, conversation)


def test_what_a_script_returns(r, protocol):
    several = "return {KEYS[1], ARGV[1], #KEYS, #ARGV, 3.99, true, {ok='fine'}}"
    assert r.eval(several, 1, "k", "a") == ["k", "a", 1, 1, 3, 1, "fine"]
    assert r.eval("return {1, nil, 3}", 0) == [1]
    assert r.eval("return false", 0) is None
    r.hset("h", "f", "v")
    as_map = {"f": "v"} if protocol == 3 else ["f", "v"]
    assert r.eval("redis.setresp(3) return redis.call('HGETALL', KEYS[1])", 1, "h") == as_map
    truth = True if protocol == 3 else 1
    assert r.eval("redis.setresp(3) return true", 0) == truth
    double = 3.5 if protocol == 3 else "3.5"
    assert r.eval("return {double=3.5}", 0) == double


def test_bytes_pass_through_a_script(raw):
    every_byte = bytes(range(256))
    script = raw.register_script("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])")
    assert script(keys=[every_byte], args=[every_byte]) == every_byte
    assert raw.get(every_byte) == every_byte


def test_script_kill_ends_an_endless_script(r, connect, setting):
    setting("busy-reply-threshold", 20)
    refusals = []
    other = connect()

    def loop():
        try:
            other.eval("while true do end", 0)
        except redis.ResponseError as refusal:
            refusals.append(str(refusal))

    def killed():
        try:
            return r.script_kill()
        except redis.exceptions.ResponseError:  # NOTBUSY until it runs
            return False

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    eventually(killed)
    thread.join()
    assert "Script killed by user" in refusals[0]
    assert r.ping() is True
