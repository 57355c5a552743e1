// The commands of sessions, and their replies. Knows no connection.

import { bytes, flag, integer, list, map, optional, text, time, type Reply } from '../replies.js';
import { whole, type Word } from '../words.js';

export type Hook = 'created' | 'expired';

/** A request from the server, or from another client, to a session. */
export interface PushedRequest {
  /** 1, 2, 3 … in its session, never used twice. */
  readonly id: number;
  readonly payload: Buffer;
}

export interface PendingRequest extends PushedRequest {
  /** When it was pushed, delivered or marked as sent last, ISO 8601. */
  readonly lastSent: string;
}

export interface RetriedRequest extends PushedRequest {
  readonly sessionId: string;
  /** When it was pushed, delivered or marked as sent last, before this retry. */
  readonly lastSent: string;
}

export interface SessionInfo {
  readonly id: string;
  readonly createdAt: string;
  readonly ttlMs: number;
  /** The server has dropped the replies of the requests below it. */
  readonly low: number;
  /** How many replies are kept, and their bytes. */
  readonly replies: number;
  readonly replyBytes: number;
  /** How many pushed requests are not acknowledged. */
  readonly pending: number;
  /** The last pushed request. */
  readonly lastId: number;
  /** Whether a connection is attached. */
  readonly attached: boolean;
  readonly capabilities: Readonly<Record<string, string>>;
}

export function openWords(id: string, ttlMs: number, capabilities: Readonly<Record<string, string>>): Word[] {
  const named = Object.entries(capabilities);
  const words = ['SESSION.OPEN', 'ID', id, 'TTL', whole(ttlMs, 'ttlMs')];
  return named.length === 0 ? words : [...words, 'CAP', `${named.length}`, ...named.flat()];
}

export function pendingWords(id: string, after: number, limit: number, block: number): Word[] {
  const words = ['SESSION.PENDING', id, 'AFTER', whole(after, 'after'), 'LIMIT', whole(limit, 'limit')];
  return block === 0 ? words : [...words, 'BLOCK', whole(block, 'block')];
}

export function readPending(reply: Reply): PendingRequest[] {
  return list(reply).map((each) => {
    const [id, payload, lastSent] = list(each);
    return { id: integer(id), payload: bytes(payload), lastSent: time(lastSent) };
  });
}

export function readRetried(reply: Reply): RetriedRequest[] {
  return list(reply).map((each) => {
    const [sessionId, id, payload, lastSent] = list(each);
    return { sessionId: text(sessionId), id: integer(id), payload: bytes(payload), lastSent: time(lastSent) };
  });
}

export function readInfo(reply: Reply): SessionInfo | null {
  if (reply === null) return null;
  const parts = map(reply);
  const capabilities = [...map(parts.get('capabilities'))].map(([name, value]) => [name, text(value)] as const);
  return {
    id: text(parts.get('sid')),
    createdAt: time(parts.get('created_at')),
    ttlMs: integer(parts.get('ttl_ms')),
    low: integer(parts.get('low')),
    replies: integer(parts.get('replies')),
    replyBytes: integer(parts.get('reply_bytes')),
    pending: integer(parts.get('pending')),
    lastId: integer(parts.get('last_id')),
    attached: flag(parts.get('attached')),
    capabilities: Object.fromEntries(capabilities),
  };
}

export function readHooks(reply: Reply): Record<Hook, string | null> {
  const functions = map(reply);
  const read = (hook: Hook): string | null => optional(functions.get(hook), text) ?? null;
  return { created: read('created'), expired: read('expired') };
}
