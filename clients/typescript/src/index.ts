// The package: runs, records, queues of jobs, exactly-once state and sessions on a Holdfast server. `Connection.open` is the way in; the stores stand on it.

export type { Asker } from './asker.js';
export type { Client } from './client.js';
export * as codec from './codec.js';
export type { Codec } from './codec.js';
export { Connection, type ConnectionOptions } from './connection.js';
export {
  ClosedError, EvictedError, HoldfastError, MismatchError, NeedsHoldfastError, NoSessionError, ReplyError, ServerError, SessionLostError,
  UnansweredError, UnavailableError, WrongTypeError,
} from './errors.js';
export type { Reply } from './replies.js';
export type { Value, Values } from './words.js';

export { json, raw, type CanonicalEngineEvent, type DataCodec, type NewEvent } from './runs/event.js';
export {
  snapshotReducer, type Reducer, type RunSnapshot, type RunStatus, type StepSnapshot, type StepStatus,
} from './runs/snapshot.js';
export {
  RunStore, type Appended, type AppendResult, type Behind, type Duplicate, type FetchOptions, type FollowOptions, type IRunStateStore,
  type ListOptions, type ProjectOptions, type RunInfo,
} from './runs/run-store.js';

export { Fields } from './records/fields.js';
export { Job, LostError } from './records/job.js';
export { Queue } from './records/queue.js';
export type { JobNames, QueueConfig } from './records/queue-config.js';
export { RecordStore, type Found, type Indexed, type Outcome, type Swept } from './records/record-store.js';
export type {
  Claim, Exchange, Filter, FindOptions, IndexDefinition, Lifetime, PutOptions, RangeOptions, Score, Stamps, Sweep,
} from './records/requests.js';

export { ExactlyOnceState, type Applied, type Held, type StateVersion } from './registers/exactly-once-state.js';

export type { CallWords, Hook, PendingRequest, PushedRequest, RetriedRequest, SessionInfo } from './sessions/requests.js';
export { Session, type ServeOptions } from './sessions/session.js';
export { Sessions, type OpenOptions } from './sessions/sessions.js';
