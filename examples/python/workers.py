#!/usr/bin/env python3
"""A pool of workers that die, and a sweeper that loses no job.

Workers are processes. They claim jobs, work in steps, and now and then are killed in the middle of one (SIGKILL, no
clean-up) or fall asleep for longer than their lease. A sweeper gives back jobs whose lease has run out, a bounded number
of times. At the end every job must be completed or exhausted, and none completed twice.

    python3 workers.py --url redis://127.0.0.1:6379           # Holdfast: HFIND, HCAS, SWEEP
    python3 workers.py --url redis://127.0.0.1:6379 --plain   # any Redis: SCAN and Lua scripts

Exit code: 0 all is well, 1 a job was lost or done twice, 2 it could not run.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time

import redis

STEPS = {"email-send": 2, "image-resize": 3, "report-build": 5}  # job types, and how many steps each takes
OPEN = ("pending", "claimed", "running")  # states of jobs that are not done with


class PlainStore:
    """What workers and the sweeper need of a server, from what every Redis has."""

    # Writes fields if others hold what is expected. ARGV: n field value … expected, n field value … to set.
    CHANGE = """
        local n = tonumber(ARGV[1])
        for i = 2, 2 * n, 2 do
            if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return 0 end
        end
        redis.call('HSET', KEYS[1], unpack(ARGV, 2 * n + 3))
        return 1"""

    # The same, and counts the job in a ledger in the same step.
    COMPLETE = CHANGE.replace("return 1", "redis.call('HINCRBY', KEYS[2], KEYS[1], 1)\nreturn 1")

    def __init__(self, url, run):
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.prefix, self.ledger, self.index = f"demo:{run}:job:", f"demo:{run}:completions", f"demo:{run}:stuck"
        self.change_script = self.redis.register_script(self.CHANGE)
        self.complete_script = self.redis.register_script(self.COMPLETE)

    def prepare(self):
        pass

    def clean_up(self):
        for key in self.redis.scan_iter(match=self.prefix + "*"):
            self.redis.delete(key)
        self.redis.delete(self.ledger)

    def find(self, states, limit=None):
        """Jobs in one of these states: a list of (key, fields)."""
        found, cursor = {}, None
        while cursor != 0 and (limit is None or len(found) < limit):
            cursor, keys = self.redis.scan(cursor or 0, match=self.prefix + "*", count=500)
            with self.redis.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.hgetall(key)
                records = zip(keys, pipeline.execute())
            found.update((key, fields) for key, fields in records if fields.get("state") in states)
        return list(found.items())[:limit]

    def change(self, key, expected, new):
        """Writes fields if others hold what is expected; whether they did."""
        return self.change_script(keys=[key], args=[*counted(expected), *counted(new)]) == 1

    def complete(self, key, expected, new):
        return self.complete_script(keys=[key, self.ledger], args=[*counted(expected), *counted(new)]) == 1

    def sweep(self, retries_max):
        """Gives back jobs whose lease has run out. Returns how many were requeued, and how many are exhausted."""
        requeued = exhausted = 0
        for key, job in self.find(("claimed", "running")):
            if int(job["timeout_at"]) >= now_ms():
                continue
            seen = {field: job[field] for field in ("state", "attempt", "timeout_at")}
            if int(job["attempt"]) < retries_max:
                attempt = int(job["attempt"]) + 1
                requeued += self.change(key, seen, {"state": "pending", "attempt": attempt, "updated_at": now_ms()})
            else:
                failed = {"state": "failed", "error": "its workers died", "updated_at": now_ms()}
                exhausted += self.change(key, seen, failed)
        return requeued, exhausted


class HoldfastStore(PlainStore):
    """The same with Holdfast's own commands: filters and sweeps run in the server, next to an index."""

    # HCAS works inside scripts too; this one counts the job in the same step.
    COMPLETE = """
        local done = redis.call('HCAS', KEYS[1], 'IF', unpack(ARGV))
        if done == 1 then redis.call('HINCRBY', KEYS[2], KEYS[1], 1) end
        return done"""

    def prepare(self):
        # Jobs that somebody works on, by the end of their lease.
        create = ["IDX.CREATE", self.index, "PREFIX", 1, self.prefix, "FIELD", "timeout_at"]
        self.redis.execute_command(*create, "ONLY", "state", 2, "claimed", "running")

    def clean_up(self):
        self.redis.execute_command("IDX.DROP", self.index)
        super().clean_up()

    def find(self, states, limit=None):
        found, cursor = {}, "0"
        while limit is None or len(found) < limit:
            query = ["HFIND", self.prefix, "FILTER", "state", "in", len(states), *states, "CURSOR", cursor]
            cursor, page = self.redis.execute_command(*query, "LIMIT", limit or 500)
            for key, fields in page:
                found[key] = fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2]))
            if int(cursor) == 0:
                break
        return list(found.items())

    def change(self, key, expected, new):
        return self.redis.execute_command("HCAS", key, "IF", *counted(expected), "SET", *counted(new)) == 1

    def complete(self, key, expected, new):
        args = [*counted(expected), "SET", *counted(new)]
        return self.complete_script(keys=[key, self.ledger], args=args) == 1

    def sweep(self, retries_max):
        exhausted = {"state": "failed", "error": "its workers died", "updated_at": "NOW"}
        requeued = {"state": "pending", "updated_at": "NOW"}
        command = ["SWEEP", self.index, "BEFORE", now_ms(), "WHERE", "state", 2, "claimed", "running"]
        command += ["RETRY", "attempt", retries_max, "ELSE", *counted(exhausted), "SET", *counted(requeued)]
        fates = [fate for _, fate in self.redis.execute_command(*command)]
        return fates.count("requeued"), fates.count("exhausted")


