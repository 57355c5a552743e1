"""State that takes each update once: versions, updates in order, snapshots and checkpoints."""

import asyncio
import random
from typing import Any

import pytest
from server import Server

from holdfast import ReplyError, Restored, ServerError, StateVersion, UnavailableError, codec


def skip_without_ordered_pairs(server: Server) -> None:
    if server.answer("REG.PUT", "probe", "1.1", "v", "ORDERED") != "b'BUFFERED'":
        pytest.skip("the server has no ordered versions with an epoch")
    server.answer("DEL", "probe")


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


async def test_ordered_updates_wait_for_those_before_them(store: Any) -> None:
    counts = store.exactly_once_state("c/", codec.integer)
    assert await counts.add_ordered("n", 3, 100) == "buffered"
    assert await counts.get("n") is None
    assert await counts.add_ordered("n", 1, 1) == "applied"
    assert await counts.put_ordered("n", 10, 2) == "applied"
    assert await counts.get("n") == (110, (0, 3))
    assert await counts.add_ordered("n", 6, 1) == "buffered"
    assert await counts.seal("n", 6) == 1
    assert await counts.add("n", 7, -11) == "applied"
    assert await counts.get("n") == (100, (0, 7))
    with pytest.raises(ReplyError):
        await store.exactly_once_state("c/", codec.Codec(codec.raw.encode, _refuse)).get("n")


def _refuse(data: bytes) -> bytes:
    raise ReplyError(f"{data!r} is no such value")


async def test_a_snapshot_brings_the_state_back_with_its_position(store: Any) -> None:
    state, others = store.exactly_once_state("s/", codec.integer), store.exactly_once_state("t/", codec.integer)
    await state.put("a", 1, 1)
    await state.put("b", 2, 1)
    await others.put("a", 9, 1)
    snapshot = await state.snapshot("offset 2")
    await state.put("a", 5, 5)
    await state.put("c", 5, 5)
    await others.put("a", 10, 2)
    assert await state.merge(snapshot) == Restored(0, b"offset 2")
    assert await state.get("a") == (5, (0, 5))
    assert await state.restore(snapshot) == Restored(2, b"offset 2")
    assert await state.mget(["a", "b", "c"]) == [(1, (0, 1)), (2, (0, 1)), None]
    assert await others.get("a") == (10, (0, 2))
    with pytest.raises(ServerError):
        await state.restore(snapshot[:-1])
    with pytest.raises(TypeError):
        await state.restore("snapshot")
    assert await state.restore(await state.snapshot()) == Restored(2, None)


async def test_a_restore_fills_the_state_that_it_is_called_on(store: Any) -> None:
    a, b = store.exactly_once_state("a/"), store.exactly_once_state("b/")
    await a.put("k", "one", 1)
    snapshot = await a.snapshot()
    assert await a.checkpoint("check", "7") == 1
    await a.put("k", "two", 2)
    await b.put("other", "goes", 1)
    assert await b.restore(snapshot) == Restored(1, None)
    assert [await b.get("k"), await b.get("other")] == [("one", (0, 1)), None]
    assert await a.get("k") == ("two", (0, 2))
    await b.put("k", "three", 3)
    assert await b.merge_checkpoint("check") == Restored(0, b"7")
    assert await b.restore_checkpoint("check") == Restored(1, b"7")
    assert [await a.get("k"), await b.get("k")] == [("two", (0, 2)), ("one", (0, 1))]


async def test_keys_and_prefixes_are_any_bytes(store: Any) -> None:
    state = store.exactly_once_state(b"\xff/")
    assert await state.put(b"\x00\xfe", "v", 1) == "applied"
    assert await state.mget(["none", b"\x00\xfe"]) == [None, ("v", (0, 1))]
    assert state.prefix == "\udcff/"
    assert await store.exactly_once_state(state.prefix).get("\x00\udcfe") == ("v", (0, 1))
    assert await state.restore(await state.snapshot()) == Restored(1, None)
    with pytest.raises(TypeError):
        await state.get(7)


async def test_ordered_versions_with_an_epoch_wait_for_the_seal(store: Any, server: Server) -> None:
    skip_without_ordered_pairs(server)
    counts = store.exactly_once_state("c/", codec.integer)
    assert await counts.add_ordered("n", (1, 5), 100) == "buffered"
    assert await counts.put_ordered("n", 7, (1, 2)) == "buffered"
    assert await counts.add_ordered("n", (0, 1), 1) == "buffered"
    assert await counts.add_ordered("n", (0, 1), 1) == "buffered"
    assert await counts.add_ordered("n", (0, 1), 2) == "mismatch"
    assert await counts.get("n") is None
    assert await counts.seal("n", (1, 5)) == 2
    assert await counts.get("n") == (7, (1, 2))
    assert await counts.add_ordered("n", (1, 4), 1) == "stale"
    assert await counts.seal("n", (2, 0)) == 1
    assert await counts.get("n") == (107, (1, 5))
    with pytest.raises(ServerError):
        await counts.add_ordered("n", 9, 1)


async def test_a_checkpoint_is_kept_at_the_server(store: Any, server: Server) -> None:
    state = store.exactly_once_state("s/", codec.integer)
    assert await state.restore_checkpoint("check") is None
    await state.put("a", 1, 1)
    assert await state.checkpoint("check", b"\x00offset") == 1
    await state.put("a", 2, 2)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.run)
    assert await state.merge_checkpoint("check") == Restored(0, b"\x00offset")
    assert await state.get("a") == (2, (0, 2))
    assert await state.restore_checkpoint("check") == Restored(1, b"\x00offset")
    assert await state.get("a") == (1, (0, 1))
    assert await state.checkpoint("check") == 1
    assert await state.restore_checkpoint("check") == Restored(1, None)
    assert await state.merge_checkpoint("none") is None
    await store.put("record", {"a": 1})
    with pytest.raises(ServerError):
        await state.restore_checkpoint("record")


async def test_input_that_is_replayed_after_a_crash_counts_once(store: Any, server: Server) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    choice = random.Random(seed)
    counts = store.exactly_once_state("c/", codec.integer)
    updates = [(f"k{choice.randrange(3)}", choice.randrange(1, 9)) for _ in range(60)]
    versions: dict[str, int] = {}
    numbered = []
    for key, number in updates:
        versions[key] = versions.get(key, 0) + 1
        numbered.append((key, versions[key], number))
    for replay in range(3):
        choice.shuffle(numbered)
        for index, (key, version, number) in enumerate(numbered):
            if index == 20 and replay < 2:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.run)
            while True:
                try:
                    assert await counts.add_ordered(key, version, number) in ("applied", "buffered", "duplicate", "stale")
                    break
                except UnavailableError:
                    pass
    for key, last in versions.items():
        assert await counts.get(key) == (sum(number for each, number in updates if each == key), (0, last))
