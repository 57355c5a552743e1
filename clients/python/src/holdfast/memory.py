"""Registers in the memory of a program: the rules by which the server's REG commands apply updates. Knows versions, buffers and
seals; refuses to know what a value means. A test compares it with the server on random histories."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, TypeAlias

from .errors import ServerError
from .registers import AnyVersion, Applied, Restored, StateVersion, state_version
from .words import Word

#: Bytes to put, or a number to add.
Operation: TypeAlias = bytes | int

#: As the server's setting `reg-buffer-max` has it.
BUFFERED_MAX = 1024

_U64_MAX = 2**64 - 1
_INTEGER = re.compile(rb"(0|-?[1-9][0-9]*)\Z")
_MAGIC = b"holdfast memory state 1\n"


@dataclass
class _Current:
    """The newest version that was applied."""

    version: StateVersion
    value: bytes
    #: What was added, if this version was an addition.
    added: int | None


@dataclass
class _Register:
    current: _Current | None = None
    #: Updates that came before their turn.
    buffer: dict[StateVersion, Operation] = field(default_factory=dict)
    #: Versions below it are closed.
    sealed: StateVersion | None = None
    #: Whether ordered versions are numbers, which have a next one, or pairs, which have none. The first ordered update decides.
    kind: Literal["numbers", "pairs"] | None = None

    def is_closed(self, version: StateVersion) -> bool:
        is_late = self.current is not None and version <= self.current.version
        return is_late or self.sealed is not None and version < self.sealed

    def open_from(self) -> StateVersion | None:
        """The lowest version that is not closed; None when there is none any more. Numbers begin at 1."""
        least = self.sealed or StateVersion(0, 0 if self.kind == "pairs" else 1)
        if self.current is None:
            return least
        following = _successor(self.current.version)
        return None if following is None else max(following, least)

    def next_number(self) -> int | None:
        """The number that is due; None when there is none any more."""
        following = self.open_from()
        return following.round if following is not None and following.epoch == 0 else None


class MemoryRegisters:
    """Registers by key. Threads may share them."""

    def __init__(self) -> None:
        self._registers: dict[bytes, _Register] = {}
        self._lock = Lock()

    def update(self, key: bytes, version: AnyVersion, operation: Operation, ordered: bool) -> Applied:
        """Applies or buffers an update, or says why not."""
        at = _checked(version)
        if isinstance(operation, int) and not -(2**63) <= operation < 2**63:
            raise _refusal("the number to add must be a whole number of 64 bits")
        with self._lock:
            register = self._registers.get(key, _Register())
            kind = _ordered_kind(version, register) if ordered else None
            verdict = _verdict(register, at, operation, kind)
            if verdict == "buffered" and at not in register.buffer:
                if len(register.buffer) >= BUFFERED_MAX:
                    raise _refusal(f"{BUFFERED_MAX} versions of the register wait for their turn: no more can (reg-buffer-max)")
                register.buffer[at] = operation
            if verdict == "applied":
                progress = [_after(register.current, at, operation)]
                if register.kind != "pairs":
                    progress = _without_gap(register, progress, at)
                _set(register, progress[-1])
            if verdict in ("applied", "buffered"):
                register.kind = register.kind or kind
                self._registers[key] = register
            return verdict

    def seal(self, key: bytes, version: AnyVersion) -> int:
        """Says that no version below this one is still to come. Returns how many updates were applied."""
        at = _checked(version)
        with self._lock:
            register = self._registers.get(key, _Register())
            _ordered_kind(version, register)
            is_open_from = register.open_from()
            if is_open_from is None or at <= is_open_from:
                return 0
            progress = _below(register, at)
            if register.kind == "numbers":
                progress = _without_gap(register, progress, StateVersion(0, at.round - 1))
            if progress:
                _set(register, progress[-1])
            # What was applied may have reached the seal already.
            is_open_from = register.open_from()
            if is_open_from is not None and at > is_open_from:
                register.sealed = at
                register.buffer = {each: operation for each, operation in register.buffer.items() if each >= at}
            self._registers[key] = register
            return len(progress)

    def get(self, key: bytes) -> tuple[bytes, StateVersion] | None:
        with self._lock:
            register = self._registers.get(key)
            if register is None or register.current is None:
                return None
            return register.current.value, register.current.version

    def snapshot(self, position: Word | None) -> tuple[bytes, int]:
        """All registers as one blob, and how many they are."""
        with self._lock:
            registers = {key.hex(): _saved(register) for key, register in self._registers.items()}
        whole = {"position": None if position is None else position.hex(), "registers": registers}
        data = json.dumps(whole).encode()
        return _MAGIC + hashlib.sha256(data).digest() + data, len(registers)

    def restore(self, snapshot: bytes, merge: bool) -> Restored:
        """Takes all of a blob, or what is newer in it."""
        head, data = snapshot[: len(_MAGIC) + 32], snapshot[len(_MAGIC) + 32 :]
        if head != _MAGIC + hashlib.sha256(data).digest():
            raise _refusal("the snapshot is damaged, or is none of a state in memory")
        whole = json.loads(data)
        loaded = {bytes.fromhex(key): _loaded(saved) for key, saved in whole["registers"].items()}
        with self._lock:
            if merge:
                loaded = {key: each for key, each in loaded.items() if _is_newer(each, self._registers.get(key))}
            else:
                self._registers.clear()
            self._registers.update(loaded)
        return Restored(len(loaded), None if whole["position"] is None else bytes.fromhex(whole["position"]))


def _verdict(register: _Register, version: StateVersion, operation: Operation, kind: str | None) -> Applied:
    current = register.current
    if register.is_closed(version):
        if current is None or current.version != version:
            return "stale"
        by = current.value if current.added is None else current.added
        return "duplicate" if _is_same(by, operation) else "mismatch"
    if version in register.buffer and not _is_same(register.buffer[version], operation):
        return "mismatch"
    if kind is None or kind == "numbers" and register.next_number() == version.round:
        return "applied"
    return "buffered"


def _successor(version: StateVersion) -> StateVersion | None:
    if version.round < _U64_MAX:
        return StateVersion(version.epoch, version.round + 1)
    return StateVersion(version.epoch + 1, 0) if version.epoch < _U64_MAX else None


def _is_same(one: Operation, other: Operation) -> bool:
    return type(one) is type(other) and one == other


def _after(current: _Current | None, version: StateVersion, operation: Operation) -> _Current:
    """What one update makes of the newest version. A missing value counts as 0."""
    if isinstance(operation, bytes):
        return _Current(version, operation, None)
    before = current.value if current is not None else b"0"
    if not _INTEGER.match(before) or not -(2**63) <= int(before) < 2**63:
        raise _refusal("the value of the register is not a whole number of 64 bits")
    total = int(before) + operation
    if not -(2**63) <= total < 2**63:
        raise _refusal("the sum does not fit in 64 bits")
    return _Current(version, b"%d" % total, operation)


def _without_gap(register: _Register, progress: list[_Current], last: StateVersion) -> list[_Current]:
    """Goes on with what is buffered behind a version, up to the first gap or the first update that cannot be applied."""
    while not last.epoch:
        last = StateVersion(0, last.round + 1)
        if last not in register.buffer:
            break
        try:
            progress = [*progress, _after(progress[-1] if progress else register.current, last, register.buffer[last])]
        except ServerError:
            break
    return progress


def _below(register: _Register, version: StateVersion) -> list[_Current]:
    """What is buffered below a version, applied in order."""
    progress: list[_Current] = []
    for each in sorted(register.buffer):
        if each < version:
            try:
                progress.append(_after(progress[-1] if progress else register.current, each, register.buffer[each]))
            except ServerError as error:
                raise _refusal(f"the buffered REG.INCRBY of version {each} cannot be applied: {error}") from error
    return progress


def _set(register: _Register, current: _Current) -> None:
    register.current = current
    register.buffer = {each: operation for each, operation in register.buffer.items() if each > current.version}
    if register.sealed is not None and register.sealed <= current.version:
        register.sealed = None


def _ordered_kind(version: AnyVersion, register: _Register) -> Literal["numbers", "pairs"]:
    kind: Literal["numbers", "pairs"] = "pairs" if isinstance(version, tuple) else "numbers"
    if kind == "numbers" and version == 0:
        raise _refusal("the version of an ordered register is a whole number from 1 on, not '0'")
    if register.kind not in (None, kind):
        raise _refusal(f"the ordered versions of this register are {register.kind}")
    return kind


def _checked(version: AnyVersion) -> StateVersion:
    at = state_version(version)
    if not all(0 <= part <= _U64_MAX for part in at):
        raise _refusal(f"the version must be a whole number of 64 bits, or two of them as epoch.round, not '{at}'")
    return at


def _is_newer(saved: _Register, held: _Register | None) -> bool:
    if held is None:
        return True
    if saved.current is None:
        return False
    return held.current is None or saved.current.version > held.current.version


def _saved(register: _Register) -> Mapping[str, Any]:
    current = register.current
    return {
        "current": None if current is None else [*current.version, current.value.hex(), current.added],
        "buffer": [[*version, _saved_operation(operation)] for version, operation in register.buffer.items()],
        "sealed": register.sealed,
        "kind": register.kind,
    }


def _saved_operation(operation: Operation) -> str | int:
    return operation.hex() if isinstance(operation, bytes) else operation


def _loaded(saved: Mapping[str, Any]) -> _Register:
    register = _Register(kind=saved["kind"])
    if saved["current"] is not None:
        epoch, round_, value, added = saved["current"]
        register.current = _Current(StateVersion(epoch, round_), bytes.fromhex(value), added)
    for epoch, round_, operation in saved["buffer"]:
        register.buffer[StateVersion(epoch, round_)] = bytes.fromhex(operation) if isinstance(operation, str) else operation
    if saved["sealed"] is not None:
        register.sealed = StateVersion(*saved["sealed"])
    return register


def _refusal(message: str) -> ServerError:
    """What the server would answer."""
    return ServerError("ERR", message)
