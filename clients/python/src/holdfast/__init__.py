"""Records, queues of jobs, cells, branches, transactions, runs, exactly-once state and sessions on a Holdfast server, over redis-py. `Store.connect` is the way in.

`holdfast.asyncio` has the same store, cells, branches, runs, exactly-once state, sessions, transactions and queues for asyncio; everything else is
shared.
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
    NotWriterError,
    NoWriterError,
    ReplyError,
    RetryableRequest,
    ServerError,
    SessionLostError,
    UnansweredError,
    UnavailableError,
    WrongTypeError,
)
from .fields import Fields, Record
from .filters import Filter
from .indexes import IndexDiffersError, OnDifference, OutsideIndexError
from .jobs import JobNames, LostError, QueueConfig
from .limits import Group, GroupLimits, GroupState, Limits, NoLimit, Rate, Scope
from .nodes import Output
from .records import (
    Claim,
    Condition,
    Exchange,
    Fate,
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
from .registers import Applied, Restored, StateVersion
from .runs import (
    Appended,
    AppendResult,
    Behind,
    Duplicate,
    Event,
    Lag,
    NewEvent,
    RunInfo,
    RunSnapshot,
    RunStatus,
    StepSnapshot,
    StepStatus,
    snapshot_reducer,
)
from .sessions import PendingRequest, PushedRequest, RetriedRequest, SessionInfo
from .sync.branch import Branch
from .sync.cell import Cell
from .sync.exactly_once import ExactlyOnceState
from .sync.memory_state import MemoryState
from .sync.queue import Job, Queue
from .sync.run import Run
from .sync.session import PreparedRequest, Session, Sessions
from .sync.state_backend import StateBackend
from .sync.stateful_node import StatefulNode
from .sync.store import Store
from .sync.transaction import ReadTransaction, Transaction
from .words import Changes, Key, Value, Values

#: The earlier name.
NoGroupsError = IndexDiffersError

__all__ = [
    "AppendResult", "Appended", "Applied", "Behind", "Branch", "Cell", "Changes", "Claim", "ClosedError", "Codec", "Condition",
    "ConflictError", "Done", "Duplicate", "Event", "EvictedError", "ExactlyOnceState", "Exchange", "Fate", "Fields", "Filter",
    "Found", "Group", "GroupLimits", "GroupState", "HoldfastError", "IndexDefinition", "IndexDiffersError", "Indexed", "Job", "JobNames", "Key",
    "Lag", "Lifetime", "Limits", "LostError", "MemoryState", "MismatchError", "NeedsHoldfastError", "NewEvent", "NoGroupsError",
    "NoLimit", "NoSessionError", "NoWriterError", "NotWriterError", "OnDifference", "Outcome", "Output", "OutsideIndexError", "PendingRequest", "PreparedRequest",
    "PushedRequest", "Queue", "QueueConfig", "Rate", "ReadTransaction", "Record", "Refused", "ReplyError", "Restored",
    "RetriedRequest", "Retries", "RetryableRequest", "Run", "RunInfo", "RunSnapshot", "RunStatus", "Scope", "Score",
    "ServerError", "Session", "SessionInfo", "SessionLostError", "Sessions", "Stamps", "StateBackend", "StateVersion",
    "StatefulNode", "StepSnapshot", "StepStatus", "Store", "Swap", "Sweep", "Swept", "Transaction", "UnansweredError",
    "UnavailableError", "UpTo", "Value", "Values", "Version", "WrongTypeError", "codec", "snapshot_reducer",
]  # fmt: skip
