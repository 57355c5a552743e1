"""Limits of the groups of an index: the commands that set and list them, and what comes back. Knows no connection, and refuses to
know what a job is."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .errors import ReplyError
from .replies import Reply, double, integer, items, name, named, ok, optional, raw, row, text
from .request import Request
from .words import Key, Value, Word, key_word, whole, word

#: Groups that one page has at most.
PAGE = 500


@dataclass(frozen=True)
class Group:
    """One group of an index: the records whose group field has this value. Records without the field are in the group `""`."""

    #: As text when it is read; a byte that is no UTF-8 as `Key` says.
    name: Value


#: What a limit is for: one group, each group that has none of its own, or all records of the index together.
Scope: TypeAlias = Group | Literal["each", "all"]


@dataclass(frozen=True)
class Rate:
    """How fast records are taken: in any `t` milliseconds at most `burst + t * takes / per_ms`."""

    takes: int
    per_ms: int
    #: How many may be taken at once; `takes` if not given.
    burst: int | None = None


#: `"none"`: no limit, whatever is set for each group. `"default"`: what is set for each group.
NoLimit: TypeAlias = Literal["none", "default"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is set for a scope. None is what the scope has no value of its own for."""

    scope: Scope
    held: int | Literal["none"] | None = None
    rate: Rate | Literal["none"] | None = None
    weight: float | None = None
    pause: bool | None = None


@dataclass(frozen=True, kw_only=True)
class GroupLimits:
    """The limits that a group has: its own, or those of each group."""

    #: How many of its records may be held at a time.
    held: int | None = None
    rate: Rate | None = None
    #: Its share of the turns.
    weight: float = 1.0
    #: Nothing is taken from it.
    pause: bool = False


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """How a group fares."""

    name: str
    #: Its records in the index.
    records: int
    #: Its records that are held, in the index or not.
    held: int
    first_score: float | None
    #: When its limits allow a claim to take from it, in unix milliseconds: 0 is now, None not by time alone, such as while it is paused.
    allowed_at: int | None
    limits: GroupLimits


def limit(
    index: str, scope: Scope, held: int | NoLimit | None, rate: Rate | NoLimit | None, weight: float | None, pause: bool | None
) -> Request[None]:
    words = [b"IDX.LIMIT", key_word(index), *_scope(scope)]
    if held is not None:
        words += [b"HELD", _no_limit(held) if isinstance(held, str) else whole(held, "held")]
    if isinstance(rate, Rate):
        words += [b"RATE", whole(rate.takes, "takes"), whole(rate.per_ms, "per_ms")]
        if rate.burst is not None:
            words += [b"BURST", whole(rate.burst, "burst")]
    elif rate is not None:
        words += [b"RATE", _no_limit(rate)]
    if weight is not None:
        words += [b"WEIGHT", word(weight)]
    if pause is not None:
        if not isinstance(pause, bool):
            raise TypeError(f"pause is {pause!r}, and has to be True or False")
        words += [b"PAUSE", b"yes" if pause else b"no"]
    return Request(words, ok)


def reset_limits(index: str, scope: Scope | None) -> Request[None]:
    return Request([b"IDX.LIMIT", key_word(index), *([] if scope is None else _scope(scope)), b"RESET"], ok)


def limits(index: str) -> Request[list[Limits]]:
    return Request([b"IDX.LIMIT", key_word(index)], lambda reply: [_limits(each) for each in items(reply)])


def groups(index: str, cursor: Word) -> Request[tuple[Word, list[GroupState]]]:
    """A page: the next cursor, which is `0` behind the last one, and its groups."""

    def read(reply: Reply) -> tuple[Word, list[GroupState]]:
        following, rows = row(reply, 2)
        return raw(following), [_group(each) for each in items(rows)]

    return Request([b"IDX.GROUPS", key_word(index), b"CURSOR", cursor, b"LIMIT", b"%d" % PAGE], read)


def _scope(scope: Scope) -> list[Word]:
    if isinstance(scope, Group):
        return [b"GROUP", word(scope.name)]
    if scope not in ("each", "all"):
        raise ValueError(f'limits are for "each", "all" or a Group, and not for {scope!r}')
    return [scope.upper().encode()]


def _no_limit(value: str) -> Word:
    if value not in ("none", "default"):
        raise ValueError(f'a limit is a number, a Rate, "none" or "default", and not {value!r}')
    return value.encode()


def _limits(reply: Reply) -> Limits:
    values = named(reply)
    return Limits(
        scope=_read_scope(values),
        held=optional(values.get("held"), lambda held: "none" if _is_none(held) else integer(held)),
        rate=optional(values.get("rate"), lambda rate: "none" if _is_none(rate) else _rate(rate)),
        weight=optional(values.get("weight"), double),
        pause=optional(values.get("pause"), _pause),
    )


def _read_scope(values: dict[str, Reply]) -> Scope:
    match text(values.get("scope")):
        case "group":
            return Group(name(values.get("group")))
        case "each":
            return "each"
        case "all":
            return "all"
        case other:
            raise ReplyError(f"limits are for a group, each or all, and not for {other:.200}")


def _group(reply: Reply) -> GroupState:
    group, state = row(reply, 2)
    values = named(state)
    allowed_at, own = integer(values.get("allowed_at")), named(values.get("limits"))
    return GroupState(
        name=name(group),
        records=integer(values.get("records")),
        held=integer(values.get("held")),
        first_score=optional(values.get("first_score"), double),
        allowed_at=None if allowed_at < 0 else allowed_at,
        limits=GroupLimits(
            held=optional(own.get("held"), integer),
            rate=optional(own.get("rate"), _rate),
            weight=optional(own.get("weight"), double) or 1.0,
            pause=optional(own.get("pause"), _pause) or False,
        ),
    )


def _is_none(reply: Reply) -> bool:
    return reply in (b"none", "none")


def _rate(reply: Reply) -> Rate:
    return Rate(*map(integer, row(reply, 3)))


def _pause(reply: Reply) -> bool:
    return text(reply) == "yes"
