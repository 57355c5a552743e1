"""Runs: appends with keys and fencing, events, snapshots, projections and lists."""

import asyncio
from datetime import datetime, timezone
from typing import Any

import pytest
from conftest import collect, eventually

from holdfast import Duplicate, NewEvent, RunSnapshot, ServerError, StepSnapshot, codec, snapshot_reducer


async def test_an_event_is_appended_once(store: Any) -> None:
    run = store.run("r")
    assert run.name == "r"
    event = NewEvent("StepCompleted", {"amount": 40}, step_id="charge", idempotency_key="charge-1")
    first = await run.append(event)
    assert (first.outcome, first.run_seq, first.idempotent, first.persisted, first.mismatch) == ("appended", 1, False, True, False)
    assert abs((first.persisted_at - datetime.now(timezone.utc)).total_seconds()) < 3600
    again = await run.append(event)
    assert again == Duplicate(run_seq=1, event_id=first.event_id, persisted_at=first.persisted_at, mismatch=False)
    other = await run.append(NewEvent("StepCompleted", {"amount": 41}, idempotency_key="charge-1"))
    assert (other.outcome, other.mismatch) == ("duplicate", True)
    assert len(await run.events()) == 1


async def test_all_parts_of_an_event_come_back(store: Any) -> None:
    parts: dict[str, Any] = {
        "idempotency_key": "key ü",
        "event_id": "id",
        "step_id": "step",
        "engine_attempt_id": "e1",
        "logical_attempt_id": "l1",
        "emitted_at": "yesterday",
        "adapter_version": "v1",
        "caused_by_signal_id": "signal",
        "parent_event_id": "parent",
        "plan_version": "p1",
    }
    refs = ["run-17", "", '{"is": "text"}', '"quoted', {"platform": "x", "ids": [1, 2]}, [1, {"a": None}]]
    run = store.run("r")
    for number, ref in enumerate(refs):
        await run.append(NewEvent("X", {"n": 1}, **{**parts, "idempotency_key": f"{number}"}, engine_run_ref=ref))
    events = await run.events()
    assert [event.engine_run_ref for event in events] == refs
    assert {name: getattr(events[0], name) for name in parts} == {**parts, "idempotency_key": "0"}
    assert (events[0].run_id, events[0].run_seq, events[0].event_type, events[0].event_data) == ("r", 1, "X", {"n": 1})
    plain = store.run("plain")
    await plain.append(NewEvent("Y", None))
    [event] = await plain.events()
    assert (event.step_id, event.engine_run_ref, event.plan_version) == (None, None, None)
    assert datetime.fromisoformat(event.emitted_at.replace("Z", "+00:00")).tzinfo is not None
    assert len(event.idempotency_key) == 64
    with pytest.raises(TypeError):
        await plain.append(NewEvent("Y", None, engine_run_ref=7))


async def test_attributes_come_back_as_they_were(store: Any) -> None:
    run = store.run("r")
    every_byte = bytes(range(256))
    await run.append(NewEvent("X", 1, attributes={"tenant": "acme", "n": 7, "bytes": every_byte, "\udcff": ""}))
    await run.append(NewEvent("Y", 2))
    first, second = await run.events()
    assert dict(first.attributes) == {"tenant": b"acme", "n": b"7", "bytes": every_byte, "\udcff": b""}
    assert (first.attributes.text("tenant"), first.attributes.integer("n")) == ("acme", 7)
    assert dict(second.attributes) == {}


async def test_data_is_json_or_what_a_codec_says(store: Any) -> None:
    run, raw = store.run("r"), store.run("r", codec.raw)
    every_byte = bytes(range(256))
    data = [{"ü": [1, 2.5, None, True, 2**70]}, "text", 7, None, every_byte]
    for number, each in enumerate(data):
        await run.append(NewEvent(f"X{number}", each))
    assert [event.event_data for event in await run.events()] == data
    assert [event.event_data for event in await raw.events(after=1)] == [b'"text"', b"7", b"null", every_byte]
    with pytest.raises(TypeError):
        await run.append(NewEvent("X", object()))
    with pytest.raises(ValueError):
        await run.append(NewEvent("X", float("nan")))


