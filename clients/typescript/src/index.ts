// The package: records, queues of jobs, cells, transactions, runs, exactly-once state and sessions on a Holdfast server. `Connection.open` is the way in; the stores stand on it.

export type { Asker } from './asker.js';
export type { Client } from './client.js';
export * as codec from './codec.js';
export type { Codec } from './codec.js';
export { Connection, type ConnectionOptions } from './connection.js';
export {
  ClosedError, ConflictError, EvictedError, HoldfastError, MismatchError, NeedsHoldfastError, NoSessionError, NoWriterError, NotWriterError,
  ReplyError, ServerError, SessionLostError, UnavailableError, WrongTypeError,
} from './errors.js';
export type { Reply } from './replies.js';
export type { Changes, CommandWords, Key, Value, Values, Word } from './words.js';

export { json, raw, type CanonicalEngineEvent, type DataCodec, type NewEvent } from './runs/event.js';
export {
  snapshotReducer, type Reducer, type RunSnapshot, type RunStatus, type StepSnapshot, type StepStatus,
} from './runs/snapshot.js';
export {
  RunStore, type Appended, type AppendResult, type Behind, type Duplicate, type FetchOptions, type FollowOptions, type IRunStateStore,
  type Lag, type ListOptions, type ProjectOptions, type RunInfo,
} from './runs/run-store.js';

export { Fields, StoredRecord } from './records/fields.js';
export { Job, LostError } from './records/job.js';
export type { GroupLimits, GroupState, Limits, Rate, Scope, ScopeLimits } from './records/limits.js';
export { Queue, type AddOptions } from './records/queue.js';
export {
  IndexDiffersError, OutsideIndexError,
  /** @deprecated The earlier name of IndexDiffersError. */
  IndexDiffersError as NoGroupsError,
  type CreateIndexOptions, type OnDifference,
} from './records/index-definition.js';
export type { JobNames, QueueConfig } from './records/queue-config.js';
export { RecordStore, type Found, type Indexed, type NamedKey, type Outcome, type Swept } from './records/record-store.js';
export type {
  Claim, Exchange, Filter, IndexDefinition, Lifetime, PutOptions, RangeOptions, ScanOptions, Score, Stamps, Sweep,
} from './records/requests.js';

export { Branch } from './cells/branch.js';
export { Cell, type CellVersion, type Swap, type WatchOptions } from './cells/cell.js';
export { Cells, type CellName, type CellVersions } from './cells/cells.js';
export { CellStore } from './cells/cell-store.js';
export { ReadTransaction, Transaction, type ReadableCell } from './cells/transaction.js';

export { ExactlyOnceState } from './registers/exactly-once-state.js';
export { MemoryState, type MemoryStateOptions } from './registers/memory-state.js';
export type { Applied, Checkpoint, Held, StateBackend, StateVersion } from './registers/state-backend.js';
export { StatefulNode, type NodeEntry, type NodeOutput, type NodeUpdate } from './registers/stateful-node.js';

export { PreparedRequest } from './sessions/prepared-request.js';
export { UnansweredError } from './sessions/unanswered-error.js';
export type { Hook, PendingRequest, PushedRequest, RetriedRequest, SessionInfo } from './sessions/requests.js';
export { Session, type ServeOptions } from './sessions/session.js';
export { Sessions, type OpenOptions } from './sessions/sessions.js';
