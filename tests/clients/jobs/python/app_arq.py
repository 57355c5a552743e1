"""An arq application: two queues with a worker for each. Knows the jobs from workload.py."""

import time

from arq.connections import RedisSettings, create_pool
from arq.worker import Retry
from workload import DELAY_SECONDS, URL, FirstAttemptFails, enqueue_order, is_delayed, is_high, work_async

REDIS = RedisSettings.from_dsn(URL)
HIGH, LOW = "arq:high", "arq:low"
CONCURRENCY = 5


async def run(_context, job, due=0):
    try:
        await work_async(job, due)
    except FirstAttemptFails:
        raise Retry(defer=0.1) from None
    return job


def settings(queue):
    """What `arq MODULE.NAME` reads. It overlooks what a class inherits."""
    return {
        "redis_settings": REDIS,
        "functions": [run],
        "queue_name": queue,
        "health_check_key": f"{queue}:health",
        "max_jobs": CONCURRENCY,
        "max_tries": 4,
        "poll_delay": 0.1,
        # A job of a dead worker is free again ten seconds after this.
        "job_timeout": 5,
    }


High, Low = settings(HIGH), settings(LOW)


async def enqueue_all():
    async with await create_pool(REDIS) as pool:
        return [await enqueue(pool, job) for job in enqueue_order()]


async def enqueue(pool, job):
    queue = HIGH if is_high(job) else LOW
    if is_delayed(job):
        return await pool.enqueue_job("run", job, time.time() + DELAY_SECONDS, _queue_name=queue, _defer_by=DELAY_SECONDS)
    return await pool.enqueue_job("run", job, _queue_name=queue)
