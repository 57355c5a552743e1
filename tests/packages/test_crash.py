"""Crash rounds through the packages: three programs, one in each language, load one server while it is killed, a follower takes over, connections
are cut, or the programs are killed themselves. Afterwards nothing that was acknowledged is lost, and nothing is applied twice."""

import os
import random
import time
from pathlib import Path

import pytest
from rounds import Home, all_programs, check, prepare

#: Leases end, and the last jobs are done.
END_SECONDS_MAX = 90


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "round_" in metafunc.fixturenames:
        metafunc.parametrize("round_", range(1, metafunc.config.getoption("--rounds") + 1))


@pytest.mark.parametrize("kind", ["restarts", "take-overs", "cuts", "programs"])
def test_a_crash_round(kind: str, round_: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed = int(os.environ.get("HOLDFAST_TEST_SEED") or random.randrange(2**32))
    print(f"HOLDFAST_TEST_SEED={seed}")
    choice = random.Random(seed)
    seconds: float = pytestconfig.getoption("--seconds")
    home = Home(tmp_path, seed if kind == "cuts" else None)
    programs = all_programs(home, tmp_path)
    try:
        prepare(home)
        if kind == "take-overs":
            home.follow()
        for program in programs:
            program.start(seconds)
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, choice.uniform(0.3, seconds / 3)))
            match kind:
                case "restarts" | "cuts":
                    home.crash()
                case "take-overs":
                    home.take_over()
                case _:
                    program = choice.choice(programs)
                    program.crash()
                    if choice.random() < 0.5:
                        home.crash()
                    program.start(max(ends - time.monotonic(), 1))
        for program in programs:
            program.join(END_SECONDS_MAX)
        print(f"{home.proxy.cuts} connections were cut; {check(home, programs)}")
    finally:
        for program in programs:
            program.kill()
        home.end()
