"""Dataclasses whose methods are not compiled one by one: that was two fifths of what importing a report took.

``record`` is :func:`dataclasses.dataclass` for classes of plain fields, with the same behaviour (``fields``, ``replace``, ``asdict``
and ``pickle`` included). The methods are shared and read the fields when they are called, so they suit classes of which
a report makes hundreds, not millions.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool = False) -> Any:
        """Return the decorator of a class of fields; ``frozen``: its instances do not change and have a hash."""
        return partial(_made, frozen)


def _made(frozen: bool, cls: type) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else its signature would be worked out
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    own = fields(made)
    if any(not f.init or f.kw_only for f in own):
        raise TypeError(f"{cls.__name__}: a record has plain fields only")
    defaults = {f.name: f.default for f in own if f.default is not MISSING}
    factories = {f.name: f.default_factory for f in own if f.default_factory is not MISSING}
    methods = {
        "__init__": _init, "__repr__": _repr, "__eq__": _equal,
        "_record": ([f.name for f in own], defaults, factories, hasattr(made, "__post_init__")),
    }  # fmt: skip
    if "__hash__" not in cls.__dict__ and "__eq__" not in cls.__dict__:
        methods["__hash__"] = _hash if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        if name not in cls.__dict__ or name == "__hash__":
            setattr(made, name, method)
    return made


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    names, defaults, factories, completes = self._record
    values = self.__dict__
    if len(given) > len(names):
        raise TypeError(f"{type(self).__name__}() takes {len(names)} arguments, {len(given)} were given")
    values.update(zip(names, given))  # noqa: B905 - what is missing follows
    for name, value in named.items():
        if name in values or name not in names:
            fault = "several values for" if name in values else "an unexpected"
            raise TypeError(f"{type(self).__name__}() got {fault} argument {name!r}")
        values[name] = value
    if len(values) < len(names):
        for name in names:
            if name in values:
                continue
            if name in defaults:
                values[name] = defaults[name]
            elif name in factories:
                values[name] = factories[name]()
            else:
                raise TypeError(f"{type(self).__name__}() lacks the argument {name!r}")
    if completes:
        self.__post_init__()


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, f.name) for f in fields(self) if f.compare)


def _equal(self: Any, other: Any) -> Any:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")
