"""What the test of each job library shares: an empty server, the ledger, and worker processes that can be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workload import Ledger

FOLDER = Path(__file__).parent
# Whatever it waits for takes seconds, on a busy machine more; a hang ends as a failure.
SECONDS_MAX = 120


@pytest.fixture
def ledger():
    ledger = Ledger()
    ledger.flush()
    return ledger


class Workers:
    """Worker processes, each the leader of a session, so that what it has started dies with it."""

    def __init__(self, logs):
        self.logs = logs
        self.running = []

    def start(self, module, *arguments):
        """Runs `python -m MODULE ARGUMENTS…` beside the applications."""
        with open(self.logs / f"{len(os.listdir(self.logs))}-{module}.log", "w") as log:
            command = [sys.executable, "-m", module, *map(str, arguments)]
            worker = subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.running.append(worker)
        return worker

    def kill(self, worker):
        """SIGKILL, to the worker and to its children: RQ's make process groups of their own."""
        self.running.remove(worker)
        # Stopped, it starts no child that is missed.
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGSTOP)
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(int(process.name)) == worker.pid:
                    os.kill(int(process.name), signal.SIGKILL)
        worker.wait()

    def eventually(self, condition):
        """Waits for what the workers bring about. One that ends by itself has failed."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            for worker in self.running:
                assert worker.poll() is None, f"a worker has ended: {worker.args}"
            time.sleep(0.05)

    def close(self):
        for worker in list(self.running):
            self.kill(worker)
        # pytest shows this when the test has failed.
        for log in sorted(self.logs.iterdir()):
            print(f"==== the end of {log.name}", *log.read_text().splitlines()[-40:], sep="\n")


@pytest.fixture
def workers(tmp_path):
    workers = Workers(tmp_path)
    yield workers
    workers.close()
