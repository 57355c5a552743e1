"""A queue of jobs: leases, fencing tokens, retries and dead letters, and workers that share it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from faces import Face

from holdfast import Exchange, JobNames, Lifetime, LostError, QueueConfig

CONFIG = QueueConfig(indexes=["due:high", "due"], attempts_max=2, completed_lifetime=Lifetime(ms=60_000))


@pytest.fixture
def queue(store: Any, face: Face, loop: asyncio.AbstractEventLoop) -> Any:
    queue = face.queue(store, CONFIG)
    loop.run_until_complete(queue.create_index("due", "job:"))
    loop.run_until_complete(queue.create_index("due:high", "urgent:"))
    return queue


async def state(store: Any, key: str) -> str | None:
    fields = await store.get(key)
    text: str | None = fields.text("state")
    return text


async def expire(store: Any, key: str) -> None:
    """Ends the lease of a job."""
    assert (await store.exchange(key, Exchange(expected={"state": "running"}, stamp={"run_at": -1}))).applied


async def test_a_job_is_added_once_claimed_by_one_worker_and_completed_once(store: Any, queue: Any, face: Face) -> None:
    assert await queue.add("job:7", {"image": "cat.png"}) is True
    assert await queue.add("job:7", {"image": "dog.png"}) is False
    assert await queue.add("job:8", {}, 60_000) is True
    claims = await asyncio.gather(*(queue.next(f"w-{i}", 0) for i in range(8)))
    [job] = [each for each in claims if each is not None]
    assert (job.key, job.token, job.fields.text("image")) == ("job:7", 1, "cat.png") and job.score > 0

    await job.renew(45_000)
    assert (await job.update(Exchange(set={"step": 1}))).applied
    await job.complete({"result": "small.png"})
    await job.complete({"result": "small.png"})  # as after a lost answer
    assert (await store.get("job:7")).text("result") == "small.png"
    assert await state(store, "job:7") == "completed"
    assert await face.command(store.client, "PTTL", "job:7") > 0
    with pytest.raises(LostError):
        await job.renew(1000)
    with pytest.raises(LostError):
        await job.retry(0)


async def test_the_most_urgent_index_is_first(queue: Any) -> None:
    await queue.add("job:1", {})
    await queue.add("urgent:1", {})
    assert [(await queue.next("w", 0)).key for _ in range(2)] == ["urgent:1", "job:1"]


async def test_a_worker_whose_lease_has_ended_is_refused(store: Any, queue: Any) -> None:
    await queue.add("job:1", {})
    first = await queue.next("slow", 0)
    await expire(store, "job:1")
    second = await queue.next("fast", 0)
    assert second.token == 2
    for write in (first.renew(1000), first.complete(), first.fail(), first.retry(0), first.update(Exchange(set={"a": 1}))):
        with pytest.raises(LostError) as caught:
            await write
        assert (caught.value.key, caught.value.token) == ("job:1", 1)
        assert caught.value.current.to_dict() == {"attempt": "2", "state": "running"}
        assert str(caught.value) == "attempt 1 of the job job:1 is over: it has attempt=2 state=running"
    await second.complete()
    await store.delete("job:1")
    with pytest.raises(LostError, match="is gone"):
        await second.renew(1000)


async def test_an_updates_own_conditions_are_no_loss(queue: Any) -> None:
    await queue.add("job:1", {"step": 1})
    job = await queue.next("w", 0)
    outcome = await job.update(Exchange(expected={"step": 2}, set={"step": 3}))
    assert not outcome.applied and outcome.current.text("step") == "1"
    assert (await job.update(Exchange(expected={"step": 1}, set={"step": 2}))).applied


async def test_a_delayed_job_is_claimed_when_its_time_comes(queue: Any) -> None:
    await queue.add("job:1", {}, 50)
    assert (await queue.next("w", 30_000)).key == "job:1"


async def test_several_jobs_at_once_with_some_of_their_fields(queue: Any) -> None:
    await asyncio.gather(*(queue.add(f"job:{i}", {"image": f"{i}.png", "size": i}) for i in range(5)))
    jobs = await queue.claim(replace(queue.request("w"), count=10, fields=["image"]))
    assert sorted(job.key for job in jobs) == [f"job:{i}" for i in range(5)]
    assert all(set(job.fields) == {"attempt", "image"} for job in jobs)
    await asyncio.gather(*(job.complete() for job in jobs))


async def test_other_names_of_fields_and_states(store: Any, face: Face) -> None:
    names = JobNames(state="s", run_at="at", attempt="n", worker="by", pending="P", running="R", completed="C", dead="D")
    queue = face.queue(store, QueueConfig(indexes=["mine"], lease_ms=1000, names=names))
    await queue.create_index("mine", "task:")
    await queue.add("task:1", {"x": 1})
    await (await queue.next("w-1", 0)).complete()
    fields = (await store.get("task:1")).to_dict()
    assert {**fields, "at": ""} == {"x": "1", "s": "C", "at": "", "n": "1", "by": "w-1"}
