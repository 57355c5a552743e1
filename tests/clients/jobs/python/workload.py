"""The thousand jobs that every library runs, and the ledger of what became of them, kept in the server itself.

Workers and tests both import this. It knows no job library and not which server answers: HOLDFAST_TEST_ADDR=host:port
says that. Libraries work in database 0, the ledger is in database 1.
"""

import asyncio
import os
import time

import redis

ADDRESS = os.environ["HOLDFAST_TEST_ADDR"]
URL = f"redis://{ADDRESS}/0"

JOBS = range(1000)
# The worker that takes this job first is killed while it has it.
HELD = 300
HELD_SECONDS = 600
DELAY_SECONDS = 3

_ledger = redis.Redis.from_url(f"redis://{ADDRESS}/1", decode_responses=True)


def is_high(job):
    """Whether it is in the queue that goes first. Low ones are enqueued first."""
    return job % 2 == 0


def fails_first(job):
    return job % 10 in (3, 4)


def is_delayed(job):
    return job % 10 in (7, 8)


def is_plain(job):
    return job != HELD and not fails_first(job) and not is_delayed(job)


class FirstAttemptFails(Exception):
    pass


def work(job, due=0):
    """What a worker does for a job. `due` is the unix time before which it must not run."""
    if _begin(job, due):
        time.sleep(HELD_SECONDS)
    _complete(job)


async def work_async(job, due=0):
    """The same for asyncio. The ledger's short calls may block it; the long wait must not."""
    if _begin(job, due):
        await asyncio.sleep(HELD_SECONDS)
    _complete(job)


def _begin(job, due):
    """Counts the attempt, and fails if that is the plan. Returns whether the worker is to be killed now."""
    attempt = _ledger.hincrby("attempts", job)
    if time.time() < due:
        _ledger.sadd("early", job)
    if fails_first(job) and attempt == 1:
        raise FirstAttemptFails(job)
    held = job == HELD and attempt == 1
    if held:
        _ledger.set("held", 1)
    return held


def _complete(job):
    with _ledger.pipeline() as pipe:
        pipe.hincrby("done", job)
        pipe.rpush("order", job)
        pipe.execute()


class Ledger:
    """What the workers have recorded."""

    def flush(self):
        _ledger.flushall()

    def holds(self):
        """Whether a worker has the job during which it is to be killed."""
        return _ledger.exists("held") == 1

    def attempts(self):
        return _counts("attempts")

    def done(self):
        return _counts("done")

    def all_done(self):
        return _ledger.hlen("done") == len(JOBS)

    def check(self, in_hand_max):
        """Every job is done, none too early; only jobs that the killed worker had, at most so many, ran once more than they should."""
        attempts, done = self.attempts(), self.done()
        assert done.keys() == set(JOBS)
        assert _ledger.smembers("early") == set()
        again = {job for job in JOBS if attempts[job] != (2 if fails_first(job) else 1)}
        assert HELD in again
        assert len(again) <= in_hand_max, again
        assert {job for job, n in done.items() if n > 1} <= again - {HELD}

    def check_order(self, in_hand_max):
        """High jobs went before low ones, but for those that had to be taken from the killed worker."""
        order = [job for job in map(int, _ledger.lrange("order", 0, -1)) if is_plain(job)]
        first_low = next(i for i, job in enumerate(order) if not is_high(job))
        late = [job for job in order[first_low:] if is_high(job)]
        assert len(late) <= in_hand_max, late

    def check_tendency(self):
        """High jobs went before low ones on average."""
        order = [job for job in map(int, _ledger.lrange("order", 0, -1)) if is_plain(job)]
        high = [i for i, job in enumerate(order) if is_high(job)]
        low = [i for i, job in enumerate(order) if not is_high(job)]
        assert sum(high) / len(high) < sum(low) / len(low)


def _counts(name):
    return {int(job): int(n) for job, n in _ledger.hgetall(name).items()}


def enqueue_order():
    """Low jobs first, so that an order by arrival is not an order by priority."""
    return sorted(JOBS, key=lambda job: (is_high(job), job))
