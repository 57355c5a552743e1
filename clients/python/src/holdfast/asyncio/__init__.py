"""The same store, cells, runs, exactly-once state, sessions, transactions and queues as in `holdfast`, for asyncio. Everything else is shared."""

from .cell import Cell
from .exactly_once import ExactlyOnceState
from .queue import Job, Queue
from .run import Run
from .session import Session, Sessions
from .store import Store
from .transaction import Transaction

__all__ = ["Cell", "ExactlyOnceState", "Job", "Queue", "Run", "Session", "Sessions", "Store", "Transaction"]
