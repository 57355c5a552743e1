"""What the measurements of several servers share: a client, a server that is started and ended, and a table."""
import os
import signal
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def request(words):
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(request(words))

    def read(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))] if int(rest) >= 0 else None
        if kind == b"$":
            return None if int(rest) < 0 else self.file.read(int(rest) + 2)[:-2]
        return line[:-2]

    def run(self, *words):
        self.send(*words)
        return self.read()


class Server:
    def __init__(self, binary, *flags, wait=True):
        self.port = free_port()
        self.began = time.perf_counter()
        arguments = [binary, "--port", str(self.port), "--save", "", *flags]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait:
            self.wait()

    def wait(self):
        while True:
            try:
                if Connection(self.port).run("PING") == b"+PONG":
                    return time.perf_counter() - self.began
            except OSError:
                pass
            time.sleep(0.001)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def position(self):
        role = Connection(self.port).run("ROLE")
        return int((role[1] if role[0] == b"master" else role[4])[1:])

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def row(what, value):
    print(f"| {what} | {value} |", flush=True)
