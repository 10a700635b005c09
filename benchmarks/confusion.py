"""Counts, for each rule, how often it fires where it must and where it must not; writes docs/confusion.md.

Usage: python benchmarks/confusion.py SHARED, where SHARED holds ``cases/`` and ``traces/``. Labelled are the public
cases with a verdict, real traces whose queue state their description gives, simulated runs of known kind, and the
examples in the rule files.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402

import traceanalyzer as ta  # noqa: E402
from tests.cases.test_public_cases import FAMILY_2  # noqa: E402
from tests.kineto_writer import document, to_json  # noqa: E402
from tests.queue_sim import Machine  # noqa: E402
from traceanalyzer.doctor.example import write_example, write_pair  # noqa: E402
from traceanalyzer.doctor.registry import ALL_RULES, COMPARISON_RULES, RULES  # noqa: E402
from traceanalyzer.options import parse_claim  # noqa: E402

CAUSE = {**FAMILY_2, "no_gpu_kernels": "TA101", "incomplete_gpu_record": "TA103", "cpu_bound": "TA201"}
REAL = {
    "b200_eager": "TA201", "h100_falconsai": "TA201", "leimao_mlp_eager": "TA201",
    "h100_owlv2": "not TA201", "leimao_mlp_graph": "not TA201", "v100_ns_resolution": "not TA201",
    "mi300_torch_compile_triton": "not TA201", "mi300_vllm_graph": "not TA201", "mi300_graph_capture_only": "not TA201",
    "b200_gpu_before_launch": "not TA201",
}  # fmt: skip
RUNS = 100


class Counts:
    """Fired and not, where a rule must (``hit``, ``miss``) and must not (``alarm``, ``quiet``)."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, code: str, wanted: bool, fired: bool, name: str) -> None:
        """Count one judgement of one rule on one trace."""
        cell = ("hit" if fired else "miss") if wanted else ("alarm" if fired else "quiet")
        self.cells[code][cell].append(name)

    def sound(self, warned: set[str], name: str) -> None:
        """Count a trace on which no rule may warn."""
        for rule in RULES:
            self.add(rule.code, False, rule.code in warned, name)


def codes(path: Path, claims: tuple[str, ...] = (), *, notes: bool = True) -> set[str]:
    """Return the rules that fire on a file; without notes only warnings and errors."""
    options = ta.AnalysisOptions(claims=tuple(parse_claim(c) for c in claims))
    found = ta.analyze(path, options=options).to_dict()["findings"]
    return {f["rule"] for f in found if notes or f["severity"] != "note"}


def count_cases(counts: Counts, cases: Path) -> int:
    """Judge the public cases: the named cause must fire, nothing may warn on a sound one."""
    n = 0
    for folder in sorted(p for p in cases.iterdir() if (p / "expected.json").is_file()):
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        if expected["family"] not in (1, 2) or not expected.get("input"):
            continue  # made for other commands
        verdict, path = expected.get("verdict"), folder / expected["input"]
        claims: tuple[str, ...] = ()
        if (folder / "claim.json").is_file():
            claims = (f"{json.loads((folder / 'claim.json').read_text(encoding='utf-8'))['claimed_us']}us",)
        if verdict == "gpu_bound":
            counts.sound(codes(path, claims, notes=False), folder.name)
        elif verdict in CAUSE:
            fired = codes(path, claims)
            counts.add(CAUSE[verdict], True, CAUSE[verdict] in fired, folder.name)
        else:
            continue
        n += 1
    return n


def count_real(counts: Counts, traces: Path) -> int:
    """Judge the queue state of real traces that is known."""
    found = {name: next(traces.glob(f"{name}.json*")) for name in REAL if any(traces.glob(f"{name}.json*"))}
    for name, path in found.items():
        counts.add("TA201", REAL[name] == "TA201", "TA201" in codes(path), name)
    return len(found)


