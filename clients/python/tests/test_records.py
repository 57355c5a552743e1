"""Records of Holdfast: keys and values of any bytes, indexes, claim and sweep. `test_plain` has what a plain Redis can do, too."""

import asyncio
from typing import Any

import pytest
from conftest import collect, eventually
from server import Server

from holdfast import (
    Claim,
    Exchange,
    Filter,
    IndexDefinition,
    Lifetime,
    ReplyError,
    Retries,
    ServerError,
    Sweep,
    Swept,
    UpTo,
    WrongTypeError,
)

EVERY_BYTE = bytes(range(256))
DUE = IndexDefinition(prefixes=["job:"], field="run_at", only=("state", ["pending"]))


async def test_put_get_and_delete(store: Any) -> None:
    assert await store.get("r") is None
    await store.put("r", {"state": "pending", "attempt": 0, "big": 2**63, "bytes": EVERY_BYTE, "half": 0.5})
    await store.put("r", {"state": "done", "grün": bytearray(b"x")})
    fields = await store.get("r")
    assert set(fields) == {"state", "attempt", "big", "bytes", "half", "grün"}
    assert (fields.text("state"), fields.integer("attempt"), fields.integer("big")) == ("done", 0, 2**63)
    assert fields.integer("state") is None and fields.text("half") == "0.5"
    assert fields["bytes"] == EVERY_BYTE and fields.text("none") is None and "none" not in fields
    with pytest.raises(ReplyError, match="not UTF-8"):
        fields.text("bytes")
    assert await store.delete("r") is True
    assert await store.delete("r") is False


async def test_an_exchange_is_never_taken_for_a_short_form(store: Any) -> None:
    # Three words behind the key would be HCAS's short form.
    await store.put("s", {"error": "x", "state": "y"})
    assert (await store.exchange("s", Exchange(remove=["error"]))).applied
    assert (await store.get("s")).to_dict() == {"state": "y"}
    # Without conditions and changes it is no compare-and-swap of a field called IF.
    await store.put("t", {"IF": "0"})
    assert (await store.exchange("t", Exchange())).applied
    assert (await store.get("t")).to_dict() == {"IF": "0"}


async def test_a_key_that_is_not_utf_8_ends_nothing(store: Any) -> None:
    strange = b"job:\xff\x00\xc3"
    await store.create_index("due", IndexDefinition(prefixes=[b"job:"], field="run_at"))
    await store.put(strange, {"state": "pending", "run_at": 1, "\udcfe": "field"})
    await store.put("job:ü", {"state": "pending", "run_at": 2})
    expected = ["job:\udcff\x00\udcc3", "job:ü"]
    assert sorted([found.key for found in await collect(store.scan(b"job:"))]) == sorted(expected)
    assert [each.key for each in await store.range("due", "-inf", "+inf")] == expected
    claim = Claim(indexes=["due"], set={"state": "running"}, count=2)
    assert [each.key for each in await store.claim(claim)] == expected
    sweep = Sweep(index="due", before=10, set={"state": "pending"})
    assert [each.key for each in await store.sweep(sweep)] == expected
    # What was read as text is the key itself.
    assert await store.get(expected[0]) == await store.get(strange) != None  # noqa: E711
    assert (await store.get(strange)).text("\udcfe") == "field"
    assert [found.key for found in await collect(store.scan(b"job:\xff"))] == expected[:1]
    assert await store.delete(expected[0]) is True
    assert await store.get(strange) is None


async def test_rows_have_their_time_to_live(store: Any) -> None:
    await store.create_index("by-at", IndexDefinition(prefixes=["job:"], field="at"))
    await store.put("job:1", {"at": 1}, 60_000)
    await store.put("job:2", {"at": 2})
    rows = [
        await collect(store.scan("job:", filters=[Filter.ge("at", 1)])),
        await store.range("by-at", 1, 2),
        await store.claim(Claim(indexes=["by-at"], set={"state": "running"}, count=2, fields=["state"])),
    ]
    for each in rows:
        first, second = sorted(each, key=lambda row: str(row.key))
        assert 0 < first.ttl_ms <= 60_000 and second.ttl_ms is None


async def test_ping(connect: Any, store: Any, server: Server) -> None:
    assert await store.ping() is True
    other = await connect(response_timeout_ms=3_600_000)
    await asyncio.to_thread(server.kill)
    assert await other.ping() is False  # at once
    await asyncio.to_thread(server.run)
    assert await other.ping() is True
    await other.close()
    assert await other.ping() is False


async def test_values_that_are_none_are_refused_before_anything_is_sent(store: Any) -> None:
    for wrong in (True, [1], {"a": 1}):
        with pytest.raises(TypeError):
            await store.put("r", {"a": wrong})
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            await store.put("r", {"a": number})
    with pytest.raises(TypeError):
        await store.put("r", {"a": 1}, stamp={"at": 1.5})
    with pytest.raises(TypeError, match="list of values"):
        await store.scan("r", filters=[Filter.is_in("state", "pending")]).__anext__()
    with pytest.raises(ValueError):
        Lifetime(ms=1, persist=True)
    with pytest.raises(ValueError, match="one lifetime"):
        await store.put("r", {"a": 1}, 1000, lifetime=Lifetime(persist=True))
    for nothing in (store.put("r", {}), store.set_fields("r", {}), store.put("r", {"a": None}, replace=True)):
        with pytest.raises(ValueError, match="no fields"):
            await nothing
    with pytest.raises(TypeError, match="list of values"):
        await store.exchange("r", Exchange(remove="field"))
    with pytest.raises(TypeError, match="a name is text or bytes"):
        await store.get(7)
    assert await store.get("r") is None


