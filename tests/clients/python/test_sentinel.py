"""redis-py finds the writer by its Sentinels, and follows it: while it hands over, and when it is killed."""

import os
import threading
import time

import pytest
import redis
from conftest import eventually
from pair import NAME, Pair
from redis.sentinel import MasterNotFoundError, Sentinel

WRITES = 50


@pytest.fixture
def pair(tmp_path):
    if "HOLDFAST_BIN" not in os.environ or "redis-server" in os.environ["HOLDFAST_BIN"]:
        pytest.skip("this test starts a holdfast of its own")
    pair = Pair(tmp_path / "data")
    yield pair
    pair.kill()


@pytest.fixture
def sentinel(pair, protocol):
    with Sentinel(
        pair.sentinels(),
        socket_timeout=5,
        sentinel_kwargs={"protocol": protocol, "decode_responses": True, "socket_timeout": 5},
        protocol=protocol,
        decode_responses=True,
    ) as sentinel:
        yield sentinel


class Writes(threading.Thread):
    """Sets one key after the other, each until that is acknowledged."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.acknowledged, self.has_to_end = client, 0, False

    def run(self):
        while not self.has_to_end:
            try:
                if self.client.set(f"key:{self.acknowledged}", self.acknowledged):
                    self.acknowledged += 1
            except (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, MasterNotFoundError):
                time.sleep(0.01)

    def more(self):
        """Waits for more writes: the client goes on."""
        wanted = self.acknowledged + WRITES
        eventually(lambda: self.acknowledged >= wanted)


def test_it_finds_the_writer_and_its_followers(pair, sentinel):
    assert sentinel.discover_master(NAME) == ("127.0.0.1", pair.writer.port)
    eventually(lambda: sentinel.discover_slaves(NAME) == [("127.0.0.1", pair.follower.port)])
    with pytest.raises(MasterNotFoundError):
        sentinel.discover_master("another")
    assert sentinel.master_for(NAME).set("a", 1)
    eventually(lambda: sentinel.slave_for(NAME).get("a") == "1")
    assert sentinel.sentinels[0].execute_command("SENTINEL", "CKQUORUM", NAME, once=True)
    state = sentinel.sentinels[0].sentinel_master(NAME)
    assert state["is_master"] and not state["is_sdown"] and state["num-other-sentinels"] == 1


def test_it_goes_on_through_a_hand_over_and_a_kill(pair, sentinel):
    master = sentinel.master_for(NAME)
    writes = Writes(master)
    writes.start()
    try:
        writes.more()
        pair.hand_over()
        writes.more()
        pair.hand_over()
        writes.more()
        old = pair.writer
        pair.kill_writer()
        # The new follower has other ports than the dead writer: its Sentinel is not one of the client's.
        assert pair.writer is not old
        writes.more()
    finally:
        writes.has_to_end = True
        writes.join()
    assert sentinel.discover_master(NAME) == ("127.0.0.1", pair.writer.port)
    keys = [f"key:{number}" for number in range(writes.acknowledged)]
    assert master.mget(keys) == [str(number) for number in range(writes.acknowledged)]
    assert pair.writer.client.mget(keys) == [str(number) for number in range(writes.acknowledged)]


def test_messages_tell_of_another_writer(pair, sentinel):
    with sentinel.sentinels[1].pubsub() as listener:
        listener.subscribe("+switch-master")
        listener.psubscribe("+sw*")
        while (confirmed := listener.get_message(timeout=5))["type"] != "psubscribe":
            assert confirmed["type"] == "subscribe"
        old, new = pair.writer.port, pair.follower.port
        assert sentinel.sentinels[0].sentinel_failover(NAME)
        heard = []
        eventually(lambda: heard.append(listener.get_message(timeout=1)) or len([m for m in heard if m]) >= 2)
        texts = [(m["type"], m["channel"], m["data"]) for m in heard if m]
        data = f"{NAME} 127.0.0.1 {old} 127.0.0.1 {new}"
        assert texts[:2] == [("message", "+switch-master", data), ("pmessage", "+switch-master", data)]
