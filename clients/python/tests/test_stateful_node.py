"""A stateful node: each input once, and the same outputs whenever it is read again. What is left after crashes is in the rounds of tests/packages."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faces import Face

import holdfast
import holdfast.asyncio
from holdfast import Output, ReplyError, codec


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
