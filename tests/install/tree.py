"""A tree of Debian files, and processes in it. Knows chroot; refuses to know what is installed.

As a program it only makes the files that all trees begin with, which takes a while the first time.
"""
import os
import shutil
import socket
import subprocess
import tarfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WORK = Path(os.environ.get("HOLDFAST_TEST_WORK", REPOSITORY / "target/scripts-test/install"))
BINARY = Path(os.environ["HOLDFAST_BIN"])
# Only has to tell slow from never.
DEADLINE_SECONDS = 60
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base(suite: str) -> Path:
    """The files of a Debian with nothing but what is essential; made once."""
    archive = WORK / f"{suite}.tar"
    if not archive.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        begun = archive.with_suffix(".begun.tar")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=adduser", suite, str(begun)]
        subprocess.run(command, check=True)
        begun.rename(archive)
    return archive


class Tree:
    """A fresh tree. It is removed at the end."""

    def __init__(self, name: str, suite: str):
        self.root = WORK / name
        self.remove()
        self.root.mkdir(parents=True)
        with tarfile.open(base(suite)) as archive:
            # Devices cannot be made everywhere; those that are needed are made below.
            members = [member for member in archive if not member.isdev()]
            archive.extractall(self.root, members, numeric_owner=True, filter="fully_trusted")
        for name, numbers in [("null", (1, 3)), ("zero", (1, 5)), ("random", (1, 8)), ("urandom", (1, 9))]:
            os.mknod(self.root / "dev" / name, 0o666 | 0o020000, os.makedev(*numbers))
            os.chmod(self.root / "dev" / name, 0o666)
        # No service is started by an installation.
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str, mode: int = 0o644):
        self.path(path).write_text(text)
        self.path(path).chmod(mode)

    def run(self, *words: str, variables: dict[str, str] | None = None, check: bool = True):
        """Runs a command to its end, and returns what became of it."""
        done = subprocess.run(["chroot", str(self.root), *words], env={"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", **(variables or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert not check or done.returncode == 0, f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def start(self, *words: str, variables: dict[str, str], before: tuple[str, ...] = ()):
        """Starts a process in the tree, by way of a command outside of it."""
        log = open(self.root / "process.log", "wb")
        return subprocess.Popen([*before, "chroot", str(self.root), *words], env={"PATH": PATH, **variables}, stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log)

    def log(self) -> str:
        return (self.root / "process.log").read_text(errors="replace")

    def owner_and_mode(self, path: str) -> tuple[str, str]:
        said = self.run("stat", "-c", "%U:%G %a", path).stdout.split()
        return said[0], said[1]


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def until(what: str, holds):
    """Asks until the answer is yes."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)
    return answer


def ask(port: str, *words: str, password: str | None = None) -> str:
    """A request to the server on a port of this machine, as one line, and the first line of the reply that says something."""
    with socket.create_connection(("127.0.0.1", int(port)), timeout=DEADLINE_SECONDS) as connection:
        stream = connection.makefile("rwb")
        if password is not None:
            assert send(stream, "AUTH", password) == "+OK"
        return send(stream, *words)


def send(stream, *words: str) -> str:
    stream.write(f"*{len(words)}\r\n".encode() + b"".join(f"${len(word.encode())}\r\n{word}\r\n".encode() for word in words))
    stream.flush()
    line = stream.readline().decode().rstrip("\r\n")
    return stream.readline().decode().rstrip("\r\n") if line.startswith("$") and line != "$-1" else line


if __name__ == "__main__":
    base("bookworm")
