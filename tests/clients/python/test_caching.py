"""redis-py's client-side cache: replies are kept in the process until the server pushes that their key has changed."""

import pytest
import redis
from conftest import address, eventually
from redis.cache import CacheConfig


@pytest.fixture
def protocol():
    """redis-py caches over RESP3 only."""
    return 3


@pytest.fixture
def cached(r):
    version = tuple(map(int, r.info("server")["redis_version"].split(".")))
    if version < (7, 4):
        pytest.skip("redis-py caches with servers of 7.4 and later only")
    options = {"protocol": 3, "decode_responses": True, "cache_config": CacheConfig(max_size=50)}
    client = redis.Redis(**address(), **options)
    yield client
    client.close()


def test_a_second_read_stays_in_the_process(r, cached):
    r.set("k", "v")
    r.config_resetstat()
    assert [cached.get("k") for _ in range(10)] == ["v"] * 10
    assert r.info("commandstats")["cmdstat_get"]["calls"] == 1
    assert cached.get_cache().size == 1


def reads_become(value, read):
    """The push travels beside the reply to whoever made the change: it may arrive a moment later."""
    eventually(lambda: read() == value)


def test_a_change_reaches_the_cache(r, cached):
    r.set("k", "1")
    assert cached.get("k") == "1"
    for value in range(2, 30):
        r.set("k", value)
        reads_become(str(value), lambda: cached.get("k"))


def test_its_own_changes_reach_the_cache(cached):
    for value in range(20):
        cached.set("k", value)
        reads_become(str(value), lambda: cached.get("k"))


def test_the_cache_gives_way_when_it_is_full(r, cached):
    r.mset({f"k{i}": i for i in range(200)})
    for i in range(200):
        assert cached.get(f"k{i}") == str(i)
    assert cached.get_cache().size <= 50
    r.mset({f"k{i}": -i for i in range(200)})
    for i in range(200):
        reads_become(str(-i), lambda key=f"k{i}": cached.get(key))


def test_a_cache_survives_a_lost_connection(r, cached):
    r.set("k", "1")
    assert cached.get("k") == "1"
    r.client_kill_filter(_type="normal", skipme=True)
    r.set("k", "2")
    reads_become("2", lambda: cached.get("k"))
    r.set("k", "3")
    reads_become("3", lambda: cached.get("k"))


def test_invalidations_by_way_of_a_second_connection(r):
    """What RESP2 clients do: one connection reads, another one is subscribed to what the first has to forget."""
    options = {**address(), "protocol": 2, "decode_responses": True}
    with redis.Redis(**options) as other, redis.Redis(**options, single_connection_client=True) as reader:
        listener = other.pubsub()
        listener.execute_command("CLIENT", "ID")
        redirect = listener.parse_response()
        listener.subscribe("__redis__:invalidate")
        assert listener.get_message(timeout=20)["type"] == "subscribe"
        assert reader.client_tracking_on(clientid=redirect) in (True, "OK")
        assert reader.client_getredir() == redirect
        r.hset("h", "f", "1")
        assert reader.hgetall("h") == {"f": "1"}
        r.hset("h", "f", "2")
        told = listener.get_message(timeout=20)
        assert (told["channel"], told["data"]) == ("__redis__:invalidate", ["h"])
        assert reader.get("k") is None
        r.flushall()
        assert listener.get_message(timeout=20)["data"] is None
        listener.close()
