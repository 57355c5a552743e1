"""State that takes each update once. tests/packages compares updates in order, snapshots and checkpoints of all packages, and tests/wire replays
additions through crashes."""

from typing import Any

import pytest

from holdfast import Restored, ServerError, StateVersion


async def test_an_update_is_applied_once_and_never_goes_back(store: Any) -> None:
    state = store.exactly_once_state("s/")
    assert state.prefix == "s/"
    assert await state.get("k") is None
    assert await state.put("k", "three", 3) == "applied"
    assert await state.put("k", "three", 3) == "duplicate"
    assert await state.put("k", "other", 3) == "mismatch"
    assert await state.put("k", "two", 2) == "stale"
    assert await state.get("k") == ("three", StateVersion(0, 3))
    assert await state.put("k", "epoch", (1, 0)) == "applied"
    assert await state.put("other", "largest", (2**64 - 1, 2**64 - 1)) == "applied"
    assert await state.mget(["other", "none", "k"]) == [("largest", (2**64 - 1, 2**64 - 1)), None, ("epoch", (1, 0))]
    assert await state.mget([]) == []
    assert StateVersion(1, 0) > StateVersion(0, 7)
    for wrong in ("3", 1.5, True, None):
        with pytest.raises(TypeError):
            await state.put("k", "x", wrong)
    with pytest.raises(ServerError):
        await state.put("k", "x", -1)


async def test_keys_and_prefixes_are_any_bytes(store: Any) -> None:
    state = store.exactly_once_state(b"\xff/")
    assert await state.put(b"\x00\xfe", "v", 1) == "applied"
    assert await state.mget(["none", b"\x00\xfe"]) == [None, ("v", (0, 1))]
    assert state.prefix == "\udcff/"
    assert await store.exactly_once_state(state.prefix).get("\x00\udcfe") == ("v", (0, 1))
    assert await state.restore(await state.snapshot()) == Restored(1, None)
    with pytest.raises(TypeError):
        await state.get(7)
