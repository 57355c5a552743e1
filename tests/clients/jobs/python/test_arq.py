"""arq: queues are sorted sets by time, workers take jobs with WATCH and SET with a deadline, and many run at once with asyncio."""

import asyncio

from app_arq import CONCURRENCY, HIGH, LOW, REDIS, enqueue_all
from arq.connections import create_pool
from workload import JOBS


def test_every_job_is_done_though_a_worker_is_killed(ledger, workers):
    asyncio.run(enqueue_all())
    workers.start("arq", "app_arq.Low")
    first = workers.start("arq", "app_arq.High")
    workers.eventually(ledger.holds)
    workers.kill(first)
    workers.start("arq", "app_arq.High")
    workers.eventually(ledger.all_done)
    ledger.check(in_hand_max=CONCURRENCY)
    workers.eventually(lambda: asyncio.run(left_in_queues()) == 0)
    assert sorted(asyncio.run(results())) == list(JOBS)


async def left_in_queues():
    async with await create_pool(REDIS) as pool:
        return await pool.zcard(HIGH) + await pool.zcard(LOW)


async def results():
    async with await create_pool(REDIS) as pool:
        return [result.result for result in await pool.all_job_results()]
