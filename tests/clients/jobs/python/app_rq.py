"""An RQ application: two queues, and workers that give a job up soon after they die. Knows the jobs from workload.py."""

import time
from datetime import UTC, datetime

import redis
from rq import Queue, Retry, SimpleWorker, Worker
from rq.scheduler import RQScheduler
from workload import DELAY_SECONDS, URL, enqueue_order, is_delayed, is_high, work

connection = redis.Redis.from_url(URL)
high, low = (Queue(name, connection=connection) for name in ("high", "low"))


class ShortLease:
    """RQ waits a minute or more before it takes a dead worker's job back; the test does not."""

    def get_heartbeat_ttl(self, job):
        return 3


class ForkingWorker(ShortLease, Worker):
    pass


class OneProcessWorker(ShortLease, SimpleWorker):
    pass


def enqueue_all():
    for job in enqueue_order():
        queue = high if is_high(job) else low
        if is_delayed(job):
            # RQ rounds times down to whole seconds.
            due = int(time.time()) + DELAY_SECONDS
            queue.enqueue_at(datetime.fromtimestamp(due, UTC), work, job, due, retry=Retry(max=3))
        else:
            queue.enqueue(work, job, retry=Retry(max=3))


if __name__ == "__main__":
    RQScheduler([high, low], connection=connection).work()
