"""What is asked of records: conditions, changes, filters, claims and sweeps, their commands, and what comes back. Knows no
connection, and refuses to know what a job is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field
from typing import Literal, TypeAlias

from . import plain
from .errors import ReplyError
from .fields import Fields, Record, read_fields, read_ttl
from .filters import Filter
from .replies import Reply, double, flag, items, name, ok, optional, raw, row, text
from .request import Request
from .words import Changes, Key, Value, Values, Word, counted_list, counted_values, flat, key_word, whole, word

#: A score as in ZRANGEBYSCORE, such as `"(5"` or `"-inf"`, or `"NOW"`, `"NOW+ms"`, `"NOW-ms"`: the server's time.
Score: TypeAlias = str | int | float

#: Fields to set to the server's time plus so many milliseconds: a lease that needs no clock of the client's.
Stamps: TypeAlias = Mapping[str, int]

#: A field, and the values of which it must hold one.
Condition: TypeAlias = tuple[str, Sequence[Value]]

#: What a sweep or a worker has done to a record: given it back for another try, or given it up.
Fate: TypeAlias = Literal["requeued", "exhausted"]

_FATES: Mapping[str, Fate] = {"requeued": "requeued", "exhausted": "exhausted"}

#: Records that one page of a scan has at most.
PAGE = 500


@dataclass(frozen=True)
class Lifetime:
    """How long a record lives: `Lifetime(ms=60_000)` from now, `Lifetime(until_ms=…)`, a unix time, or `Lifetime(persist=True)`."""

    ms: int | None = None
    until_ms: int | None = None
    persist: bool = False

    def __post_init__(self) -> None:
        if (self.ms is not None) + (self.until_ms is not None) + self.persist != 1:
            raise ValueError("a lifetime is one of ms, until_ms and persist")

    def words(self) -> list[Word]:
        if self.ms is not None:
            return [b"PX", whole(self.ms, "ms")]
        if self.until_ms is not None:
            return [b"PXAT", whole(self.until_ms, "until_ms")]
        return [b"PERSIST"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Conditions on a record, and the changes that are made if all of them hold."""

    #: Fields that must hold these values.
    expected: Values = dataclass_field(default_factory=dict)
    #: Fields that must not be there.
    absent: Sequence[str] = ()
    #: Fields to write; None removes one.
    set: Changes = dataclass_field(default_factory=dict)
    stamp: Stamps = dataclass_field(default_factory=dict)
    #: Fields to remove, after the writes. A record that loses its last field is gone.
    remove: Sequence[str] = ()
    #: Without it the lifetime stays as it is.
    lifetime: Lifetime | None = None


@dataclass(frozen=True)
class Outcome:
    """How an exchange went."""

    #: Whether every condition held, and so every change was made.
    applied: bool
    #: The expected fields as they are now, those that are there.
    current: Fields


@dataclass(frozen=True)
class Found:
    """A record that a scan has found."""

    #: As text; one that is not UTF-8 as `Key` says, so that it can be given back as it is.
    key: str
    fields: Fields
    #: How long it still lived, in milliseconds; None without an end.
    ttl_ms: int | None


@dataclass(frozen=True)
class Indexed:
    """A record of an index. A claim's score is the one that the record had."""

    key: str
    score: float
    fields: Fields
    #: How long it still lived, in milliseconds; None without an end.
    ttl_ms: int | None


@dataclass(frozen=True)
class Swept:
    key: str
    fate: Fate


@dataclass(frozen=True, kw_only=True)
class IndexDefinition:
    """An index: the records under some prefixes in the order of a numeric field."""

    prefixes: Sequence[Key]
    field: str
    #: Only records that meet it.
    only: Condition | None = None
    #: No records that meet it; not together with `only`.
    exclude: Condition | None = None
    #: A write that does not set the field sets it to the server's time.
    stamp: bool = False
    #: The field by whose value records are kept apart in groups, which claims take in turns and limits are for.
    group: str | None = None
    #: Which records are held, being worked on: what the limit `held` counts.
    held: Condition | None = None


