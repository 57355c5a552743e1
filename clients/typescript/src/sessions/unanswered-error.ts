// The error of a session's request without an answer. Knows the request, which is the way to try again.

import { UnavailableError } from '../errors.js';
import type { PreparedRequest } from './prepared-request.js';

/**
 * A request of a session got no answer for as long as it was tried. It may have run or not. `error.request.send()` tells, and runs it at
 * most once: the same words under the same number. Until then, or until `session.forget`, the server keeps the replies of all later
 * requests of the session, too.
 */
export class UnansweredError extends UnavailableError {
  static {
    this.prototype.name = 'UnansweredError';
  }

  readonly request: PreparedRequest;

  constructor(request: PreparedRequest, message: string, options?: ErrorOptions) {
    super(message, options);
    this.request = request;
  }

  /** The number of the request in its session. */
  get requestId(): number {
    return this.request.id;
  }
}
