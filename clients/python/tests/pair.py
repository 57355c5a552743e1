"""A writer and the followers of its log, as processes of a test's own that it promotes and kills; also of a plain Redis. Knows nothing of what
is asked of them."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import redis
from server import free_port


class Node:
    """One server."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        with log.open("ab") as output:
            options = ["--port", str(self.port), "--bind", "127.0.0.1"]
            self._process = subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while True:
            try:
                self.ask("PING")
                return
            except redis.RedisError:
                if self._process.poll() is not None:
                    raise RuntimeError(f"the server did not come up:\n{log.read_text()}") from None
                time.sleep(0.01)

    def ask(self, *words: str) -> object:
        with redis.Redis(port=self.port, protocol=2, decode_responses=True) as client:
            return client.execute_command(*words)

    def promote(self) -> None:
        """Makes it the writer; of a server that does not answer it takes the log over."""
        assert self.ask("REPLICAOF", "NO", "ONE") in ("OK", True)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Pair:
    """A writer and followers of the log in its directory; or, with another binary, a Redis and its replicas."""

    def __init__(self, redis_server: str | None = None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="holdfast-py-")
        self._redis_server = redis_server
        self._nodes: list[Node] = []
        self.writer = self._start([])
        self.follower = self.add_follower()

    def add_follower(self) -> Node:
        if self._redis_server is None:
            return self._start(["--follow", f"file:{self._directory.name}/data"])
        return self._start(["--replicaof", f"127.0.0.1 {self.writer.port}"])

    def addresses(self) -> list[str]:
        return [self.writer.address, self.follower.address]

    def end(self) -> None:
        for node in self._nodes:
            node.kill()
        self._directory.cleanup()

    def _start(self, options: list[str]) -> Node:
        if self._redis_server is not None:
            folder = Path(self._directory.name, str(len(self._nodes)))
            folder.mkdir()
            command = [self._redis_server, "--save", "", "--dir", str(folder), *options]
        else:
            Path(self._directory.name, "data").mkdir(exist_ok=True)
            where = [] if options else ["--dir", f"{self._directory.name}/data"]
            command = [os.environ["HOLDFAST_BIN"], *where, *options]
        self._nodes.append(Node(command, Path(self._directory.name, "server.log")))
        return self._nodes[-1]