@dataclass(frozen=True, kw_only=True)
class UpTo:
    """How far a claim's counter may grow, and what is written to a record above it, which is then not returned."""

    max: int
    otherwise: Values


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Takes the first records of an index that qualify and changes each in the step in which it is found: of any number of
    workers exactly one gets a record. In the values of `set` and `otherwise`, `NOW`, `NOW+ms` and `NOW-ms` are the server's time."""

    #: Most urgent first; records come from the first that has any.
    indexes: Sequence[str]
    set: Values
    min: Score | None = None
    #: `"NOW"` is what is due.
    max: Score | None = None
    #: Fields, and the values of which each must hold one.
    where: Mapping[str, Sequence[Value]] = dataclass_field(default_factory=dict)
    #: The field that counts the claims of a record: the attempt, and the fencing token.
    counter: str | None = None
    up_to: UpTo | None = None
    #: How many records at most.
    count: int = 1
    #: Of an index with groups: they take turns (`"fair"`, the default), or the lowest score of all is first.
    order: Literal["fair", "score"] | None = None
    #: How long to wait if there is none; 0 does not wait. There is no waiting for ever.
    wait_ms: int = 0
    #: The fields that are wanted, if not all.
    fields: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Retries:
    """The field in which a sweep counts, how far it may grow, and what is written to a record that has got there."""

    counter: str
    max: int
    otherwise: Values


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Gives back what is overdue: each record of an index whose score is below a bound gets other values, with a bound on how
    often. In the values of `set` and `otherwise`, `NOW`, `NOW+ms` and `NOW-ms` are the server's time."""

    index: str
    #: Unix milliseconds, or `"NOW"`, `"NOW-ms"`.
    before: Score
    set: Values
    where: Condition | None = None
    retry: Retries | None = None
    limit: int | None = None
    #: The channel on which the keys are published.
    publish: str | None = None


def get(key: Key) -> Request[Record | None]:
    return Request(plain.script(plain.GET, key_word(key)), plain.read_record)


def get_field(key: Key, field: str) -> Request[bytes | None]:
    return Request([b"HGET", key_word(key), word(field)], lambda reply: optional(reply, raw))


def put(key: Key, changes: Changes, replace: bool, lifetime: Lifetime | None, stamp: Stamps) -> Request[None]:
    _check_fields(changes, stamp)
    if replace:
        return _replace(key, changes, lifetime, stamp)
    return _without_outcome(exchange(key, Exchange(set=changes, stamp=stamp, lifetime=lifetime)))


def set_fields(key: Key, changes: Changes) -> Request[None]:
    _check_fields(changes, {})
    values, removed = _split(changes)
    if not removed:
        return Request([b"HSET", key_word(key), *flat((word(field), word(value)) for field, value in values.items())], ok)
    if not values:
        return Request([b"HDEL", key_word(key), *map(word, removed)], ok)
    return _without_outcome(exchange(key, Exchange(set=changes)))


def delete(key: Key) -> Request[bool]:
    return Request([b"DEL", key_word(key)], flag)


def compare_and_swap(key: Key, field: str, expected: Value, value: Value) -> Request[bool]:
    words = [word(field), word(expected), word(value)]
    by_script = plain.script(plain.COMPARE_AND_SWAP, key_word(key), *words)
    return Request([b"HCAS", key_word(key), *words], flag, plain=by_script)


