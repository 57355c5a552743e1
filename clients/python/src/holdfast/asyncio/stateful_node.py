"""A stateful node of a pipeline: each input changes the state of its key once, and has the same outputs whenever it is read again. Knows
inputs, states and outputs; refuses to know where states are kept and what they mean."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .. import nodes
from ..nodes import Output
from ..registers import AnyVersion, state_version
from ..words import Key, Value
from .state_backend import StateBackend

S = TypeVar("S")
O = TypeVar("O")  # noqa: E741 (an output)


class StatefulNode(Generic[S, O]):
    """Takes inputs that may be read again, each with a key and a version that grows with the inputs of that key. For each key it keeps the
    state and the outputs of the last input.

    `backend` is the state of this node alone, an `ExactlyOnceState` or a `MemoryState`, whose codec takes what the states and outputs
    are: `codec.json` for those that are JSON. `checkpoint` is the key of the node's checkpoint."""

    def __init__(self, name: str, backend: StateBackend[Any], checkpoint: Key) -> None:
        self.name = name
        self._backend = backend
        self._checkpoint = checkpoint

    async def process(
        self, key: Key, version: AnyVersion, update: Callable[[S | None], tuple[S, Sequence[O]]]
    ) -> list[Output[O]]:
        """Applies an input once. `update` is called for a new version, with the state that the key has, or None; it returns the new
        state and the outputs, and should have no other effects. For the version that was applied last, its outputs come again under
        the same ids; for an older one there are none. After an UnavailableError call it again."""
        at = state_version(version)
        while True:
            held = await self._backend.get(key)
            state: Any = None
            if held is not None:
                state, values = nodes.read_kept(held[0])
                if at < held[1]:
                    return []
                if at == held[1]:
                    return nodes.outputs(self.name, key, at, values)
            state, new_values = update(state)
            applied = await self._backend.put(key, nodes.kept(state, new_values), version)
            if applied in ("applied", "duplicate"):
                return nodes.outputs(self.name, key, at, new_values)
            # Another program has applied this version, or a newer one, meanwhile: what it has kept counts.

    async def checkpoint(self, position: Value) -> int:
        """Keeps all states with the position of the input behind the last one that was processed. Returns how many keys there are."""
        return await self._backend.checkpoint(self._checkpoint, position)

    async def recover(self) -> bytes | None:
        """Makes the states what they were at the last checkpoint, and returns the position from which the input is read again. None
        if there is no checkpoint: the input is read from its beginning. Call it at each start, before the first input."""
        restored = await self._backend.restore_checkpoint(self._checkpoint)
        if restored is None:
            # The start itself is the first checkpoint, without a position: after a crash before the next one, the input is read
            # again on the states of the start, and no output is missing.
            await self._backend.checkpoint(self._checkpoint)
            return None
        return restored.position
