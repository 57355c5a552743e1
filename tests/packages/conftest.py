"""Options of these tests, and where they find the servers and proxies of the Python package's tests."""

import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "clients/python/tests")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=8, help="how many random histories the packages are compared on")
    parser.addoption("--rounds", type=int, default=1, help="how many crash rounds of each kind each language goes through")
    parser.addoption("--seconds", type=float, default=4.0, help="how long a crash round is loaded")
