"""RQ: workers that fork for each job and one that does not, strict order of queues, and dead workers' jobs retried by the next maintenance."""

from app_rq import enqueue_all, high, low
from rq.registry import FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from workload import URL


def test_every_job_is_done_though_a_worker_is_killed(ledger, workers):
    enqueue_all()
    workers.start("app_rq")
    first = start_worker(workers, "ForkingWorker")
    workers.eventually(ledger.holds)
    workers.kill(first)
    # Forking for each job takes most of the time, so the other jobs are done without.
    start_worker(workers, "OneProcessWorker")
    workers.eventually(ledger.all_done)
    ledger.check(in_hand_max=1)
    ledger.check_order(in_hand_max=0)
    workers.eventually(lambda: left_in_queues() == 0)


def start_worker(workers, worker_class):
    # With this time-to-live RQ waits for a job for a second at a time, and takes care of dead workers' jobs in between.
    options = ["--worker-class", f"app_rq.{worker_class}", "--maintenance-interval", 1, "--worker-ttl", 16]
    return workers.start("rq.cli", "worker", "high", "low", "--url", URL, "--quiet", *options)


def left_in_queues():
    registries = (FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry)
    return sum(queue.count + sum(registry(queue=queue).count for registry in registries) for queue in (high, low))
