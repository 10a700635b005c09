"""One table of host API names, a test per name."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.trace.categories import RowKind, kind_of
from traceanalyzer.trace.launch_names import API_CLASSES, LAUNCHES, ApiClass, classify_api


@pytest.mark.parametrize("api", sorted(n for n, c in API_CLASSES.items() if c in LAUNCHES))
def test_each_launch_owns_its_device_row(tmp_path, api):
    report = ta.analyze(
        trace().launch(0, api=api).kernel(6, 5).launch(10, api=api).kernel(16, 5).write(tmp_path / "t.json")
    ).data
    assert report.coverage.by_api[0].api == api and report.coverage.by_api[0].known
    assert (report.trace.linked, report.trace.launches) == (2, 2)
    by_name = API_CLASSES[api] in (ApiClass.KERNEL_LAUNCH, ApiClass.GRAPH_LAUNCH)
    assert report.threads[0].kernel_launches == (2 if by_name else 0)


@pytest.mark.parametrize("api", sorted(n for n, c in API_CLASSES.items() if c not in LAUNCHES))
def test_each_other_call_is_no_lost_launch(tmp_path, api):
    report = ta.analyze(trace().call(0, 6, 5).launch(20, api=api).write(tmp_path / "t.json")).data
    assert report.coverage.launches_without_device_row == 0


@pytest.mark.parametrize("suffix", ["_v2", "_ptsz", "_ptds", "_v3020", "_spt", "_v2_ptsz"])
def test_variants_of_a_name_are_the_same_call(suffix):
    assert classify_api("cuLaunchKernel" + suffix) is ApiClass.KERNEL_LAUNCH


def test_an_unknown_call_links_and_is_named_as_unknown(tmp_path):
    report = ta.analyze(
        trace().launch(0, api="fooLaunch", category="foo_runtime").kernel(6, 5).write(tmp_path / "t.json")
    ).data
    assert report.trace.linked == 1
    assert [(r.api, r.known) for r in report.coverage.by_api] == [("fooLaunch", False)]


@pytest.mark.parametrize(
    "category",
    [
        "cuda_runtime", "cuda_driver", "Runtime", "runtime", "hip_runtime", "xpu_runtime", "xpu_driver", "mtia_runtime",
        "privateuse1_runtime", "privateuse1_driver", "PrivateUse1_Runtime", "tomorrow_driver",
    ],
)  # fmt: skip
def test_host_calls_of_every_vendor_are_host_calls(category, tmp_path):
    assert kind_of(category) is RowKind.CALL
    built = trace().launch(0, category=category).kernel(6, 5)
    assert ta.analyze(built.write(tmp_path / "t.json")).data.trace.linked == 1


@pytest.mark.parametrize(
    ("category", "kind"),
    [("kernel", "KERNEL"), ("Kernel", "KERNEL"), ("Memcpy", "MEMCPY"), ("gpu_memcpy", "MEMCPY"), ("memcpy", "MEMCPY"),
     ("Memset", "MEMSET"), ("gpu_memset", "MEMSET"), ("Operator", "HOST_OP"), ("cpu_op", "HOST_OP"), ("python_function", "PYTHON")],
)  # fmt: skip
def test_categories_of_every_generation(category, kind):
    assert kind_of(category) is RowKind[kind]
