// How values become bytes, and bytes become them again. Knows no command.

import { integer as readInteger, text as readText } from './replies.js';
import { whole, type Word } from './words.js';

export { json, raw } from './runs/event.js';

export interface Codec<T> {
  encode(value: T): Word;
  decode(data: Buffer): T;
}

/** Text, as UTF-8. Bytes that are none are a ReplyError. */
export const text: Codec<string> = {
  encode(value) {
    if (typeof value !== 'string') throw new TypeError(`a value is text here, and no ${typeof value}`);
    return value;
  },
  decode: readText,
};

/** Whole numbers, in decimal. One above 2^53-1 is a ReplyError. */
export const integer: Codec<number> = {
  encode: (value) => whole(value, 'the value'),
  decode: readInteger,
};
