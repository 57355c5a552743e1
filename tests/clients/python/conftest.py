"""What every redis-py test shares: the server's address, clients of both protocols, and an empty server.

The suite knows nothing about which server answers; it is aimed by HOLDFAST_TEST_ADDR=host:port and empties it.
"""

import os

import pytest
import redis


def address():
    host, _, port = os.environ["HOLDFAST_TEST_ADDR"].rpartition(":")
    return {"host": host, "port": int(port)}


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request):
    return request.param


@pytest.fixture
def connect(protocol):
    """Opens clients of the test's protocol; all are closed at its end."""
    opened = []

    def open_client(**options):
        options = {"decode_responses": True, **options}
        opened.append(redis.Redis(**address(), protocol=protocol, **options))
        return opened[-1]

    yield open_client
    for client in opened:
        client.close()


@pytest.fixture
def r(connect):
    """A client that decodes replies to str, in front of an empty server."""
    client = connect()
    client.flushall()
    return client


@pytest.fixture
def raw(connect, r):
    """A client that leaves replies as bytes."""
    return connect(decode_responses=False)


@pytest.fixture
def need(r):
    """Skips the test when the server has no such command: need("hgetex"), need("client|setinfo")."""

    def skip_without(*commands):
        for name, info in zip(commands, r.execute_command("COMMAND INFO", *commands)):
            if info is None:
                pytest.skip(f"the server has no {name}")

    return skip_without


@pytest.fixture
def setting(r):
    """Sets a configuration value for the length of the test."""
    before = {}

    def set_value(name, value):
        before.setdefault(name, r.config_get(name)[name])
        return r.config_set(name, value)

    yield set_value
    for name, value in before.items():
        r.config_set(name, value)
