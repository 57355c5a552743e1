"""A dramatiq application: an actor for each of two queues, the one before the other. Knows the jobs from workload.py."""

import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from workload import DELAY_SECONDS, URL, enqueue_order, is_delayed, is_high, work

# A worker without a heartbeat for two seconds is dead; each request looks for such workers.
broker = RedisBroker(url=URL, heartbeat_timeout=2000, maintenance_chance=1_000_000)
dramatiq.set_broker(broker)

RETRIES = {"max_retries": 3, "min_backoff": 100, "max_backoff": 200}


@dramatiq.actor(queue_name="high", priority=0, **RETRIES)
def run_high(job, due=0):
    work(job, due)


@dramatiq.actor(queue_name="low", priority=10, **RETRIES)
def run_low(job, due=0):
    work(job, due)


def enqueue_all():
    for job in enqueue_order():
        actor = run_high if is_high(job) else run_low
        if is_delayed(job):
            actor.send_with_options(args=(job, time.time() + DELAY_SECONDS), delay=DELAY_SECONDS * 1000)
        else:
            actor.send(job)
