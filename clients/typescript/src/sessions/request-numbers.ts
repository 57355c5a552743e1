// The numbers of a session's requests, and when a request is sent again. Knows no connection and no command.

import { HoldfastError, ServerError, UnavailableError } from '../errors.js';
import type { PreparedRequest } from './prepared-request.js';
import { UnansweredError } from './unanswered-error.js';

/** One is open until its reply has come; LOW is the lowest open one. */
export class RequestNumbers {
  /** From here on the numbers are those that this program gives. */
  readonly #first: number;
  #following: number;
  readonly #open = new Set<number>();

  constructor(following: number) {
    this.#first = following;
    this.#following = following;
  }

  /** Takes the number that a request had in an earlier program. One that this program has given has its request, which is sent again. */
  beginAs(number: number): void {
    if (number < 1) throw new RangeError(`${number} is no number of a request: they begin at 1`);
    if ((number >= this.#first && number < this.#following) || this.#open.has(number)) {
      throw new RangeError(`${number} is the number of a request of this session, which is sent again with its own send()`);
    }
    this.beginAgain(number);
  }

  /** The number that the next request gets. */
  get following(): number {
    return this.#following;
  }

  begin(): number {
    const number = this.#following;
    this.beginAgain(number);
    return number;
  }

  beginAgain(number: number): void {
    this.#open.add(number);
    this.#following = Math.max(this.#following, number + 1);
  }

  end(number: number): void {
    this.#open.delete(number);
  }

  /** The client has the replies of all requests below it. */
  low(): number {
    let low = this.#following;
    for (const number of this.#open) low = Math.min(low, number);
    return low;
  }
}

const FIRST_PAUSE_MS = 10;
const DOUBLINGS_MAX = 7;
/** A server that does not let the client in. */
const NOT_LET_IN: ReadonlySet<string> = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);

/** The tries of one request: whether it is sent again, and what is known of it. */
export class Insistence {
  readonly #deadline: number;
  #tried = 0;
  /** An answer was lost. */
  maybeApplied = false;

  constructor(retryForMs: number) {
    this.#deadline = performance.now() + retryForMs;
  }

  /** How long to wait before the next try, which grows and differs between clients; undefined if there is none. */
  pauseMs(error: unknown): number | undefined {
    if (error instanceof UnavailableError) this.maybeApplied = true;
    if (!(error instanceof HoldfastError && error.isTemporary) || performance.now() >= this.#deadline) return undefined;
    const longest = FIRST_PAUSE_MS * 2 ** Math.min(this.#tried, DOUBLINGS_MAX);
    this.#tried += 1;
    return longest * (0.5 + Math.random() / 2);
  }

  /** The last error as the caller is told it. A server that does not let the client in has said nothing of a try before. */
  failure(request: PreparedRequest, error: unknown): unknown {
    if (!(error instanceof HoldfastError)) return error;
    const refused = error instanceof ServerError && NOT_LET_IN.has(error.code);
    if (!error.isTemporary && !(refused && this.maybeApplied)) return error;
    return new UnansweredError(request, `request ${request.id}: ${error.message}`, { cause: error });
  }
}
