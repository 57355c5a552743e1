"""dramatiq: one Lua script for every step, and messages that a worker without heartbeat had go back to their queue."""

from app_dramatiq import broker, enqueue_all

THREADS = 2
# A worker acknowledges in another thread than it works in, and copies a delayed message to its queue before it acknowledges that: what it
# has prefetched may run again although it is done. That is two messages for each thread and queue, and some delayed ones.
IN_HAND_MAX = 20


def test_every_job_is_done_though_a_worker_is_killed(ledger, workers):
    enqueue_all()
    first = start_worker(workers)
    workers.eventually(ledger.holds)
    workers.kill(first)
    start_worker(workers)
    workers.eventually(ledger.all_done)
    ledger.check(IN_HAND_MAX)
    # Its threads prefetch from both queues, and order what they have.
    ledger.check_tendency()
    workers.eventually(lambda: left_in_queues() == 0)
    assert broker.client.keys("dramatiq:*.XQ*") == []  # no dead letters


def start_worker(workers):
    return workers.start("dramatiq", "app_dramatiq", "--processes", 1, "--threads", THREADS)


def left_in_queues():
    return sum(broker.do_qsize(queue) for queue in ("high", "low"))
