"""A proxy between a client and a server that cuts connections: at once, after so many bytes of a request or of a reply, or at random.
Knows nothing of what is said."""

import random
import socket
import threading

_CHUNK = 65_536


class Proxy:
    def __init__(self, server_port: int, seed: int | None = None, bytes_max: int = 4000) -> None:
        """With a seed every connection is cut after a random number of bytes, in one of the two directions."""
        self._server_port = server_port
        self._choice = None if seed is None else random.Random(seed)
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._refuses = False
        #: How many connections were cut.
        self.cuts = 0
        #: What the next request, or reply, of the connections that are there is cut after.
        self._next: dict[str, int] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cuts all connections."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self.cut_pair(pair)

    def lead_to(self, server_port: int) -> None:
        """Cuts all connections; new ones go to another server."""
        self._server_port = server_port
        self.cut()

    def cut_after(self, *, requests: int | None = None, replies: int | None = None) -> None:
        """Cuts a connection when so many more bytes of requests, or of replies, have passed in all."""
        with self._lock:
            self._next = {way: left for way, left in (("request", requests), ("reply", replies)) if left is not None}

    def freeze(self) -> None:
        """Lets nothing pass any more on the connections that are there, without an end that their clients could see."""
        with self._lock:
            for pair in self._pairs:
                pair.is_frozen = True

    def refuse(self) -> None:
        """Ends every new connection at once."""
        self._refuses = True

    def accept(self) -> None:
        self._refuses = False

    def end(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut_pair(self, pair: "_Pair") -> None:
        with self._lock:
            if pair not in self._pairs:
                return
            self._pairs.remove(pair)
            self.cuts += 1
        pair.end()

    def allowed(self, way: str, pair: "_Pair", count: int) -> int:
        """How many of these bytes pass before the connection is cut."""
        with self._lock:
            passed = count
            if way in self._next:
                passed = min(passed, self._next[way])
                self._next[way] -= passed
                if self._next[way] == 0 and passed < count:
                    del self._next[way]
            if way == pair.way:
                passed = min(passed, pair.left)
                pair.left -= passed
            return passed

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._refuses:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            pair = _Pair(client, server)
            if self._choice is not None:
                pair.way, pair.left = self._choice.choice(("request", "reply")), self._choice.randrange(self._bytes_max)
            with self._lock:
                self._pairs.add(pair)
            for way, source, target in (("request", client, server), ("reply", server, client)):
                threading.Thread(target=self._copy, args=(way, pair, source, target), daemon=True).start()

    def _copy(self, way: str, pair: "_Pair", source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(_CHUNK):
                if pair.is_frozen:
                    continue
                passed = self.allowed(way, pair, len(data))
                target.sendall(data[:passed])
                if passed < len(data):
                    break
        except OSError:
            pass
        self.cut_pair(pair)


class _Pair:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._sockets = (client, server)
        #: The direction that is cut, and the bytes that pass before.
        self.way = ""
        self.left = 0
        self.is_frozen = False

    def end(self) -> None:
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
