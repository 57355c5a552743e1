"""Celery: prefork workers, messages that a dead worker had go back after the visibility timeout, results in the server."""

import time

from app_celery import QUEUES, app, run
from workload import DELAY_SECONDS, JOBS, enqueue_order, is_delayed, is_high

# A worker with one process has a job in it and one that is next, and those that wait for their time.
IN_HAND_MAX = 2


def test_every_job_is_done_though_a_worker_is_killed(ledger, workers):
    results = enqueue_all()
    first = start_worker(workers)
    workers.eventually(ledger.holds)
    workers.kill(first)
    start_worker(workers)
    workers.eventually(ledger.all_done)
    ledger.check(IN_HAND_MAX)
    ledger.check_order(IN_HAND_MAX)
    workers.eventually(lambda: all(result.successful() for result in results))
    assert sorted(result.get() for result in results) == list(JOBS)
    workers.eventually(lambda: left_in_queues() == 0)


def enqueue_all():
    results = []
    for job in enqueue_order():
        queue = QUEUES[0] if is_high(job) else QUEUES[1]
        if is_delayed(job):
            options = {"args": (job, time.time() + DELAY_SECONDS), "countdown": DELAY_SECONDS}
        else:
            options = {"args": (job,)}
        results.append(run.apply_async(queue=queue, **options))
    return results


def start_worker(workers):
    return workers.start("celery", "--app", "app_celery", "worker", "--concurrency", 1, "--queues", ",".join(QUEUES), "--loglevel", "WARNING")


def left_in_queues():
    with app.connection_for_read() as connection:
        client = connection.default_channel.client
        return sum(client.llen(queue) for queue in QUEUES) + client.hlen("unacked") + client.zcard("unacked_index")
