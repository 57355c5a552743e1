"""A writer and its follower that tests start, hand over and kill. Both answer as Sentinels. Knows processes; refuses to know what a client does."""

import os
import socket
import subprocess

import redis
from conftest import eventually

NAME = "holdfast"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Member:
    """A server of the log in a directory."""

    def __init__(self, *arguments):
        self.port, self.sentinel_port = free_port(), free_port()
        ports = ["--port", str(self.port), "--sentinel-port", str(self.sentinel_port)]
        program = [os.environ["HOLDFAST_BIN"], "--bind", "127.0.0.1", *ports, *arguments]
        self.process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = redis.Redis(port=self.port, decode_responses=True)
        eventually(self.answers)

    def answers(self):
        assert self.process.poll() is None, "it did not start"
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


class Pair:
    """The writer of a log and its follower."""

    def __init__(self, directory, *arguments):
        self.directory, self.arguments = directory, arguments
        self.writer = Member("--dir", str(directory), *arguments)
        self.follower = Member("--follow", f"file:{directory}", *arguments)
        self.await_follower()

    def sentinels(self):
        return [("127.0.0.1", member.sentinel_port) for member in (self.writer, self.follower)]

    def await_follower(self):
        eventually(lambda: self.writer.client.role()[0] == "master" and len(self.writer.client.role()[2]) == 1)

    def hand_over(self):
        assert self.writer.client.execute_command("FAILOVER")
        eventually(lambda: self.follower.client.role()[0] == "master" and self.writer.client.role()[0] == "slave")
        self.writer, self.follower = self.follower, self.writer
        self.await_follower()

    def kill_writer(self):
        """Kills the writer. The follower takes over, and another process follows it."""
        self.writer.kill()
        assert self.follower.client.replicaof("NO", "ONE")
        self.writer = self.follower
        self.follower = Member("--follow", f"file:{self.directory}", *self.arguments)
        self.await_follower()

    def kill(self):
        self.writer.kill()
        self.follower.kill()
