"""A stateful node of a pipeline: each input changes the state of its key once, and has the same outputs whenever it is read again. Knows
inputs, states and outputs; refuses to know where states are kept and what they mean."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from .. import nodes
from ..nodes import Output
from ..registers import AnyVersion, state_version
from ..words import Key, Value, key_word
from .runtime import Lock
from .state_backend import StateBackend

S = TypeVar("S")
O = TypeVar("O")  # noqa: E741 (an output)


class StatefulNode(Generic[S, O]):
    """Takes inputs that may be read again, each with a key and a version that grows with the inputs of that key. For each key it keeps the
    state and the outputs of the last input.

    `backend` is the state of this node alone, an `ExactlyOnceState` or a `MemoryState`, whose codec takes what the states and outputs
    are: `codec.json` for those that are JSON. `checkpoint_key` is where the node keeps its checkpoint; `name:checkpoint` if it is not given.

    One program at a time processes the inputs of a key, in the order of their versions: one that computes on the state of another would lose what
    that has written. Tasks that share the node take turns for each key."""

    def __init__(self, name: str, backend: StateBackend[Any], checkpoint_key: Key | None = None) -> None:
        self.name = name
        self._backend = backend
        self._checkpoint_key: Key = f"{name}:checkpoint" if checkpoint_key is None else checkpoint_key
        self._turns: WeakValueDictionary[bytes, Lock] = WeakValueDictionary()
        #: Guards the turns.
        self._guard = threading.Lock()

    async def process(
        self, key: Key, version: AnyVersion, update: Callable[[S | None], tuple[S, Sequence[O]]]
    ) -> list[Output[O]] | None:
        """Applies an input once. `update` is called for a new version, with the state that the key has, or None; it returns the new
        state and the outputs, and should have no other effects. For the version that was applied last, its outputs come again under
        the same ids; for an older one it is None. After an UnavailableError call it again."""
        async with self._turn(key_word(key)):
            return await self._process(key, version, update)

    def _turn(self, key: bytes) -> Lock:
        with self._guard:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = Lock()
            return turn

    async def _process(
        self, key: Key, version: AnyVersion, update: Callable[[S | None], tuple[S, Sequence[O]]]
    ) -> list[Output[O]] | None:
        at = state_version(version)
        while True:
            held = await self._backend.get(key)
            state: Any = None
            if held is not None:
                state, values = nodes.read_kept(held[0])
                if at < held[1]:
                    return None
                if at == held[1]:
                    return nodes.outputs(self.name, key, at, values)
            state, new_values = update(state)
            applied = await self._backend.put(key, nodes.kept(state, new_values), version)
            if applied in ("applied", "duplicate"):
                return nodes.outputs(self.name, key, at, new_values)
            # Another program has applied this version, or a newer one, meanwhile: what it has kept counts.

    async def checkpoint(self, position: Value) -> int:
        """Keeps all states with the position of the input behind the last one that was processed. Returns how many keys there are."""
        return await self._backend.checkpoint(self._checkpoint_key, position)

    async def recover(self) -> bytes | None:
        """Makes the states what they were at the last checkpoint, and returns the position from which the input is read again. None
        if there is no checkpoint: the input is read from its beginning. Call it at each start, before the first input."""
        restored = await self._backend.restore_checkpoint(self._checkpoint_key)
        if restored is None:
            # The start itself is the first checkpoint, without a position: after a crash before the next one, the input is read
            # again on the states of the start, and no output is missing.
            await self._backend.checkpoint(self._checkpoint_key)
            return None
        return restored.position
