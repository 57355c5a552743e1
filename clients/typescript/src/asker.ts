// What stores need of a connection. Knows no command and no connection.

import type { Reply } from './replies.js';
import type { Word } from './words.js';

/** What requests are sent on. */
export interface Asker {
  /** Sends a command and returns its reply. */
  ask(words: readonly Word[]): Promise<Reply>;
  /** Sends a command that may wait at the server for up to `waitMs`. The signal ends the wait. */
  askAndWait(words: readonly Word[], waitMs: number, signal?: AbortSignal): Promise<Reply>;
}
