"""Cells: versions, history, compare and swap, leases and watches."""

import asyncio
from typing import Any

import pytest
from conftest import collect, eventually
from server import Server

from holdfast import HoldfastError, ReplyError, ServerError, WrongTypeError, codec


async def test_the_past_is_found_by_time(store: Any) -> None:
    cell = store.cell("config/limit")
    await cell.init("10")
    now = await cell.get()
    assert now.updated_at_us > 1_700_000_000_000_000
    await cell.set("20")
    assert await cell.get_as_of(now.updated_at_us) == now
    assert await cell.get_as_of(1) is None


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


async def test_a_watch_sees_every_change(store: Any, face: Any, blocked: Any) -> None:
    cell, stop = store.cell("leader"), face.flag()
    await cell.set("before")
    seen: list[Any] = []

    async def watch(**options: Any) -> None:
        async for change in cell.watch(stop=stop, **options):
            seen.append(change and (change.value, change.version))

    watching = asyncio.ensure_future(watch())
    await eventually(lambda: blocked(1))
    for value in "abcdef":
        await cell.set(value)
    await eventually(lambda: len(seen) == 6)
    await cell.delete()
    await eventually(lambda: len(seen) == 7)
    await cell.set("again")
    await eventually(lambda: len(seen) == 8)
    stop.set()
    await watching
    assert seen == [(value, version) for version, value in enumerate("abcdef", 2)] + [None, ("again", 1)]


async def test_a_watch_begins_where_it_is_told_and_goes_on_after_a_crash(store: Any, server: Server) -> None:
    cell, lost = store.cell("leader", codec.integer), list[HoldfastError]()
    for value in (1, 2, 3):
        await cell.set(value)
    seen = []
    async for change in cell.watch(1, on_retry=lost.append):
        seen.append(change.value)
        if change.value == 3:
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.run)
            await cell.set(4)
        if change.value == 4:
            break
    assert seen == [2, 3, 4]
    await store.put("record", {"a": 1})
    with pytest.raises(WrongTypeError):
        async for _ in store.cell("record").watch():
            pass


async def test_a_cell_that_was_made_anew_between_two_waits_is_seen(store: Any, face: Any) -> None:
    cell, stop = store.cell("leader"), face.flag()
    for value in "ab":
        await cell.set(value)
    seen: list[Any] = []
    async for change in cell.watch(stop=stop, after=1):
        seen.append(change and (change.value, change.version))
        if len(seen) == 1:
            # The watch is between two waits now. The version is the same, the cell is not.
            await cell.delete()
            for value in "cd":
                await cell.set(value)
        if len(seen) == 4:
            stop.set()
    assert seen == [("b", 2), None, ("c", 1), ("d", 2)]


async def test_several_cells_at_one_instant(store: Any) -> None:
    await store.cell("a", codec.integer).set(1)
    await store.cell(b"\xff", codec.integer).set(2)
    found = await store.get_cells(["a", "none", b"\xff"], codec.integer)
    assert [each and (each.value, each.version) for each in found] == [(1, 1), None, (2, 1)]
    assert [each and each.value for each in await store.get_cells(["a"])] == ["1"]
    assert await store.get_cells([]) == []


async def test_a_branch_is_copied_and_removed(store: Any) -> None:
    main = store.branch("main")
    assert main.name == "main"
    for number in range(1500):
        await main.cell(f"n/{number}", codec.integer).set(number)
    limit = main.cell("limit")
    await limit.set("10")
    await limit.set("20")
    await store.cell("maintenance/x").set("stays")
    assert limit.name == "main/limit" and (await store.cell("main/limit").get()).value == "20"
    assert await main.fork("trial") == 1501
    trial = store.branch("trial")
    assert set(await collect(trial.cells())) == {"limit", *(f"n/{number}" for number in range(1500))}
    assert [each.value for each in await trial.cell("limit").history()] == ["20", "10"]
    await trial.cell("limit").set("30")
    assert (await limit.get()).value == "20"
    with pytest.raises(ServerError):
        await main.fork("trial")
    assert await trial.drop_cells() == 1501
    assert await collect(trial.cells()) == []
    assert await main.drop_cells() == 1501
    assert (await store.cell("maintenance/x").get()).value == "stays"


async def test_names_of_branches_and_their_cells(store: Any) -> None:
    for wrong in ("", "a/b", "a:b", "a\0", b"a/"):
        with pytest.raises(ValueError):
            store.branch(wrong)
        with pytest.raises(ValueError):
            await store.branch("a").fork(wrong)
    branch = store.branch("ü")
    for wrong in ("", "a\0", "_strata/a", "x" * 1025, "ü" * 513, b""):
        with pytest.raises(ValueError):
            branch.cell(wrong)
    for right in ("x" * 1024, "ü" * 512, "a/_strata/", "_strata", b"\xff"):
        assert branch.cell(right).name.startswith("ü/")
    await branch.cell(b"\xff").set("v")
    assert await collect(branch.cells()) == ["\udcff"]
    assert (await branch.cell("\udcff").get()).value == "v"


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
