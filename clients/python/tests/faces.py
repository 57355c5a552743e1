"""Both faces of the package as one, so that each test is written once: the blocking store is asked from other threads, and what it
returns is awaited. Knows which objects talk to the server, refuses to know what is asked."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import holdfast
import holdfast.asyncio

_TALKERS = (
    holdfast.Store, holdfast.Cell, holdfast.Run, holdfast.ExactlyOnceState, holdfast.Queue, holdfast.Job, holdfast.Transaction,
    holdfast.Sessions, holdfast.Session, holdfast.Branch, holdfast.PreparedRequest, holdfast.ReadTransaction, holdfast.MemoryState,
    holdfast.StatefulNode,
)  # fmt: skip
#: Methods that ask nothing.
_PLAIN = {"cell", "branch", "run", "exactly_once_state", "request", "prepare", "forget"}
_END = object()


class Awaited:
    """A blocking object with the methods of its twin for asyncio."""

    def __init__(self, twin: Any) -> None:
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._twin, name)
        if isinstance(attribute, _TALKERS):
            return Awaited(attribute)
        if name in {"client", "words", "id"} or not callable(attribute):
            return attribute
        if name in _PLAIN:
            return lambda *args, **options: awaited(attribute(*args, **options))
        if name in {"scan", "runs", "groups", "follow", "ids", "cells", "watch"}:
            return lambda *args, **options: _iterate(attribute(*args, **options))
        if name == "transaction":
            return lambda tries, body: _transaction(attribute, tries, body)
        if name == "read_transaction":
            return lambda body: _transaction(lambda _tries, blocking: attribute(blocking), 1, body)
        if name == "serve":
            return lambda handler, **options: _serve(attribute, handler, options)

        async def ask(*args: Any, **options: Any) -> Any:
            return awaited(await asyncio.to_thread(attribute, *args, **options))

        return ask


def awaited(result: Any) -> Any:
    if isinstance(result, _TALKERS):
        return Awaited(result)
    if isinstance(result, list):
        return [awaited(each) for each in result]
    return result


class Face:
    """A way to use the package."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async

    async def connect(self, url: str, **options: Any) -> Any:
        if self.is_async:
            return await holdfast.asyncio.Store.connect(url, **options)
        return Awaited(await asyncio.to_thread(holdfast.Store.connect, url, **options))

    def queue(self, store: Any, config: holdfast.QueueConfig) -> Any:
        return holdfast.asyncio.Queue(store, config) if self.is_async else Awaited(holdfast.Queue(store._twin, config))

    def memory_state(self, *args: Any) -> Any:
        return holdfast.asyncio.MemoryState(*args) if self.is_async else Awaited(holdfast.MemoryState(*args))

    def node(self, name: str, backend: Any, checkpoint: str | None) -> Any:
        if self.is_async:
            return holdfast.asyncio.StatefulNode[Any, Any](name, backend, checkpoint)
        return Awaited(holdfast.StatefulNode[Any, Any](name, backend._twin, checkpoint))

    def flag(self) -> Any:
        """What ends `follow` and `serve`."""
        return asyncio.Event() if self.is_async else threading.Event()

    async def command(self, client: Any, *words: Any) -> Any:
        """Sends a command by redis-py, from a store's or a transaction's client."""
        if self.is_async:
            return await client.execute_command(*words)
        return await asyncio.to_thread(client.execute_command, *words)


async def _iterate(items: Iterator[Any]) -> AsyncIterator[Any]:
    while (item := await asyncio.to_thread(next, items, _END)) is not _END:
        yield item


async def _transaction(transaction: Callable[..., Any], tries: int, body: Callable[[Any], Any]) -> Any:
    loop = asyncio.get_running_loop()

    def blocking(txn: holdfast.Transaction) -> Any:
        return asyncio.run_coroutine_threadsafe(body(Awaited(txn)), loop).result()

    return await asyncio.to_thread(transaction, tries, blocking)


async def _serve(serve: Callable[..., Any], handler: Callable[[Any], Any], options: dict[str, Any]) -> None:
    """Ends with its task, as its twin does."""
    loop, stop = asyncio.get_running_loop(), options.pop("stop", threading.Event())

    def blocking(request: holdfast.PushedRequest) -> None:
        asyncio.run_coroutine_threadsafe(handler(request), loop).result()

    try:
        await asyncio.to_thread(lambda: serve(blocking, stop=stop, **options))
    finally:
        stop.set()
