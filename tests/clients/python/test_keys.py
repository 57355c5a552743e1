"""Keys whatever they hold: expiry, scanning, copying, moving between databases, dumping, and their encoding."""

import time

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


def test_ttl_of_nothing_and_of_the_lasting(r):
    r.set("k", "v")
    for ask in (r.ttl, r.pttl, r.expiretime, r.pexpiretime):
        assert (ask("absent"), ask("k")) == (-2, -1)


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


def test_expire_in_the_past_deletes(r):
    r.set("k", "v")
    assert r.expire("k", -1) is True
    assert r.exists("k") == 0


def test_an_expired_key_is_absent(r):
    r.set("k", "v")
    r.hset("h", "f", "v")
    r.pexpire("k", 1)
    r.pexpire("h", 1)
    time.sleep(0.05)
    assert r.get("k") is None
    assert r.hgetall("h") == {}
    assert list(r.scan_iter()) == []
    assert r.setnx("k", "again") is True


def test_keys_and_patterns(r):
    r.mset({"hello": 1, "hallo": 1, "hxllo": 1, "h*llo": 1, "other": 1})
    assert sorted(r.keys("h[ae]llo")) == ["hallo", "hello"]
    assert sorted(r.keys("h[^e]llo")) == ["h*llo", "hallo", "hxllo"]
    assert r.keys("h\\*llo") == ["h*llo"]
    assert len(r.keys("h?llo")) == 4
    assert r.randomkey() in r.keys()


def test_scan_iter(r):
    names = {f"key:{i}" for i in range(3000)}
    r.mset(dict.fromkeys(names, "v"))
    r.hset("a-hash", "f", "v")
    assert set(r.scan_iter(count=50)) == names | {"a-hash"}
    assert set(r.scan_iter(match="key:1*")) == {name for name in names if name.startswith("key:1")}
    assert list(r.scan_iter(_type="hash")) == ["a-hash"]
    assert list(r.scan_iter(match="nothing*")) == []


def test_scan_sees_every_lasting_key_while_others_come_and_go(r):
    lasting = {f"lasting:{i}" for i in range(500)}
    r.mset(dict.fromkeys(lasting, "v"))
    seen = set()
    for i, name in enumerate(r.scan_iter(count=10)):
        seen.add(name)
        r.set(f"passing:{i}", "v")
        r.delete(f"passing:{i - 3}")
        if i > 5000:
            break
    assert lasting <= seen


def test_rename(r):
    r.set("a", "1", exat=FAR)
    r.set("b", "2")
    assert r.rename("a", "b") is True
    assert (r.get("b"), r.expiretime("b"), r.exists("a")) == ("1", FAR, 0)
    r.set("a", "3")
    assert r.renamenx("a", "b") is False
    assert r.renamenx("a", "c") is True
    with pytest.raises(redis.ResponseError, match="^no such key$"):
        r.rename("absent", "b")


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


def test_move(r, connect):
    two = connect(db=2)
    r.mset({"a": "1", "b": "1"})
    two.set("b", "2")
    assert r.move("a", 2) is True
    assert r.move("b", 2) is False
    assert r.move("absent", 2) is False
    assert (two.get("a"), two.get("b"), r.keys()) == ("1", "2", ["b"])


def test_swapdb(r, connect):
    one = connect(db=1)
    r.set("k", "zero")
    one.set("k", "one")
    assert r.swapdb(0, 1) is True
    assert (r.get("k"), one.get("k")) == ("one", "zero")


def test_flushdb_and_flushall(r, connect):
    one = connect(db=1)
    r.set("k", "v")
    one.set("k", "v")
    assert r.flushdb() is True
    assert (r.dbsize(), one.dbsize()) == (0, 1)
    r.set("k", "v")
    assert r.flushall(asynchronous=True) is True
    assert (r.dbsize(), one.dbsize()) == (0, 0)


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


def test_restore_options(r, raw):
    r.set("k", "v")
    payload = raw.dump("k")
    with pytest.raises(redis.ResponseError, match="BUSYKEY Target key name already exists"):
        raw.restore("k", 0, payload)
    raw.restore("k", 100_000, payload, replace=True)
    assert 0 < r.ttl("k") <= 100
    raw.restore("k", FAR * 1000, payload, replace=True, absttl=True)
    assert r.expiretime("k") == FAR
    raw.restore("past", 1, payload, absttl=True)
    assert r.exists("past") == 0


def test_restore_refuses_damage(r, raw):
    r.set("k", "value")
    payload = raw.dump("k")
    for damaged in (payload[:-1] + bytes([payload[-1] ^ 1]), payload[:5], b"", b"\1" * 20):
        with pytest.raises(redis.ResponseError, match="DUMP payload version or checksum are wrong"):
            raw.restore("x", 0, damaged)
    assert r.exists("x") == 0


def test_object_encoding(r):
    r.set("number", "12345")
    r.set("short", "text")
    r.set("long", "x" * 45)
    r.hset("small", "f", "v")
    r.hset("wide", "f", "x" * 65)
    r.hset("many", mapping={f"f{i}": "v" for i in range(600)})
    encodings = [r.object("encoding", name) for name in ("number", "short", "long", "small", "wide", "many")]
    assert encodings == ["int", "embstr", "raw", "listpack", "hashtable", "hashtable"]
    assert r.object("encoding", "absent") is None


def test_object_refcount_and_idletime(r):
    r.set("k", "text")
    assert r.object("refcount", "k") == 1
    assert r.object("idletime", "k") >= 0
    with pytest.raises(redis.ResponseError, match="LFU maxmemory policy is not selected"):
        r.object("freq", "k")