def exchange(key: Key, wanted: Exchange) -> Request[Outcome]:
    values, removed = _split(wanted.set)
    counted_list(wanted.remove)  # which refuses a single name
    removed += wanted.remove
    lifetime = _lifetime(wanted.lifetime)
    # IF and SET are always there, even if they are empty: three words alone behind the key are HCAS's short form.
    words = [b"HCAS", key_word(key), b"IF", *counted_values(wanted.expected), b"SET", *counted_values(values)]
    if wanted.absent:
        words += [b"ABSENT", *counted_list(wanted.absent)]
    if removed:
        words += [b"DEL", *counted_list(removed)]
    if wanted.stamp:
        words += [b"STAMP", *_stamps(wanted.stamp)]
    lists = [*counted_values(wanted.expected), *counted_list(wanted.absent), *counted_values(values), *counted_list(removed)]
    by_script = plain.script(plain.EXCHANGE, key_word(key), *lists, *_stamps(wanted.stamp), b"KEEP", *lifetime)

    def read(reply: Reply) -> Outcome:
        applied, current = row(reply, 2)
        there = zip(wanted.expected, items(current))
        return Outcome(flag(applied), Fields({field: raw(value) for field, value in there if value is not None}))

    return Request([*words, *lifetime, b"WITHCURRENT"], read, plain=by_script)


def scan(
    prefix: Key, cursor: Word, limit: int, filters: Sequence[Filter], fields: Sequence[str] | None
) -> Request[tuple[Word, list[Found]]]:
    """A page: the next cursor, which is `0` behind the last one, and its records."""
    page = [b"CURSOR", cursor, b"LIMIT", whole(limit, "limit"), b"WITHTTL"]

    def read(reply: Reply) -> tuple[Word, list[Found]]:
        following, rows = row(reply, 2)
        return raw(following), [_found(each) for each in items(rows)]

    return Request([b"HFIND", key_word(prefix), *_filters(filters), *page, *_fields(fields)], read)


def check_limit(limit: int | None) -> None:
    if limit is not None and int(whole(limit, "limit")) < 0:
        raise ValueError(f"limit is {limit}, and has to be at least 0")


def found_by_scan(key: Word, record: Record, filters: Sequence[Filter], fields: Sequence[str] | None) -> Found | None:
    """A record that SCAN has named, if it passes all filters."""
    if not all(each.passes(record) for each in filters):
        return None
    wanted = record if fields is None else {field: record[field] for field in fields if field in record}
    return Found(name(key), Fields(wanted), record.ttl_ms)


def create_index(index_name: str, index: IndexDefinition) -> Request[Reply]:
    words = [b"IDX.CREATE", word(index_name), b"PREFIX", *counted_list(index.prefixes), b"FIELD", word(index.field)]
    if index.only is not None:
        words += [b"ONLY", *_condition(index.only)]
    if index.exclude is not None:
        words += [b"EXCLUDE", *_condition(index.exclude)]
    if index.stamp:
        words.append(b"STAMP")
    if index.group is not None:
        words += [b"GROUP", word(index.group)]
    if index.held is not None:
        words += [b"HELD", *_condition(index.held)]
    return Request(words, lambda reply: reply)


def drop_index(index_name: str) -> Request[bool]:
    return Request([b"IDX.DROP", word(index_name)], flag)


def indexes() -> Request[list[str]]:
    return Request([b"IDX.LIST"], lambda reply: [name(each) for each in items(reply)])


def range_(
    index: str, min: Score, max: Score, reverse: bool, filters: Sequence[Filter], limit: int | None, fields: Sequence[str] | None
) -> Request[list[Indexed]]:
    words = [b"IDX.RANGE", word(index), word(min), word(max)]
    if reverse:
        words.append(b"REV")
    words += _filters(filters)
    if limit is not None:
        words += [b"LIMIT", whole(limit, "limit")]
    return Request([*words, b"WITHTTL", *_fields(fields)], _all_indexed)


def claim(wanted: Claim) -> Request[list[Indexed]]:
    words = [b"CLAIM", *counted_list(wanted.indexes)]
    if wanted.min is not None:
        words += [b"MIN", word(wanted.min)]
    if wanted.max is not None:
        words += [b"MAX", word(wanted.max)]
    for condition in wanted.where.items():
        words += [b"WHERE", *_condition(condition)]
    words += [b"SET", *counted_values(wanted.set)]
    if wanted.counter is not None:
        words += [b"COUNTER", word(wanted.counter)]
    if wanted.up_to is not None:
        words += [b"UPTO", whole(wanted.up_to.max, "max"), b"ELSE", *counted_values(wanted.up_to.otherwise)]
    words += [b"COUNT", whole(wanted.count, "count"), *block(wanted.wait_ms)]
    if wanted.order is not None:
        words += [b"ORDER", word(wanted.order)]
    return Request([*words, b"WITHTTL", *_fields(wanted.fields)], _all_indexed, wanted.wait_ms)


