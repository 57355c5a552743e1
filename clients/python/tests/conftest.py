"""What every test shares: a server for each file, and a store over each protocol and with each face of the package."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from faces import Face
from server import Server


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine in the test's event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    loop = pyfuncitem.funcargs["loop"]
    assert isinstance(loop, asyncio.AbstractEventLoop)
    loop.run_until_complete(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    protocol: int = request.param
    return protocol


@pytest.fixture(params=[False, True], ids=["sync", "asyncio"])
def face(request: pytest.FixtureRequest) -> Face:
    return Face(request.param)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    # A thread for each request of the blocking face that is under way.
    loop.set_default_executor(ThreadPoolExecutor(64))
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.fixture
def connect(
    loop: asyncio.AbstractEventLoop, server: Server, face: Face, protocol: int
) -> Iterator[Callable[..., Coroutine[Any, Any, Any]]]:
    """Opens stores of the test's face and protocol; all are closed at its end."""
    opened: list[Any] = []

    async def open_store(**options: Any) -> Any:
        opened.append(await face.connect(**{"url": server.url, "protocol": protocol, **options}))
        return opened[-1]

    yield open_store
    for store in opened:
        loop.run_until_complete(store.close())


@pytest.fixture
def store(loop: asyncio.AbstractEventLoop, connect: Callable[..., Coroutine[Any, Any, Any]], face: Face, server: Server) -> Any:
    """A store on an empty server."""
    if missing := server.lacks("hcas", "claim", "cell.cas", "run.append", "reg.put", "txn.begin"):
        pytest.skip(f"the server has no {missing[0]}")

    async def empty() -> Any:
        store = await connect()
        for index in await store.indexes():
            await store.drop_index(index)
        await face.command(store.client, "FLUSHALL")
        return store

    return loop.run_until_complete(empty())


@pytest.fixture
def blocked(store: Any, face: Face) -> Callable[[int], Awaitable[bool]]:
    """Whether so many clients wait at the server."""

    async def are_blocked(count: int) -> bool:
        clients = await face.command(store.client, "INFO", "clients")
        return bool(clients["blocked_clients"] == count)

    return are_blocked


async def eventually(condition: Callable[[], Any]) -> None:
    """Waits for what another client brings about; whatever it is, it takes far less than this."""
    deadline = time.monotonic() + 60
    while True:
        held = condition()
        if await held if inspect.isawaitable(held) else held:
            return
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.005)


async def collect(items: Any) -> list[Any]:
    return [item async for item in items]
