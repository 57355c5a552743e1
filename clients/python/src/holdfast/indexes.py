"""The definition of an index: how two are compared, and how one takes the place of another. Knows no connection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .errors import HoldfastError, ServerError
from .records import Condition, IndexDefinition, create_index
from .replies import Reply, flag, items, named, optional, raw
from .request import Request
from .words import Key, Word, counted_list, key_word, word

#: What creating an index does if there is one of that name with another definition: `"raise"` an IndexDiffersError, `"keep"` the one that is
#: there, or `"replace"` it.
OnDifference: TypeAlias = Literal["raise", "keep", "replace"]

_CHOICES = ("raise", "keep", "replace")

#: The parts of a definition, in the words of IDX.CREATE.
_PARTS = ("PREFIX", "FIELD", "ONLY", "EXCLUDE", "STAMP", "GROUP", "HELD")

#: Runs commands about an index in one step: that which drops it, one that makes it, one that makes it as it was, and those that limit it.
#: ARGV: n word ... for each.
_REPLACE = b"""local commands, at = {}, 1
while ARGV[at] do
    local length = tonumber(ARGV[at])
    commands[#commands + 1] = {unpack(ARGV, at + 1, at + length)}
    at = at + 1 + length
end
redis.call(unpack(commands[1]))
local made = redis.pcall(unpack(commands[2]))
if made.err then redis.call(unpack(commands[3])) end
for i = 4, #commands do redis.call(unpack(commands[i])) end
if made.err then return made end
return 1"""


class IndexDiffersError(HoldfastError):
    """There is an index of that name with another definition. Nothing was changed."""

    index: str
    #: What differs, each as a sentence.
    differences: Sequence[str]

    def __init__(self, index: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"there is an index {index} already, with another definition: {'; '.join(differences)}. Choose another name, or say with "
            "on_difference whether to keep it or to replace it"
        )
        self.index, self.differences = index, differences


class OutsideIndexError(HoldfastError):
    """The key of a job has none of the prefixes of its queue's indexes: no worker would claim it. Nothing was changed."""

    key: str
    #: The prefixes that the indexes have.
    prefixes: Sequence[str]

    def __init__(self, key: Key, prefixes: Iterable[Word]) -> None:
        self.key = key_word(key).decode(errors="surrogateescape")
        self.prefixes = sorted(each.decode(errors="surrogateescape") for each in prefixes)
        super().__init__(f"the key {self.key!r} is in no index of the queue: their keys begin with {', '.join(map(repr, self.prefixes))}")


@dataclass(frozen=True)
class DefinitionWords:
    """A definition in the form in which two are compared, and of which IDX.CREATE is made."""

    prefixes: frozenset[Word]
    parts: tuple[tuple[Word, ...], ...]

    @classmethod
    def of(cls, index: IndexDefinition) -> "DefinitionWords":
        def condition(given: Condition | None) -> tuple[Word, ...]:
            return () if given is None else (word(given[0]), *sorted(set(map(word, given[1]))))

        group = () if index.group is None else (word(index.group),)
        stamp = (b"1",) if index.stamp else ()
        prefixes = counted_list(index.prefixes)[1:]
        parts = ((word(index.field),), condition(index.only), condition(index.exclude), stamp, group, condition(index.held))
        return cls(frozenset(prefixes), parts)

    def differences(self, wanted: "DefinitionWords") -> list[str]:
        mine, others = ((tuple(sorted(each.prefixes)), *each.parts) for each in (self, wanted))
        pairs = zip(_PARTS, mine, others)
        return [f"{part} is {_shown(there)} there, and {_shown(asked)} here" for part, there, asked in pairs if there != asked]

    def create(self, index_name: str) -> list[Word]:
        """The command that makes such an index."""
        field, only, exclude, stamp, group, held = self.parts
        words = [b"IDX.CREATE", word(index_name), b"PREFIX", *counted_list(sorted(self.prefixes)), b"FIELD", *field]
        for option, condition in ((b"ONLY", only), (b"EXCLUDE", exclude), (b"HELD", held)):
            if condition:
                words += [option, condition[0], *counted_list(condition[1:])]
        return words + ([b"GROUP", *group] if group else []) + ([b"STAMP"] if stamp else [])

    def keeps_limits(self, wanted: "DefinitionWords") -> bool:
        """Whether limits of the one have the same meaning in the other: groups and held records are the same."""
        return self.parts[4:] == wanted.parts[4:]


def check_choice(on_difference: OnDifference) -> None:
    if on_difference not in _CHOICES:
        raise ValueError(f"on_difference is {on_difference!r}, and has to be one of {', '.join(_CHOICES)}")


def is_dropped(error: Exception) -> bool:
    """Whether a claim has ended because an index that it waited for was dropped. Another one may be in its place."""
    return isinstance(error, ServerError) and str(error).endswith("was dropped")


def create_if_absent(index_name: str, index: IndexDefinition) -> Request[bool]:
    """Makes an index, or finds that the same is there. A server that does not know IFABSENT refuses it."""
    create, name, *definition = create_index(index_name, index).words
    return Request([create, name, b"IFABSENT", *definition], flag)


def definition(index_name: str) -> Request[DefinitionWords]:
    """The definition of an index that is there."""

    def read(reply: Reply) -> DefinitionWords:
        info = named(reply)

        def condition(part: str) -> tuple[Word, ...]:
            field, *values = [raw(each) for each in items(info.get(part) or [])] or [b""]
            return (field, *sorted(set(values))) if values else ()

        group = optional(info.get("group"), raw)
        stamp = (b"1",) if flag(info.get("stamp", 0)) else ()
        parts = ((raw(info["field"]),), condition("only"), condition("exclude"), stamp, () if group is None else (group,), condition("held"))
        return DefinitionWords(frozenset(raw(each) for each in items(info["prefixes"])), parts)

    return Request([b"IDX.INFO", word(index_name)], read)


def replace(index_name: str, there: DefinitionWords, wanted: DefinitionWords, limits: Sequence[Sequence[Word]]) -> Request[bool]:
    """Drops an index and makes another one in its place, in one step; then its limits are set by these commands."""
    commands = [[b"IDX.DROP", word(index_name)], wanted.create(index_name), there.create(index_name), *limits]
    words = [each for command in commands for each in (b"%d" % len(command), *command)]
    return Request([b"EVAL", _REPLACE, b"0", *words], flag)


def _shown(part: tuple[Word, ...]) -> str:
    return " ".join(each.decode(errors="backslashreplace") or "''" for each in part) if part else "not given"
