// A client of node-redis: one connection to a server. Knows no command, and not when a client is made.

import {
  createClient, type RedisClientOptions, type RedisClientType, type RedisFunctions, type RedisModules, type RedisScripts, type RespVersions,
} from 'redis';

export type ClientOptions = RedisClientOptions<RedisModules, RedisFunctions, RedisScripts, RespVersions>;

/** A client of node-redis, for every command that this package does not have. */
export type Client = RedisClientType<RedisModules, RedisFunctions, RedisScripts, RespVersions>;

export function makeClient(options: ClientOptions, onError: (error: Error) => void): Client {
  return createClient(options).on('error', onError);
}
