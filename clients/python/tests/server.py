"""A server of a test's own: the binary that HOLDFAST_BIN names, on a free port, in a directory that goes with it. Knows nothing of
what is asked of it."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis


class Server:
    def __init__(self, binary: str | None = None, *options: str) -> None:
        """HOLDFAST_BIN, or another binary that takes the same options, such as a redis-server."""
        self._command = [binary or os.environ["HOLDFAST_BIN"], *options]
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._directory = tempfile.TemporaryDirectory(prefix="holdfast-py-")
        self._process: subprocess.Popen[bytes] | None = None
        self.run()

    def run(self) -> None:
        log = Path(self._directory.name, "server.log")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._directory.name]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"the server did not come up:\n{log.read_text()}")
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends it as a crash would. What it has acknowledged is in its directory."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def end(self) -> None:
        self.kill()
        self._directory.cleanup()

    def pause(self) -> None:
        """Stops its execution without ending it: connections stay, and get no answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        # A thread may run on for a moment.
        while not all(_is_stopped(task) for task in tasks.iterdir()):
            time.sleep(0.005)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def lacks(self, *commands: str) -> list[str]:
        """Which of these commands it does not have: a plain Redis has none of Holdfast's own."""
        with redis.Redis(port=self.port, protocol=2) as client:
            known = client.execute_command("COMMAND INFO", *commands)
        found = known if isinstance(known, list) else list(known.values())
        return [name for name, row in zip(commands, found) if not row]

    def answer(self, *words: str) -> str:
        """What it says to a command: the reply, or the error."""
        with redis.Redis(port=self.port, protocol=2) as client:
            try:
                return str(client.execute_command(*words))
            except redis.ResponseError as error:
                return str(error)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith(b"+PONG")
        except OSError:
            return False


def _is_stopped(task: Path) -> bool:
    return (task / "stat").read_text().rpartition(")")[2].split()[0] in "Tt"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
