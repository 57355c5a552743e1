// Where the jobs of a queue are, and what their fields and states are called. Knows no store.

import type { Lifetime } from './requests.js';

export interface QueueConfig {
  /** The indexes, most urgent first: each over the field `runAt` of pending and running jobs. */
  readonly indexes: readonly string[];
  /** How long a worker has a job unless it renews; 30 000 if not given. */
  readonly leaseMs?: number;
  /** How often a job is claimed before it becomes a dead letter; for ever if not given. */
  readonly attemptsMax?: number;
  /** How long a completed job is kept; for ever if not given. */
  readonly completedLifetime?: Lifetime;
  /** Names that differ from the defaults. */
  readonly names?: Partial<JobNames>;
  /**
   * The field by whose value jobs are kept apart, such as `tenant`: each of its values is a group, which takes its turns and has limits.
   * Without it the queue has no groups. Workers need not know it.
   */
  readonly groupBy?: string;
}

/** The names of a job's fields, which may have any others beside them, and of its states. */
export interface JobNames {
  readonly state: string;
  /** When it may be claimed, in unix milliseconds: its start, then the end of each lease. */
  readonly runAt: string;
  /** How often it was claimed: the fencing token. It must never be set back. */
  readonly attempt: string;
  /** The worker that claimed it last. */
  readonly worker: string;
  /** The job waits for its time or for a worker. */
  readonly pending: string;
  /** A worker has it, or had it and died. */
  readonly running: string;
  readonly completed: string;
  /** It was given up: a dead letter. */
  readonly dead: string;
}

export const DEFAULT_NAMES: JobNames = {
  state: 'state',
  runAt: 'run_at',
  attempt: 'attempt',
  worker: 'worker',
  pending: 'pending',
  running: 'running',
  completed: 'completed',
  dead: 'dead',
};
