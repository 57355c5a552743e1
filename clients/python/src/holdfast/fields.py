"""The fields of a record as a reply has them. Knows no server."""

from collections.abc import Iterator, Mapping

from . import replies
from .errors import ReplyError
from .replies import Reply


class Fields(Mapping[str, bytes]):
    """Fields of a record: names are text, values are bytes. A name that is not UTF-8 is text as `Key` says."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, bytes] | None = None) -> None:
        self._values = dict(values or {})

    def text(self, name: str) -> str | None:
        """A field's value as text. Bytes that are no UTF-8 are a ReplyError."""
        return replies.optional(self._values.get(name), replies.text)

    def integer(self, name: str) -> int | None:
        """A field's value, if it is a whole number."""
        try:
            return replies.optional(self._values.get(name), replies.integer)
        except ReplyError:
            return None

    def to_dict(self) -> dict[str, str]:
        """All fields as text."""
        return {name: replies.text(value) for name, value in self._values.items()}

    def __getitem__(self, name: str) -> bytes:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"


class Record(Fields):
    """A record: its fields, and how long it lives."""

    __slots__ = ("ttl_ms",)

    #: How long it still lived when it was read, in milliseconds; None without an end.
    ttl_ms: int | None

    def __init__(self, values: Mapping[str, bytes] | None = None, ttl_ms: int | None = None) -> None:
        super().__init__(values)
        self.ttl_ms = ttl_ms

    def __repr__(self) -> str:
        return f"Record({self._values!r}, ttl_ms={self.ttl_ms!r})"


def read_fields(reply: Reply) -> Fields:
    """The map of fields in a reply."""
    return Fields(read_values(reply))


def read_values(reply: Reply) -> dict[str, bytes]:
    return {replies.name(name): replies.raw(value) for name, value in replies.pairs(reply)}


def read_ttl(reply: Reply) -> int | None:
    """A time to live, as PTTL has it."""
    ttl_ms = replies.integer(reply)
    return None if ttl_ms < 0 else ttl_ms
