"""Builds the large benchmark trace: one real trace repeated with shifted times and fresh ids, as compact JSON.

Usage: python benchmarks/large_trace.py TRACE.json.gz COPIES OUT.json
"""

from __future__ import annotations

import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path


def repeated(source: Path, copies: int, target: Path) -> int:
    """Write the trace ``copies`` times in one file; return the number of events.

    Times are shifted by whole seconds as decimal numbers, so no digit is lost; correlation and flow ids get an
    offset of their own per copy.
    """
    opener = gzip.open if source.suffix == ".gz" else open
    with opener(source, "rt", encoding="utf-8") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace["traceEvents"]
    stamps = [e["ts"] for e in events if "ts" in e]
    period = int((max(stamps) - min(stamps)) / 1_000_000 + 2) * 1_000_000
    ids = 1 + max(e.get("args", {}).get("correlation", 0) for e in events)
    total = 0

    class Encoder(json.JSONEncoder):
        def default(self, o: object) -> object:
            return float(o) if isinstance(o, Decimal) else super().default(o)

    encoder = Encoder(separators=(",", ":"))
    with target.open("w", encoding="utf-8") as out:
        head = {k: v for k, v in trace.items() if k != "traceEvents"}
        out.write(encoder.encode(head)[:-1] + ',"traceEvents":[')
        for copy in range(copies):
            for event in events:
                shifted = dict(event)
                if "ts" in event:
                    shifted["ts"] = event["ts"] + copy * period
                if "id" in event and isinstance(event["id"], int):
                    shifted["id"] = event["id"] + copy * ids
                args = event.get("args")
                if args and "correlation" in args:
                    shifted["args"] = args | {"correlation": args["correlation"] + copy * ids}
                out.write(("," if total else "") + encoder.encode(shifted))
                total += 1
        out.write("]}\n")
    return total


if __name__ == "__main__":
    print(repeated(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])), "events")
