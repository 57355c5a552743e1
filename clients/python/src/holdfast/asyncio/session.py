"""Sessions: requests that each run once however often they are sent, and requests from the server to a client. Knows when a request is
sent again and how a session is kept; refuses to know what a request does."""

import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Generic, TypeVar

import redis.asyncio as redis

from .. import sessions
from ..errors import (
    ClosedError,
    HoldfastError,
    NoSessionError,
    ServerError,
    SessionLostError,
    UnansweredError,
    UnavailableError,
)
from ..patience import PAUSE_S
from ..replies import Reply
from ..request import Request
from ..sessions import (
    RETRY_FOR_MS,
    SILENCE_S,
    TTL_MS,
    Hook,
    Insistence,
    PendingRequest,
    PushedRequest,
    RequestNumbers,
    RetriedRequest,
    SessionInfo,
    SessionRequests,
)
from ..words import Key, Value, name_of, whole
from .connections import Connections
from .operations import Operations
from .runtime import Flag, Lock, Messages, drop, is_set_within, sleep, start

T = TypeVar("T")

#: How long one wait of `serve` lasts, which looks whether it is to stop in between.
_STOPPABLE_WAIT_S = 0.5


class Session(Operations):
    """A session that is open. What is asked through it runs once, however often connections are lost meanwhile and whether or not
    the server is killed: each request has a number, and is sent again under that number until its reply has come. Records, cells, runs and
    exactly-once state of a session are asked through it; `call` is for all other commands. Nothing waits in it.

    Tasks may share a session: several requests may be under way. While it asks nothing, it is kept alive in the background."""

    def __init__(self, connections: Connections, session_id: str, next_request_id: int, ttl_ms: int, retry_for_ms: int) -> None:
        self._connections = connections
        self._requests = SessionRequests(session_id)
        self._numbers = RequestNumbers(next_request_id)
        self._retry_for_ms = retry_for_ms
        self._closed = False
        self._lost = False
        self._renewed_at = time.monotonic()
        #: Ends what keeps the session alive.
        self._ended = Flag()
        connections.background.add(self._ended)
        self._keeper = start(_keep_alive, weakref.ref(self), self._ended, ttl_ms / 3000)

    @property
    def id(self) -> str:
        """Its name, which is also its key."""
        return self._requests.id

    @property
    def next_request_id(self) -> int:
        """The number that the next request gets. A program that stores it with the session's name before it calls can go on after a
        crash of its own: `sessions.resume`, and the same call again."""
        return self._numbers.following

    async def ask(self, request: Request[T]) -> T:
        prepared = PreparedRequest(self, self._numbers.begin(), request)
        try:
            return await prepared.send()
        except UnansweredError:
            raise  # which has the request
        except BaseException:
            self._numbers.end(prepared.id)  # nothing can send it again
            raise

    async def call(self, *words: Value) -> Reply:
        """Runs a command once, and returns its reply. If connections are lost it is sent again under its number, for as long as the
        session retries; then it is an UnansweredError, which has the request."""
        return await self.ask(sessions.command(words))

    def prepare(self, *words: Value, request_id: int | None = None) -> "PreparedRequest[Reply]":
        """A command with its number, to be sent, and sent again after an UnansweredError: the same words under the same number. A program
        that stores its words and its id before it sends it can go on after a crash of its own: `sessions.resume`, and `prepare`
        with that `request_id`, before the session sends anything else. Other words than the request had are a MismatchError. Until it has its reply or is forgotten, the server keeps the replies of later requests too."""
        request = sessions.command(words)
        if request_id is None:
            request_id = self._numbers.begin()
        else:
            self._numbers.begin_as(int(whole(request_id, "request_id")))
        return PreparedRequest(self, request_id, request)

    async def push(self, session_id: str, payload: Value) -> int:
        """Pushes a request to another session, once. Returns its number there."""
        return await self.ask(SessionRequests(session_id).push(payload))

    async def pending(self, after: int = 0, limit: int = 1000, wait_ms: int = 0) -> list[PendingRequest]:
        """The requests that were pushed to this session and are not acknowledged."""
        return await self._insist(None, lambda: self._requests.pending(after, limit, wait_ms))

    async def ack(self, request_id: int) -> int:
        """Acknowledges all pushed requests up to this one. Returns how many were removed; after a lost connection it may say fewer."""
        return await self._insist(None, lambda: self._requests.ack(request_id))

    async def info(self) -> SessionInfo | None:
        """Facts about the session; None if it is gone."""
        return await self._connections.ask(self._requests.info())

    async def serve(
        self,
        handler: Callable[[PushedRequest], Awaitable[None]],
        *,
        stop: Flag | None = None,
        on_retry: Callable[[HoldfastError], None] | None = None,
    ) -> None:
        """Calls the handler for each request that was pushed to this session, one after the other and in order: those that are pending,
        then each new one. A request is acknowledged when the handler has returned. When connections are lost, it attaches again, and
        what it has handled is not handled again; `on_retry` is told.

        It ends with its task, or within half a second after `stop`, an asyncio.Event, is set; also with an error of the handler, or with a
        SessionLostError. A request whose handler did not return is pending, and comes again with the next `serve`: a program that ends
        between the handler and the acknowledgement sees one again. Of several that serve a session, the last gets the requests."""
        handled = 0
        stop = stop or Flag()
        attachment = _Attachment(self, stop)
        try:
            while not stop.is_set():
                try:
                    request = await attachment.next()
                except UnavailableError as error:
                    await _pause(error, on_retry)
                    continue
                if request is None:
                    return
                if request.id > handled:
                    await handler(request)
                    handled = request.id
                try:
                    await self.ack(request.id)
                except UnavailableError as error:
                    await _pause(error, on_retry)
        finally:
            await attachment.close()

    async def close(self) -> bool:
        """Ends the session, and removes what the server keeps of it; whether it was there. Later requests are a ClosedError. Without it
        the session expires."""
        if self._closed:
            return False
        self._closed = True
        self._ended.set()
        return await self._connections.ask(self._requests.close())

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.close()
        except (UnavailableError, ClosedError):
            pass  # it expires by itself

    async def _settle(self, prepared: "PreparedRequest[T]", request: Request[T]) -> T:
        self._numbers.begin_again(prepared.id)
        try:
            reply = await self._insist(prepared, lambda: self._requests.call(prepared.id, self._numbers.low(), request))
        except UnansweredError:
            raise  # its number stays open, to be sent again; so it does when the caller is cancelled
        except Exception:
            self._numbers.end(prepared.id)
            raise
        self._numbers.end(prepared.id)
        return reply

    async def _insist(self, prepared: "PreparedRequest[T] | None", make: Callable[[], Request[T]]) -> T:
        """Sends a request until there is an answer."""
        insistence = Insistence(self._retry_for_ms)
        request_id = prepared.id if prepared is not None else None
        while True:
            self._check(request_id, insistence.maybe_applied)
            try:
                reply = await self._connections.ask(make())
                if request_id is not None:
                    self._renewed_at = time.monotonic()
                return reply
            except HoldfastError as error:
                pause = insistence.pause_s(error)
                if pause is None:
                    await self._check_alive(error, request_id, insistence.maybe_applied)
                    if prepared is None:
                        raise
                    failure = insistence.failure(prepared, error)
                    raise failure from (None if failure is error else error)
            await sleep(pause)

    def _check(self, request_id: int | None, maybe_applied: bool) -> None:
        if self._closed:
            raise ClosedError("the session is closed")
        if self._lost:
            raise SessionLostError(self.id, request_id, maybe_applied)

    async def _check_alive(self, error: HoldfastError, request_id: int | None, maybe_applied: bool) -> None:
        """A command may have said of another session that there is none."""
        if not isinstance(error, NoSessionError):
            return
        try:
            self._lost = not await self._connections.ask(self._requests.alive())
        except UnavailableError:
            self._lost = True  # that it is there cannot be said, and nothing may be sent again
        self._check(request_id, maybe_applied)

    async def _renew(self) -> None:
        """Asks for the session, which renews it."""
        try:
            self._lost = not await self._connections.ask(self._requests.alive())
            self._renewed_at = time.monotonic()
        except HoldfastError:
            pass  # the next request says it


