"""Compiles what FlexAttention needs for a table, many rows at a time, so that timing need not wait.

    python bench/precompile.py --rows cubridge [--only NAME] [--skip NAME] [--peers fast] [--jobs 8]
    python bench/bench.py out --rows cubridge ...

Each process takes its share of the rows and calls each FlexAttention peer once on the GPU; what is
compiled stays in PyTorch's cache on the disk (TORCHINDUCTOR_CACHE_DIR), where bench.py finds it. A row
that fails is told in a line and left to bench.py, which lists why. Nothing is timed here. FLASH takes
part where FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=1 is set (for bench.py too): else it keeps nothing.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from variants.rows import ROWS  # noqa: E402


def share(rows, which, peers, say=print):
    """Compiles the rows, one after the other."""
    import torch
    from variants import peers as variant_peers
    from measuring import first_line
    torch.set_grad_enabled(False)
    for row in rows:
        for name in variant_peers.names_of_peers(row, which):
            if not name.startswith("FlexAttention") or name not in peers:
                continue
            started = time.monotonic()
            try:
                torch._dynamo.reset()
                variant_peers.PEERS[name][0](row.draw("cuda" if torch.cuda.is_available() else "cpu"))()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                    torch.cuda.empty_cache()
                said = f"{time.monotonic() - started:.1f} s"
            except Exception as error:
                said = first_line(error)
            say(f"{row.name}, {name}: {said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", choices=[name for name in ROWS if name != "attention"], required=True)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--skip", action="append", metavar="NAME")
    parser.add_argument("--without", action="append", default=[], metavar="PEER")
    parser.add_argument("--peers", choices=("all", "fast"), default="all")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    from bench import selected
    from peers import absent_peers
    from variants import peers as variant_peers
    rows = selected(arguments.only, {}, arguments.rows, arguments.skip)
    if arguments.part is not None:
        absent = absent_peers(variant_peers.NEEDS)
        if os.environ.get("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED") != "1":
            absent["FlexAttention FLASH"] = "keeps nothing"
        peers = [p for p in variant_peers.PEERS if p not in absent and p not in arguments.without]
        share(rows[arguments.part::arguments.jobs], arguments.peers, peers)
        return 0
    started = time.monotonic()
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    parts = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--part", str(n)],
                              env=environment) for n in range(min(arguments.jobs, len(rows)))]
    for part in parts:
        try:
            part.wait(timeout=max(1, started + arguments.limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            part.kill()
            print("a share is not done within the limit, and left there", flush=True)
    print(f"{len(rows)} rows in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
