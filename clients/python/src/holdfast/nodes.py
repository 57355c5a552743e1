"""What a stateful node keeps of a key, and the ids of its outputs. Knows no backend, and refuses to know what states and outputs mean."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .errors import ReplyError
from .registers import StateVersion
from .words import Key, key_word

O = TypeVar("O")  # noqa: E741 (an output)


@dataclass(frozen=True)
class Output(Generic[O]):
    """An output of a node. Whenever its input is read again it comes with the same id: a sink that has the id drops it."""

    id: str
    value: O


def outputs(node: str, key: Key, version: StateVersion, values: Sequence[O]) -> list[Output[O]]:
    return [Output(output_id(node, key, version, index), value) for index, value in enumerate(values)]


def output_id(node: str, key: Key, version: StateVersion, index: int) -> str:
    """SHA-256, in lower-case hex, of `node|key|version|index`."""
    return hashlib.sha256(b"|".join([key_word(node), key_word(key), str(version).encode(), b"%d" % index])).hexdigest()


def kept(state: Any, values: Sequence[Any]) -> dict[str, Any]:
    """What is put under a key."""
    return {"state": state, "outputs": list(values)}


def read_kept(value: Any) -> tuple[Any, list[Any]]:
    """A state and the outputs that came with it."""
    if not isinstance(value, Mapping) or "state" not in value or not isinstance(value.get("outputs"), list):
        raise ReplyError(f"a node's key should have its state and outputs, and has {value!r:.200}")
    return value["state"], value["outputs"]