async def test_events_in_pages_and_after_a_wait(store: Any, blocked: Any) -> None:
    run = store.run("r")
    for number in range(1, 6):
        await run.append(NewEvent("X", number, idempotency_key=f"{number}"))
    assert [event.event_data for event in await run.events(after=1, limit=3)] == [2, 3, 4]
    assert await run.events(after=5) == []
    assert await run.events(after=5, wait_ms=1) == []
    waiting = asyncio.ensure_future(run.events(after=5, wait_ms=30_000))
    await eventually(lambda: blocked(1))
    await run.append(NewEvent("X", 6, idempotency_key="6"))
    assert [event.run_seq for event in await waiting] == [6]
    with pytest.raises(ServerError):
        await run.events(after=7)
    with pytest.raises(TypeError):
        await run.lag("1")


async def test_the_snapshot_is_what_the_events_come_to(store: Any) -> None:
    run = store.run("r")
    assert await run.snapshot() is None
    assert await run.project() == RunSnapshot(run_id="r")
    assert await run.fold(0, lambda count, _: count + 1) == 0
    history: list[tuple[str, str | None]] = [
        ("StepCorrected", "early"), ("RunStarted", None), ("StepStarted", "a"), ("StepRetried", "a"), ("StepStarted", "a"),
        ("StepCompleted", "a"), ("StepStarted", "b"), ("StepFailed", "b"), ("StepSkipped", "c"), ("RunPaused", None),
        ("Unknown", "a"), ("StepStarted", None), ("RunResumed", None), ("RunStarted", None), ("StepCorrected", "a"),
        ("RunCompleted", None), ("RunFailed", None), ("StepStarted", "late"), ("Unknown", None),
    ]  # fmt: skip
    for number, (event_type, step) in enumerate(history, 1):
        await run.append(NewEvent(event_type, number, step_id=step, idempotency_key=f"{number}"))
        assert await run.fold(RunSnapshot(run_id="r"), snapshot_reducer) == await run.snapshot() == await run.project()
    for up_to in range(1, len(history) + 3):
        assert await run.fold(RunSnapshot(run_id="r"), snapshot_reducer, up_to) == await run.project(up_to)
    snapshot = await run.snapshot()
    assert (snapshot.status, snapshot.last_event_seq, snapshot.data) == ("completed", 19, 16)
    assert (snapshot.steps["a"].status, snapshot.steps["a"].attempts, snapshot.steps["a"].data) == ("completed", 2, 15)
    assert snapshot.steps["early"] == StepSnapshot(data=1, updated_at=snapshot.steps["early"].updated_at)
    assert snapshot.started_at is not None and snapshot.started_at.tzinfo is timezone.utc


async def test_a_projection_of_ones_own_reads_all_pages(store: Any) -> None:
    run = store.run("r")
    await asyncio.gather(*(run.append(NewEvent("X", n, idempotency_key=f"{n}")) for n in range(2100)))
    assert await run.fold(0, lambda total, event: total + event.event_data) == sum(range(2100))
    assert await run.fold(0, lambda total, event: total + 1, 2000) == 2000
    assert await run.fold(0, lambda total, event: total + 1, 7) == 7


async def test_info_list_and_delete(store: Any) -> None:
    run = store.run("run:1")
    assert await run.info() is None
    await run.append(NewEvent("RunStarted", None))
    await store.run("run:2").append(NewEvent("RunCompleted", None))
    await store.run("other").append(NewEvent("X", None))
    info = await run.info()
    assert (info.run_id, info.status, info.events, info.last_event_seq) == ("run:1", "running", 1, 1)
    assert info.first_at == info.last_at is not None and info.bytes > 0
    assert set(await collect(store.runs())) == {"run:1", "run:2", "other"}
    assert set(await collect(store.runs("run:"))) == {"run:1", "run:2"}
    assert await collect(store.runs("run:", ["pending", "running"])) == ["run:1"]
    await asyncio.gather(*(store.run(f"many:{i}").append(NewEvent("X", None)) for i in range(1500)))
    assert len(set(await collect(store.runs("many:")))) == 1500
    assert await run.delete() is True
    assert await run.delete() is False
