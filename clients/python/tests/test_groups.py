"""A queue with groups: caps, rates, turns and pauses, with several workers; the limits that are set, and the groups as they fare."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from conftest import collect, eventually
from faces import Face

from holdfast import (
    Claim,
    Exchange,
    Group,
    GroupLimits,
    GroupState,
    IndexDefinition,
    JobNames,
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


async def test_a_cap_holds_with_several_workers(connect: Any, store: Any, queue: Any, face: Face) -> None:
    await queue.limit("each", held=2)
    tenants, jobs = ["acme", "bolt"], 20
    running, most, done = Counter[str](), Counter[str](), Counter[str]()

    async def work(name: str) -> None:
        mine = face.queue(await connect(), CONFIG)
        while done.total() < jobs * len(tenants):
            job = await mine.next(name, 50)
            if job is None:
                continue
            tenant = job.fields.text("tenant")
            running[tenant] += 1
            most[tenant] = max(most[tenant], running[tenant])
            await asyncio.sleep(0.001)
            running[tenant] -= 1  # before the server knows it: it may give the next one at once
            await job.complete()
            done[tenant] += 1

    for tenant in tenants:
        await add(queue, tenant, *range(jobs))
    await asyncio.gather(*(work(f"w-{number}") for number in range(6)))
    assert done == {tenant: jobs for tenant in tenants}
    assert max(most.values()) <= 2


async def test_a_cap_is_reached_and_a_job_that_ends_makes_room(store: Any, queue: Any) -> None:
    await queue.limit("each", held=2)
    await queue.limit(Group("bolt"), held=1)
    await queue.limit(Group("free"), held="none")
    for tenant in ("acme", "bolt", "free"):
        await add(queue, tenant, 1, 2, 3, 4)
    jobs = await claim_all(queue)
    assert Counter(job.fields.text("tenant") for job in jobs) == {"acme": 2, "bolt": 1, "free": 4}
    assert await claim_all(queue) == []

    first = {job.fields.text("tenant"): job for job in jobs}
    await first["acme"].complete()
    await first["bolt"].retry(0)
    assert sorted(await claim_groups(queue)) == ["acme", "bolt"]
    await queue.limit(Group("bolt"), held="default")
    assert await claim_groups(queue) == ["bolt"]
    # A lease that has run out: the job counts already, and may be claimed again.
    assert (await store.exchange(first["free"].key, Exchange(set={"run_at": 1}))).applied
    assert await claim_groups(queue) == ["free"]


async def test_a_cap_for_all(queue: Any) -> None:
    await queue.limit("all", held=3)
    await add(queue, "acme", 1, 2, 3)
    await add(queue, "bolt", 1, 2, 3)
    assert len(await claim_all(queue)) == 3
    await queue.limit("all", held="none")
    assert len(await claim_all(queue)) == 3


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


async def test_all_can_be_paused_in_a_queue_without_groups_too(
    store: Any, face: Face, blocked: Callable[[int], Awaitable[bool]]
) -> None:
    plain = face.queue(store, QueueConfig(indexes=["plain"]))
    await plain.create_index("plain", "plain:")
    await plain.limit("all", pause=True)
    await plain.add("plain:1", {})
    waiting = asyncio.ensure_future(plain.next("w", 60_000))
    await eventually(lambda: blocked(1))
    await plain.reset_limits("all")
    assert (await waiting).key == "plain:1"


async def test_a_job_that_ends_wakes_the_worker_that_waits_for_room(queue: Any, blocked: Callable[[int], Awaitable[bool]]) -> None:
    await queue.limit("each", held=1)
    await add(queue, "acme", 1, 2)
    job = await queue.next("w-1", 0)
    waiting = asyncio.ensure_future(queue.next("w-2", 60_000))
    await eventually(lambda: blocked(1))
    await job.complete()
    assert {job.key, (await waiting).key} == {"job:acme:1", "job:acme:2"}


async def test_a_rate(queue: Any) -> None:
    await queue.limit("each", rate=SLOW)
    await queue.limit(Group("bolt"), rate=replace(SLOW, burst=3))
    await queue.limit(Group("free"), rate="none")
    for tenant in ("acme", "bolt", "free"):
        await add(queue, tenant, 1, 2, 3, 4, 5)
    assert Counter(await claim_groups(queue)) == {"acme": 2, "bolt": 3, "free": 5}
    assert await claim_groups(queue) == []
    state = (await groups(queue))["acme"]
    assert state.allowed_at is not None and state.allowed_at > time.time() * 1000
    assert (await groups(queue))["free"].allowed_at == 0
    await queue.limit(Group("acme"), rate="none")
    assert await claim_groups(queue) == ["acme"] * 3


async def test_a_rate_gives_to_the_worker_that_waits_when_its_time_comes(queue: Any) -> None:
    await queue.limit("all", rate=Rate(1, per_ms=20))
    await add(queue, "acme", *range(5))
    assert {(await queue.next("w", 60_000)).key for _ in range(5)} == {f"job:acme:{number}" for number in range(5)}


async def test_groups_take_turns_in_proportion_to_their_weights(queue: Any) -> None:
    await add(queue, "noisy", *range(40))
    await add(queue, "heavy", *range(40))
    await add(queue, "small", 1)
    await queue.limit(Group("heavy"), weight=3)
    assert "small" in [(await queue.next("w", 0)).fields.text("tenant") for _ in range(8)]
    taken = Counter([(await queue.next("w", 0)).fields.text("tenant") for _ in range(40)])
    assert abs(taken["heavy"] - 30) <= 2 and taken.total() == 40


async def test_a_claim_by_score_takes_the_oldest_job_of_all_groups(store: Any, queue: Any) -> None:
    for number, tenant in enumerate(["a", "a", "b", "a", "b"]):
        await queue.add(f"job:{number}", {}, group=tenant)
        await store.set_field(f"job:{number}", "run_at", number)
    jobs = await queue.claim(replace(queue.request("w"), count=5, order="score"))
    assert [job.key for job in jobs] == [f"job:{number}" for number in range(5)]


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


async def test_a_group_as_it_fares(store: Any, queue: Any) -> None:
    await queue.limit("each", held=3, rate=SLOW)
    await queue.limit(Group("acme"), weight=2, held=1)
    await add(queue, "acme", 1, 2, 3)
    job = await queue.next("w", 0)
    [state] = await collect(queue.groups())
    assert (state.name, state.records, state.held, state.allowed_at) == ("acme", 3, 1, None)
    assert state.first_score == min([(await store.get(f"job:acme:{number}")).integer("run_at") for number in (1, 2, 3)])
    assert state.limits == GroupLimits(held=1, rate=Rate(2, HOUR_MS, 2), weight=2)
    await job.complete()
    [state] = await collect(queue.groups())
    assert (state.records, state.held, state.allowed_at) == (2, 0, 0)


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


async def test_a_worker_need_not_know_of_the_groups(store: Any, queue: Any, face: Face) -> None:
    await queue.limit("each", held=1)
    await add(queue, "acme", 1, 2)
    worker = face.queue(store, QueueConfig(indexes=["due"]))
    assert await worker.create_index("due", "job:", on_difference="keep") is False
    job = await worker.next("w", 0)
    assert await worker.next("w", 0) is None
    await job.complete()
    assert {job.key, (await worker.next("w", 0)).key} == {"job:acme:1", "job:acme:2"}


async def test_other_names(store: Any, face: Face) -> None:
    names = JobNames(state="s", run_at="at", attempt="n", worker="by", pending="P", running="R", completed="C", dead="D")
    queue = face.queue(store, QueueConfig(indexes=["mine"], names=names, group_by="g"))
    await queue.create_index("mine", "task:")
    await queue.limit("each", held=1)
    await queue.add("task:1", {}, group="x")
    await queue.add("task:2", {}, group="x")
    job = await queue.next("w", 0)
    assert await queue.next("w", 0) is None
    await job.complete()
    assert (await queue.next("w", 0)).fields.text("g") == "x"


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