def counted(fields):
    """`n field value …`, as commands and scripts take it."""
    return [len(fields), *(item for pair in fields.items() for item in pair)]


def now_ms():
    return time.time_ns() // 1_000_000


def work(make_store, options, told):
    """One worker's life. It ends when nothing is left to do, or earlier."""
    store, name = make_store(), f"w-{os.getpid()}"
    while True:
        jobs = store.find(("pending",), limit=16)
        if not jobs:
            if not store.find(OPEN, limit=1):
                return
            time.sleep(0.01)
            continue
        key, job = random.choice(jobs)
        # The lease: nobody but this worker, on this attempt. It is checked with every write.
        lease = {"worker": name, "attempt": job["attempt"]}
        pending = {"state": "pending", "attempt": job["attempt"]}
        if not store.change(key, pending, {"state": "claimed", **stamp(options), "worker": name}):
            continue  # somebody else was faster
        told.put("claimed")
        state = "claimed"
        for step in range(1, int(job["step_count"]) + 1):
            time.sleep(random.uniform(0, 0.004))
            if random.random() < options.crash:
                os.kill(os.getpid(), signal.SIGKILL)
            if random.random() < options.stall:
                told.put("stalled")
                time.sleep(3 * options.lease_ms / 1000)
            held = {"state": state, **lease}
            if not store.change(key, held, {"state": "running", "current_step": step, **stamp(options)}):
                told.put("fenced off")
                break
            state = "running"
        else:
            done = {"state": "completed", "updated_at": now_ms(), "worker": name}
            told.put("completed" if store.complete(key, {"state": "running", **lease}, done) else "fenced off")


def stamp(options):
    return {"updated_at": now_ms(), "timeout_at": now_ms() + options.lease_ms}