def sweep(wanted: Sweep) -> Request[list[Swept]]:
    words = [b"SWEEP", word(wanted.index), b"BEFORE", word(wanted.before)]
    if wanted.where is not None:
        words += [b"WHERE", *_condition(wanted.where)]
    if wanted.retry is not None:
        retry = wanted.retry
        words += [b"RETRY", word(retry.counter), whole(retry.max, "max"), b"ELSE", *counted_values(retry.otherwise)]
    words += [b"SET", *counted_values(wanted.set)]
    if wanted.limit is not None:
        words += [b"LIMIT", whole(wanted.limit, "limit")]
    if wanted.publish is not None:
        words += [b"PUBLISH", word(wanted.publish)]
    return Request(words, lambda reply: [_swept(each) for each in items(reply)])


def block(wait_ms: int) -> list[Word]:
    """BLOCK 0 would wait for ever: on a connection that has silently died it would not end."""
    return [] if wait_ms == 0 else [b"BLOCK", whole(wait_ms, "wait_ms")]


def _replace(key: Key, changes: Changes, lifetime: Lifetime | None, stamp: Stamps) -> Request[None]:
    values, _ = _split(changes)
    _check_fields(values, stamp)
    if lifetime is not None and lifetime.persist:
        raise ValueError("a record cannot be replaced and persisted in one step")
    words = [b"HPUT", key_word(key), b"REPLACE", *_lifetime(lifetime)]
    if stamp:
        words += [b"STAMP", *_stamps(stamp)]
    lists = [b"0", b"0", *counted_values(values), b"0", *_stamps(stamp)]
    by_script = plain.script(plain.EXCHANGE, key_word(key), *lists, b"REPLACE", *_lifetime(lifetime))
    return Request([*words, b"FIELDS", *counted_values(values)], ok, plain=by_script)


def _without_outcome(request: Request[Outcome]) -> Request[None]:
    return Request(request.words, ok, plain=request.plain)


def _check_fields(changes: Changes, stamp: Stamps) -> None:
    if not changes and not stamp:
        raise ValueError("there are no fields to write")


def _split(changes: Changes) -> tuple[dict[str, Value], list[str]]:
    """The fields that get a value, and those that are removed."""
    values = {field: value for field, value in changes.items() if value is not None}
    return values, [field for field, value in changes.items() if value is None]


def _lifetime(lifetime: Lifetime | None) -> list[Word]:
    return [] if lifetime is None else lifetime.words()


def _found(reply: Reply) -> Found:
    key, fields, ttl_ms = row(reply, 3)
    return Found(name(key), read_fields(fields), read_ttl(ttl_ms))


def _all_indexed(reply: Reply) -> list[Indexed]:
    rows = (row(each, 4) for each in items(reply))
    return [Indexed(name(key), double(score), read_fields(fields), read_ttl(ttl_ms)) for key, score, fields, ttl_ms in rows]


def _swept(reply: Reply) -> Swept:
    key, fate = row(reply, 2)
    if (known := _FATES.get(text(fate))) is None:
        raise ReplyError(f"a record was neither requeued nor exhausted but {fate!r:.200}")
    return Swept(name(key), known)


def _stamps(stamps: Stamps) -> list[Word]:
    pairs = ((word(field), whole(offset, f"the offset of {field}")) for field, offset in stamps.items())
    return [b"%d" % len(stamps), *flat(pairs)]


def _condition(condition: Condition) -> list[Word]:
    field, values = condition
    return [word(field), *counted_list(values)]


def _filters(filters: Sequence[Filter]) -> list[Word]:
    return flat(each.words for each in filters)


def _fields(names: Sequence[str] | None) -> list[Word]:
    return [] if names is None else [b"FIELDS", *counted_list(names)]
