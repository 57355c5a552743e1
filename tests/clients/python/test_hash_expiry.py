"""Fields that expire. Skipped, command by command, where the server is older than they are."""


import pytest

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


def test_hpersist(h):
    h.hexpire("h", 100, "a")
    assert h.hpersist("h", "a", "b", "absent") == [1, -1, -2]
    assert h.httl("h", "a") == [-1]


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
