"""Keys whatever they hold: expiry, scanning, copying, moving between databases, dumping, and their encoding."""


import pytest
import redis

FAR = 4_102_444_800  # the first second of the year 2100


def test_del_unlink_exists_touch(r):
    r.mset({"a": 1, "b": 2, "c": 3})
    assert r.exists("a", "a", "absent") == 2
    assert r.touch("a", "b", "absent") == 2
    assert r.delete("a", "absent") == 1
    assert r.unlink("b", "c") == 2
    assert r.dbsize() == 0


def test_expire_family(r):
    r.set("k", "v")
    assert r.expire("k", 100) is True
    assert 0 < r.ttl("k") <= 100
    assert r.pexpire("k", 200_000) is True
    assert 100_000 < r.pttl("k") <= 200_000
    assert r.expireat("k", FAR) is True
    assert (r.expiretime("k"), r.pexpiretime("k")) == (FAR, FAR * 1000)
    assert r.pexpireat("k", FAR * 1000 + 7) is True
    assert r.pexpiretime("k") == FAR * 1000 + 7
    assert r.persist("k") is True
    assert r.persist("k") is False
    assert r.expire("absent", 100) is False


def test_expire_conditions(r):
    r.set("k", "v")
    assert r.expire("k", 100, xx=True) is False
    assert r.expire("k", 100, gt=True) is False
    assert r.expire("k", 100, lt=True) is True
    assert r.expire("k", 200, nx=True) is False
    assert r.expire("k", 200, gt=True) is True
    assert r.expire("k", 50, xx=True) is True
    with pytest.raises(redis.ResponseError, match="NX and XX, GT or LT options at the same time are not compatible"):
        r.expire("k", 1, nx=True, xx=True)


def test_scan_iter(r):
    names = {f"key:{i}" for i in range(3000)}
    r.mset(dict.fromkeys(names, "v"))
    r.hset("a-hash", "f", "v")
    assert set(r.scan_iter(count=50)) == names | {"a-hash"}
    assert set(r.scan_iter(match="key:1*")) == {name for name in names if name.startswith("key:1")}
    assert list(r.scan_iter(_type="hash")) == ["a-hash"]
    assert list(r.scan_iter(match="nothing*")) == []


def test_copy(r, connect):
    r.hset("h", mapping={"a": "1"})
    r.expireat("h", FAR)
    assert r.copy("h", "twin") is True
    assert r.copy("h", "twin") is False
    assert r.copy("h", "twin", replace=True) is True
    r.hset("twin", "a", "2")
    assert r.hget("h", "a") == "1"
    assert r.expiretime("twin") == FAR
    assert r.copy("h", "h", destination_db=2) is True
    assert connect(db=2).hgetall("h") == {"a": "1"}
    assert r.copy("absent", "x") is False


def test_dump_and_restore(r, raw):
    r.set("text", "some text")
    r.set("number", "12345")
    r.set("long", "abc" * 10_000)
    r.hset("hash", mapping={"a": "1", "b": "two"})
    r.hset("table", mapping={f"f{i}": "v" * i for i in range(600)})
    for name in ("text", "number", "long", "hash", "table"):
        payload = raw.dump(name)
        assert raw.restore(f"{name}:copy", 0, payload) == b"OK"
        assert raw.dump(f"{name}:copy") is not None
        read = r.hgetall if r.type(name) == "hash" else r.get
        assert read(f"{name}:copy") == read(name)
    assert raw.dump("absent") is None


def test_object_refcount_and_idletime(r):
    r.set("k", "text")
    assert r.object("refcount", "k") == 1
    assert r.object("idletime", "k") >= 0
    with pytest.raises(redis.ResponseError, match="LFU maxmemory policy is not selected"):
        r.object("freq", "k")
