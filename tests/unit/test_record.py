"""Records behave as dataclasses do; only their methods are not compiled."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

import pytest

from traceanalyzer.record import record


@record(frozen=True)
class Recorded:
    """A class of fields."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: int = field(default=3, repr=False, compare=False)

    @cached_property
    def twice(self) -> int:
        return 2 * self.a


@dataclass(frozen=True)
class Compiled:
    """The same class by the standard library."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: int = field(default=3, repr=False, compare=False)


@record(frozen=True)
class Longer(Recorded):
    """One more field, and a check."""

    e: int = 0

    def __post_init__(self) -> None:
        if self.e < 0:
            raise ValueError("negative")


@record()
class Open:
    """Not frozen."""

    a: int


CALLS = [((1,), {}), ((1, "y", [2], 4), {}), ((), {"a": 1, "c": [5]}), ((1,), {"b": "z"})]
WRONG = [((), {}), ((1, "y", [2], 4, 5), {}), ((1,), {"a": 1}), ((1,), {"f": 1})]


@pytest.mark.parametrize(("given", "named"), CALLS)
def test_a_record_holds_what_a_dataclass_holds(given, named):
    one, other = Recorded(*given, **named), Compiled(*given, **named)
    assert asdict(one) == asdict(other)
    assert repr(one) == repr(other).replace("Compiled", "Recorded")
    assert asdict(replace(one, a=9)) == asdict(replace(other, a=9))
    assert [(f.name, f.type, f.default) for f in fields(one)] == [(f.name, f.type, f.default) for f in fields(other)]


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_wrong_arguments_are_refused_by_both(given, named):
    for kind in (Recorded, Compiled):
        with pytest.raises(TypeError):
            kind(*given, **named)


def test_equality_and_hash_are_those_of_the_compared_fields():
    assert Recorded(1, d=5) == Recorded(1, d=6)
    assert Recorded(1) != Recorded(2)
    assert Recorded(1) != Compiled(1)
    assert Longer(1) != Recorded(1)
    assert hash(Longer(1, c=())) == hash(Longer(1, c=(), d=8))
    with pytest.raises(TypeError):
        hash(Open(1))


def test_a_frozen_record_does_not_change_but_caches():
    one = Recorded(4)
    for change in (lambda: setattr(one, "a", 1), lambda: delattr(one, "a"), lambda: setattr(one, "new", 1)):
        with pytest.raises(FrozenInstanceError):
            change()
    assert (one.twice, one.twice) == (8, 8)
    loose = Open(1)
    loose.a = 2
    assert loose == Open(2)


def test_a_fresh_list_each_and_the_check_of_a_subclass():
    assert Recorded(1).c is not Recorded(1).c
    assert Longer(1, e=2).e == 2
    with pytest.raises(ValueError, match="negative"):
        Longer(1, e=-1)


def test_records_go_through_pickle():
    found = pickle.loads(pickle.dumps(Longer(1, "y", [2], e=3)))
    assert found == Longer(1, "y", [2], e=3)
    with pytest.raises(FrozenInstanceError):
        found.a = 2


def test_only_plain_fields():
    with pytest.raises(TypeError, match="plain fields only"):

        @record()
        class Odd:
            a: int = field(init=False)


_USED = """
import json, sys
from click.testing import CliRunner
from traceanalyzer.cli import cli
assert CliRunner().invoke(cli, ["report", "samples/cpu_bound_loop.json"]).exit_code == 0
found = [
    f"{m.__name__}.{c.__name__}" for m in list(sys.modules.values()) if m.__name__.startswith("traceanalyzer.")
    for c in vars(m).values() if isinstance(c, type) and c.__module__ == m.__name__
    and "__dataclass_fields__" in vars(c) and "_record" not in vars(c) and "__slots__" not in vars(c)
]
print(json.dumps(found))
"""


def test_a_report_compiles_no_class():
    """That was two fifths of the time its modules take to load."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", _USED], capture_output=True, text=True, check=True, cwd=root)
    assert json.loads(done.stdout) == []
