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
  /** Fields that this package knows nothing of, kept with the event. */
  attributes?: Readonly<Record<string, unknown>>;
}

/**
 * An event to append. What the server assigns is ignored if it is there (runSeq, persistedAt). Absent are made: eventId by the
 * server, a random UUID; idempotencyKey by the server, SHA-256 of run, step, logical attempt, type and plan version; emittedAt
 * here, the time of the call in ISO 8601. A field that this package does not know becomes an attribute of its name.
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
  if (event.engineRunRef !== undefined) words.push('REF', looseJsonWord(event.engineRunRef, 'engineRunRef'));
  const attributes = attributesOf(event);
  if (attributes.length > 0) words.push('ATTR', `${attributes.length}`, ...attributes.flat());
  return words;
}

/** What an event has of its own; everything else is an attribute. */
const KNOWN: ReadonlySet<string> = new Set([
  'runId', 'runSeq', 'eventType', 'eventData', 'idempotencyKey', 'emittedAt', 'persistedAt', 'engineRunRef', 'attributes',
  ...TEXTS.map(([, name]) => name),
]);

function attributesOf(event: NewEvent): [string, Word][] {
  const unknown = Object.entries(event).filter(([name]) => !KNOWN.has(name));
  const all = new Map<string, unknown>([...unknown, ...Object.entries(event.attributes ?? {})]);
  return [...all].flatMap(([name, value]): [string, Word][] => (value === undefined ? [] : [[name, looseJsonWord(value, name)]]));
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
  const ref = optional(parts.get('engineRunRef'), bytes);
  if (ref !== undefined) event.engineRunRef = readLooseJson(ref);
  const attributes = optional(parts.get('attributes'), map);
  if (attributes !== undefined && attributes.size > 0) {
    event.attributes = Object.fromEntries([...attributes].map(([name, value]) => [name, readLooseJson(bytes(value))]));
  }
  return event;
}

/**
 * A reference to a run elsewhere, or an attribute: any JSON value, or bytes. Text is sent as it is, so that it reads well
 * everywhere, unless it would be read as another value; then it is JSON too. So everything comes back as it was given.
 */
function looseJsonWord(value: unknown, name: string): Word {
  if (value instanceof Uint8Array) return word(value);
  if (typeof value === 'string' && readLooseJson(Buffer.from(value)) === value) return value;
  const encoded: string | undefined = JSON.stringify(value);
  if (encoded === undefined) throw new TypeError(`${name} is a ${typeof value}, which JSON has not`);
  return encoded;
}

/** Bytes that are no UTF-8 stay bytes. A number is one only in the form in which it is written: `007` and `1e5` are text. */
function readLooseJson(data: Buffer): unknown {
  const read = parsed(data, undefined);
  if (read === undefined) return parsedText(data);
  return typeof read === 'number' && JSON.stringify(read) !== data.toString() ? data.toString() : read;
}

function parsedText(data: Buffer): string | Buffer {
  try {
    return text(data);
  } catch {
    return data;
  }
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
