"""How often worth can be told on recorded traces, and how well it foresaw changes that were really made.

Usage: python benchmarks/worth_study.py FOLDER... [--pairs PAIRS.json]

Every trace of the folders is analysed: of how many devices the unchanged replay passes the gate, and why not of the others. A
pairs file is a list of {"base": FILE, "head": FILE, "change": KEY}: the head was recorded with the change made. Printed are the
factor between the recorded periods, the factor foretold from the base alone, and what the cost of the class in the ledger would
have promised (the share of the span gone).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from traceanalyzer.analysis.ledger import DeviceLedger, DrainedBy, LedgerClass
from traceanalyzer.analysis.pipeline import Analysis, analyse
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace.reader import read

COST_OF = {
    "launches_free": (
        LedgerClass.HOST_OP, LedgerClass.PYTHON, LedgerClass.BETWEEN_OPS, LedgerClass.LAUNCH_CALL, LedgerClass.LAUNCH_LATENCY,
        LedgerClass.OTHER_CALL,
    ),
    "no_allocation": (LedgerClass.ALLOCATION,),
    "no_data_loading": (LedgerClass.DATA_LOADING,),
    "no_compile": (LedgerClass.COMPILE,),
    "no_copy_calls": (LedgerClass.COPY_CALL,),
    "no_synchronise": (LedgerClass.SYNCHRONISE,),
}  # fmt: skip


def promised_by_cost(ledger: DeviceLedger, change: str) -> float:
    """Return the factor that goes by cost alone: the device's time without the class (for waits: without all they drained)."""
    if change == "no_host_waits":
        cost = ledger.drained_ns().get(DrainedBy.WAIT, 0)
    else:
        cost = sum(ledger.classes_ns().get(c, 0) for c in COST_OF[change])
    return ledger.span_ns / max(1, ledger.span_ns - cost)


def period_us(analysis: Analysis) -> float:
    """Return the mean time from unit to unit on the device with most of them."""
    ledger = max(analysis.ledgers, key=lambda found: len(found.unit_starts_ns))
    starts = ledger.unit_starts_ns
    return float(starts[-1] - starts[0]) / (len(starts) - 1) / 1000


def gate(paths: list[Path]) -> None:
    """Print of how many devices worth can be told, and why not of the others."""
    reasons: Counter[str] = Counter()
    told = devices = repeating = 0
    for path in paths:
        try:
            analysis = analyse(read(path))
        except TraceFormatError as error:
            print(f"{path.name}: {error}")
            continue
        for ledger in analysis.ledgers:
            worth = ledger.worth
            devices += 1
            repeating += bool(len(ledger.unit_starts_ns))
            told += not worth.reason
            if worth.reason:
                reasons["".join("#" if c.isdigit() else c for c in worth.reason)] += 1
    print(f"{told} of {devices} devices in {len(paths)} traces; of the {repeating} whose work repeats {told}")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")


def pairs(path: Path) -> None:
    """Print what was foretold from the base of each pair and what the head shows."""
    for pair in json.loads(path.read_text(encoding="utf-8")):
        base, head = (analyse(read(path.parent / pair[side])) for side in ("base", "head"))
        ledger = max(base.ledgers, key=lambda found: len(found.unit_starts_ns))
        worth = ledger.worth.of(pair["change"])
        foretold = (
            f"{worth.factor:.2f}"
            if worth and worth.factor
            else f"none ({ledger.worth.reason or (worth and worth.reason)})"
        )
        measured = period_us(base) / period_us(head)
        by_cost = promised_by_cost(ledger, pair["change"])
        print(f"{pair['base']} {pair['change']}: measured {measured:.2f}, foretold {foretold}, by cost {by_cost:.2f}")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--pairs", type=Path)
    given = parser.parse_args()
    paths = sorted(p for folder in given.folders for p in folder.glob("*.json.gz"))
    if paths:
        gate(paths)
    if given.pairs:
        pairs(given.pairs)


if __name__ == "__main__":
    main()