async def test_an_index_keeps_records_in_order(store: Any, face: Any) -> None:
    index = IndexDefinition(prefixes=["job:"], field="at", exclude=("state", ["done"]))
    assert await store.create_index("by-at", index) is True
    assert await store.create_index("by-at", index) is False
    for at in (30, 10, 20):
        await store.put(f"job:{at}", {"at": at, "state": "done" if at == 20 else "open"})
    found = await store.range("by-at", "-inf", "+inf")
    assert [(each.key, each.score) for each in found] == [("job:10", 10.0), ("job:30", 30.0)]
    assert (await store.range("by-at", 10, "(30", fields=["state"]))[0].fields.to_dict() == {"state": "open"}
    assert [each.key for each in await store.range("by-at", "-inf", "+inf", reverse=True, limit=1)] == ["job:30"]
    assert await store.drop_index("by-at") is True
    assert await store.drop_index("by-at") is False
    await face.command(store.client, "SET", "taken", "x")
    with pytest.raises(ServerError):
        await store.create_index("taken", index)


async def test_a_claim_takes_each_record_once(store: Any) -> None:
    await store.create_index("due", DUE)
    records = ({"state": "pending", "run_at": i, "tenant": "y" if i % 2 else "x"} for i in range(100))
    await asyncio.gather(*(store.put(f"job:{i}", record) for i, record in enumerate(records)))

    def claim(count: int) -> Claim:
        changes = {"state": "running", "run_at": "NOW+1000"}
        fields = ["attempt", "state"]
        return Claim(
            indexes=["due"], max="NOW", where={"tenant": ["x"]}, set=changes, counter="attempt", count=count, fields=fields
        )

    [first] = await store.claim(claim(1))
    assert (first.key, first.score, first.fields.to_dict()) == ("job:0", 0.0, {"attempt": "1", "state": "running"})
    taken = [each.key for claimed in await asyncio.gather(*(store.claim(claim(3)) for _ in range(20))) for each in claimed]
    assert len(taken) == len(set(taken)) == 49


async def test_a_claim_gives_up_records_above_its_bound(store: Any) -> None:
    await store.create_index("due", DUE)
    await store.put("job:1", {"state": "pending", "run_at": 1, "attempt": 5})
    await store.put("job:2", {"state": "pending", "run_at": 2})
    up_to = UpTo(max=5, otherwise={"state": "dead"})
    claimed = await store.claim(Claim(indexes=["due"], set={"state": "running"}, counter="attempt", up_to=up_to, count=2))
    assert [each.key for each in claimed] == ["job:2"]
    assert (await store.get("job:1")).text("state") == "dead"


async def test_a_claim_that_waits_holds_up_no_other_request(store: Any, blocked: Any) -> None:
    await store.create_index("due", DUE)
    claimed = asyncio.ensure_future(
        store.claim(Claim(indexes=["due"], max="NOW", set={"state": "running"}, wait_ms=30_000))
    )
    await eventually(lambda: blocked(1))
    await store.put("job:1", {"state": "pending"}, stamp={"run_at": 0})
    assert [each.key for each in await claimed] == ["job:1"]
    assert await store.claim(Claim(indexes=["due"], set={"state": "running"}, wait_ms=1)) == []


async def test_a_sweep_gives_back_and_gives_up(store: Any) -> None:
    await store.create_index("by-at", IndexDefinition(prefixes=["job:"], field="at"))
    await store.put("job:1", {"at": 1, "state": "running", "retries": 0})
    await store.put("job:2", {"at": 2, "state": "running", "retries": 3})
    await store.put("job:3", {"at": 3, "state": "completed", "retries": 0})
    sweep = Sweep(
        index="by-at",
        before="NOW",
        where=("state", ["running"]),
        retry=Retries(counter="retries", max=3, otherwise={"state": "dead"}),
        set={"state": "pending", "at": "NOW+1000"},
        limit=10,
    )
    assert await store.sweep(sweep) == [Swept("job:1", "requeued"), Swept("job:2", "exhausted")]
    assert (await store.get("job:1")).text("state") == "pending"
    assert (await store.get("job:2")).text("state") == "dead"


async def test_a_key_of_another_type(store: Any, face: Any) -> None:
    await face.command(store.client, "SET", "s", "x")
    with pytest.raises(WrongTypeError) as caught:
        await store.put("s", {"a": 1})
    assert caught.value.code == "WRONGTYPE" and not caught.value.is_temporary
    with pytest.raises(ServerError) as refused:
        await store.claim(Claim(indexes=["none"], set={"a": 1}))
    assert refused.value.code == "ERR"
