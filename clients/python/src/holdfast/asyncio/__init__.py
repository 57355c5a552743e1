"""The same store, cells, branches, runs, exactly-once state, sessions, transactions and queues as in `holdfast`, for asyncio. Everything else is
shared."""

from .branch import Branch
from .cell import Cell
from .exactly_once import ExactlyOnceState
from .memory_state import MemoryState
from .queue import Job, Queue
from .run import Run
from .session import PreparedRequest, Session, Sessions
from .state_backend import StateBackend
from .stateful_node import StatefulNode
from .store import Store
from .transaction import ReadTransaction, Transaction

__all__ = [
    "Branch", "Cell", "ExactlyOnceState", "Job", "MemoryState", "PreparedRequest", "Queue", "ReadTransaction", "Run", "Session",
    "Sessions", "StateBackend", "StatefulNode", "Store", "Transaction",
]  # fmt: skip
