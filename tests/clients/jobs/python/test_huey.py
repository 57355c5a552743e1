"""huey: BZPOPMIN takes a task for good, so a killed worker takes what it had with it, on any server: no other is lost."""

from app_huey import enqueue, enqueue_all, huey
from workload import HELD, JOBS


def test_every_job_is_done_though_a_worker_is_killed(ledger, workers):
    results = enqueue_all()
    first = start_worker(workers)
    workers.eventually(ledger.holds)
    workers.kill(first)
    start_worker(workers)
    workers.eventually(lambda: len(ledger.done()) == len(JOBS) - 1)
    # The application knows from its ledger which job that was.
    assert JOBS - ledger.done().keys() == {HELD}
    results[HELD] = enqueue(HELD)
    workers.eventually(ledger.all_done)
    ledger.check(in_hand_max=1)
    ledger.check_order(in_hand_max=0)
    assert [results[job].get(blocking=True, timeout=20) for job in JOBS] == list(JOBS)
    assert huey.pending_count() == huey.scheduled_count() == 0


def start_worker(workers):
    return workers.start("huey.bin.huey_consumer", "app_huey.huey", "--workers", 1, "--quiet")
