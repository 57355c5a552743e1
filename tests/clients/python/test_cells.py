"""Cells and interactive transactions through redis-py, as docs/cells.md shows them. Holdfast only."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import eventually, run
from redis.exceptions import ResponseError


@pytest.fixture(autouse=True)
def own_commands(need):
    need("cell.cas", "txn.begin")


def cas(client, cell, expected, value, *options):
    return client.execute_command("CELL.CAS", cell, expected, value, *options)


def getv(client, cell, *options):
    return client.execute_command("CELL.GETV", cell, *options)


def test_a_cell_from_its_creation_to_its_end(r):
    assert r.execute_command("CELL.INIT", "c", "10") == 1
    assert r.execute_command("CELL.INIT", "c", "99") == 1
    assert cas(r, "c", 1, "20") == 2
    assert cas(r, "c", 1, "30") is None
    assert cas(r, "c", 1, "30", "WITHCURRENT") == [None, "20", 2]
    value, version, updated_at_us = getv(r, "c")
    assert (value, version) == ("20", 2) and updated_at_us > 1_700_000_000_000_000
    history = r.execute_command("CELL.HISTORY", "c")
    assert [entry[:2] for entry in history] == [["20", 2], ["10", 1]]
    assert getv(r, "c", "ASOF", history[1][2]) == history[1]
    assert r.type("c") == "cell"
    assert r.execute_command("CELL.DEL", "c", "IF", 1) == 0
    assert r.execute_command("CELL.DEL", "c", "IF", 2) == 1
    assert getv(r, "c") is None


def test_an_election_follows_the_leader(connect):
    """The election of docs/cells.md: another candidate leads as soon as the leader is gone."""
    candidates, led = [connect(), connect()], []

    def lead(client, me):
        while (leader := getv(client, "leader")) is not None:
            while leader is not None:
                leader = getv(client, "leader", "AFTER", leader[1], "BLOCK", 10_000)
        if cas(client, "leader", "NONE", me, "PX", 100_000) is not None:
            led.append(me)

    assert cas(candidates[0], "leader", "NONE", "a", "PX", 100_000) == 1
    follower = threading.Thread(target=lead, args=(candidates[1], "b"))
    follower.start()
    eventually(lambda: candidates[0].info("clients")["blocked_clients"] == 1)
    assert cas(candidates[0], "leader", 1, "a", "PX", 100_000) == 2  # renewed
    eventually(lambda: candidates[0].info("clients")["blocked_clients"] == 1)
    assert candidates[0].execute_command("CELL.DEL", "leader", "IF", 2) == 1
    follower.join()
    assert led == ["b"]


def transfer(store, source, target, amount, tries=1000):
    with store.client() as txn:
        for _ in range(tries):
            txn.execute_command("TXN.BEGIN")
            try:
                if int(txn.get(source) or 0) < amount:
                    txn.execute_command("TXN.ROLLBACK")
                    return False
                txn.decrby(source, amount)
                txn.incrby(target, amount)
                txn.execute_command("TXN.COMMIT")
                return True
            except ResponseError as error:
                if not str(error).startswith("CONFLICT"):
                    raise
                try:
                    txn.execute_command("TXN.ROLLBACK")
                except ResponseError:
                    pass  # COMMIT has ended it
        raise TimeoutError("others were always faster")


def test_transfers_keep_the_sum_and_no_account_is_overdrawn(connect):
    store = connect()
    store.mset({"account:0": 100, "account:1": 0, "account:2": 50})

    def work(number):
        client = connect()
        return sum(transfer(client, f"account:{(number + i) % 3}", f"account:{(number + i * 2 + 1) % 3}", 7) for i in range(40))

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) > 0
    balances = [int(value) for value in store.mget("account:0", "account:1", "account:2")]
    assert sum(balances) == 150 and min(balances) >= 0


def test_a_transaction_reads_its_own_writes_and_a_pipeline_never_leaves_it(connect):
    store, other = connect(), connect()
    with store.client() as txn:
        txn.execute_command("TXN.BEGIN")
        txn.hset("record", mapping={"state": "new", "step": 1})
        assert txn.hincrby("record", "step", 4) == 5
        assert txn.hgetall("record") == {"state": "new", "step": "5"}
        assert other.exists("record") == 0
        assert txn.execute_command("TXN.COMMIT") > 0
        assert other.hget("record", "step") == "5"

        txn.execute_command("TXN.BEGIN")
        assert txn.get("key") is None
        other.set("key", "changed")
        # redis-py's own pipelines take another connection.
        connection = txn.connection
        commands = [("SET", "key", "mine"), ("SET", "elsewhere", "mine"), ("GET", "key")]
        connection.send_packed_command(connection.pack_commands(commands))
        for _ in commands:
            with pytest.raises(ResponseError, match="^CONFLICT"):
                connection.read_response()
        txn.execute_command("TXN.ROLLBACK")
        assert (other.get("key"), other.exists("elsewhere")) == ("changed", 0)


def test_with_asyncio(protocol, r):
    async def conversation(client):
        async with client.client() as txn:
            await txn.execute_command("TXN.BEGIN")
            await txn.execute_command("CELL.SET", "c", "one")
            await txn.set("s", "two")
            await txn.execute_command("TXN.COMMIT")
        assert (await client.execute_command("CELL.GETV", "c"))[:2] == ["one", 1]
        assert await client.get("s") == "two"

    run(protocol, conversation)