class PreparedRequest(Generic[T]):
    """A request of a session: words under a number. However often it is sent, it runs once."""

    def __init__(self, session: Session, request_id: int, request: Request[T]) -> None:
        self._session = session
        self._id = request_id
        self._request = request
        #: Its reply, once it has come.
        self._reply: list[T] = []
        #: Its reply, if that is an error.
        self._refusal: ServerError | None = None
        #: Of two that send it at a time, the second gets what the first has got.
        self._turn = Lock()

    @property
    def id(self) -> int:
        """Its number in the session."""
        return self._id

    @property
    def words(self) -> tuple[bytes, ...]:
        """The command and its arguments."""
        return tuple(self._request.words)

    async def send(self) -> T:
        """Sends it, and sends it again when connections are lost, for as long as the session retries. Returns its reply; that of the first
        time, if it has run before. After an UnansweredError it may be called again, now or later."""
        async with self._turn:
            if self._refusal is not None:
                raise self._refusal
            if not self._reply:
                try:
                    self._reply.append(await self._session._settle(self, self._request))
                except ServerError as refusal:
                    self._refusal = refusal
                    raise
            return self._reply[0]

    def forget(self) -> None:
        """Gives it up: the server need not keep its reply any more. Whether it has run is then not known."""
        self._session._numbers.end(self._id)

    def __repr__(self) -> str:
        return f"PreparedRequest(id={self._id}, words={self.words!r:.200})"


