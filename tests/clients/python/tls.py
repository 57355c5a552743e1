"""redis-py over TLS; tests/clients/tls.sh runs it. Ends with an error if something is not as without TLS."""
import asyncio
import os
import threading

import redis
import redis.asyncio

port = int(os.environ["TLS_PORT"])
ssl = dict(ssl=True, ssl_ca_certs=os.environ["TLS_CA"])
shown = dict(ssl_certfile=os.environ["TLS_CERT"], ssl_keyfile=os.environ["TLS_KEY"])

for protocol in (2, 3):
    with redis.Redis("localhost", port, protocol=protocol, **ssl, **shown) as client:
        assert client.set("greeting", "hello")
        assert client.get("greeting") == b"hello"
        large = os.urandom(3_000_000)
        client.set("large", large)
        assert client.get("large") == large
        with client.pipeline(transaction=True) as pipeline:
            for number in range(1000):
                pipeline.echo(str(number))
            assert pipeline.execute() == [str(number).encode() for number in range(1000)]
        threading.Timer(0.2, lambda: redis.Redis("localhost", port, **ssl, **shown).rpush("jobs", "1")).start()
        assert client.blpop("jobs", 10) == ([b"jobs", b"1"] if protocol == 3 else (b"jobs", b"1"))
        with client.pubsub() as subscriber:
            subscriber.subscribe("news")
            assert subscriber.get_message(timeout=10)["type"] == "subscribe"
            client.publish("news", "today")
            assert subscriber.get_message(timeout=10)["data"] == b"today"


async def use_asyncio():
    async with redis.asyncio.Redis(host="localhost", port=port, **ssl, **shown) as client:
        replies = await asyncio.gather(*(client.incr("counter") for _ in range(50)))
        assert sorted(replies) == list(range(1, 51))


asyncio.run(use_asyncio())

try:
    redis.Redis("localhost", port, retry=None, **ssl).ping()
except redis.ConnectionError:
    pass
else:
    raise AssertionError("a client without a certificate got in")
