// The events of a run, and the words and replies that they are. Knows no connection and no reducer.

import { ReplyError } from '../errors.js';
import { bytes, integer, map, optional, text, time, type Reply } from '../replies.js';
import { word, type Word } from '../words.js';

/** An event as it is stored. */
export interface CanonicalEngineEvent {
  /** The run, which is the key. */
  runId: string;
  /** 1, 2, 3 … without gaps, assigned by the server. */
  runSeq: number;
  eventId: string;
  stepId?: string;
  engineAttemptId?: string;
  logicalAttemptId?: string;
  eventType: string;
  eventData: unknown;
  idempotencyKey: string;
  /** As the writer gave it. */
  emittedAt: string;
  /** The server's time, ISO 8601; never before that of the event before. */
  persistedAt?: string;
  adapterVersion?: string;
  engineRunRef?: unknown;
  causedBySignalId?: string;
  parentEventId?: string;
  planVersion?: string;
}

/**
 * An event to append. What the server assigns is ignored if it is there (runSeq, persistedAt). Absent are made: eventId by the
 * server, a random UUID; idempotencyKey by the server, SHA-256 of run, step, logical attempt, type and plan version; emittedAt
 * here, the time of the call in ISO 8601.
 */
export type NewEvent = Pick<CanonicalEngineEvent, 'runId' | 'eventType' | 'eventData'> & {
  [Name in Exclude<keyof CanonicalEngineEvent, 'runId' | 'eventType' | 'eventData'>]?: CanonicalEngineEvent[Name] | undefined;
};

/** How eventData, and the data of snapshots, becomes bytes and back. */
export interface DataCodec {
  encode(data: unknown): Word;
  decode(data: Buffer): unknown;
}

/**
 * JSON. Bytes (a Uint8Array) are sent as they are, and data that is no JSON comes back as a Buffer. Bytes that happen to be JSON
 * come back parsed: a program that stores other formats uses `raw`. `undefined` is written as null.
 */
export const json: DataCodec = {
  encode(data) {
    if (data instanceof Uint8Array) return word(data);
    const encoded: string | undefined = JSON.stringify(data === undefined ? null : data);
    if (encoded === undefined) throw new TypeError(`JSON has no ${typeof data}`);
    return encoded;
  },
  decode(data) {
    return parsed(data, data);
  },
};

/** Bytes in, bytes out: for other formats, and for JSON that must not be touched, such as integers above 2^53. */
export const raw: DataCodec = {
  encode(data) {
    if (typeof data === 'string' || data instanceof Uint8Array) return word(data);
    throw new TypeError('data is bytes or a string here');
  },
  decode: (data) => data,
};

/** The options of RUN.APPEND that are text, and the names that events have for them. */
const TEXTS = [
  ['EVENTID', 'eventId'],
  ['STEP', 'stepId'],
  ['ENGINEATTEMPT', 'engineAttemptId'],
  ['LOGICALATTEMPT', 'logicalAttemptId'],
  ['ADAPTER', 'adapterVersion'],
  ['SIGNAL', 'causedBySignalId'],
  ['PARENT', 'parentEventId'],
  ['PLANVERSION', 'planVersion'],
] as const;

export function appendWords(event: NewEvent, codec: DataCodec): Word[] {
  const words: Word[] = ['RUN.APPEND', event.runId, event.idempotencyKey ?? '*', event.eventType, codec.encode(event.eventData)];
  for (const [option, name] of TEXTS) {
    const value = event[name];
    if (value !== undefined) words.push(option, value);
  }
  words.push('EMITTEDAT', event.emittedAt ?? new Date().toISOString());
  if (event.engineRunRef !== undefined) words.push('REF', refWord(event.engineRunRef));
  return words;
}

export function readEvent(reply: Reply, codec: DataCodec): CanonicalEngineEvent {
  const parts = map(reply);
  const event: CanonicalEngineEvent = {
    runId: text(parts.get('runId')),
    runSeq: integer(parts.get('runSeq')),
    eventId: text(parts.get('eventId')),
    eventType: text(parts.get('eventType')),
    eventData: codec.decode(bytes(parts.get('eventData'))),
    idempotencyKey: text(parts.get('idempotencyKey')),
    emittedAt: text(parts.get('emittedAt')),
    persistedAt: time(parts.get('persistedAt')),
  };
  for (const [, name] of TEXTS) {
    const value = optional(parts.get(name), text);
    if (value !== undefined) event[name] = value;
  }
  const ref = optional(parts.get('engineRunRef'), text);
  if (ref !== undefined) event.engineRunRef = readRef(ref);
  return event;
}

/**
 * A reference to a run elsewhere is an identifier or an object. An identifier is sent as it is, so that it reads well
 * everywhere, unless it looks like JSON; then it is JSON too, so that everything comes back as it was given.
 */
function refWord(ref: unknown): string {
  if (typeof ref === 'string') return /^["[{]/.test(ref) ? JSON.stringify(ref) : ref;
  if (typeof ref === 'object' && ref !== null) return JSON.stringify(ref);
  throw new TypeError('engineRunRef is a string or an object');
}

function readRef(ref: string): unknown {
  return /^["[{]/.test(ref) ? parsed(ref, ref) : ref;
}

/** What JSON says, or something else if it is none. */
function parsed(data: Buffer | string, otherwise: unknown): unknown {
  try {
    return JSON.parse(typeof data === 'string' ? data : text(data));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ReplyError) return otherwise;
    throw error;
  }
}
