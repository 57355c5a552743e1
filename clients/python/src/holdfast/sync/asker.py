"""What cells and runs need of a store or a transaction. Knows no connection."""

from typing import Protocol, TypeVar

from ..request import Request

T = TypeVar("T")


class Ask(Protocol):
    def __call__(self, request: Request[T]) -> T: ...
