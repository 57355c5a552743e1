"""How replies are read and arguments are written, without a server."""

from datetime import datetime, timezone
from typing import Any

import pytest

from holdfast import ReplyError
from holdfast.replies import double, flag, integer, items, named, pairs, raw, row, text, time
from holdfast.words import counted_list, counted_values, whole, word


def test_parts_of_replies() -> None:
    assert [integer(7), integer(b"-5"), integer(2**62)] == [7, -5, 2**62]
    assert [double(b"inf"), double(b"-inf"), double(1.5), double(b"1e3"), double(2)] == [float("inf"), float("-inf"), 1.5, 1000.0, 2.0]
    assert [flag(1), flag(b"0"), flag(True)] == [True, False, True]
    assert text("grün".encode()) == "grün"
    assert named([b"a", 1, b"b", None]) == named({b"a": 1, b"b": None}) == {"a": 1, "b": None}
    assert time(1_760_000_000_000) == datetime(2025, 10, 9, 8, 53, 20, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("read", "reply"),
    [
        (integer, b"1.5"), (integer, None), (integer, b""), (integer, True), (integer, b"1\n"), (double, b""), (double, b"x"), (double, None),
        (items, b"x"), (pairs, [b"a"]), (pairs, None), (text, b"\xff"), (text, None), (raw, 7), (time, 2**62), (flag, None),
        (lambda reply: row(reply, 2), [1]),
    ],
)  # fmt: skip
def test_replies_that_do_not_fit(read: Any, reply: Any) -> None:
    with pytest.raises(ReplyError):
        read(reply)


def test_arguments() -> None:
    assert [word("ü"), word(b"\xff"), word(bytearray(b"a")), word(memoryview(b"abcd")[1:3])] == [b"\xc3\xbc", b"\xff", b"a", b"bc"]
    assert [word(2**64), word(-1), word(1e21), word(0.1)] == [b"18446744073709551616", b"-1", b"1e+21", b"0.1"]
    assert counted_values({"a": 1, "b": "x"}) == [b"2", b"a", b"1", b"b", b"x"]
    assert counted_list(["a", 1]) == [b"2", b"a", b"1"]
    for wrong in (1.5, "1", True, None):
        with pytest.raises(TypeError, match="limit is .*, and has to be a whole number"):
            whole(wrong, "limit")  # type: ignore[arg-type]