async def _keep_alive(reference: "weakref.ref[Session]", ended: Flag, interval_s: float) -> None:
    """Renews a session that asks nothing, for as long as the program holds it."""
    while not await is_set_within(ended, interval_s / 2):
        session = reference()
        if session is None or session._closed or session._lost:
            return
        if time.monotonic() - session._renewed_at >= interval_s / 2:
            await session._renew()
        del session


class _Attachment:
    """The connection on which the server sends the requests of a session. It is made when it is needed."""

    def __init__(self, session: Session, stop: Flag) -> None:
        self._session = session
        self._stop = stop
        self._pool = session._connections.attached
        self._attached: tuple[redis.Connection, Messages] | None = None

    async def next(self) -> PushedRequest | None:
        """The next request; None when it is to stop. After an UnavailableError the next call attaches again."""
        connections = self._session._connections
        try:
            while True:
                self._session._check(None, False)
                connection, messages = await self._attach()
                if not await self._has_message(connection, messages):
                    return None
                if (request := self._session._requests.pushed(await messages.read())) is not None:
                    return request
        except Exception as error:
            await self.close()
            failure = connections.failure(error)
            if isinstance(failure, HoldfastError):
                await self._session._check_alive(failure, None, False)
                if isinstance(failure, ServerError) and failure.is_temporary:
                    failure = UnavailableError(str(failure))
            raise failure from error

    async def close(self) -> None:
        if self._attached is not None:
            (connection, messages), self._attached = self._attached, None
            await messages.close()
            await drop(connection)
            await self._pool.release(connection)

    async def _attach(self) -> tuple[redis.Connection, Messages]:
        if self._attached is None:
            connection = await self._session._connections.take(self._pool)
            self._attached = connection, Messages(connection)
            await connection.send_command(*self._session._requests.attach().words)
        return self._attached

    async def _has_message(self, connection: redis.Connection, messages: Messages) -> bool:
        """Waits for a message: a request, or the reply of SESSION.ATTACH or of a PING, which finds a connection that has silently died.
        False when it is to stop."""
        asked, since = False, time.monotonic()
        while not self._stop.is_set():
            if await messages.has_one_within(_STOPPABLE_WAIT_S):
                return True
            silent_s = time.monotonic() - since
            if not asked and silent_s >= SILENCE_S:
                await connection.send_command(b"PING")
                asked = True
            elif asked and silent_s >= SILENCE_S + self._session._connections.response_timeout_ms / 1000:
                raise UnavailableError("no answer from the server on an attached connection")
        return False


