// The names of branches and of the cells in them. Knows no server.

import { word, type Key } from '../words.js';

const NAME_BYTES_MAX = 1024;
const RESERVED = '_strata/';

/** The prefix of a branch's cells. */
export function branchPrefix(name: string): string {
  if (typeof name !== 'string' || name === '') throw new RangeError('the name of a branch is empty');
  if (/[/:\0]/.test(name)) throw new RangeError(`the name of a branch has a '/', a ':' or a NUL: ${JSON.stringify(name)}`);
  return `${name}/`;
}

/** The key of a cell in a branch. */
export function branchKey(prefix: string, name: Key): Key {
  const bytes = Buffer.from(word(name));
  if (bytes.length === 0) throw new RangeError('the name of a cell is empty');
  if (bytes.length > NAME_BYTES_MAX) throw new RangeError(`the name of a cell has ${bytes.length} bytes, and may have ${NAME_BYTES_MAX}`);
  if (bytes.includes(0)) throw new RangeError('the name of a cell has a NUL');
  if (bytes.toString('latin1').startsWith(RESERVED)) throw new RangeError(`the name of a cell begins with '${RESERVED}'`);
  return typeof name === 'string' ? prefix + name : Buffer.concat([Buffer.from(prefix), bytes]);
}
