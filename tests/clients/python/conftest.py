"""What every redis-py test shares: the server's address, clients of both protocols, and an empty server.

The suite knows nothing about which server answers; it is aimed by HOLDFAST_TEST_ADDR=host:port and empties it.
"""

import asyncio
import os
import time
from pathlib import Path

import pytest
import redis
import redis.asyncio

# How a worker claims a job: KEYS[1] is the job's hash; ARGV: field, expected value, new value. Replies with 1 or 0.
COMPARE_AND_SWAP = (Path(__file__).parent.parent / "compare_and_swap.lua").read_text()


def address():
    host, _, port = os.environ["HOLDFAST_TEST_ADDR"].rpartition(":")
    return {"host": host, "port": int(port)}


def run(protocol, conversation):
    """Runs a conversation with the asyncio client, over at most 20 connections."""

    async def talk():
        options = {"protocol": protocol, "max_connections": 20, "decode_responses": True}
        pool = redis.asyncio.BlockingConnectionPool(**address(), **options)
        async with redis.asyncio.Redis.from_pool(pool) as client:
            await conversation(client)

    asyncio.run(talk())


def eventually(condition):
    """Waits for something that another thread or client brings about; whatever it is, it takes far less than this."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


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
