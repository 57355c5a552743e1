"""The three packages agree: the same random history has the same results in each language, and in a mix of them on one server."""

import json
import os
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
import redis
from drivers import LANGUAGES, Driver, Player
from histories import history
from server import Server

LENGTH = 400

#: By name: a server, and the languages that speak to it.
Players: TypeAlias = dict[str, tuple[Server, list[str]]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        one = os.environ.get("HOLDFAST_TEST_SEED")
        count = metafunc.config.getoption("--seeds")
        metafunc.parametrize("seed", [int(one)] if one is not None else random.sample(range(2**32), count))


@pytest.fixture(scope="module")
def players() -> Iterator[Players]:
    """A server for each language, and one for all."""
    made = {name: (Server(), [name]) for name in LANGUAGES} | {"all": (Server(), list(LANGUAGES))}
    yield made
    for server, _ in made.values():
        server.end()


def test_the_packages_agree_on_a_random_history(players: Players, seed: int) -> None:
    ops = history(seed, LENGTH)
    results: dict[str, list[Any]] = {}
    notes: dict[str, list[str]] = {}
    for name, (server, languages) in players.items():
        with redis.Redis(port=server.port, protocol=3) as client:
            client.flushall()
            for index in client.execute_command("IDX.LIST"):
                client.execute_command("IDX.DROP", index)
            # The replies of a server have other forms in RESP2.
            drivers = [Driver(language, server.url, protocol=2 + seed % 2) for language in languages]
            try:
                player = Player(drivers, seed)
                results[name] = [player.play(op) for op in ops]
                results[name].append(keys(client))
            finally:
                for driver in drivers:
                    driver.end()
            notes[name] = [*player.notes, "the keys, their types and whether they expire"]
    for number, op in enumerate([*ops, {"op": "the end"}]):
        told = {name: json.dumps(results[name][number], sort_keys=True) for name in results}
        if len(set(told.values())) > 1:
            said = "\n".join(f"  {name}: {told[name][:1500]}\n      {notes[name][number]}" for name in results)
            pytest.fail(f"seed {seed}, operation {number}: {json.dumps(op)}\n{said}", pytrace=False)


def keys(client: Any) -> list[tuple[str, str, bool]]:
    """All keys but those of sessions, with their types, and whether they expire."""
    names = sorted(key for key in client.scan_iter(count=1000) if not key.startswith(b"session:"))
    return [(key.hex(), str(client.type(key), "ascii"), client.pttl(key) > 0) for key in names]
