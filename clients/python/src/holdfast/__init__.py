"""Records, queues of jobs, cells, transactions, runs, exactly-once state and sessions on a Holdfast server, over redis-py. `Store.connect` is the way in.

`holdfast.asyncio` has the same store, cells, runs, exactly-once state, sessions, transactions and queues for asyncio; everything else is shared.
"""

from . import codec
from .cells import Done, Refused, Swap, Version
from .codec import Codec
from .errors import (
    ClosedError,
    ConflictError,
    EvictedError,
    HoldfastError,
    MismatchError,
    NeedsHoldfastError,
    NoSessionError,
    ReplyError,
    ServerError,
    SessionLostError,
    UnansweredError,
    UnavailableError,
    WrongTypeError,
)
from .fields import Fields
from .jobs import JobNames, LostError, QueueConfig
from .records import (
    Claim,
    Condition,
    Exchange,
    Fate,
    Filter,
    Found,
    IndexDefinition,
    Indexed,
    Lifetime,
    Outcome,
    Retries,
    Score,
    Stamps,
    Sweep,
    Swept,
    UpTo,
)
from .registers import Applied, StateVersion
from .runs import (
    Appended,
    AppendResult,
    Behind,
    Duplicate,
    Event,
    NewEvent,
    RunInfo,
    RunSnapshot,
    RunStatus,
    StepSnapshot,
    StepStatus,
    snapshot_reducer,
)
from .sessions import PendingRequest, PushedRequest, RetriedRequest, SessionInfo
from .sync.cell import Cell
from .sync.exactly_once import ExactlyOnceState
from .sync.queue import Job, Queue
from .sync.run import Run
from .sync.session import Session, Sessions
from .sync.store import Store
from .sync.transaction import Transaction
from .words import Value, Values

__all__ = [
    "AppendResult", "Appended", "Applied", "Behind", "Cell", "Claim", "ClosedError", "Codec", "Condition", "ConflictError",
    "Done", "Duplicate", "Event", "EvictedError", "ExactlyOnceState", "Exchange", "Fate", "Fields", "Filter", "Found",
    "HoldfastError", "IndexDefinition", "Indexed", "Job", "JobNames", "Lifetime", "LostError", "MismatchError",
    "NeedsHoldfastError", "NewEvent", "NoSessionError", "Outcome", "PendingRequest", "PushedRequest", "Queue", "QueueConfig",
    "Refused", "ReplyError", "RetriedRequest", "Retries", "Run", "RunInfo", "RunSnapshot", "RunStatus", "Score", "ServerError",
    "Session", "SessionInfo", "SessionLostError", "Sessions", "Stamps", "StateVersion", "StepSnapshot", "StepStatus", "Store",
    "Swap", "Sweep", "Swept", "Transaction", "UnansweredError", "UnavailableError", "UpTo", "Value", "Values", "Version",
    "WrongTypeError", "codec", "snapshot_reducer",
]
