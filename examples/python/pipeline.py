#!/usr/bin/env python3
"""A pipeline that counts words, is killed again and again, and counts every word once.

The counts are registers, and the version of each update is its input position. Every few lines the pipeline stores a checkpoint: all
counts, with the input position that they belong to. After a crash it restores the checkpoint and reads its input again from there. What
it sends to its sink carries an id that depends on the input alone, so a sink that keeps one row for each id has each row once, though the
pipeline sends some of them twice. The server may be killed and started again meanwhile.

    python3 pipeline.py --url redis://127.0.0.1:6379

Exit code: 0 all is well, 1 a count or the sink is wrong, 2 it could not run.
"""

import argparse
import collections
import hashlib
import multiprocessing
import os
import random
import signal
import sys
import time

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

WORDS = "claim lease fence cell run register session".split()


def lines(count):
    """The input: something that can be read again from any position, such as a topic or a file."""
    chance = random.Random(4)
    return [chance.choices(WORDS, k=4) for _ in range(count)]


def output_id(word, position):
    """The same for the same input, whichever attempt makes it."""
    return hashlib.sha256(f"{word}|{position}".encode()).hexdigest()[:16]


class Pipeline:
    def __init__(self, options, name):
        # Requests are sent again when the connection breaks: all that is sent here may be.
        retry = Retry(ConstantBackoff(0.05), retries=int(options.seconds * 20))
        self.redis = redis.Redis.from_url(options.url, decode_responses=True, retry=retry)
        self.counts, self.checkpoint, self.sink = f"demo:{name}:count:", f"demo:{name}:checkpoint", f"demo:{name}:sink"
        self.options = options

    def run(self, attempt):
        position = self.restore()
        until_killed = random.Random(attempt).randrange(5, 60)
        for number, words in enumerate(lines(self.options.lines)):
            if number < position:
                continue
            for word, times in collections.Counter(words).items():
                # A version is applied once: sent again, it answers DUPLICATE, and an older one STALE.
                self.redis.execute_command("REG.INCRBY", self.counts + word, number + 1, times)
                self.redis.hset(self.sink, output_id(word, number), word)
            if number % 10 == 9:
                self.redis.execute_command("REG.SNAPSHOT", "PREFIX", self.counts, "POSITION", number + 1, "STORE", self.checkpoint)
            time.sleep(0.01)
            until_killed -= 1
            if until_killed == 0 and attempt < self.options.kills:
                os.kill(os.getpid(), signal.SIGKILL)

    def restore(self):
        """Puts all counts back to those of the checkpoint; where to read on."""
        if not self.redis.exists(self.checkpoint):
            for key in self.redis.scan_iter(match=self.counts + "*"):
                self.redis.delete(key)
            return 0
        _, position = self.redis.execute_command("REG.RESTORE", "FROM", self.checkpoint)
        return int(position)

    def check(self):
        expected = collections.Counter(word for words in lines(self.options.lines) for word in words)
        counts = {word: self.redis.execute_command("REG.GET", self.counts + word) for word in WORDS}
        counted = {word: int(found[0]) for word, found in counts.items() if found}
        rows = sum(len(set(words)) for words in lines(self.options.lines))
        return counted == dict(expected) and self.redis.hlen(self.sink) == rows

    def remove(self):
        names = [self.counts + word for word in WORDS] + [self.checkpoint, self.sink]
        self.redis.delete(*names)


def main():
    parser = argparse.ArgumentParser(description="Counts words once, however often it is killed.")
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    pipeline = Pipeline(options, f"{os.getpid()}:{time.time_ns()}")
    try:
        if not known(pipeline.redis):
            print("this server has no registers: start a Holdfast", file=sys.stderr)
            return 2
    except redis.RedisError as error:
        print(f"no server at {options.url}: {error}", file=sys.stderr)
        return 2
    print(f"{options.lines} lines of {len(WORDS)} words", flush=True)
    killed = 0
    for attempt in range(options.kills + 1):
        process = multiprocessing.Process(target=pipeline.run, args=(attempt,))
        process.start()
        process.join(options.seconds)
        if process.exitcode == 0:
            break
        killed += process.exitcode == -signal.SIGKILL
    is_right = pipeline.check()
    pipeline.remove()
    print(f"killed {killed} times")
    print("Every word was counted once." if is_right else "The counts are wrong.")
    return 0 if is_right else 1


def known(server):
    """Whether the server has registers."""
    try:
        server.execute_command("REG.GET", "demo:register")
        return True
    except redis.ResponseError:
        return False


if __name__ == "__main__":
    sys.exit(main())
