// A request of a session that carries its number: to send, and to send again. Knows no connection.

import type { Reply } from '../replies.js';
import type { Word } from '../words.js';

/**
 * One request of a session: its words under its number. `send` may be called any number of times, and the request runs once: as long as
 * there was no answer it is sent again, under the same number; after that, every call gives the answer that there was.
 */
export class PreparedRequest {
  /** Its number in the session. A program that stores it before it sends can make the same request again after a crash of its own. */
  readonly id: number;
  readonly words: readonly Word[];
  readonly #send: () => Promise<Reply>;
  #sent: Promise<Reply> | undefined;

  /** `session.prepare` makes requests. `isOpen` says of an error that there was no answer. */
  constructor(
    id: number, words: readonly Word[], send: (request: PreparedRequest) => Promise<Reply>, isOpen: (error: unknown) => boolean,
  ) {
    this.id = id;
    this.words = words;
    this.#send = async () => {
      try {
        return await send(this);
      } catch (error) {
        if (isOpen(error)) this.#sent = undefined;
        throw error;
      }
    };
  }

  /** Sends the request, and returns its reply: text for numbers and status lines, bytes for strings. */
  async send(): Promise<Reply> {
    this.#sent ??= this.#send();
    return this.#sent;
  }
}
