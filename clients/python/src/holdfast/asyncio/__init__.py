"""The same store, cells, runs, transactions and queues as in `holdfast`, for asyncio. Everything else is shared."""

from .cell import Cell
from .queue import Job, Queue
from .run import Run
from .store import Store
from .transaction import Transaction

__all__ = ["Cell", "Job", "Queue", "Run", "Store", "Transaction"]
