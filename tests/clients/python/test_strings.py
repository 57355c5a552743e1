"""Strings: every option of SET, counters, ranges, several keys at once, and bytes of any kind and size."""


import pytest

FAR = 4_102_444_800  # the first second of the year 2100


def test_set_nx_and_xx(r):
    assert r.set("k", "1", xx=True) is None
    assert r.set("k", "1", nx=True) is True
    assert r.set("k", "2", nx=True) is None
    assert r.set("k", "3", xx=True) is True
    assert r.get("k") == "3"


def test_set_get_returns_the_old_value(r):
    assert r.set("k", "1", get=True) is None
    assert r.set("k", "2", get=True) == "1"
    assert r.set("k", "3", get=True, nx=True) == "2"
    assert r.set("k", "4", get=True, xx=True) == "2"
    assert r.get("k") == "4"


@pytest.mark.parametrize("option", [{"ex": 100}, {"px": 100_000}, {"exat": FAR}, {"pxat": FAR * 1000}], ids=str)
def test_set_with_expiry(r, option):
    r.set("k", "v", **option)
    if "exat" in option or "pxat" in option:
        assert r.expiretime("k") == FAR
    else:
        assert 0 < r.ttl("k") <= 100


def test_setnx_setex_psetex_getset(r):
    assert r.setnx("a", "1") is True
    assert r.setnx("a", "2") is False
    assert r.setex("b", 100, "1") is True
    assert r.psetex("c", 100_000, "1") is True
    assert 0 < r.ttl("b") <= 100
    assert 0 < r.pttl("c") <= 100_000
    assert r.getset("a", "3") == "1"


def test_getex_and_getdel(r):
    r.set("k", "v")
    assert r.getex("k", exat=FAR) == "v"
    assert r.expiretime("k") == FAR
    assert r.getex("k", persist=True) == "v"
    assert r.ttl("k") == -1
    assert r.getdel("k") == "v"
    assert r.getdel("k") is None


def test_counters(r):
    assert r.incr("n") == 1
    assert r.incrby("n", 41) == 42
    assert r.decr("n") == 41
    assert r.decrby("n", 50) == -9
    assert r.incrbyfloat("n", 1.5) == -7.5
    assert r.get("n") == "-7.5"


def test_mset_mget_msetnx(r):
    assert r.mset({"a": "1", "b": "2"}) is True
    assert r.mget("a", "absent", "b") == ["1", None, "2"]
    assert r.msetnx({"b": "3", "c": "3"}) is False
    assert r.msetnx({"c": "3", "d": "4"}) is True
    assert r.mget(["a", "b", "c", "d"]) == ["1", "2", "3", "4"]


def test_append_strlen_ranges(r):
    assert r.append("k", "Hello") == 5
    assert r.append("k", " World") == 11
    assert r.strlen("k") == 11
    assert r.getrange("k", -5, -1) == "World"
    assert r.substr("k", 0, 4) == "Hello"
    assert r.setrange("k", 6, "Redis") == 11
    assert r.get("k") == "Hello Redis"
    assert r.setrange("new", 3, "x") == 4
    assert r.get("new") == "\0\0\0x"


def test_lcs(r):
    r.mset({"a": "ohmytext", "b": "mynewtext"})
    assert r.lcs("a", "b") == "mytext"
    assert r.lcs("a", "b", len=True) == 6


def test_binary_keys_and_values(raw):
    every_byte = bytes(range(256))
    assert raw.set(every_byte, every_byte) is True
    assert raw.get(every_byte) == every_byte
    assert raw.keys() == [every_byte]
    raw.set(b"", b"")
    assert raw.get(b"") == b""
    raw.set(b"line\r\nbreak", b"*1\r\n$4\r\nPING\r\n")
    assert raw.get(b"line\r\nbreak") == b"*1\r\n$4\r\nPING\r\n"


def test_ten_megabytes(raw):
    value = bytes(range(256)) * 40_960
    assert raw.set("big", value) is True
    assert raw.strlen("big") == len(value)
    assert raw.get("big") == value
    assert raw.getrange("big", 256 * 40_959, -1) == bytes(range(256))
