"""What an HTA user runs for the same questions: load, temporal and idle breakdown, launch statistics."""

import shutil
import sys
import tempfile
from pathlib import Path

from hta.trace_analysis import TraceAnalysis

with tempfile.TemporaryDirectory() as folder:
    target = Path(folder) / Path(sys.argv[1]).name
    target.symlink_to(Path(sys.argv[1]).resolve())
    analysis = TraceAnalysis(trace_dir=folder, trace_files={0: str(target)})
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
    shutil.rmtree(folder, ignore_errors=True)