async def _pause(error: HoldfastError, on_retry: Callable[[HoldfastError], None] | None) -> None:
    if on_retry is not None:
        on_retry(error)
    await sleep(PAUSE_S)


class Sessions:
    """The sessions of a server: opens them, and pushes requests to them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def open(
        self, *, ttl_ms: int = TTL_MS, capabilities: Mapping[str, str] | None = None, retry_for_ms: int = RETRY_FOR_MS
    ) -> Session:
        """Opens a session. The server keeps it until it was not heard of for `ttl_ms`, in which it does not count the time that it is
        away itself. A request whose answer is lost is sent again for up to `retry_for_ms`, and the last try may take as long as a request may."""
        requests = SessionRequests(sessions.new_session_id())
        insistence = Insistence(retry_for_ms)
        while True:
            try:
                await self._connections.ask(requests.open(ttl_ms, capabilities or {}))
                return Session(self._connections, requests.id, 1, ttl_ms, retry_for_ms)
            except HoldfastError as error:
                pause = insistence.pause_s(error)
                if pause is None:
                    raise
            await sleep(pause)

    async def resume(self, session_id: Key, next_request_id: int, *, retry_for_ms: int = RETRY_FOR_MS) -> Session:
        """Goes on with a session that this program, or one before it, has opened. Its new requests are numbered from `next_request_id` on: one
        more than the highest number that was used. A request of the earlier program is made again by `Session.prepare` with its number, before
        the session sends others. A session that is gone is a SessionLostError."""
        requests = SessionRequests(name_of(session_id))
        info = await self._connections.ask(requests.info()) if await self._connections.ask(requests.alive()) else None
        if info is None:
            raise SessionLostError(requests.id, None, True)
        return Session(self._connections, requests.id, next_request_id, info.ttl_ms, retry_for_ms)

    async def push(self, session_id: str, payload: Value) -> int:
        """Pushes a request to a session. Returns its number there. After an UnavailableError it may be there: `Session.push` pushes once."""
        return await self._connections.ask(SessionRequests(session_id).push(payload))

    async def pending(self, session_id: str, after: int = 0, limit: int = 1000, wait_ms: int = 0) -> list[PendingRequest]:
        """The requests that were pushed to a session and are not acknowledged."""
        return await self._connections.ask(SessionRequests(session_id).pending(after, limit, wait_ms))

    async def info(self, session_id: str) -> SessionInfo | None:
        """Facts about a session; None if there is none."""
        return await self._connections.ask(SessionRequests(session_id).info())

    async def close(self, session_id: str) -> bool:
        """Ends a session; whether there was one."""
        return await self._connections.ask(SessionRequests(session_id).close())

    async def ids(self) -> AsyncIterator[str]:
        """The names of the sessions, page by page, with SCAN's guarantee."""
        cursor = b"0"
        while True:
            cursor, names = await self._connections.ask(sessions.ids(cursor))
            for name in names:
                yield name
            if cursor == b"0":
                return

    async def retry(self, before_ms: int, limit: int | None = None) -> list[RetriedRequest]:
        """Every pushed request that was last sent before this time, in unix milliseconds, the oldest first, at most `limit` (1,000 if it is not
        given), and marks them as sent now. Of two callers one gets a request. It sends nothing itself. A time in the future means now."""
        return await self._connections.ask(sessions.retry(before_ms, limit))

    async def has_retry(self, before_ms: int) -> bool:
        """Whether `retry` with this time would find any."""
        return await self._connections.ask(sessions.has_retry(before_ms))

    async def hook(self, hook: Hook) -> str | None:
        """The function that is called when a session is created, or when one expires or is closed; None if none is."""
        hooks = await self._connections.ask(sessions.hooks())
        return hooks[hook]

    async def set_hook(self, hook: Hook, function: str | None) -> None:
        """Names the function, or none."""
        await self._connections.ask(sessions.set_hook(hook, function))