def count_simulated(counts: Counts, folder: Path) -> int:
    """Judge jittered runs: sound, CPU-bound, and with a synchronise in every call."""
    rng = np.random.default_rng(20261130)
    for i in range(3 * RUNS):
        kind = ("sound", "cpu-bound", "sync")[i % 3]
        kernel = int(rng.integers(15_000, 200_000))
        host = int(kernel * (rng.uniform(2, 6) if kind == "cpu-bound" else rng.uniform(0.1, 0.6)))
        machine = Machine(gap=1000, jitter=float(rng.uniform(0, 0.05)), rng=np.random.default_rng(i))  # type: ignore[arg-type]
        for _ in range(int(rng.integers(40, 150))):
            machine.launch("simulated_kernel", kernel, host_cost=max(host, 4000), call=3000)
            if kind == "sync":
                machine.sync()
        if kind != "sync":
            machine.sync()
        path = folder / f"{kind}-{i}.json"
        path.write_text(to_json(document(machine)), encoding="utf-8")
        if kind == "sound":
            counts.sound(codes(path, notes=False), path.stem)
        else:
            code = "TA201" if kind == "cpu-bound" else "TA301"
            fired = codes(path)
            counts.add(code, True, code in fired, path.stem)
    return 3 * RUNS


def count_examples(counts: Counts, folder: Path) -> int:
    """Judge the positive and negative examples that each rule carries."""
    n = 0
    for rule in RULES:
        for wanted, examples in ((True, rule.positive), (False, rule.negative)):
            for example in examples:
                path = folder / f"{rule.code}-{n}.json"
                write_example(example, path)
                counts.add(rule.code, wanted, rule.code in codes(path, example.claims), f"{rule.code}: {example.title}")
                n += 1
    return n


def count_pairs(counts: Counts, folder: Path) -> int:
    """Judge the pairs of traces that each rule on two traces carries."""
    n = 0
    for rule in COMPARISON_RULES:
        for wanted, examples in ((True, rule.pair_positive), (False, rule.pair_negative)):
            for example in examples:
                found = ta.compare(*write_pair(example, folder)).data.findings
                counts.add(rule.code, wanted, rule.code in {f.rule for f in found}, f"{rule.code}: {example.title}")
                n += 1
    return n


FEW = 4


def page(counts: Counts, sizes: dict[str, int]) -> str:
    """Return the Markdown page."""
    lines = [
        "# How often each rule is right",
        "",
        "Made by `python benchmarks/confusion.py SHARED`. Counted are "
        + ", ".join(f"{n} {what}" for what, n in sizes.items())
        + ". *Must fire* is known from the label; *must not* are sound traces, on which a warning is an alarm, and the "
        "negative examples. What a label says nothing about is not counted. How often a comparison calls equal runs different is "
        "in [compare.md](compare.md).",
        "",
        _how_few(counts),
        "",
        "| rule | must fire | fired | missed | must not | silent | false alarm |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    wrong = []
    for rule in ALL_RULES:
        hit, miss, alarm, quiet = (counts.cells[rule.code][k] for k in ("hit", "miss", "alarm", "quiet"))
        lines.append(
            f"| {rule.code} {rule.name} | {len(hit) + len(miss)} | {len(hit)} | {len(miss)} | "
            f"{len(alarm) + len(quiet)} | {len(quiet)} | {len(alarm)} |"
        )
        wrong += [f"- {rule.code} missed `{name}`" for name in miss]
        wrong += [f"- {rule.code} false alarm on `{name}`" for name in alarm]
    lines += ["", "## Wrong", "", *(wrong or ["None."])]
    return "\n".join(lines) + "\n"


def _how_few(counts: Counts) -> str:
    """Return how little most rows of the table can show: none missed of n leaves up to 3/n possible (rule of three, 95 %)."""
    positives = [len(counts.cells[r.code]["hit"]) + len(counts.cells[r.code]["miss"]) for r in ALL_RULES]
    few = sum(n <= FEW for n in positives)
    return (
        f"**Most rules have few positives.** {few} of {len(positives)} rules have {FEW} or fewer cases that must fire, most of them the examples in "
        f"the rule's own file: none missed of {FEW} says nothing of how often a rule misses. With n cases and none missed, up to 3/n of all "
        "such traces may be missed (95 %). False alarms are known better: none in 103 sound traces means at most 3 in 100."
    )


def main() -> None:
    """Count and write the page."""
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/confusion.py SHARED (the folder with cases/ and traces/)")
    shared, counts = Path(sys.argv[1]), Counts()
    with tempfile.TemporaryDirectory() as folder:
        sizes = {
            "public cases": count_cases(counts, shared / "cases"),
            "real traces": count_real(counts, shared / "traces"),
            "simulated runs": count_simulated(counts, Path(folder)),
            "examples in rule files": count_examples(counts, Path(folder)),
            "pairs of traces in rule files": count_pairs(counts, Path(folder)),
        }
    (HERE.parent / "docs" / "confusion.md").write_text(page(counts, sizes), encoding="utf-8")


if __name__ == "__main__":
    main()
