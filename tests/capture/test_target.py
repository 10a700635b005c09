"""From the words of a command line to a function with its inputs, or one line that says what is wrong."""

import pytest

from traceanalyzer.capture.asked import Asked
from traceanalyzer.capture.target import load
from traceanalyzer.errors import CaptureUnavailable, OptionError

MODULE = """
import math
def plain(): return 1.0
def takes(a, b): return a * b
def takes_inputs(preset="small", seed=0, dtype="", device=""): return {"small": (2, 3), "large": (20, seed)}[preset or "small"]
def takes_reference(a, b): return a * b
takes_tolerance = (0.1, 0.2)
takes_flops = lambda a, b: a * b
takes_bytes_moved = 24
def needs(a): return a
def named(*, a): return a
def named_inputs(): return {"a": 5}
def broken(a): return a
def broken_inputs(): raise ValueError("no\\nsuch size")
def axes(a): return a
def axes_inputs(n, seed, rows): return (n,)
def optional(a=3): return a
class Thing:
    def method(self): return 1
    @staticmethod
    def static(): return 2
number = 3
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "ops_under_test.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def loaded(module, function, **asked):
    return load(Asked(f"{module}:{function}", **asked), "cpu")


def test_a_function_without_arguments_is_taken_as_it_is(module):
    found = loaded(module, "plain")
    assert found.fn() == 1.0 and (found.args, found.kwargs) == ((), {}) and found.name == "plain"


def test_inputs_reference_tolerance_and_work_are_found_beside_the_function(module):
    found = loaded(module, "takes")
    assert found.args == (2, 3) and found.reference(2, 3) == 6
    assert (found.tolerance, found.flops, found.bytes_moved) == ((0.1, 0.2), 6, 24)


def test_the_input_maker_gets_what_it_takes(module):
    assert loaded(module, "takes", preset="large", seed=7).args == (20, 7)
    assert loaded(module, "named").kwargs == {"a": 5}


def test_a_given_tolerance_wins(module):
    assert loaded(module, "takes", tolerance=(1.0, 2.0)).tolerance == (1.0, 2.0)


def test_a_static_method_can_be_named(module):
    assert loaded(module, "Thing.static").fn() == 2


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        ("plian", "no_such_function", "did you mean 'plain'"),
        ("Thing", "not_a_function", "class"),
        ("number", "not_a_function", "int"),
        ("needs", "no_inputs", "define needs_inputs()"),
        ("axes", "inputs_not_given", "axes_inputs needs a value for n, rows; give its parameters defaults"),
    ],
)
def test_what_cannot_be_called_is_said_with_what_to_do(module, function, kind, says):
    with pytest.raises(OptionError) as caught:
        loaded(module, function)
    assert caught.value.kind == kind and says in caught.value.one_line() and caught.value.exit_code == 2
    assert str(module.parent) not in caught.value.one_line()


def test_an_input_maker_that_fails_is_named(module):
    with pytest.raises(CaptureUnavailable) as caught:
        loaded(module, "broken")
    assert "broken_inputs failed: ValueError: no such size" in caught.value.one_line() and caught.value.exit_code == 4


def test_a_preset_without_an_input_maker_is_refused(module):
    with pytest.raises(OptionError, match="needs an input maker"):
        loaded(module, "plain", preset="large")


@pytest.mark.parametrize("target", ["nowhere.py:f", "no.such.module:f", ":f"])
def test_a_file_or_module_that_is_not_there_is_bad_input(target):
    with pytest.raises(OptionError):
        load(Asked(target), "cpu")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(:\n  pass\n", "SyntaxError, line 1"),
        ("import no_such_package_xyz\n", "ModuleNotFoundError"),
        ("import sys; sys.exit(3)\n", "SystemExit"),
    ],
)
def test_a_file_that_does_not_import_is_one_line(tmp_path, source, says):
    path = tmp_path / "does_not_import.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(CaptureUnavailable) as caught:
        load(Asked(f"{path}:f"), "cpu")
    assert says in caught.value.one_line() and "'does_not_import.py'" in caught.value.one_line()


def test_a_word_that_is_nearly_a_kernel_is_suggested():
    with pytest.raises(OptionError, match="names no function") as caught:
        load(Asked("sofmax"), "cpu")
    assert "did you mean the kernel 'softmax'" in caught.value.one_line()


def test_a_kernel_of_this_project_runs_what_the_device_can_run():
    pytest.importorskip("torch", reason="the kernels need torch")
    found = load(Asked("softmax", preset="tiny"), "cpu")
    assert found.name == "softmax_reference_tiny_fp32" and found.bytes_moved > 0 and found.inputs
    with pytest.raises(CaptureUnavailable, match="triton"):
        load(Asked("softmax", preset="tiny", implementation="triton"), "cpu")


def test_a_module_is_found_by_its_name(tmp_path, monkeypatch):
    from traceanalyzer.capture.target import module_of

    (tmp_path / "ops_by_name.py").write_text("def f():\n    return 1\n")
    monkeypatch.chdir(tmp_path)
    assert module_of("ops_by_name").f() == 1
