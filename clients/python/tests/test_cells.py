"""Cells: versions, history, compare and swap, leases and watches."""

import asyncio
from typing import Any

import pytest
from conftest import eventually

from holdfast import Done, Refused, ReplyError, codec


async def test_a_cell_from_its_creation_to_its_end(store: Any, face: Any) -> None:
    cell = store.cell("config/limit")
    assert cell.name == "config/limit"
    assert await cell.get() is None
    assert [await cell.init("10"), await cell.init("99")] == [1, 1]
    assert await cell.cas(1, "20") == Done(2)
    assert await cell.cas(1, "30") == Refused(("20", 2))
    assert await store.cell("none").cas(1, "30") == Refused(None)
    now = await cell.get()
    assert (now.value, now.version) == ("20", 2) and now.updated_at_us > 1_700_000_000_000_000
    assert await cell.set("20") == 3
    history = await cell.history()
    assert [(each.value, each.version) for each in history] == [("20", 3), ("20", 2), ("10", 1)]
    assert await cell.history(before=3, limit=1) == [now]
    assert await cell.get_version(1) == history[2]
    assert await cell.get_version(7) is None
    assert await cell.get_as_of(now.updated_at_us) == now
    assert await cell.get_as_of(1) is None
    assert await cell.delete_if(2) is False
    assert await cell.delete_if(3) is True
    assert await cell.delete() is False
    assert await cell.cas(0, "1") == Done(1)
    assert await cell.cas(0, "2") == Refused(("1", 1))


async def test_of_many_that_count_none_is_lost(store: Any) -> None:
    count = store.cell("count", codec.integer)
    await count.init(0)

    async def add() -> None:
        for _ in range(25):
            now = await count.get()
            while isinstance(swap := await count.cas(now.version, now.value + 1), Refused):
                now = await count.get()
            assert swap.version > now.version

    await asyncio.gather(*(add() for _ in range(8)))
    now = await count.get()
    assert (now.value, now.version) == (200, 201)


async def test_a_lease_ends(store: Any, face: Any) -> None:
    lock = store.cell("lock/report")
    assert await lock.cas_for(0, "w-1", 60_000) == Done(1)
    assert await lock.cas_for(0, "w-2", 60_000) == Refused(("w-1", 1))
    assert await face.command(store.client, "PTTL", "lock/report") > 0
    assert await lock.cas_for(1, "w-1", 1) == Done(2)
    assert await lock.wait_after(2, 30_000) is None  # it goes
    assert await lock.set_for("w-2", 60_000) == 1
    assert await face.command(store.client, "PTTL", "lock/report") > 0


async def test_a_watch(store: Any, blocked: Any) -> None:
    cell = store.cell("leader")
    coming = asyncio.ensure_future(cell.wait_after(0, 30_000))
    await eventually(lambda: blocked(1))
    await cell.set("a")
    assert (await coming).value == "a"
    following = asyncio.ensure_future(cell.wait_after(1, 30_000))
    await eventually(lambda: blocked(1))
    await cell.set("b")
    assert ((await following).value, (await cell.wait_after(1, 0)).version) == ("b", 2)
    assert await cell.wait_after(2, 0) is None
    assert await cell.wait_after(2, 1) is None
    going = asyncio.ensure_future(cell.wait_after(2, 30_000))
    await eventually(lambda: blocked(1))
    await cell.delete()
    assert await going is None


async def test_values_of_other_types(store: Any) -> None:
    assert await store.cell("j", codec.json).init({"a": [1, None, "ü"]}) == 1
    assert (await store.cell("j", codec.json).get()).value == {"a": [1, None, "ü"]}
    assert (await store.cell("j").get()).value == '{"a":[1,null,"ü"]}'
    every_byte = bytes(range(256))
    await store.cell("b", codec.raw).set(every_byte)
    assert (await store.cell("b", codec.raw).get()).value == every_byte
    assert (await store.cell("b", codec.json).get()).value == every_byte
    for other in (codec.text, codec.integer):
        with pytest.raises(ReplyError):
            await store.cell("b", other).get()
    with pytest.raises(TypeError):
        await store.cell("b", codec.raw).set("text")
    with pytest.raises(TypeError):
        await store.cell("b", codec.integer).set("1")
    with pytest.raises(TypeError):
        await store.cell("b").set(1)
    with pytest.raises(ValueError):
        await store.cell("b", codec.json).set(float("nan"))
