"""A stateful node: each input once, the same outputs whenever it is read again, and recovery after crashes of node and server."""

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faces import Face
from server import Server

import holdfast
import holdfast.asyncio
from holdfast import Output, ReplyError, UnavailableError, codec


def add(number: int) -> Callable[[Any], tuple[int, list[Any]]]:
    def update(state: Any) -> tuple[int, list[Any]]:
        total = (state or 0) + number
        return total, [{"total": total}, number]

    return update


def never(_state: Any) -> tuple[int, list[Any]]:
    raise AssertionError("it was applied before")


@pytest.fixture(params=["server", "memory"])
def backend(request: pytest.FixtureRequest, store: Any, face: Face) -> Any:
    return store.exactly_once_state("node/", codec.json) if request.param == "server" else face.memory_state(codec.json)


async def test_an_input_is_applied_once_and_its_outputs_have_ids(backend: Any, face: Face) -> None:
    node = face.node("sums", backend, "check")
    first = await node.process("k", 1, add(3))
    expected = [hashlib.sha256(f"sums|k|1|{index}".encode()).hexdigest() for index in range(2)]
    assert first == [Output(expected[0], {"total": 3}), Output(expected[1], 3)]
    assert await node.process("k", 1, never) == first
    second = await node.process("k", 4, add(4))
    assert [each.value for each in second] == [{"total": 7}, 4]
    assert await node.process("k", 4, never) == second
    assert await node.process("k", 1, never) is None
    assert await node.process("k", 3, never) is None
    [epoch, _] = await node.process("k", (2, 5), add(1))
    assert epoch.id == hashlib.sha256(b"sums|k|2.5|0").hexdigest() and epoch.value == {"total": 8}
    [strange, _] = await node.process(b"\xff", 1, add(1))
    assert strange.id == hashlib.sha256(b"sums|\xff|1|0").hexdigest()
    assert await node.process("quiet", 1, lambda _: (0, [])) == []
    with pytest.raises(TypeError):
        await node.process("k", "5", never)
    with pytest.raises(ZeroDivisionError):
        await node.process("k", (3, 0), lambda state: (state // 0, []))
    assert (await backend.get("k"))[1] == (2, 5)


async def test_inputs_of_a_key_that_come_at_once_take_turns(backend: Any, face: Face) -> None:
    node = face.node("sums", backend, None)
    keys = ["a", "b", "c"]
    results = [asyncio.ensure_future(node.process(key, version, add(1))) for version in range(1, 11) for key in keys]
    done = await asyncio.gather(*results)
    for index, key in enumerate(keys):
        # A thread may come before another that was started first: its version is then the older one.
        applied = [result for result in done[index::3] if result is not None]
        assert (await backend.get(key))[0]["state"] == len(applied)
        assert len(applied) == 10 or not face.is_async
    assert await node.checkpoint(30) == 3
    assert (await backend.restore_checkpoint("sums:checkpoint")).position == b"30"


@pytest.mark.parametrize("face", [Face(is_async=False)], ids=["sync"])  # an update can wait for the other program only in a thread of its own
async def test_what_another_program_has_written_meanwhile_counts(backend: Any, face: Face, loop: asyncio.AbstractEventLoop) -> None:
    node = face.node("sums", backend, None)
    first = await node.process("k", 1, add(3))

    def interfere(version: int) -> Callable[[Any], tuple[int, list[Any]]]:
        """The other program puts while this one computes."""

        def update(state: Any) -> tuple[int, list[Any]]:
            value = {"state": 100, "outputs": ["the other's"]}
            put = backend.put("k", value, version)
            asyncio.run_coroutine_threadsafe(put, loop).result()
            return state + 1, ["this one's"]

        return update

    again = await node.process("k", 2, interfere(2))
    assert [each.value for each in again] == ["the other's"]
    assert await node.process("k", 3, interfere(4)) is None
    assert [each.value for each in first] == [{"total": 3}, 3]
    await backend.put("bad", "no state of a node", 1)
    with pytest.raises(ReplyError, match="state and outputs"):
        await node.process("bad", 2, never)


async def test_the_states_of_a_checkpoint_come_back(backend: Any, face: Face) -> None:
    node = face.node("sums", backend, "check")
    assert await node.recover() is None
    first = await node.process("k", 1, add(3))
    # Before the first checkpoint the input is read from its beginning, and no output is missing.
    await node.process("k", 2, add(4))
    assert await node.recover() is None
    assert await node.process("k", 1, add(3)) == first
    assert await node.checkpoint(1) == 1
    second = await node.process("k", 2, add(4))
    assert await node.recover() == b"1"
    assert await node.process("k", 2, add(4)) == second
    assert [each.value for each in await node.process("k", 3, add(1))] == [{"total": 8}, 1]


async def test_a_node_that_crashes_leaves_every_output_once(store: Any, face: Face, server: Server) -> None:
    """The node is made anew at random points, and the server is killed: the sink has each output once, and the states are right."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    choice = random.Random(seed)
    inputs = [(f"k{choice.randrange(3)}", number + 1, choice.randrange(9)) for number in range(60)]
    sink: dict[str, Any] = {}
    kills = iter(sorted(choice.sample(range(400), 2)))
    steps, kill = 0, next(kills)

    def start() -> Any:
        return face.node("sums", store.exactly_once_state("node/", codec.json), "check")

    async def run() -> bool:
        """Whether it came to the end."""
        nonlocal steps, kill
        node = start()
        position = int(await node.recover() or 0)
        for key, version, number in inputs[position:]:
            steps += 1
            if steps == kill:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.run)
                kill = next(kills, -1)
            for output in await node.process(key, version, add(number)) or []:
                assert sink.setdefault(output.id, output.value) == output.value
            if choice.random() < 0.1:
                await node.checkpoint(version)
            if choice.random() < 0.05:
                return False
        return True

    async def once() -> bool:
        try:
            return await run()
        except UnavailableError:
            return False

    while not await once():
        pass
    assert len(sink) == 2 * len(inputs)
    for key in ("k0", "k1", "k2"):
        numbers = [number for each, _, number in inputs if each == key]
        if numbers:
            assert (await store.exactly_once_state("node/", codec.json).get(key))[0]["state"] == sum(numbers)


def _backends_have_the_face_of_a_backend(store: holdfast.Store, other: holdfast.asyncio.Store) -> Iterator[Any]:
    """For mypy alone."""
    blocking: holdfast.StateBackend[int] = store.exactly_once_state("s/", codec.integer)
    yield blocking
    blocking = holdfast.MemoryState(codec.integer)
    yield blocking
    asynchronous: holdfast.asyncio.StateBackend[int] = other.exactly_once_state("s/", codec.integer)
    yield asynchronous
    asynchronous = holdfast.asyncio.MemoryState(codec.integer)
    yield asynchronous
