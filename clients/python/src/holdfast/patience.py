"""How long is waited for what: for a server that is away, between two tries of a transaction, and between two of a session's request.
Knows no connection."""

import random
import time

#: Between two tries to reach a server that is away or reads its data.
PAUSE_S = 0.05

#: Between two tries to end the wait of a request that the server has perhaps not seen yet.
UNBLOCK_PAUSE_S = 0.005

#: How long one server of several may take to tell its role.
ROLE_S = 2.0
#: How often a server that writes is asked whether it still does, by a program that asks it for something. A write finds out at once.
ROLE_CHECK_S = 2.0

#: How long one wait of a reader lasts that follows a run or a cell: a connection that has silently died is found after it.
WAIT_MS = 10_000
#: The same of a reader that can be stopped.
STOPPABLE_WAIT_MS = 500

_FIRST_PAUSE_S = 0.001
_DOUBLINGS_MAX = 7


class Deadline:
    def __init__(self, ms: int) -> None:
        self._at = time.monotonic() + ms / 1000

    def has_passed(self) -> bool:
        return time.monotonic() >= self._at

    def left_ms(self) -> int:
        """How long it is until then; at least 1."""
        return max(1, round((self._at - time.monotonic()) * 1000))


def pause_after_conflict_s(tried: int) -> float:
    """Grows with the tries, and differs between clients that met the same conflict."""
    longest = _FIRST_PAUSE_S * 2.0 ** min(tried - 1, _DOUBLINGS_MAX)
    return longest * (0.5 + random.random() / 2)


def pause_after_loss_s(tried: int) -> float:
    """The same between two tries of a request whose answer was lost: from 10 ms to about a second."""
    longest = _FIRST_PAUSE_S * 10 * 2.0 ** min(tried - 1, _DOUBLINGS_MAX)
    return longest * (0.5 + random.random() / 2)


def pause_before_search_s(tried: int) -> float:
    """The same between two searches for a server that writes: from 50 ms to about half a second."""
    return min(PAUSE_S * 2.0 ** min(tried, _DOUBLINGS_MAX), 0.5) * (0.5 + random.random() / 2)
