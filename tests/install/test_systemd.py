"""A systemd of the test's own (`systemd --user`) with the unit's lines about the process: ready, upgraded by a signal, restarted, stopped.

The sandbox needs the system's systemd; test_package.py compares it with what the server does.
"""
import os
import shutil
import signal
import subprocess

import pytest
from tree import BINARY, REPOSITORY, WORK, ask, free_port, until

KEPT = ("Type=", "NotifyAccess=", "KillMode=", "Restart=", "RestartSec=", "TimeoutStartSec=", "TimeoutStopSec=", "WatchdogSec=", "ExecReload=")


class Systemd:
    """A manager in a mount namespace of its own, where /run says that systemd has booted the machine."""

    def __init__(self, port: str):
        self.place = WORK / "systemd"
        shutil.rmtree(self.place, ignore_errors=True)
        units, run = self.place / "config/systemd/user", self.place / "run"
        units.mkdir(parents=True)
        run.mkdir(mode=0o700)
        unit = (REPOSITORY / "config/holdfast.service").read_text()
        lines = [line for line in unit.splitlines() if line.startswith(KEPT)]
        lines.append(f"ExecStart={BINARY} --port {port} --dir {self.place}/data")
        (units / "holdfast.service").write_text("\n".join(["[Service]", *lines, ""]))
        self.variables = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(run), "XDG_CONFIG_HOME": str(self.place / "config")}
        script = "mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && exec /lib/systemd/systemd --user"
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", script], env=self.variables,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def comes_up(self) -> bool:
        socket = self.place / "run/systemd/private"
        until("systemd is up or has ended", lambda: socket.exists() or self.process.poll() is not None)
        return self.process.poll() is None

    def control(self, *words: str):
        # systemctl, too, looks whether systemd has booted the machine.
        command = ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", "systemctl", "--user", *words]
        done = subprocess.run(command, env=self.variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def says(self, name: str) -> str:
        return self.control("show", "--value", f"--property={name}", "holdfast.service").strip()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)


def test_systemd_follows_the_service():
    port = free_port()
    systemd = Systemd(port)
    try:
        if not systemd.comes_up():
            pytest.skip("systemd cannot run here")
        systemd.control("start", "holdfast.service")
        # It has waited: no -LOADING, and nothing is refused.
        assert ask(port, "SET", "key", "value") == "+OK"
        assert port in systemd.says("StatusText")
        first = systemd.says("MainPID")
        systemd.control("kill", "--kill-whom=main", "--signal=SIGUSR2", "holdfast.service")
        until("another process is the main one", lambda: systemd.says("MainPID") != first and serves(port, systemd))
        assert ask(port, "GET", "key") == "value"
        assert (systemd.says("ActiveState"), systemd.says("NRestarts")) == ("active", "0")
        # The process that systemd has not started is restarted when it fails, too.
        upgraded = systemd.says("MainPID")
        systemd.control("kill", "--kill-whom=main", "--signal=SIGKILL", "holdfast.service")
        until("it is restarted", lambda: systemd.says("NRestarts") == "1" and systemd.says("ActiveState") == "active")
        assert systemd.says("MainPID") != upgraded and ask(port, "GET", "key") == "value"
        systemd.control("reload", "holdfast.service")
        systemd.control("stop", "holdfast.service")
        assert (systemd.says("ActiveState"), systemd.says("Result")) == ("inactive", "success")
    finally:
        systemd.end()


def serves(port: str, systemd: Systemd) -> bool:
    """The main process is the one that answers."""
    return f"process_id:{systemd.says('MainPID')}\r\n" in info(port)


def info(port: str) -> str:
    done = subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'INFO server\\r\\nQUIT\\r\\n' >&3 && cat <&3"],
                          capture_output=True, text=True, timeout=60)
    return done.stdout.replace("\n", "\r\n").replace("\r\r", "\r")
