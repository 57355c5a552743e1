"""Functions through redis-py: libraries are loaded once and stay, functions are called by name.

A server may come with libraries of its own, so the tests ask for theirs by name.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from conftest import COMPARE_AND_SWAP, eventually, run

JOBS = f"""#!lua name=jobs
redis.register_function('claim', function(KEYS, ARGV)
{COMPARE_AND_SWAP}
end)
redis.register_function{{
    function_name = 'state_of',
    callback = function(keys, args) return redis.call('HGET', keys[1], 'state') end,
    flags = {{'no-writes'}},
    description = 'Tells the state of a job.',
}}
"""


@pytest.fixture(autouse=True)
def functions(need, r):
    need("fcall", "fcall_ro", "function")
    r.function_flush()
    yield
    r.config_set("busy-reply-threshold", 5000)
    r.function_flush()


@pytest.fixture
def jobs(r, functions):
    assert r.function_load(JOBS) == "jobs"
    return r


def listed(client, name, **options):
    """The libraries of that name, in one shape for both protocols."""

    def as_dict(value):
        return value if isinstance(value, dict) else dict(zip(value[::2], value[1::2]))

    libraries = [as_dict(library) for library in client.function_list(name, **options)]
    for library in libraries:
        library["functions"] = sorted(map(as_dict, library["functions"]), key=lambda each: each["name"])
        for each in library["functions"]:
            each["flags"] = set(each["flags"])
    return libraries


def test_fcall(jobs):
    jobs.hset("job", "state", "pending")
    assert jobs.fcall("claim", 1, "job", "state", "pending", "claimed") == 1
    assert jobs.fcall("claim", 1, "job", "state", "pending", "claimed") == 0
    assert jobs.fcall("state_of", 1, "job") == "claimed"
    assert jobs.fcall_ro("state_of", 1, "job") == "claimed"


def test_function_list(jobs):
    claim, state_of = (
        {"name": "claim", "description": None, "flags": set()},
        {"name": "state_of", "description": "Tells the state of a job.", "flags": {"no-writes"}},
    )
    library = {"library_name": "jobs", "engine": "LUA", "functions": [claim, state_of]}
    assert listed(jobs, "jobs") == [library]
    assert listed(jobs, "j?b*", withcode=True) == [{**library, "library_code": JOBS}]
    assert listed(jobs, "nosuch") == []


def test_every_job_is_claimed_once(jobs, connect):
    names = [f"gbe:state:tasks:email-send:job_{i}" for i in range(100)]
    for name in names:
        jobs.hset(name, "state", "pending")
    start = threading.Barrier(8)

    def work(worker):
        client = connect()
        start.wait(20)
        return [name for name in names if client.fcall("claim", 1, name, "state", "pending", worker)]

    with ThreadPoolExecutor(8) as threads:
        winners = list(threads.map(work, range(8)))
    assert sorted(name for won in winners for name in won) == sorted(names)
    for worker, won in enumerate(winners):
        for name in won:
            assert jobs.fcall_ro("state_of", 1, name) == str(worker)


def test_functions_in_transactions(jobs):
    with jobs.pipeline() as p:
        p.hset("job", "state", "pending")
        p.fcall("claim", 1, "job", "state", "pending", "claimed")
        p.fcall_ro("state_of", 1, "job")
        assert p.execute() == [1, 1, "claimed"]


def test_function_load_and_replace(jobs):
    with pytest.raises(redis.ResponseError, match="Library 'jobs' already exists"):
        jobs.function_load(JOBS)
    jobs.function_load("#!lua name=jobs\nredis.register_function('other', function() return 'new' end)", replace=True)
    assert jobs.fcall("other", 0) == "new"
    with pytest.raises(redis.ResponseError, match="^Function not found$"):
        jobs.fcall("claim", 1, "job", "state", "pending", "claimed")


def test_function_delete(jobs):
    assert jobs.function_delete("jobs") in (True, "OK")
    assert listed(jobs, "jobs") == []
    with pytest.raises(redis.ResponseError, match="^Library not found$"):
        jobs.function_delete("jobs")
    with pytest.raises(redis.ResponseError, match="^Function not found$"):
        jobs.fcall_ro("state_of", 1, "job")


def test_function_dump_and_restore(jobs):
    payload = jobs.function_dump()
    assert isinstance(payload, bytes)
    jobs.function_flush()
    assert jobs.function_restore(payload) in (True, "OK")
    assert listed(jobs, "jobs", withcode=True)[0]["library_code"] == JOBS
    jobs.hset("job", "state", "pending")
    assert jobs.fcall("claim", 1, "job", "state", "pending", "claimed") == 1


def test_function_stats(jobs):
    stats = jobs.function_stats()
    if not isinstance(stats, dict):
        stats = dict(zip(stats[::2], stats[1::2]))
    assert stats["running_script"] is None
    assert "LUA" in stats["engines"]


def test_function_kill_ends_an_endless_function(r, connect):
    r.function_load("#!lua name=endless\nredis.register_function('endless', function() while true do end end)")
    r.config_set("busy-reply-threshold", 20)
    refusals, other = [], connect()

    def loop():
        try:
            other.fcall("endless", 0)
        except redis.ResponseError as refusal:
            refusals.append(str(refusal))

    def running():
        return "endless" in str(r.function_stats())

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    eventually(running)
    assert r.function_kill() in (True, "OK")
    thread.join(20)
    assert "Script killed by user" in refusals[0]
    assert not running()


def test_the_function_that_comes_with_the_server(r, connect):
    if not listed(r, "holdfast"):
        pytest.skip("the server has no library of its own")
    r.function_flush()
    r.hset("job", "state", "pending")
    clients = [connect() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        swap = ["compare_and_swap", 1, "job", "state", "pending", "claimed"]
        won = list(threads.map(lambda client: client.fcall(*swap), clients))
    assert sorted(won) == [0, 0, 0, 1]
    assert r.hget("job", "state") == "claimed"


def test_asyncio_functions(r, protocol):
    async def conversation(client):
        assert await client.function_load(JOBS) == "jobs"
        await client.hset("job", "state", "pending")
        assert await client.fcall("claim", 1, "job", "state", "pending", "claimed") == 1
        assert await client.fcall_ro("state_of", 1, "job") == "claimed"
        payload = await client.function_dump()
        assert await client.function_delete("jobs") in (True, "OK")
        assert await client.function_restore(payload, "REPLACE") in (True, "OK")
        assert len(await client.function_list("jobs")) == 1

    run(protocol, conversation)
