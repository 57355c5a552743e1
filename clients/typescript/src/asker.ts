// What stores need of a connection. Knows no command and no connection.

import type { Reply } from './replies.js';
import type { Word } from './words.js';

/** What requests are sent on: a connection, a session or a transaction. */
export interface Asker {
  /** Whether `askAndWait` waits. In a session and in a transaction nothing waits: the reply comes at once. */
  readonly canWait: boolean;
  /** Sends a command and returns its reply. */
  ask(words: readonly Word[]): Promise<Reply>;
  /**
   * Sends a command that may wait at the server for up to `waitMs`. The signal ends the wait. Of a command that takes something, `giveBack` gets
   * the reply if the signal comes before the caller has it.
   */
  askAndWait(words: readonly Word[], waitMs: number, signal?: AbortSignal, giveBack?: (reply: Reply) => Promise<void>): Promise<Reply>;
  /** Whether the server has one of Holdfast's own commands, in lower case. A plain Redis has none. */
  knows(command: string): boolean;
}
