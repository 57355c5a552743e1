#!/usr/bin/env python3
"""A pool of workers that die, and a queue that loses no job.

Workers are processes. They claim jobs, urgent ones first, and work in steps. Some jobs get their worker killed in the middle
of a step (SIGKILL, no clean-up), some make it sleep past its lease, some fail and are tried again; a few do so every time, and
become dead letters. At the end every other job must be completed, each exactly once. The server may be killed and started
again meanwhile.

    python3 workers.py --url redis://127.0.0.1:6379

Exit code: 0 all is well, 1 a job was lost or done twice, 2 it could not run.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

# Job types, and how many steps each takes. Reports take longer than a lease, so they need renewals.
STEPS = {"email-send": 2, "image-resize": 3, "report-build": 5}


class Lost(Exception):
    """The job is not this worker's any more; nothing was written."""


class Queue:
    """Jobs under a prefix, in two indexes by the time at which they may be claimed."""

    def __init__(self, options, run):
        # Requests are sent again when the connection breaks: all that is sent here may be.
        retry = Retry(ConstantBackoff(0.05), retries=int(options.seconds * 20))
        self.redis = redis.Redis.from_url(options.url, decode_responses=True, retry=retry)
        self.prefix, self.due, self.dead = f"demo:{run}:job:", [f"demo:{run}:due:high", f"demo:{run}:due:low"], f"demo:{run}:dead"
        self.lease_ms, self.attempts_max = options.lease_ms, options.attempts

    def key(self, number):
        """The key of a job: its prefix says how urgent it is."""
        return f"{self.prefix}{'high' if number % 4 == 3 else 'low'}:{number}"

    def create_indexes(self):
        for index, prefix, states in [
            (self.due[0], self.prefix + "high:", ["pending", "running"]),
            (self.due[1], self.prefix + "low:", ["pending", "running"]),
            (self.dead, self.prefix, ["dead"]),
        ]:
            only = ["ONLY", "state", len(states), *states]
            self.redis.execute_command("IDX.CREATE", index, "PREFIX", 1, prefix, "FIELD", "run_at", *only)

    def add(self, key, fields, delay_ms):
        fields = {"state": "pending", **fields}
        self.redis.execute_command("HCAS", key, "ABSENT", 1, "state", "SET", *counted(fields), "STAMP", 1, "run_at", delay_ms)

    def next(self, worker, block_ms=None):
        """The next job that is due; None if there is none in time."""
        claim = ["CLAIM", len(self.due), *self.due, "MAX", "NOW"]
        claim += ["SET", *counted({"state": "running", "worker": worker, "run_at": f"NOW+{self.lease_ms}"})]
        claim += ["COUNTER", "attempt", "UPTO", self.attempts_max, "ELSE", 1, "state", "dead"]
        jobs = self.redis.execute_command(*claim, *(["BLOCK", block_ms] if block_ms else []))
        for key, _score, fields in jobs:
            return Job(self, key, fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2])))
        return None

    def open(self):
        """How many jobs have not ended."""
        return sum(self.redis.zcard(index) for index in self.due)

    def clean_up(self, jobs):
        for index in [*self.due, self.dead]:
            self.redis.execute_command("IDX.DROP", index)
        for number in range(jobs):
            self.redis.delete(self.key(number))


class Job:
    """A job that this worker holds. Every write has that as its condition: the attempt, and the state."""

    def __init__(self, queue, key, fields):
        self.queue, self.key, self.fields, self.token = queue, key, fields, int(fields["attempt"])

    def update(self, *changes, ends_as=None):
        held = ["IF", 2, "attempt", self.token, "state", "running"]
        applied, current = self.queue.redis.execute_command("HCAS", self.key, *held, *changes, "WITHCURRENT")
        # A request that was sent twice finds the job as the first one has left it.
        if not applied and current != [str(self.token), ends_as]:
            raise Lost(self.key)

    def renew(self):
        self.update("STAMP", 1, "run_at", self.queue.lease_ms)

    def complete(self, **fields):
        self.update("SET", *counted({"state": "completed", **fields}), ends_as="completed")

    def fail(self, **fields):
        self.update("SET", *counted({"state": "dead", **fields}), ends_as="dead")

    def retry(self, after_ms, **fields):
        """Gives the job back, or gives it up if this was the last attempt. Whether it was given back."""
        if self.token >= self.queue.attempts_max:
            self.fail(**fields)
            return False
        changes = ["SET", *counted({"state": "pending", **fields}), "STAMP", 1, "run_at", after_ms]
        self.update(*changes, ends_as="pending")
        return True


def counted(fields):
    """`n field value …`, as commands take it."""
    return [len(fields), *(item for pair in fields.items() for item in pair)]


def mishap(number, attempt):
    """What goes wrong with an attempt at a job. It depends on nothing but the two, so the dead letters are known."""
    always = {19: "crash", 18: "error", 17: "hopeless"}
    at_first = {0: "crash", 1: "stall", 2: "error"}
    return always.get(number % 20) or (at_first.get(number % 5) if attempt == 1 else None)


def becomes_dead(number):
    return number % 20 >= 17


