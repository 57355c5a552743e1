"""A queue with groups: caps, rates, turns and pauses, with several workers; the limits that are set, and the groups as they fare."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from conftest import collect, eventually
from faces import Face

from holdfast import (
    Claim,
    Group,
    GroupLimits,
    GroupState,
    IndexDefinition,
    Limits,
    NoGroupsError,
    QueueConfig,
    Rate,
    ServerError,
)

CONFIG = QueueConfig(indexes=["due"], group_by="tenant")
HOUR_MS = 3_600_000
#: A test's rate: what is used up comes back after the test.
SLOW = Rate(2, per_ms=HOUR_MS)


@pytest.fixture
def queue(store: Any, face: Face, loop: asyncio.AbstractEventLoop) -> Any:
    queue = face.queue(store, CONFIG)
    loop.run_until_complete(queue.create_index("due", "job:"))
    return queue


async def add(queue: Any, group: str, *numbers: int) -> None:
    for number in numbers:
        assert await queue.add(f"job:{group}:{number}", {}, group=group)


async def claim_all(queue: Any) -> list[Any]:
    """All jobs that may be claimed now."""
    jobs: list[Any] = await queue.claim(replace(queue.request("w"), count=100))
    return jobs


async def claim_groups(queue: Any) -> list[str]:
    """The groups of all jobs that may be claimed now."""
    return [job.fields.text("tenant") for job in await claim_all(queue)]


async def groups(queue: Any) -> dict[str, GroupState]:
    return {group.name: group for group in await collect(queue.groups())}


async def test_a_paused_group_gives_nothing_and_then_to_the_worker_that_waits(
    queue: Any, blocked: Callable[[int], Awaitable[bool]]
) -> None:
    await queue.limit(Group("acme"), pause=True)
    await add(queue, "acme", 1)
    await add(queue, "bolt", 1)
    assert await claim_groups(queue) == ["bolt"]
    waiting = asyncio.ensure_future(queue.next("w", 60_000))
    await eventually(lambda: blocked(1))
    state = (await groups(queue))["acme"]
    assert state.limits.pause and state.allowed_at is None and not waiting.done()
    await queue.limit(Group("acme"), pause=False)
    assert (await waiting).key == "job:acme:1"


async def test_limits_are_read_as_they_were_set_and_taken_back(queue: Any) -> None:
    assert await queue.limits() == []
    await queue.limit("all", held=100, rate=Rate(10, per_ms=1000))
    await queue.limit("each", held=2, pause=False)
    await queue.limit(Group("acme"), held="none", rate=Rate(5, per_ms=1000, burst=9), weight=2.5)
    await queue.limit(Group("acme"), pause=True)  # the others stay
    acme = Limits(scope=Group("acme"), held="none", rate=Rate(5, 1000, 9), weight=2.5, pause=True)
    each = Limits(scope="each", held=2, pause=False)
    every = Limits(scope="all", held=100, rate=Rate(10, 1000, 10))
    assert sorted(await queue.limits(), key=repr) == sorted([acme, each, every], key=repr)

    await queue.reset_limits("each")
    await queue.limit(Group("acme"), held="default", rate="default")
    assert sorted(await queue.limits(), key=repr) == sorted([replace(acme, held=None, rate=None), every], key=repr)
    await queue.reset_limits()
    assert await queue.limits() == []


async def test_groups_come_page_by_page(store: Any, queue: Any, face: Face) -> None:
    names = {f"tenant-{number}" for number in range(620)} | {"", "ü", "\udcff"}
    for name in names:
        await store.put(b"job:" + name.encode(errors="surrogateescape"), {"state": "pending", "run_at": 5, "tenant": name})
    listed = await collect(queue.groups())
    assert len(listed) == len(names) and {group.name for group in listed} == names
    assert {(group.records, group.held, group.first_score, group.allowed_at) for group in listed} == {(1, 0, 5.0, 0)}
    await queue.limit(Group("\udcff"), held=0)
    assert (await groups(queue))["\udcff"].limits == GroupLimits(held=0)
    assert [limits.scope for limits in await queue.limits()] == [Group("\udcff")]


async def test_the_group_of_a_job(store: Any, queue: Any, face: Face) -> None:
    await queue.add("job:1", {"tenant": "of the fields"}, group="acme")
    await queue.add("job:2", {"tenant": "bolt"})
    await queue.add("job:3", {})
    await queue.add("job:4", {}, group=7)
    await queue.add("job:5", {}, HOUR_MS, group=b"\xff")
    assert {name: group.records for name, group in (await groups(queue)).items()} == {"acme": 1, "bolt": 1, "": 1, "7": 1, "\udcff": 1}
    with pytest.raises(ValueError, match="at most 1024 bytes, and this one has 1025"):
        await queue.add("job:6", {}, group="x" * 1025)
    assert await queue.add("job:6", {}, group="x" * 1024)
    plain = face.queue(store, QueueConfig(indexes=["due"]))
    with pytest.raises(ValueError, match="group_by"):
        await plain.add("job:7", {}, group="acme")
    assert await store.get("job:7") is None


async def test_an_index_that_is_there_has_to_keep_the_groups(store: Any, queue: Any, face: Face) -> None:
    await queue.create_index("due", "job:")  # again
    open_jobs = ("state", ["pending", "running"])
    held = ("state", ["running"])
    for number, (is_right, definition) in enumerate([
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs)),
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, group="tenant")),
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, held=held)),
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, group="customer", held=held)),
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, group="tenant", held=("state", ["pending"]))),
        (False, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, group="tenant", held=("state", ["resting", "running"]))),
        (True, IndexDefinition(prefixes=["x:"], field="run_at", only=open_jobs, group="tenant", held=held)),
    ]):  # fmt: skip
        assert await store.create_index(f"other-{number}", definition)
        if is_right:
            assert await queue.create_index(f"other-{number}", "x:") is False
            continue
        with pytest.raises(NoGroupsError, match=f"an index other-{number} already, .*(GROUP|HELD) is "):
            await queue.create_index(f"other-{number}", "x:")
    info = await face.command(store.client, "IDX.INFO", "due")
    pairs = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2]))
    assert (pairs[b"group"], pairs[b"held"]) == (b"tenant", [b"state", b"running"])


async def test_a_queue_without_groups_makes_the_index_that_it_made(store: Any, face: Face) -> None:
    plain = face.queue(store, QueueConfig(indexes=["plain"]))
    await plain.create_index("plain", "plain:")
    info = await face.command(store.client, "IDX.INFO", "plain")
    assert b"group" not in info and b"held" not in info


async def test_what_the_server_refuses_reaches_the_caller(store: Any, queue: Any, face: Face) -> None:
    plain = face.queue(store, QueueConfig(indexes=["plain"]))
    await plain.create_index("plain", "plain:")
    for refused, message in [
        (plain.limit(Group("acme"), pause=True), "the index 'plain' has no groups: it was created without GROUP"),
        (plain.limit("all", held=1), "the index 'plain' does not know what is held: it was created without HELD"),
        (queue.limit("all", weight=2), "WEIGHT is for groups, not for ALL"),
        (queue.limit("each", weight=0), "WEIGHT must be a number from 0.01 to 1000, not '0'"),
        (queue.limit("each", rate=Rate(0, per_ms=1)), "the number behind RATE"),
        (queue.limit("each", held=-1), "the maximum behind HELD"),
        (queue.limit("each"), "nothing is set"),
        (store.limit("none", "each", held=1), "there is no index 'none'"),
        (store.limits("none"), "there is no index 'none'"),
        (store.reset_limits("none"), "there is no index 'none'"),
        (collect(store.groups("none")), "there is no index 'none'"),
        (store.claim(Claim(indexes=["due"], set={"tenant": "other"})), "tenant"),
    ]:
        with pytest.raises(ServerError, match=message):
            await refused
    assert await collect(plain.groups()) == [] and await queue.limits() == []


async def test_wrong_arguments(store: Any, queue: Any, face: Face) -> None:
    several = face.queue(store, QueueConfig(indexes=["due", "due:low"], group_by="tenant"))
    for kind, wrong in [
        (ValueError, queue.limit("acme", held=1)),
        (ValueError, queue.limit("each", held="some")),
        (TypeError, queue.limit("each", held=1.5)),
        (TypeError, queue.limit("each", pause="no")),
        (ValueError, queue.reset_limits("acme")),
        (ValueError, several.limit("each", held=1)),
        (ValueError, several.limits()),
        (ValueError, several.reset_limits()),
        (ValueError, collect(several.groups())),
    ]:
        with pytest.raises(kind):
            await wrong
    assert await queue.limits() == []
    await store.limit("due", "each", held=1)  # the way with several
    assert await store.limits("due") == await queue.limits() == [Limits(scope="each", held=1)]
