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


def test_evalsha_of_an_unknown_script(r):
    with pytest.raises(redis.exceptions.NoScriptError):
        r.evalsha("f" * 40, 0)


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


def test_libraries_of_a_script(r):
    assert r.eval("return cjson.encode({a = cjson.decode(ARGV[1])[2]})", 0, "[1,2]") == '{"a":2}'
    assert r.eval("return cmsgpack.unpack(cmsgpack.pack(ARGV[1]))", 0, "text") == "text"
    assert r.eval("return {struct.unpack('>I2', struct.pack('>I2', 4660))}", 0) == [4660, 3]
    assert r.eval("return bit.bor(5, 10)", 0) == 15
    assert r.eval("return redis.sha1hex('')", 0) == "da39a3ee5e6b4b0d3255bfef95601890afd80709"


def test_errors_of_a_script(r):
    r.set("text", "abc")
    with pytest.raises(redis.ResponseError, match="value is not an integer or out of range"):
        r.eval("redis.call('SET', 'before', 1) return redis.call('INCR', KEYS[1])", 1, "text")
    assert r.get("before") == "1"  # what a script did before it failed stays done
    with pytest.raises(redis.ResponseError, match="^MY words$"):
        r.eval("return redis.error_reply('MY words')", 0)
    with pytest.raises(redis.ResponseError, match="Error compiling script"):
        r.eval("return (", 0)
    with pytest.raises(redis.ResponseError, match="nonexistent global variable 'nosuch'"):
        r.eval("return nosuch", 0)
    assert r.eval("local e = redis.pcall('INCR', KEYS[1]) return e.err ~= nil", 1, "text") == 1


def test_read_only_scripts(r):
    r.set("k", "v")
    assert r.eval_ro("return redis.call('GET', KEYS[1])", 1, "k") == "v"
    sha = r.script_load("return redis.call('GET', KEYS[1])")
    assert r.evalsha_ro(sha, 1, "k") == "v"
    with pytest.raises(redis.ResponseError, match="Write commands are not allowed from read-only scripts"):
        r.eval_ro("return redis.call('SET', KEYS[1], 'x')", 1, "k")
    assert r.get("k") == "v"


def test_a_script_is_one_step(r, connect):
    """Two fields that only ever change together are never seen apart."""
    move = "redis.call('INCRBY', KEYS[1], -1) redis.call('INCRBY', KEYS[2], 1)"
    r.mset({"from": 300, "to": 0})

    def mover(_):
        script = connect().register_script(move)
        for _ in range(100):
            script(keys=["from", "to"])

    def watcher(_):
        client = connect()
        return {sum(map(int, client.mget("from", "to"))) for _ in range(100)}

    with ThreadPoolExecutor(5) as threads:
        moving = [threads.submit(mover, i) for i in range(3)]
        sums = [threads.submit(watcher, i) for i in range(2)]
        for each in moving:
            each.result()
        assert [each.result() for each in sums] == [{300}, {300}]
    assert r.mget("from", "to") == ["0", "300"]


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
