"""The state in the process gives the answers of the server: random histories on both, and what only the state in the process has."""

import asyncio
import random
from typing import Any

import pytest
from faces import Face
from server import Server

from holdfast import Restored, ServerError, codec


def skip_without_ordered_pairs(server: Server) -> None:
    if server.answer("REG.PUT", "probe", "1.1", "v", "ORDERED") != "b'BUFFERED'":
        pytest.skip("the server has no ordered versions with an epoch")
    server.answer("DEL", "probe")


async def answer(request: Any) -> Any:
    """What comes back, an error included. Texts of errors are the server's own."""
    try:
        return await request
    except ServerError as error:
        return error.code


@pytest.mark.parametrize("protocol", [3], ids=["resp3"])
async def test_numbers_and_pairs_on_both(store: Any, face: Face, server: Server) -> None:
    skip_without_ordered_pairs(server)
    kinds, steps = ["numbers", "pairs"], 400
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    choice = random.Random(seed)
    there, memory = store.exactly_once_state("s/", codec.raw), face.memory_state(codec.raw)
    snapshots: list[tuple[bytes, bytes]] = []
    arguments: tuple[Any, ...]
    keys = {kind: [f"{kind}{number}" for number in range(3)] for kind in kinds}

    def version(kind: str, ordered: bool) -> Any:
        if choice.random() < 0.02:
            return choice.choice([0, 2**64 - 1, 2**64, -1, (2**64 - 1, 2**64 - 1), (0, 2**64)])
        if kind == "numbers" and choice.random() < 0.95 or kind == "pairs" and choice.random() < 0.05:
            return choice.randrange(1, 30)
        return choice.randrange(3), choice.randrange(8)

    for _ in range(steps):
        kind = choice.choice(kinds)
        what, ordered = choice.random(), choice.random() < 0.8
        key, at = choice.choice(keys[kind]), version(kind, ordered or what >= 0.8)
        if what < 0.4:
            number = choice.choice([1, 2, -3, 2**63 - 1, -(2**63)]) if choice.random() < 0.2 else choice.randrange(9)
            name, arguments = ("add_ordered" if ordered else "add"), (key, at, number)
        elif what < 0.8:
            value = choice.choice([b"1", b"x", b"", b"-0", b"007", b"9223372036854775807", bytes([255])])
            name, arguments = ("put_ordered" if ordered else "put"), (key, value, at)
        elif what < 0.9:
            name, arguments = "seal", (key, at)
        elif what < 0.95 or not snapshots:
            position = choice.choice([None, b"7", "x"])
            snapshots.append((await there.snapshot(position), await memory.snapshot(position)))
            continue
        else:
            name, chosen = choice.choice(["restore", "merge"]), choice.choice(snapshots)
            assert await getattr(there, name)(chosen[0]) == await getattr(memory, name)(chosen[1])
            name, arguments = "mget", ([*keys[kind], "none"],)
        said = [await answer(getattr(each, name)(*arguments)) for each in (there, memory)]
        assert said[0] == said[1], (name, arguments)
        held = [await each.mget(keys[kind]) for each in (there, memory)]
        assert held[0] == held[1], (name, arguments)


async def test_no_more_is_buffered_than_at_the_server(face: Face, loop: asyncio.AbstractEventLoop) -> None:
    state = face.memory_state()
    for version in range(2, 1026):
        assert await state.put_ordered("k", "v", version) == "buffered"
    with pytest.raises(ServerError, match="reg-buffer-max"):
        await state.put_ordered("k", "v", 1026)
    assert await state.put_ordered("k", "v", 1025) == "buffered"
    assert await state.put_ordered("k", "v", 1) == "applied"
    assert await state.get("k") == ("v", (0, 1025))


async def test_a_checkpoint_is_taken_up_by_another_state(face: Face, loop: asyncio.AbstractEventLoop) -> None:
    checkpoints: dict[bytes, bytes] = {}
    first, second = (face.memory_state(codec.integer, checkpoints) for _ in range(2))
    assert await first.restore_checkpoint("check") is None
    await first.add(b"\xff", 1, 5)
    assert await first.checkpoint("check", 7) == 1
    assert await second.restore_checkpoint("check") == Restored(1, b"7")
    assert await second.get("\udcff") == (5, (0, 1))
    assert await second.merge_checkpoint("check") == Restored(0, b"7")
    assert await second.merge_checkpoint("none") is None
    snapshot = await second.snapshot()
    assert await face.memory_state().restore(snapshot) == Restored(1, None)
    for damaged in (b"", snapshot[:-1], snapshot[:30] + b"x" + snapshot[31:]):
        with pytest.raises(ServerError):
            await second.restore(damaged)
    with pytest.raises(TypeError):
        await second.restore("snapshot")
