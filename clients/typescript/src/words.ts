// The arguments of a command, from the values of a program. Knows no command and no reply.

/** One argument as node-redis sends it. */
export type Word = string | Buffer;

/** A value of a field. Numbers are sent in decimal; bytes as they are. */
export type Value = string | number | bigint | Uint8Array;

/** A command: its name, then its arguments. */
export type CommandWords = readonly [string, ...Value[]];

/** Values by name. */
export type Values = Readonly<Record<string, Value>> | ReadonlyMap<string, Value>;

/** Values by name; null removes the field of that name. */
export type Changes = Readonly<Record<string, Value | null>> | ReadonlyMap<string, Value | null>;

/** The name of a key: text, or bytes that need not be UTF-8. */
export type Key = string | Uint8Array;

export function word(value: Value): Word {
  switch (typeof value) {
    case 'string':
      return value;
    case 'bigint':
      return value.toString();
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError(`${value} is no value: a number has to be finite`);
      return value.toString();
    default:
      if (!(value instanceof Uint8Array)) throw new TypeError('a value is a string, a number, a bigint or bytes');
      return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

/** A whole number that a JavaScript number holds exactly. Whether it is in range is the server's to say. */
export function whole(value: number, name: string): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${name} is ${value}, and has to be a whole number`);
  return value.toString();
}

/** `n field value …` */
export function countedValues(values: Values): Word[] {
  const pairs = entries(values);
  return [pairs.length.toString(), ...pairs.flatMap(([name, value]) => [name, word(value)])];
}

/** `n item …` */
export function countedList(items: readonly Value[]): Word[] {
  return [items.length.toString(), ...items.map(word)];
}

export function entries<T>(values: Readonly<Record<string, T>> | ReadonlyMap<string, T>): [string, T][] {
  return values instanceof Map ? [...values] : Object.entries(values) as [string, T][];
}

/** What is written, and the names of what is removed. */
export function splitChanges(changes: Changes): { set: Map<string, Value>; remove: string[] } {
  const all = entries<Value | null>(changes);
  return {
    set: new Map(all.flatMap(([name, value]): [string, Value][] => (value === null ? [] : [[name, value]]))),
    remove: all.flatMap(([name, value]) => (value === null ? [name] : [])),
  };
}
