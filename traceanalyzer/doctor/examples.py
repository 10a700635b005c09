"""The examples of a rule, built when somebody asks for them: a report needs none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Examples(Generic[T]):
    """The value of an attribute of a rule: the tuple that ``make`` returns, made once."""

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make = make
        self._made: tuple[T, ...] | None = None

    def __get__(self, rule: object, of: type | None = None) -> tuple[T, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made
