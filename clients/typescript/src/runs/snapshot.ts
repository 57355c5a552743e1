// What a run's events amount to: the snapshot that the server keeps, read from its reply, and the same reducer for programs
// that follow a run by themselves. Knows no connection.

import { integer, map, optional, text, time, bytes, type Reply } from '../replies.js';
import type { CanonicalEngineEvent, DataCodec } from './event.js';

export type RunStatus = 'pending' | 'running' | 'paused' | 'completed' | 'failed' | 'cancelled';
export type StepStatus = 'pending' | 'running' | 'retrying' | 'completed' | 'failed' | 'skipped';

/** The state of a run after its last event. */
export interface RunSnapshot {
  readonly runId: string;
  readonly status: RunStatus;
  /** The watermark: the events up to it are in the snapshot. 0: there are none. */
  readonly lastEventSeq: number;
  /** When the first RunStarted was stored. */
  readonly startedAt?: string;
  /** When the last event of a known type was stored. */
  readonly updatedAt?: string;
  readonly steps: Readonly<Record<string, StepSnapshot>>;
  /** That of the last event that changed the status. */
  readonly data?: unknown;
}

export interface StepSnapshot {
  /** Pending: it was corrected before it began. */
  readonly status: StepStatus;
  /** How often it was started. */
  readonly attempts: number;
  readonly startedAt?: string;
  readonly updatedAt?: string;
  readonly data?: unknown;
}

/** Makes a state of a run's events, one by one. It must not depend on anything else, so that a replay gives the same. */
export interface Reducer<State> {
  /** The state before the first event. */
  initial(runId: string): State;
  apply(state: State, event: CanonicalEngineEvent): State;
}

const RUN_STATUS: ReadonlyMap<string, RunStatus> = new Map([
  ['RunStarted', 'running'],
  ['RunResumed', 'running'],
  ['RunPaused', 'paused'],
  ['RunCompleted', 'completed'],
  ['RunFailed', 'failed'],
  ['RunCancelled', 'cancelled'],
]);

const STEP_STATUS: ReadonlyMap<string, StepStatus> = new Map([
  ['StepStarted', 'running'],
  ['StepRetried', 'retrying'],
  ['StepCompleted', 'completed'],
  ['StepFailed', 'failed'],
  ['StepSkipped', 'skipped'],
]);

const FINAL: ReadonlySet<RunStatus> = new Set(['completed', 'failed', 'cancelled']);

/** The server's own reducer: from the same events it makes what RUN.SNAPSHOT says. Unknown types move only the watermark. */
export const snapshotReducer: Reducer<RunSnapshot> = {
  initial: (runId) => ({ runId, status: 'pending', lastEventSeq: 0, steps: {} }),

  apply(state, event) {
    const next = { ...state, lastEventSeq: event.runSeq };
    const { eventType, stepId } = event;
    const status = RUN_STATUS.get(eventType);
    if (status !== undefined) {
      if (FINAL.has(state.status)) return { ...next, ...updated(event) };
      return { ...next, ...updated(event), ...(eventType === 'RunStarted' ? started(state, event) : {}), status, data: event.eventData };
    }
    if (stepId === undefined || !(STEP_STATUS.has(eventType) || eventType === 'StepCorrected')) return next;
    // A step may be called `__proto__`, or `constructor`.
    const before = Object.hasOwn(state.steps, stepId) ? state.steps[stepId] : undefined;
    const step = applyToStep(before ?? { status: 'pending', attempts: 0 }, event);
    return { ...next, ...updated(event), steps: { ...state.steps, [stepId]: step } };
  },
};

function applyToStep(step: StepSnapshot, event: CanonicalEngineEvent): StepSnapshot {
  const next = { ...step, ...updated(event), status: STEP_STATUS.get(event.eventType) ?? step.status, data: event.eventData };
  return event.eventType === 'StepStarted' ? { ...next, ...started(step, event), attempts: step.attempts + 1 } : next;
}

function started(state: { readonly startedAt?: string }, event: CanonicalEngineEvent): { startedAt?: string } {
  return present('startedAt', state.startedAt ?? event.persistedAt);
}

function updated(event: CanonicalEngineEvent): { updatedAt?: string } {
  return present('updatedAt', event.persistedAt);
}

export function readSnapshot(reply: Reply, codec: DataCodec): RunSnapshot {
  const parts = map(reply);
  const steps = [...map(parts.get('steps') ?? [])].map(([id, step]) => [id, readStep(step, codec)] as const);
  return {
    runId: text(parts.get('runId')),
    status: text(parts.get('status')) as RunStatus,
    lastEventSeq: integer(parts.get('lastEventSeq')),
    ...present('startedAt', optional(parts.get('startedAt'), time)),
    ...present('updatedAt', optional(parts.get('updatedAt'), time)),
    steps: Object.fromEntries(steps),
    ...present('data', optional(parts.get('data'), (data) => codec.decode(bytes(data)))),
  };
}

function readStep(reply: Reply, codec: DataCodec): StepSnapshot {
  const parts = map(reply);
  return {
    status: text(parts.get('status')) as StepStatus,
    attempts: integer(parts.get('attempts')),
    ...present('startedAt', optional(parts.get('startedAt'), time)),
    ...present('updatedAt', optional(parts.get('updatedAt'), time)),
    ...present('data', optional(parts.get('data'), (data) => codec.decode(bytes(data)))),
  };
}

function present<Name extends string, T>(name: Name, value: T | undefined): { [N in Name]?: T } {
  return value === undefined ? {} : { [name]: value } as { [N in Name]?: T };
}
