// What can go wrong, sorted by what the caller can do about it. Knows no command.

import { ClientClosedError, ErrorReply } from 'redis';

/** Every error that this package makes by itself. A wrong argument is a TypeError or a RangeError, and nothing was sent. */
export class HoldfastError extends Error {
  static {
    this.prototype.name = 'HoldfastError';
  }

  /** Whether the same request may succeed a little later: the server is away, or still reads its data. */
  get isTemporary(): boolean {
    return false;
  }
}

/**
 * No answer: the server is away, or too slow. A write may have been made or not. Repeat it: an append with an idempotency
 * key is applied once, and an exchange shows by its result what became of the first one.
 */
export class UnavailableError extends HoldfastError {
  static {
    this.prototype.name = 'UnavailableError';
  }

  override get isTemporary(): boolean {
    return true;
  }
}

/** None of the servers of a list of addresses is the writer, for as long as the connection has looked. Nothing was sent. */
export class NoWriterError extends UnavailableError {
  static {
    this.prototype.name = 'NoWriterError';
  }

  /** What each address has answered. */
  readonly answers: ReadonlyMap<string, string>;

  constructor(answers: ReadonlyMap<string, string>, options?: ErrorOptions) {
    super(`none of the servers writes: ${[...answers].map(([address, says]) => `${address} ${says}`).join(', ')}`, options);
    this.answers = answers;
  }
}

/**
 * The session is gone: it has expired, was closed or was deleted. Open another one. Nothing is sent again in another session, because
 * it might run twice: what became of the request has to be found out by looking at what it changes.
 */
export class SessionLostError extends HoldfastError {
  static {
    this.prototype.name = 'SessionLostError';
  }

  readonly sessionId: string;
  /** The number of the request; null if it was none of those that a session numbers. */
  readonly requestId: number | null;
  /** Whether the request may have run. False: it was sent only to a session that was gone, and has not. */
  readonly maybeApplied: boolean;

  constructor(sessionId: string, requestId: number | null, maybeApplied: boolean, options?: ErrorOptions) {
    const fate = requestId === null ? '' : `; its request ${requestId} ${maybeApplied ? 'may have run, or not' : 'has not run'}`;
    super(`the session ${sessionId} is gone${fate}`, options);
    this.sessionId = sessionId;
    this.requestId = requestId;
    this.maybeApplied = maybeApplied;
  }
}

/** The connection, or the session, was closed with `close`. */
export class ClosedError extends HoldfastError {
  static {
    this.prototype.name = 'ClosedError';
  }
}

/** A reply does not fit the request, or has an integer above 2^53-1, which a number cannot hold. */
export class ReplyError extends HoldfastError {
  static {
    this.prototype.name = 'ReplyError';
  }
}

/** The server refused the request; nothing was changed. The message is the server's, without the code. */
export class ServerError extends HoldfastError {
  static {
    this.prototype.name = 'ServerError';
  }

  /** The first word of the reply: `ERR`, `NOAUTH`, `NOPERM`, `OOM`, `MISCONF`, `LOADING`… */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  override get isTemporary(): boolean {
    return this.code === 'LOADING';
  }
}

/** The key holds a value of another type. */
export class WrongTypeError extends ServerError {
  static {
    this.prototype.name = 'WrongTypeError';
  }
}

/** The server does not know the command, which is one of Holdfast's own: it is a plain Redis or Valkey. Nothing was changed. */
export class NeedsHoldfastError extends ServerError {
  static {
    this.prototype.name = 'NeedsHoldfastError';
  }
}

/**
 * A server of a list of addresses follows another one, and no server has become the writer for as long as the connection has tried. Nothing
 * was changed.
 */
export class NotWriterError extends ServerError {
  static {
    this.prototype.name = 'NotWriterError';
  }

  override get isTemporary(): boolean {
    return true;
  }
}

/** There is no session of that name. */
export class NoSessionError extends ServerError {
  static {
    this.prototype.name = 'NoSessionError';
  }
}

/** Other clients have changed what a transaction has read or written, each time it was tried. Nothing was changed. */
export class ConflictError extends ServerError {
  static {
    this.prototype.name = 'ConflictError';
  }
}

/** A request's number was used for another request of the session before: two programs number requests in one session. */
export class MismatchError extends ServerError {
  static {
    this.prototype.name = 'MismatchError';
  }
}

/** The reply of a request was dropped, because the session has said that it has it. The request was not run again. */
export class EvictedError extends ServerError {
  static {
    this.prototype.name = 'EvictedError';
  }
}

/** What node-redis throws, as one of the errors above. */
export function asHoldfastError(error: unknown): Error {
  if (error instanceof ErrorReply) return refusal(error);
  if (error instanceof ClientClosedError) return new ClosedError('the connection is closed', { cause: error });
  // An argument that node-redis cannot encode is the caller's mistake.
  if (error instanceof HoldfastError || error instanceof TypeError || error instanceof RangeError) return error;
  // Node.js tries each address of a name, and says nothing about all of them together.
  const all = error instanceof AggregateError && error.message === '' ? error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))) : [];
  const message = all.join(', ') || (error instanceof Error ? error.message || error.name : String(error));
  return new UnavailableError(`no answer from the server: ${message}`, { cause: error });
}

/** The error of a server that is not the writer, or has just ceased to be, if this is one. The request was not executed. */
export function notWriter(error: unknown): NotWriterError | undefined {
  if (!(error instanceof ServerError)) return undefined;
  const { code, message } = error;
  const follows = code === 'READONLY' || code === 'MASTERDOWN' || (code === 'UNBLOCKED' && message.includes('instance state changed'));
  return follows ? new NotWriterError(code, message, { cause: error }) : undefined;
}

function refusal(cause: ErrorReply): HoldfastError {
  const [, code = 'ERR', message = cause.message] = /^([A-Z]+) (.*)$/s.exec(cause.message) ?? [];
  // Another server has taken over. What was asked for last may have been done or not.
  if (code === 'FENCED') return new UnavailableError(`no answer from the server: ${cause.message}`, { cause });
  const Kind = KINDS.get(code);
  if (Kind !== undefined) return new Kind(code, message, { cause });
  if (code === 'ERR' && message.startsWith('unknown command')) return new NeedsHoldfastError(code, message, { cause });
  return new ServerError(code, message, { cause });
}

const KINDS: ReadonlyMap<string, typeof ServerError> = new Map([
  ['WRONGTYPE', WrongTypeError],
  ['CONFLICT', ConflictError],
  ['NOSESSION', NoSessionError],
  ['MISMATCH', MismatchError],
  ['EVICTED', EvictedError],
]);
