"""A huey application: a queue with priorities. Knows the jobs from workload.py."""

import time

from huey import PriorityRedisHuey
from workload import DELAY_SECONDS, URL, enqueue_order, is_delayed, is_high, work

huey = PriorityRedisHuey("jobs", url=URL)


@huey.task(retries=3, retry_delay=0)
def run(job, due=0):
    work(job, due)
    return job


def enqueue(job):
    priority = 10 if is_high(job) else 1
    if is_delayed(job):
        return run.schedule(args=(job, time.time() + DELAY_SECONDS), delay=DELAY_SECONDS, priority=priority)
    return run(job, priority=priority)


def enqueue_all():
    return {job: enqueue(job) for job in enqueue_order()}
