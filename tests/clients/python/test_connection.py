"""Connecting, authenticating, pipelining, and being of use again after an error."""

import pytest
import redis
from conftest import address
from redis.backoff import NoBackoff
from redis.retry import Retry

# redis-py takes a refused AUTH for a lost connection and would try it ten times.
ONCE = Retry(NoBackoff(), 0)


def test_ping_and_echo(r):
    assert r.ping() is True
    assert r.echo("hello") == "hello"


def test_hello_tells_the_protocol(r, protocol):
    reply = r.execute_command("HELLO")
    if protocol == 2:
        reply = dict(zip(reply[::2], reply[1::2]))
    assert reply["proto"] == protocol
    assert reply["server"] == "redis"
    assert reply["mode"] == "standalone"
    assert reply["role"] == "master"
    assert reply["modules"] is not None


def test_from_url_with_database(r, protocol):
    url = "redis://{host}:{port}/3".format(**address())
    with redis.Redis.from_url(url, protocol=protocol, decode_responses=True) as third:
        third.set("k", "three")
        assert third.client_info()["db"] == 3
    assert r.get("k") is None


def test_decode_responses(r, raw):
    r.set("k", "grün")
    assert r.get("k") == "grün"
    assert raw.get("k") == "grün".encode()


def test_db_option_selects(r, connect):
    one = connect(db=1)
    one.set("k", "1")
    assert (r.dbsize(), one.dbsize()) == (0, 1)


def test_client_name_at_connect(connect):
    assert connect(client_name="teller").client_getname() == "teller"


def test_library_name_at_connect(r, need):
    need("client|setinfo")
    info = r.client_info()
    assert info["lib-name"] == "redis-py"
    assert info["lib-ver"] == redis.__version__


def test_auth_without_a_password_set(connect):
    with pytest.raises(redis.AuthenticationError, match="without any password configured"):
        connect(retry=ONCE).execute_command("AUTH", "secret")


def test_auth_with_a_wrong_user(connect):
    with pytest.raises(redis.AuthenticationError, match="invalid username-password pair"):
        connect(username="nobody", password="secret", retry=ONCE).ping()


def test_requirepass(r, connect, setting):
    setting("requirepass", "secret")
    with pytest.raises(redis.AuthenticationError):
        connect(retry=ONCE).ping()
    with pytest.raises(redis.AuthenticationError):
        connect(password="wrong", retry=ONCE).ping()
    assert connect(password="secret").ping() is True
    assert connect(username="default", password="secret").ping() is True
    r.config_set("requirepass", "")
    assert connect().ping() is True


def test_connection_is_reused_after_errors(connect):
    only = connect(single_connection_client=True)
    mine = only.client_id()
    only.set("text", "abc")
    for command in (["INCR", "text"], ["HGET", "text", "f"], ["NOSUCH"], ["SET", "text"]):
        with pytest.raises(redis.ResponseError):
            only.execute_command(*command)
    assert only.get("text") == "abc"
    assert only.client_id() == mine


def test_pipeline(r):
    with r.pipeline(transaction=False) as p:
        for i in range(1000):
            p.set(f"k{i}", i).incrby(f"k{i}", 1)
        replies = p.execute()
    assert replies == [reply for i in range(1000) for reply in (True, i + 1)]


def test_pipeline_keeps_going_past_an_error(r):
    with r.pipeline(transaction=False) as p:
        p.set("text", "abc").incr("text").get("text")
        first, second, third = p.execute(raise_on_error=False)
    assert (first, third) == (True, "abc")
    assert isinstance(second, redis.ResponseError)
    assert str(second).endswith("value is not an integer or out of range")


def test_large_pipeline_of_large_values(r):
    value = "x" * 100_000
    with r.pipeline(transaction=False) as p:
        for i in range(100):
            p.set(f"k{i}", value)
        assert all(p.execute())
        for i in range(100):
            p.get(f"k{i}")
        assert p.execute() == [value] * 100


def test_reset_and_quit(connect):
    only = connect(single_connection_client=True)
    only.client_setname("before")
    assert only.execute_command("RESET") == "RESET"
    with connect() as other:
        assert other.execute_command("QUIT") in (True, "OK")
