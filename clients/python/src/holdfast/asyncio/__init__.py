"""The same store, cells, runs, exactly-once state, transactions and queues as in `holdfast`, for asyncio. Everything else is shared."""

from .cell import Cell
from .exactly_once import ExactlyOnceState
from .queue import Job, Queue
from .run import Run
from .store import Store
from .transaction import Transaction

__all__ = ["Cell", "ExactlyOnceState", "Job", "Queue", "Run", "Store", "Transaction"]