def run_pool(make_store, options, counts):
    """Keeps the pool full and sweeps, until no job is open. Returns whether it got there in time."""
    store = make_store()
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    deadline = time.monotonic() + options.seconds
    pool = []
    while store.find(OPEN, limit=1) and time.monotonic() < deadline:
        for worker in [worker for worker in pool if not worker.is_alive()]:
            worker.join()
            pool.remove(worker)
            counts["crashed"] += worker.exitcode == -signal.SIGKILL
            if worker.exitcode not in (0, -signal.SIGKILL):
                sys.exit("a worker failed; see above")
        while len(pool) < options.workers:
            pool.append(context.Process(target=work, args=(make_store, options, told), daemon=True))
            pool[-1].start()
        requeued, exhausted = store.sweep(options.retries)
        counts["requeued"] += requeued
        counts["exhausted"] += exhausted
        while not told.empty():
            counts[told.get()] += 1
        time.sleep(0.03)
    # Those who sleep wake up to find that their job is somebody else's.
    for worker in pool:
        worker.join(timeout=5)
    while not told.empty():
        counts[told.get()] += 1
    return time.monotonic() < deadline


def check(store, options, counts):
    """What is wrong with the jobs, in sentences."""
    jobs = {key: store.redis.hgetall(key) for key in store.redis.scan_iter(match=store.prefix + "*", count=500)}
    ledger = store.redis.hgetall(store.ledger)
    if len(jobs) != options.jobs:
        yield f"{options.jobs} jobs were created and {len(jobs)} are there"
    if sum(map(int, ledger.values())) != counts["completed"]:
        yield f"workers were told of {counts['completed']} completions, but the ledger has {ledger}"
    for key, job in jobs.items():
        completions = int(ledger.get(key, 0))
        if job["state"] not in ("completed", "failed"):
            yield f"{key} is lost: it is {job['state']} for ever"
        if completions != (job["state"] == "completed"):
            yield f"{key} is {job['state']} and ran to completion {completions} times"
        if job["state"] == "completed" and job["current_step"] != job["step_count"]:
            yield f"{key} is completed after {job['current_step']} of {job['step_count']} steps"
        if int(job["attempt"]) > options.retries:
            yield f"{key} was tried again {job['attempt']} times"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--plain", action="store_true", help="use only what every Redis has")
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--retries", type=int, default=3, help="how often a job is given back")
    parser.add_argument("--lease-ms", type=int, default=250, help="how long a step may take")
    parser.add_argument("--crash", type=float, default=0.05, help="chance to die in a step")
    parser.add_argument("--stall", type=float, default=0.01, help="chance to sleep past the lease in a step")
    parser.add_argument("--seconds", type=float, default=60, help="give up after so long")
    options = parser.parse_args()

    run, kind = f"{now_ms()}-{os.getpid()}", PlainStore if options.plain else HoldfastStore

    def make_store():
        return kind(options.url, run)

    store = make_store()
    try:
        if not options.plain and not {"hcas", "hfind", "sweep"} <= set(store.redis.command_list()):
            print("This server does not know HCAS, HFIND and SWEEP: try --plain.", file=sys.stderr)
            return 2
        store.prepare()
    except redis.ConnectionError as error:
        print(f"{options.url}: {error}", file=sys.stderr)
        return 2

    for number in range(options.jobs):
        task_type = list(STEPS)[number % len(STEPS)]
        job = {"state": "pending", "task_type": task_type, "task_id": number, "attempt": 0, "current_step": 0}
        job |= {"step_count": STEPS[task_type], "created_at": now_ms(), "updated_at": now_ms()}
        store.redis.hset(f"{store.prefix}{task_type}:{number}", mapping=job)

    words = ("claimed", "crashed", "stalled", "fenced off", "requeued", "exhausted", "completed")
    counts = dict.fromkeys(words, 0)
    in_time = run_pool(make_store, options, counts)
    troubles = list(check(store, options, counts))
    if not in_time:
        troubles.append(f"jobs were still open after {options.seconds} s")
    print(f"{options.jobs} jobs of {len(STEPS)} types:", ", ".join(f"{counts[word]} {word}" for word in words))
    print(*troubles or ["No job was lost, and none ran to completion twice."], sep="\n")
    store.clean_up()
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
