"""Fields that expire. Skipped, command by command, where the server is older than they are."""

import time

import pytest
import redis
from redis.commands.core import HashDataPersistOptions

FAR = 4_102_444_800  # the first second of the year 2100


@pytest.fixture
def h(r, need):
    need("hexpire")
    r.hset("h", mapping={"a": "1", "b": "2", "c": "3"})
    return r


def test_hexpire_and_httl(h):
    assert h.hexpire("h", 100, "a", "absent") == [1, -2]
    (a, b, absent) = h.httl("h", "a", "b", "absent")
    assert 0 < a <= 100
    assert (b, absent) == (-1, -2)
    (ms,) = h.hpttl("h", "a")
    assert 0 < ms <= 100_000


def test_hpexpire(h):
    assert h.hpexpire("h", 100_000, "a") == [1]
    assert 0 < h.httl("h", "a")[0] <= 100


def test_absolute_field_deadlines(h):
    assert h.hexpireat("h", FAR, "a") == [1]
    assert h.hpexpireat("h", FAR * 1000 + 5, "b") == [1]
    assert h.hexpiretime("h", "a", "c") == [FAR, -1]
    assert h.hpexpiretime("h", "b") == [FAR * 1000 + 5]


def test_hexpire_conditions(h):
    assert h.hexpire("h", 100, "a", xx=True) == [0]
    assert h.hexpire("h", 100, "a", nx=True) == [1]
    assert h.hexpire("h", 50, "a", gt=True) == [0]
    assert h.hexpire("h", 200, "a", gt=True) == [1]
    assert h.hexpire("h", 300, "a", lt=True) == [0]
    assert h.hexpire("h", 50, "a", lt=True) == [1]


def test_hexpire_on_a_missing_key(h):
    assert h.hexpire("absent", 100, "a") == [-2]
    assert h.httl("absent", "a") == [-2]
    assert h.hpersist("absent", "a") == [-2]


def test_hpersist(h):
    h.hexpire("h", 100, "a")
    assert h.hpersist("h", "a", "b", "absent") == [1, -1, -2]
    assert h.httl("h", "a") == [-1]


def test_a_deadline_in_the_past_deletes(h):
    assert h.hexpireat("h", 1, "a", "b") == [2, 2]
    assert h.hgetall("h") == {"c": "3"}
    assert h.hexpire("h", 0, "c") == [2]
    assert h.exists("h") == 0


def test_an_expired_field_is_absent(h):
    h.hpexpire("h", 1, "a", "b")
    time.sleep(0.05)
    assert h.hget("h", "a") is None
    assert h.hmget("h", "a", "b", "c") == [None, None, "3"]
    assert h.hgetall("h") == {"c": "3"}
    assert h.hexists("h", "a") is False
    assert h.hsetnx("h", "a", "new") == 1


def test_writing_a_field_drops_its_ttl(h):
    h.hexpire("h", 100, "a", "b")
    h.hset("h", "a", "9")
    h.hincrby("h", "b", 1)
    assert h.httl("h", "a")[0] == -1
    assert h.httl("h", "b")[0] > 0


def test_hexpire_refusals(h):
    with pytest.raises(redis.ResponseError, match="invalid expire time"):
        h.hexpire("h", -1, "a")
    with pytest.raises(redis.ResponseError, match="parameter must match the number of arguments"):
        h.execute_command("HEXPIRE", "h", 100, "FIELDS", 2, "a")
    h.set("k", "v")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        h.hexpire("k", 100, "a")


def test_field_deadlines_travel(h):
    h.hexpireat("h", FAR, "a")
    assert h.copy("h", "twin") is True
    assert h.rename("h", "moved") is True
    assert h.hexpiretime("twin", "a", "b") == [FAR, -1]
    assert h.hexpiretime("moved", "a", "b") == [FAR, -1]


def test_field_deadlines_survive_dump(h, raw):
    h.hexpireat("h", FAR, "a")
    raw.restore("twin", 0, raw.dump("h"))
    assert h.hgetall("twin") == {"a": "1", "b": "2", "c": "3"}
    assert h.hexpiretime("twin", "a", "b") == [FAR, -1]


def test_hgetdel(h, need):
    need("hgetdel")
    assert h.hgetdel("h", "a", "absent") == ["1", None]
    assert h.hgetdel("h", "b", "c") == ["2", "3"]
    assert h.exists("h") == 0
    assert h.hgetdel("h", "a") == [None]


def test_hgetex(h, need):
    need("hgetex")
    assert h.hgetex("h", "a", "absent") == ["1", None]
    assert h.httl("h", "a") == [-1]
    assert h.hgetex("h", "a", exat=FAR) == ["1"]
    assert h.hexpiretime("h", "a") == [FAR]
    assert h.hgetex("h", "a", persist=True) == ["1"]
    assert h.httl("h", "a") == [-1]
    assert h.hgetex("h", "a", ex=100) == ["1"]
    assert h.hgetex("h", "b", px=100_000) == ["2"]
    assert all(0 < ttl <= 100 for ttl in h.httl("h", "a", "b"))


def test_hsetex(h, need):
    need("hsetex")
    assert h.hsetex("h", "a", "9", ex=100) == 1
    assert 0 < h.httl("h", "a")[0] <= 100
    assert h.hsetex("h", mapping={"a": "10", "d": "4"}, keepttl=True) == 1
    assert h.hsetex("h", "d", "5", exat=FAR) == 1
    assert h.hexpiretime("h", "d") == [FAR]
    assert h.httl("h", "a")[0] > 0
    assert h.hsetex("h", "a", "11") == 1
    assert h.httl("h", "a") == [-1]


def test_hsetex_fnx_fxx(h, need):
    need("hsetex")
    only_new, only_known = HashDataPersistOptions.FNX, HashDataPersistOptions.FXX
    assert h.hsetex("h", mapping={"a": "9", "new": "9"}, data_persist_option=only_new) == 0
    assert h.hsetex("h", mapping={"a": "9", "new": "9"}, data_persist_option=only_known) == 0
    assert h.hsetex("h", mapping={"x": "1", "y": "2"}, data_persist_option=only_new) == 1
    assert h.hsetex("h", mapping={"a": "9", "x": "9"}, data_persist_option=only_known) == 1
    assert h.hgetall("h") == {"a": "9", "b": "2", "c": "3", "x": "9", "y": "2"}
