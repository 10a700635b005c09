"""docs/ci.md: its workflow is valid and fits action.yml, and its comment step is run against a stand-in for GitHub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.action.composite import ACTION, ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.S)[1])
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
OURS = next(s for s in STEPS if s.get("uses", "").startswith("OWNER/traceanalyzer@"))
COMMENT = next(s for s in STEPS if s.get("name", "").startswith("One comment"))


def rows(head: str) -> list[list[str]]:
    table = PAGE[PAGE.index(f"| {head} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_the_workflow_gives_only_inputs_and_takes_only_outputs_that_the_action_has():
    assert set(OURS["with"]) <= set(ACTION["inputs"])
    assert {n for n, spec in ACTION["inputs"].items() if spec.get("required")} <= set(OURS["with"])
    used = set(re.findall(rf"steps\.{OURS['id']}\.outputs\.([a-z-]+)", PAGE))
    assert used and used <= set(ACTION["outputs"])


def test_the_tables_name_every_input_with_its_default_and_every_output():
    inputs = {row[0].strip("`"): row[1] for row in rows("input")}
    assert set(inputs) == set(ACTION["inputs"])
    for name, default in inputs.items():
        spec = ACTION["inputs"][name]
        given = spec.get("default", "")
        assert default == ("required" if spec.get("required") else f"`{given}`" if given else default)
        assert given or default in ("required", "none", "next to the summary")
    assert {row[0].strip("`") for row in rows("output")} == set(ACTION["outputs"])


def test_actions_of_others_are_pinned_and_no_expression_stands_in_shell():
    for step in STEPS:
        if "uses" in step and step is not OURS:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        assert "${{" not in step.get("run", "")


def test_steps_need_what_they_refer_to():
    ids = {s["id"] for s in STEPS if "id" in s}
    assert set(re.findall(r"steps\.([\w-]+)\.", json.dumps(WORKFLOW))) <= ids
    assert WORKFLOW["jobs"]["report"]["needs"] == "measure" and WORKFLOW["permissions"] == {"contents": "read"}
    # by the name of the workflow the base's run is found
    base = next(s for s in STEPS if s.get("name") == "Traces of the base branch")
    assert f"--workflow {WORKFLOW['name']} " in base["run"]


GITHUB = """#!{python}
# stands in for `gh api`: comments are a JSON file, and --jq is jq's work, as it is gh's
import json, subprocess, sys
from pathlib import Path
args = sys.argv[2:]
path = next(a for a in args if a.startswith("repos/"))
store = Path({store!r})
comments = json.loads(store.read_text())
def option(name):
    return args[args.index(name) + 1] if name in args else None
method, body = option("--method") or "GET", option("--field")
with open({calls!r}, "a") as calls:
    calls.write(method + " " + path + "\\n")
if method == "GET":
    assert path == "repos/o/r/issues/7/comments" and "--paginate" in args
    # two pages, filtered one by one
    for page in (comments[:2], comments[2:]):
        out = subprocess.run(["jq", "-r", option("--jq")], input=json.dumps(page), capture_output=True, text=True, check=True)
        sys.stdout.write(out.stdout)
else:
    text = Path(body.removeprefix("body=@")).read_text()
    assert 0 < len(text) <= 65536
    if method == "POST":
        assert path == "repos/o/r/issues/7/comments"
        comments.append({{"id": 100 + len(comments), "user": {{"login": "github-actions[bot]"}}, "body": text}})
    else:
        number = int(path.removeprefix("repos/o/r/issues/comments/"))
        next(c for c in comments if c["id"] == number)["body"] = text
    store.write_text(json.dumps(comments))
"""


def post(folder: Path, text: str) -> list[dict]:
    """Run the comment step of the page and return the comments there are then."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "gh").write_text(
        GITHUB.format(python=sys.executable, store=str(folder / "store.json"), calls=str(folder / "calls"))
    )
    (tools / "gh").chmod(0o755)
    comment = folder / "the comment.md"
    comment.write_text(text)
    env = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r", "NUMBER": "7", "COMMENT": str(comment), "GH_TOKEN": "none",
    }  # fmt: skip
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", COMMENT["run"]]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "store.json").read_text())


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_comment_step_writes_one_comment_and_then_updates_it_and_touches_no_other(tmp_path):
    marked = "<!-- traceanalyzer:report -->\n"
    others = [
        {"id": 1, "user": {"login": "somebody"}, "body": f"{marked}forged"},
        {"id": 2, "user": {"login": "github-actions[bot]"}, "body": "another bot's"},
        {"id": 3, "user": {"login": "github-actions[bot]"}, "body": f"quoting {marked}"},
    ]
    (tmp_path / "store.json").write_text(json.dumps(others))
    first = post(tmp_path, f'{marked}first $(x) "quoted"\n')
    assert first[:3] == others and len(first) == 4 and first[3]["body"] == f'{marked}first $(x) "quoted"\n'
    second = post(tmp_path, f"{marked}second\n")
    assert second[:3] == others and len(second) == 4 and second[3]["body"] == f"{marked}second\n"
    assert [c.split()[0] for c in (tmp_path / "calls").read_text().splitlines()] == ["GET", "POST", "GET", "PATCH"]
