"""A Celery application: late acknowledgement, two queues in strict order, and a visibility timeout of seconds. Knows the jobs from workload.py."""

from celery import Celery
from workload import URL, FirstAttemptFails, work

# The queues in the order in which a worker looks at them.
QUEUES = ("high", "low")
# How long a worker may have a message before it is given to another; longer than any delay, which a worker waits for with the message in hand.
VISIBILITY_SECONDS = 10

app = Celery("jobs", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=False,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "queue_order_strategy": "priority",
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
)


@app.task(name="work", autoretry_for=(FirstAttemptFails,), retry_backoff=False, default_retry_delay=0.1, max_retries=3)
def run(job, due=0):
    work(job, due)
    return job
