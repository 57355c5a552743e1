// The package: records and queues of jobs on a Holdfast server. `Connection.open` is the way in; the stores stand on it.

export { Connection, type Client, type ConnectionOptions } from './connection.js';
export {
  ClosedError, HoldfastError, NeedsHoldfastError, ReplyError, ServerError, UnavailableError, WrongTypeError,
} from './errors.js';
export type { Value, Values } from './words.js';

export { Fields } from './records/fields.js';
export { Job, LostError } from './records/job.js';
export { Queue } from './records/queue.js';
export type { JobNames, QueueConfig } from './records/queue-config.js';
export { RecordStore, type Found, type Indexed, type Outcome, type Swept } from './records/record-store.js';
export type {
  Claim, Exchange, Filter, FindOptions, IndexDefinition, Lifetime, PutOptions, RangeOptions, Score, Stamps, Sweep,
} from './records/requests.js';
