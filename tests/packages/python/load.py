"""Loads a server through the Python package while that is killed: jobs, transactions, appends, a stateful node and a session that counts. What was
acknowledged goes into a ledger, from which the program goes on when it was killed itself. README.md has the ledger's lines.

    load.py URL LEDGER NAME SECONDS
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from holdfast import ConflictError, HoldfastError, LostError, NewEvent, Queue, QueueConfig, StatefulNode, Store, UnansweredError, codec

T = TypeVar("T")

ACCOUNTS = [f"account/{number}" for number in range(6)]
LEASE_MS = 500
PATIENCE_S = 60.0


class Ledger:
    """Lines of JSON, each written before the program goes on."""

    def __init__(self, path: str) -> None:
        self.lines: list[dict[str, Any]] = []
        if Path(path).exists():
            # A line that was cut off was not acknowledged to anybody.
            whole = Path(path).read_text().rpartition("\n")[0]
            self.lines = [json.loads(line) for line in whole.splitlines()]
            Path(path).write_text(whole + "\n" if whole else "")
        self._file = open(path, "a")
        self._lock = threading.Lock()

    def write(self, **line: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def last(self, what: str, default: int = 0) -> int:
        """The number of the last line of a kind."""
        return max((line[what] for line in self.lines if what in line), default=default)


def insist(call: Callable[[], T]) -> T:
    """Calls again while the server is away."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except HoldfastError as error:
            if not error.is_temporary or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


class Load:
    def __init__(self, url: str, ledger: Ledger, name: str, seconds: float) -> None:
        self.store = insist(lambda: Store.connect(url, response_timeout_ms=2000))
        self.queue = Queue(self.store, QueueConfig(indexes=["due"], lease_ms=LEASE_MS))
        self.ledger, self.name = ledger, name
        self.until = time.monotonic() + seconds
        self.failures: list[str] = []

    def run(self) -> None:
        parts = [self.add_jobs, lambda: self.work("a"), lambda: self.work("b"), self.transfer, self.append, self.process, self.count]
        threads = [threading.Thread(target=self.guarded, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except BaseException as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            raise

    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    def add_jobs(self) -> None:
        number = self.ledger.last("added")
        while self.goes_on():
            number += 1
            insist(lambda: self.queue.add(f"job:{self.name}:{number:06}", {"n": number}))
            self.ledger.write(added=number)
            time.sleep(0.01)

    def work(self, worker: str) -> None:
        choice = random.Random(f"{self.name} {worker}")
        while True:
            job = insist(lambda: self.queue.next(f"{self.name}-{worker}", 2 * LEASE_MS))
            if job is None:
                if not self.goes_on():
                    return
                continue
            held, chance = job, choice.random()
            try:
                if chance < 0.05:
                    continue  # as a worker that dies: its lease ends
                if chance < 0.1:
                    insist(lambda: held.retry(0))
                    continue
                insist(lambda: held.complete({"by": self.name, "token": held.token}))
                self.ledger.write(completed=job.key, token=job.token)
            except LostError:
                self.ledger.write(lost=job.key, token=job.token)

    def transfer(self) -> None:
        choice = random.Random(self.name)
        number = self.ledger.last("transfer")
        while self.goes_on():
            number += 1
            source, target = choice.sample(ACCOUNTS, 2)
            amount = choice.randint(1, 9)
            self.ledger.write(transfer=number)

            def move(txn: Any) -> None:
                balances = []
                for each in (source, target):
                    held = txn.cell(each, codec.integer).get()
                    balances.append(held.value)
                txn.cell(source, codec.integer).set(balances[0] - amount)
                txn.cell(target, codec.integer).set(balances[1] + amount)
                event = NewEvent("Moved", {"amount": amount, "from": source, "to": target}, idempotency_key=f"t-{number}")
                txn.run(f"transfers/{self.name}").append(event)

            try:
                self.store.transaction(10, move)
                self.ledger.write(moved=number)
            except ConflictError:
                self.ledger.write(conflict=number)
            except HoldfastError as error:
                if not error.is_temporary:
                    raise
                time.sleep(0.02)  # it was made or not
            if number % 5 == 0:
                cells = insist(lambda: self.store.get_cells(ACCOUNTS, codec.integer))
                self.ledger.write(sum=sum(each.value for each in cells if each is not None))

    def append(self) -> None:
        run, number = self.store.run(f"log/{self.name}"), self.ledger.last("appended")
        while self.goes_on():
            number += 1
            appended = insist(lambda: run.append(NewEvent("Noted", number, idempotency_key=f"k-{number}")))
            self.ledger.write(appended=number, seq=appended.run_seq, mismatch=appended.mismatch)
            time.sleep(0.005)

    def process(self) -> None:
        """Reads an input that can be read again from any position: the key and the amount of each follow from its number."""
        choice = random.Random(self.name)
        state = self.store.exactly_once_state(f"sums-{self.name}/", codec.json)
        while self.goes_on():
            # A new node, as after a crash of the pipeline.
            node: StatefulNode[Any, Any] = StatefulNode(f"sums-{self.name}", state)
            position = int(insist(node.recover) or 0)
            for _ in range(choice.randint(5, 40)):
                position += 1
                key, amount = f"key-{position % 3}", position % 7

                def update(held: Any) -> Any:
                    total = (held or 0) + amount
                    return total, [f"{position}: {total}"]

                for output in insist(lambda: node.process(key, position, update)) or []:
                    insist(lambda: self.store.set_field(f"sink-{self.name}", output.id, output.value))
                if position % 10 == 0:
                    insist(lambda: node.checkpoint(str(position)))
                    self.ledger.write(checkpoint=position)

    def count(self) -> None:
        opened = [line for line in self.ledger.lines if "session" in line]
        prepared = self.ledger.last("prepared")
        request = None
        if opened:
            session = insist(lambda: self.store.sessions.resume(opened[-1]["session"], prepared + 1))
            if prepared and prepared > self.ledger.last("answered"):
                request = session.prepare("INCR", f"count:{self.name}", request_id=prepared)
        else:
            session = insist(lambda: self.store.sessions.open())
            self.ledger.write(session=session.id)
        while self.goes_on():
            if request is None:
                request = session.prepare("INCR", f"count:{self.name}")
                self.ledger.write(prepared=request.id)
            try:
                value = request.send()
            except UnansweredError as error:
                value = error.request.send()
            self.ledger.write(answered=request.id, value=int(str(value)))
            request = None
            time.sleep(0.005)


def main() -> None:
    url, path, name, seconds = sys.argv[1:]
    load = Load(url, Ledger(path), name, float(seconds))
    print("begins", flush=True)
    load.run()
    if load.failures:
        sys.exit("\n".join(load.failures))


if __name__ == "__main__":
    main()
