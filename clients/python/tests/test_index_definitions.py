"""An index that exists with another definition, and a job that is in no index: each is an error that says what is wrong."""

import asyncio
from typing import Any

import pytest
from conftest import eventually
from faces import Face

from holdfast import (
    Group,
    IndexDefinition,
    IndexDiffersError,
    OnDifference,
    OutsideIndexError,
    QueueConfig,
    ServerError,
)

CONFIG = QueueConfig(indexes=["due"])
OPEN = ("state", ["pending", "running"])


async def test_the_same_definition_is_no_difference(store: Any, face: Face) -> None:
    index = IndexDefinition(prefixes=["a:", "b:"], field="at", only=OPEN, stamp=True, group="tenant", held=("state", ["running"]))
    assert await store.create_index("i", index) is True
    other = IndexDefinition(prefixes=["b:", "a:"], field="at", only=("state", ["running", "pending"]), stamp=True, group="tenant", held=("state", ["running"]))
    choices: list[OnDifference] = ["raise", "keep", "replace"]
    for choice in choices:
        assert await store.create_index("i", index, on_difference=choice) is False
        assert await store.create_index("i", other, on_difference=choice) is False
    made = await asyncio.gather(*(store.create_index("at-once", index) for _ in range(8)))
    assert sorted(made) == [False] * 7 + [True]


@pytest.mark.parametrize(("part", "wanted"), [
    ("PREFIX is a: there, and b: here", IndexDefinition(prefixes=["b:"], field="at")),
    ("FIELD is at there, and until here", IndexDefinition(prefixes=["a:"], field="until")),
    ("ONLY is not given there, and state pending running here", IndexDefinition(prefixes=["a:"], field="at", only=OPEN)),
    ("EXCLUDE is not given there, and state pending running here", IndexDefinition(prefixes=["a:"], field="at", exclude=OPEN)),
    ("STAMP is not given there, and 1 here", IndexDefinition(prefixes=["a:"], field="at", stamp=True)),
    ("GROUP is not given there, and tenant here", IndexDefinition(prefixes=["a:"], field="at", group="tenant")),
    ("HELD is not given there, and state pending running here", IndexDefinition(prefixes=["a:"], field="at", held=OPEN)),
])  # fmt: skip
async def test_what_differs_is_said(store: Any, part: str, wanted: IndexDefinition) -> None:
    await store.create_index("i", IndexDefinition(prefixes=["a:"], field="at"))
    with pytest.raises(IndexDiffersError) as caught:
        await store.create_index("i", wanted)
    assert (caught.value.index, caught.value.differences) == ("i", [part])
    assert part in str(caught.value)
    assert await store.create_index("i", wanted, on_difference="keep") is False
    with pytest.raises(IndexDiffersError):
        await store.create_index("i", wanted)
    assert await store.create_index("i", wanted, on_difference="replace") is True
    assert await store.create_index("i", wanted) is False


async def test_a_queue_that_meets_another_index(store: Any, face: Face) -> None:
    queue = face.queue(store, CONFIG)
    assert await queue.create_index("due", "a:") is True
    assert await queue.create_index("due", "a:") is False
    with pytest.raises(IndexDiffersError, match="PREFIX is a: there, and b: here"):
        await queue.create_index("due", "b:")
    assert await queue.add("a:1", {}) is True
    assert await queue.create_index("due", "b:", on_difference="replace") is True
    with pytest.raises(OutsideIndexError):
        await queue.add("a:2", {})
    assert await queue.add("b:1", {}) is True
    assert (await queue.next("w", 0)).key == "b:1"


async def test_a_refused_definition_leaves_the_index(store: Any) -> None:
    index = IndexDefinition(prefixes=["a:"], field="at")
    await store.create_index("i", index)
    for wrong in (IndexDefinition(prefixes=[], field="at"), IndexDefinition(prefixes=["b:"], field="at", only=OPEN, exclude=OPEN)):
        with pytest.raises(ServerError):
            await store.create_index("i", wrong, on_difference="replace")
        assert await store.create_index("i", index) is False
        with pytest.raises(ServerError):
            await store.create_index("none", wrong)
    with pytest.raises(ValueError, match="raise, keep, replace"):
        await store.create_index("i", index, on_difference="drop")
    assert await store.indexes() == ["i"]


async def test_a_worker_that_waits_goes_on_while_its_index_is_replaced(store: Any, face: Face, blocked: Any) -> None:
    queue = face.queue(store, CONFIG)
    await queue.create_index("due", "a:")
    waiting = asyncio.ensure_future(queue.next("w", 60_000))
    await eventually(lambda: blocked(1))
    await queue.create_index("due", "b:", on_difference="replace")
    await queue.add("b:1", {})
    assert (await waiting).key == "b:1"

    waiting = asyncio.ensure_future(queue.next("w", 60_000))
    await eventually(lambda: blocked(1))
    await store.drop_index("due")
    with pytest.raises(ServerError, match="there is no index 'due'"):
        await waiting


async def test_limits_stay_if_groups_are_the_same(store: Any, face: Face) -> None:
    queue = face.queue(store, QueueConfig(indexes=["due"], group_by="tenant"))
    await queue.create_index("due", "a:")
    await queue.limit("each", held=2)
    await queue.limit(Group("acme"), weight=3.0, pause=True)
    before = await queue.limits()
    await queue.create_index("due", "b:", on_difference="replace")
    assert await queue.limits() == before
    other = face.queue(store, QueueConfig(indexes=["due"], group_by="team"))
    await other.create_index("due", "b:", on_difference="replace")
    assert await other.limits() == []


async def test_a_job_outside_of_the_index_is_refused(store: Any, face: Face) -> None:
    queue = face.queue(store, QueueConfig(indexes=["due:high", "due"]))
    await queue.create_index("due", "job:")
    assert await queue.add("zzz:0", {}) is True  # the other index may have it
    await queue.create_index("due:high", b"urgent:\xff")
    for key in ("zzz:1", b"urgent:\xfe", "job"):
        with pytest.raises(OutsideIndexError, match="is in no index of the queue") as caught:
            await queue.add(key, {})
        assert caught.value.prefixes == ["job:", "urgent:\udcff"]
        assert await store.get(key) is None
    assert await queue.add("job:1", {}) is True
    assert await queue.add(b"urgent:\xff1", {}) is True
