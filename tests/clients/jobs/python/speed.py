"""How long RQ takes from the first enqueue to the last job done, with one worker and jobs that do nothing:
HOLDFAST_TEST_ADDR=host:port python speed.py JOBS. Empties the server. Prints one line; a measurement, not a test."""

import logging
import os
import sys
import time

import redis
import rq

from speed_job import no_op

jobs = int(sys.argv[1])
host, port = os.environ["HOLDFAST_TEST_ADDR"].rsplit(":", 1)
connection = redis.Redis(host, int(port))
connection.flushall()
queue = rq.Queue("speed", connection=connection)

began = time.monotonic()
for _ in range(jobs):
    queue.enqueue(no_op)
enqueued = time.monotonic()
# In this process: one that forks for each job measures the fork.
rq.SimpleWorker([queue], connection=connection).work(burst=True, logging_level=logging.ERROR)
done = time.monotonic()

finished = queue.finished_job_registry.count
assert finished == jobs, f"{finished} of {jobs} jobs are done"
print(f"{jobs} jobs: {done - began:.2f} s, enqueued after {enqueued - began:.2f} s")
