"""Publish and subscribe through redis-py: messages, patterns, shard channels, handlers, threads, lost connections."""

import asyncio
import threading

import pytest
import redis
import redis.asyncio
from conftest import address, eventually, run


@pytest.fixture
def subscribe(connect):
    """Opens a pub/sub object on a connection of its own and takes the confirmations of what it subscribes to."""
    opened = []

    def open_pubsub(channels=(), patterns=(), shards=(), client=None, **options):
        pubsub = (client or connect()).pubsub(**options)
        opened.append(pubsub)
        for names, ask, kind in (
            (channels, pubsub.subscribe, "subscribe"),
            (patterns, pubsub.psubscribe, "psubscribe"),
            (shards, pubsub.ssubscribe, "ssubscribe"),
        ):
            if names:
                ask(*names)
                confirmed = [following(pubsub) for _ in names]
                assert [(each["type"], each["channel"]) for each in confirmed] == [(kind, name) for name in names]
        return pubsub

    yield open_pubsub
    for pubsub in opened:
        pubsub.close()


def following(pubsub):
    """The next message, of any kind."""
    message = pubsub.get_message(timeout=20)
    assert message is not None, "no message came"
    return message


def message(channel, data, pattern=None, kind=None):
    kind = kind or ("pmessage" if pattern else "message")
    return {"type": kind, "pattern": pattern, "channel": channel, "data": data}


def test_messages_arrive_in_order(r, subscribe):
    pubsub = subscribe(["news"])
    assert [r.publish("news", i) for i in range(200)] == [1] * 200
    assert [following(pubsub) for _ in range(200)] == [message("news", str(i)) for i in range(200)]
    assert r.publish("elsewhere", "x") == 0
    assert pubsub.get_message() is None


def test_confirmations_count_subscriptions(r, connect):
    pubsub = connect().pubsub()
    pubsub.subscribe("a", "b")
    pubsub.psubscribe("c*")
    assert [following(pubsub)["data"] for _ in range(3)] == [1, 2, 3]
    pubsub.unsubscribe("a")
    pubsub.punsubscribe("c*")
    pubsub.unsubscribe()
    gone = [following(pubsub) for _ in range(3)]
    assert [(each["type"], each["channel"], each["data"]) for each in gone] == [
        ("unsubscribe", "a", 2),
        ("punsubscribe", "c*", 1),
        ("unsubscribe", "b", 0),
    ]
    assert pubsub.subscribed is False
    pubsub.close()


def test_shard_channels(r, subscribe):
    pubsub = subscribe(["orders"], shards=["orders"])
    assert r.spublish("orders", "sharded") == 1
    assert following(pubsub) == message("orders", "sharded", kind="smessage")
    assert r.publish("orders", "plain") == 1
    assert following(pubsub) == message("orders", "plain")
    assert r.pubsub_shardchannels() == ["orders"]
    assert r.pubsub_shardnumsub("orders", "none") == [("orders", 1), ("none", 0)]
    pubsub.sunsubscribe("orders")
    assert following(pubsub)["type"] == "sunsubscribe"
    assert r.spublish("orders", "x") == 0


def test_bytes_of_any_kind(raw, subscribe):
    every_byte = bytes(range(256))
    pubsub = subscribe([every_byte], client=raw)
    raw.publish(every_byte, every_byte)
    assert following(pubsub) == message(every_byte, every_byte)


def test_listen(r, subscribe):
    pubsub = subscribe(["work"])
    heard = []

    def listen():
        for each in pubsub.listen():
            if each["data"] == "stop":
                break
            heard.append(each["data"])

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    for i in range(20):
        r.publish("work", i)
    r.publish("work", "stop")
    thread.join(20)
    assert heard == [str(i) for i in range(20)]


def test_handlers_in_a_thread(r, connect):
    heard, matched = [], []
    pubsub = connect().pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe(news=lambda each: heard.append(each["data"]))
    pubsub.psubscribe(**{"n*": lambda each: matched.append(each["data"])})
    thread = pubsub.run_in_thread(sleep_time=0.01, daemon=True)
    eventually(lambda: r.pubsub_numsub("news") == [("news", 1)] and r.pubsub_numpat() == 1)
    for i in range(10):
        r.publish("news", i)
    eventually(lambda: len(matched) == 10)
    thread.stop()
    thread.join(20)
    assert heard == matched == [str(i) for i in range(10)]


def test_what_pubsub_tells(r, subscribe):
    first, second = subscribe(["a", "b"], ["p*"]), subscribe(["a"], ["p*", "q*"])
    assert sorted(r.pubsub_channels()) == ["a", "b"]
    assert r.pubsub_channels("[b-z]") == ["b"]
    assert r.pubsub_numsub("a", "b", "none") == [("a", 2), ("b", 1), ("none", 0)]
    assert r.pubsub_numpat() == 2
    assert {entry["sub"] for entry in r.client_list(_type="pubsub")} == {"1", "2"}
    for pubsub in (first, second):
        pubsub.close()
    eventually(lambda: r.pubsub_channels() == [] and r.pubsub_numpat() == 0)


def test_subscriptions_come_back_after_a_lost_connection(r, subscribe):
    pubsub = subscribe(["news"], ["w*"], ["shard"])
    assert r.client_kill_filter(_type="pubsub") == 1
    confirmed = {following(pubsub)["type"] for _ in range(3)}
    assert confirmed == {"subscribe", "psubscribe", "ssubscribe"}
    assert [r.publish("news", 1), r.publish("weather", 2), r.spublish("shard", 3)] == [1, 1, 1]
    assert [following(pubsub)["data"] for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize("protocol", [2])  # in RESP3 redis-py takes the reply apart, letter by letter
def test_ping_while_subscribed(r, subscribe):
    pubsub = subscribe(["news"])
    pubsub.ping("still there?")
    answer = following(pubsub)
    assert (answer["type"], answer["data"]) == ("pong", "still there?")


def test_asyncio_listen(r, protocol):
    async def conversation(client):
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("news")
            await pubsub.psubscribe("w*")
            heard = []

            async def listen():
                async for each in pubsub.listen():
                    heard.append((each["type"], each["channel"], each["data"]))
                    if each["data"] == "stop":
                        break

            async def publish():
                while await client.pubsub_numpat() == 0:
                    await asyncio.sleep(0.005)
                for i in range(50):
                    assert await client.publish("news", i) == 1
                assert await client.publish("weather", "stop") == 1

            await asyncio.wait_for(asyncio.gather(listen(), publish()), 20)
            assert heard == [
                ("subscribe", "news", 1),
                ("psubscribe", "w*", 2),
                *(("message", "news", str(i)) for i in range(50)),
                ("pmessage", "weather", "stop"),
            ]

    run(protocol, conversation)


def test_asyncio_subscriptions_come_back_after_a_lost_connection(r, protocol):
    async def conversation(client):
        # Its default retries are what reconnects; the pool of the other tests has none.
        async with redis.asyncio.Redis(**address(), protocol=protocol, decode_responses=True) as fragile:
            async with fragile.pubsub() as pubsub:
                await pubsub.subscribe("news")
                assert (await pubsub.get_message(timeout=20))["type"] == "subscribe"
                assert await client.execute_command("CLIENT KILL", "TYPE", "pubsub") == 1
                assert (await pubsub.get_message(timeout=20))["type"] == "subscribe"
                assert await client.publish("news", "again") == 1
                assert await pubsub.get_message(timeout=20) == message("news", "again")

    run(protocol, conversation)