def work(make_queue, options, told):
    """One worker's life. It ends with its pool, or earlier."""
    queue, name = make_queue(), f"w-{os.getpid()}"
    while True:
        job = queue.next(name, block_ms=200)
        if job:
            told.put(("claimed", job.key, job.token))
            try:
                told.put((attempt(job, name, options, told), job.key, job.token))
            except Lost:
                told.put(("lost", job.key, job.token))


def attempt(job, name, options, told):
    """The steps of a job, each written only as long as the job is this worker's. How it ended."""
    trouble, lease_s = mishap(int(job.fields["number"]), job.token), options.lease_ms / 1000
    steps = int(job.fields["step_count"])
    for step in range(1, steps + 1):
        time.sleep(lease_s / 4 if job.fields["task_type"] == "report-build" else 0.002)
        if trouble and step == steps:
            if trouble == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            elif trouble == "stall":
                told.put(("stalled", job.key, job.token))
                time.sleep(2 * lease_s)
            elif trouble == "error":
                return "retried" if job.retry(50, error="no network") else "given up"
            else:
                job.fail(error="no such image")
                return "given up"
        job.renew()
        job.update("SET", 1, "current_step", step)
    job.complete(result=f"attempt {job.token} by {name}")
    return "completed"


def run_pool(make_queue, options, counts, completions):
    """Keeps the pool full until no job is open. Returns whether it got there in time."""
    queue, context = make_queue(), multiprocessing.get_context("fork")
    told, pool = context.SimpleQueue(), []
    deadline = time.monotonic() + options.seconds

    def listen():
        while not told.empty():
            word, key, token = told.get()
            counts[word] += 1
            if word == "completed":
                completions.setdefault(key, []).append(token)

    while queue.open() and time.monotonic() < deadline:
        for worker in [worker for worker in pool if not worker.is_alive()]:
            worker.join()
            pool.remove(worker)
            counts["crashed"] += worker.exitcode == -signal.SIGKILL
            if worker.exitcode != -signal.SIGKILL:
                sys.exit("a worker failed; see above")
        while len(pool) < options.workers:
            pool.append(context.Process(target=work, args=(make_queue, options, told), daemon=True))
            pool[-1].start()
        listen()
        time.sleep(0.03)
    # Those who sleep wake up to find that their job is another's.
    time.sleep(2.5 * options.lease_ms / 1000)
    listen()
    for worker in pool:
        worker.terminate()
        worker.join()
    return time.monotonic() < deadline


def check(queue, options, completions):
    """What is wrong with the jobs, in sentences."""
    letters = set(queue.redis.execute_command("IDX.RANGE", queue.dead, "-inf", "+inf", "KEYS"))
    for number in range(options.jobs):
        key = queue.key(number)
        job = queue.redis.hgetall(key)
        if not job:
            yield f"{key} is lost"
            continue
        state, tries, told = job["state"], int(job.get("attempt", 0)), completions.get(key, [])
        if (state, told) != (("dead", []) if becomes_dead(number) else ("completed", [tries])):
            yield f"{key} is {state} after {tries} attempts; it was completed in those: {told}"
        if (key in letters) != (state == "dead"):
            yield f"{key} is {state}, but the index of dead letters says otherwise"
        if state == "completed" and job["current_step"] != job["step_count"]:
            yield f"{key} is completed after {job['current_step']} steps"
        if tries > options.attempts:
            yield f"{key} was tried {tries} times"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--attempts", type=int, default=5, help="how often a job is tried")
    parser.add_argument("--lease-ms", type=int, default=500, help="how long a worker has a job unless it renews")
    parser.add_argument("--seconds", type=float, default=60, help="give up after so long")
    options = parser.parse_args()
    run = f"{time.time_ns() // 1_000_000}-{os.getpid()}"

    def make_queue():
        return Queue(options, run)

    try:
        commands = redis.Redis.from_url(options.url, decode_responses=True).command_list()
    except redis.ConnectionError as error:
        print(f"{options.url}: {error}", file=sys.stderr)
        return 2
    if "claim" not in commands:
        print("This server does not know CLAIM, which is one of Holdfast's own commands.", file=sys.stderr)
        return 2

    queue = make_queue()
    queue.create_indexes()
    for number in range(options.jobs):
        task_type = list(STEPS)[number % len(STEPS)]
        job = {"task_type": task_type, "number": number, "step_count": STEPS[task_type]}
        queue.add(queue.key(number), job, delay_ms=300 if number % 10 == 3 else 0)

    # A worker that dies at once. It has got an urgent job, though others were there first.
    urgent_first = queue.next("w-0").key.startswith(queue.prefix + "high:")
    print(f"{options.jobs} jobs for {options.workers} workers", flush=True)
    words = ("claimed", "crashed", "stalled", "lost", "retried", "given up", "completed")
    counts, completions = dict.fromkeys(words, 0), {}
    in_time = run_pool(make_queue, options, counts, completions)
    troubles = list(check(queue, options, completions))
    if not urgent_first:
        troubles.append("the first job that was claimed is not an urgent one")
    if not in_time:
        troubles.append(f"jobs were still open after {options.seconds} s")
    print(", ".join(f"{counts[word]} {word}" for word in words))
    print(*troubles or ["Every job was completed exactly once, but for the dead letters that were expected."], sep="\n")
    queue.clean_up(options.jobs)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
