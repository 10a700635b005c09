"""Prints the verdict of a JSON report or comparison for a script: its status, then its headline, each on one line.

Usage: python -I verdict.py REPORT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from traceanalyzer.render.escape import terminal

verdict = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["verdict"]
# names of the trace stand in the headline: what is not printable is spelled out, whatever the locale
text = f"{terminal(verdict['status'], 40)}\n{terminal(verdict['headline'], 2000)}\n"
sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
