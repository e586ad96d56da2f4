"""Answers of the server as objects.

An answer keeps the JSON object it was made from, and reads a field when it is asked for. So fields
of a newer server are in `raw`, and a field that nobody reads costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Callable, Generic, TypeVar, overload

from .errors import BadAnswer
from .times import read_instant

T = TypeVar("T")
A = TypeVar("A", bound="Answer")


class Answer:
    """An object the server answered."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        #: Every field as the server sent it.
        self.raw = raw

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.raw.items())
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.raw == self.raw

    __hash__ = object.__hash__


class Field(Generic[T]):
    """A field of an answer."""

    def __init__(self, name: str, read: Callable[[Any], T], default: Callable[[], T]) -> None:
        self._name = name
        self._read = read
        self._default = default

    @overload
    def __get__(self, answer: None, kind: type[Answer]) -> Field[T]: ...

    @overload
    def __get__(self, answer: Answer, kind: type[Answer]) -> T: ...

    def __get__(self, answer: Answer | None, kind: type[Answer]) -> T | Field[T]:
        if answer is None:
            return self
        value = answer.raw.get(self._name)
        return self._default() if value is None else self._read(value)


def _required(name: str) -> Callable[[], Any]:
    def missing() -> Any:
        raise BadAnswer(f"the answer has no field `{name}`; is the server of this version?")

    return missing


def _absent() -> None:
    return None


def _span(value: Any) -> timedelta:
    return timedelta(milliseconds=value)


def text(name: str) -> Field[str]:
    """Declare a string that is always there."""
    return Field(name, str, _required(name))


def maybe_text(name: str) -> Field[str | None]:
    """Declare a string that may be absent."""
    return Field(name, str, _absent)


def number(name: str, default: int | None = None) -> Field[int]:
    """Declare a whole number, always there unless it has a default."""
    return Field(name, int, _required(name) if default is None else lambda: default)


def truth(name: str) -> Field[bool]:
    """Declare a boolean; absent is false."""
    return Field(name, bool, lambda: False)


def when(name: str) -> Field[datetime]:
    """Declare an instant that is always there."""
    return Field(name, read_instant, _required(name))


def maybe_when(name: str) -> Field[datetime | None]:
    """Declare an instant that may be absent."""
    return Field(name, read_instant, _absent)


def duration(name: str) -> Field[timedelta]:
    """Declare a span in ms; absent is none."""
    return Field(name, _span, timedelta)


def mapping(name: str) -> Field[Mapping[str, Any]]:
    """Declare an object; absent is empty."""
    return Field(name, dict, dict)


def items(name: str) -> Field[list[Any]]:
    """Declare a list; absent is empty."""
    return Field(name, list, list)


def answers(name: str, kind: type[A]) -> Field[list[A]]:
    """Declare a list of objects; absent is empty."""
    return Field(name, lambda values: [kind(value) for value in values], list)
