"""Bits of a string, one at a time, in ranges, and as packed integers."""

import pytest
import redis


def test_setbit_getbit(r):
    assert r.setbit("k", 7, 1) == 0
    assert r.setbit("k", 7, 0) == 1
    assert r.getbit("k", 7) == 0
    assert r.getbit("k", 1000) == 0
    assert r.get("k") == "\0"


def test_bitcount(r):
    r.set("k", "foobar")
    assert r.bitcount("k") == 26
    assert r.bitcount("k", 1, 1) == 6
    assert r.bitcount("k", 5, 30, "BIT") == 17
    assert r.bitcount("absent") == 0


def test_bitpos(raw):
    raw.set("k", b"\xff\xf0\x00")
    assert raw.bitpos("k", 0) == 12
    assert raw.bitpos("k", 1, 2) == -1
    assert raw.bitpos("k", 1, 7, 15, "BIT") == 7


def test_bitop(raw):
    raw.mset({"a": b"\xf0\x0f", "b": b"\xff"})
    for operation, expected in (("AND", b"\xf0\0"), ("OR", b"\xff\x0f"), ("XOR", b"\x0f\x0f")):
        assert raw.bitop(operation, "to", "a", "b") == 2
        assert raw.get("to") == expected
    assert raw.bitop("NOT", "to", "a") == 2
    assert raw.get("to") == b"\x0f\xf0"


def test_bitfield(r):
    assert r.bitfield("k").set("u8", "#0", 200).incrby("u8", "#0", 50).get("u8", "#0").execute() == [0, 250, 250]
    assert r.bitfield("k").incrby("i5", 100, 1).get("u4", 0).execute() == [1, 15]


def test_bitfield_ro(r):
    r.set("k", "abc")
    assert r.bitfield_ro("k", "u8", 0, [("u8", 8), ("u8", "#2")]) == [97, 98, 99]
    with pytest.raises(redis.ResponseError, match="BITFIELD_RO only supports the GET subcommand"):
        r.execute_command("BITFIELD_RO", "k", "SET", "u8", 0, 1)
