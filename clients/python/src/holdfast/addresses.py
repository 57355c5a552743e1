"""The addresses of servers of which one writes: how they are written, and what each server says of its role. Knows no connection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple

from .errors import HoldfastError, NoWriterError, ReplyError, ServerError
from .replies import Reply, integer, items, raw

PORT = 6379

#: How many addresses are kept beside those that the program gives.
NAMED_MAX = 64

_SCHEMES = {"holdfast": "redis", "holdfasts": "rediss"}


class Address(NamedTuple):
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """`host:port`, `[::1]:port`, or a host alone."""
        host, colon, port = text.rpartition(":")
        if not colon or text.endswith("]"):
            host, port = text, str(PORT)
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text} is no address: an IPv6 address has brackets, as in [::1]:6379")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ValueError(f"{text} is no address: it has to be host:port")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def resolve(self, named: str, port: int) -> "Address | None":
        """An address that the server at this one has named. The server's own loopback is the machine on which it runs."""
        if not named or named == "?" or not 0 < port < 65_536:
            return None
        return Address(self.host if _is_loopback(named) else named, port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def split_url(url: str, addresses: Sequence[str] | None) -> tuple[str, list[Address]]:
    """A URL as redis-py takes it, of the first server, and the addresses of which one is to be found that writes. There are none if the
    URL has one host and no list is given."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "unix":
        if addresses is not None:
            raise ValueError(f"{url} has no host in the place of which the addresses could be")
        return url, []
    scheme = _SCHEMES.get(scheme, scheme)
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    if addresses is None:
        if "," not in hosts:
            return f"{scheme}://{rest}", []
        addresses = hosts.split(",")
    elif isinstance(addresses, str) or not addresses:
        raise ValueError("addresses is a list of host:port, with one at least")
    parsed = list(dict.fromkeys(map(Address.parse, addresses)))
    return f"{scheme}://{user}{at}{parsed[0]}{rest[end:]}", parsed


@dataclass(frozen=True)
class Answer:
    """What the server at an address has said when it was asked for its role."""

    address: Address
    #: In words, for an error.
    says: str
    is_writer: bool = False
    #: The other servers that it has named.
    named: tuple[Address, ...] = ()
    #: It does not let the user ask.
    refusal: ServerError | None = None
    #: It has said something.
    has_spoken: bool = True
    #: It has told its role: one that a long script holds up has not.
    has_role: bool = False


def read_role(address: Address, reply: Reply) -> Answer:
    """The reply of ROLE."""
    role, *rest = items(reply)
    match raw(role):
        case b"master" if len(rest) >= 2:
            rows = [items(row) for row in items(rest[1])]
            named = (address.resolve(raw(row[0]).decode(), integer(row[1])) for row in rows if len(row) >= 2)
            return Answer(address, "writes", True, tuple(each for each in named if each is not None), has_role=True)
        case b"slave" if len(rest) >= 2:
            host, port = raw(rest[0]).decode(), integer(rest[1])
            leader = address.resolve(host, port)
            return Answer(address, f"follows {leader or 'no server'}", named=() if leader is None else (leader,), has_role=True)
        case other:
            return Answer(address, f"is a {other.decode(errors='replace')}", has_role=True)


def read_failure(address: Address, error: Exception) -> Answer:
    """A server that has not told its role."""
    if isinstance(error, ServerError):
        refusal = error if error.code in ("NOAUTH", "WRONGPASS", "NOPERM") else None
        return Answer(address, f"refuses ({error.code} {error})", refusal=refusal)
    if isinstance(error, ReplyError):
        return Answer(address, f"has no role ({error})")
    return Answer(address, f"does not answer ({error})", has_spoken=False)


def no_writer(answers: Iterable[Answer]) -> HoldfastError:
    """The error if none of the servers writes. If all that answer refuse the user, so they will a little later."""
    answers = list(answers)
    spoken = [answer for answer in answers if answer.has_spoken]
    refusals = [answer.refusal for answer in spoken if answer.refusal is not None]
    if refusals and len(refusals) == len(spoken):
        return refusals[0]
    return NoWriterError({str(answer.address): answer.says for answer in answers})


class Known:
    """The addresses at which a writer may be: those of the program, and those that its servers have named."""

    def __init__(self, given: Sequence[Address]) -> None:
        self._given = list(given)
        self._named: list[Address] = []

    def all(self) -> list[Address]:
        return list(dict.fromkeys([*self._given, *self._named]))

    def learn(self, answer: Answer) -> None:
        """A writer names all its followers, so what was named before is not needed any more."""
        before = [] if answer.is_writer else self._named
        self._named = list(dict.fromkeys([*before, answer.address, *answer.named]))[:NAMED_MAX]
