"""Hashes without field expiry: fields, counters, random fields and HSCAN, small and large."""

import pytest
import redis


def test_hset_and_hget(r):
    assert r.hset("h", "f", "v") == 1
    assert r.hset("h", "f", "w", mapping={"g": 1, "h": 2}) == 2
    assert r.hget("h", "f") == "w"
    assert r.hget("h", "absent") is None
    assert r.hget("absent", "f") is None
    assert r.hmget("h", "g", "absent", "h") == ["1", None, "2"]
    assert r.type("h") == "hash"


def test_hgetall_hkeys_hvals(r):
    fields = {f"f{i}": f"v{i}" for i in range(10)}
    assert r.hset("h", mapping=fields) == 10
    assert r.hgetall("h") == fields
    assert r.hgetall("absent") == {}
    assert sorted(r.hkeys("h")) == sorted(fields)
    assert sorted(r.hvals("h")) == sorted(fields.values())
    assert r.hlen("h") == 10


def test_hsetnx_hstrlen_hmset(r):
    assert r.hsetnx("h", "f", "first") == 1
    assert r.hsetnx("h", "f", "second") == 0
    assert r.hstrlen("h", "f") == 5
    assert r.execute_command("HMSET", "h", "a", "1", "b", "2") in (True, "OK")
    assert r.hlen("h") == 3


def test_hash_counters(r):
    assert r.hincrby("h", "n", 5) == 5
    assert r.hincrby("h", "n", -7) == -2
    assert r.hincrbyfloat("h", "n", 0.5) == -1.5
    r.hset("h", "text", "abc")
    with pytest.raises(redis.ResponseError, match="^hash value is not an integer$"):
        r.hincrby("h", "text", 1)
    with pytest.raises(redis.ResponseError, match="^hash value is not a float$"):
        r.hincrbyfloat("h", "text", 1)


def test_hrandfield(r, protocol):
    fields = {"a": "1", "b": "2", "c": "3"}
    r.hset("h", mapping=fields)
    assert r.hrandfield("h") in fields
    assert sorted(r.hrandfield("h", 10)) == ["a", "b", "c"]
    assert len(r.hrandfield("h", -10)) == 10
    assert r.hrandfield("absent") is None
    chosen = r.hrandfield("h", 3, withvalues=True)
    pairs = zip(chosen[::2], chosen[1::2]) if protocol == 2 else chosen
    assert dict(pairs) == fields


@pytest.mark.parametrize("size", [10, 5000])
def test_hscan_iter(r, size):
    fields = {f"f{i}": f"v{i}" for i in range(size)}
    r.hset("h", mapping=fields)
    assert dict(r.hscan_iter("h", count=100)) == fields
    assert {name for name, _ in r.hscan_iter("h", match="f1*")} == {name for name in fields if name.startswith("f1")}


@pytest.mark.parametrize("size", [10, 5000])
def test_hscan_iter_no_values(r, size):
    fields = {f"f{i}": "v" for i in range(size)}
    r.hset("h", mapping=fields)
    try:
        names = list(r.hscan_iter("h", no_values=True))
    except redis.ResponseError as refusal:
        assert str(refusal) == "syntax error"
        pytest.skip("the server's HSCAN has no NOVALUES")
    assert set(names) == set(fields)
