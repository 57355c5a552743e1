import os

import pytest


@pytest.fixture(autouse=True)
def _root():
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
