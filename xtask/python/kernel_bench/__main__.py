"""Measures kernels of plugins side by side with PyTorch, torch.compile and Triton, on this machine's GPU.

    python3 -m kernel_bench --cases FOLDER --player libplayer.so --libraries libkernels.so libcubinder.so --out FOLDER

For each node whose name starts with a size in the files of cases: compares every contender's result with PyTorch's in double precision,
then captures all as CUDA graphs of 20 to 200 runs and replays the graphs in turn. Writes results to FOLDER/cells.jsonl, and at
the end to FOLDER/kernels.json. If a rival fails, or ends the process, its cell contains the reason.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from . import cells

RIVALS = ("torch", "compile", "triton")
# Per step of a cell; torch.compile is slowest.
STEP_SECONDS = 150


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--player", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="a part of cell names")
    parser.add_argument("--minutes", type=float, default=5.5, help="after N minutes, nothing more is compiled with max-autotune")
    parser.add_argument("--worker", choices=("cells", "warm", "machine"), help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    todo = [cell for cell in cells.of_folder(options.cases) if options.only in cell.key]
    if options.worker:
        return work(options, todo)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernel_bench-") as cache:
        # Triton's and the compiler's caches, shared by this run's processes.
        os.environ.update(TRITON_CACHE_DIR=f"{cache}/triton", TORCHINDUCTOR_CACHE_DIR=f"{cache}/inductor")
        return measure(options, todo)


def measure(options, todo):
    machine = ask_machine(options)
    print(machine["name"], flush=True)
    warm(options)
    deadline = time.time() + 60 * options.minutes
    records = Run(options, deadline, todo).all()
    only = f" --only {shlex.quote(options.only)}" if options.only else ""
    again = f"cargo xtask bench kernels --prepare DIR; sh DIR/run.sh{only} --minutes {options.minutes:g}"
    document = {"command": again, "machine": machine, "date": datetime.date.today().isoformat(), "cells": records}
    (options.out / "kernels.json").write_text(json.dumps(document, indent=1) + "\n")
    wins, count, ties = score(records)
    print(f"{len(records)} cells; ours is at least as fast as {wins} of {count} rivals; {ties} ties; {options.out / 'kernels.json'}")
    return 0 if len(records) == len(todo) else 1


def score(records):
    """Counts rivals that take at least as long, rivals with a time, and ties (overlapping interquartile ranges)."""
    pairs = [(record["ours"], rival) for record in records for rival in record["rivals"].values() if "microseconds" in rival]
    wins = sum("microseconds" in ours and ours["microseconds"] <= rival["microseconds"] for ours, rival in pairs)
    return wins, len(pairs), sum(is_tie(ours, rival) for ours, rival in pairs)


def is_tie(ours, rival):
    first, second = ours.get("middle_half"), rival.get("middle_half")
    return first is not None and second is not None and first[0] <= second[1] and second[0] <= first[1]


def command(options, *more):
    own = ["--cases", options.cases, "--player", options.player, "--libraries", *options.libraries, "--out", options.out, "--only", options.only]
    return [sys.executable, "-m", "kernel_bench", *map(str, own), *map(str, more)]


def ask_machine(options):
    said = subprocess.run(command(options, "--worker", "machine"), check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(said.splitlines()[-1])


def warm(options):
    """Compiles Triton's configurations in parallel."""
    parts = max(1, min(12, (os.cpu_count() or 2) - 2))
    started = time.monotonic()
    with open(options.out / "warm.log", "w") as log:
        workers = [subprocess.Popen(command(options, "--worker", "warm", "--part", part, parts), stdout=log, stderr=log) for part in range(parts)]
        for worker in workers:
            try:
                worker.wait(timeout=max(1, 180 - (time.monotonic() - started)))
            except subprocess.TimeoutExpired:
                worker.kill()
    print(f"compiled Triton's configurations in {time.monotonic() - started:.0f} s", flush=True)


class Run:
    """Measures all cells, in as many processes as needed."""

    def __init__(self, options, deadline, todo):
        self.options, self.deadline = options, deadline
        self.cells = {cell.key: cell for cell in todo}
        self.left = list(self.cells)
        self.skipped = []
        self.records = []

    def all(self):
        with open(self.options.out / "cells.jsonl", "w") as lines, open(self.options.out / "worker.log", "w") as log:
            while self.left:
                at = self.one_process(lines, log)
                if at is None:
                    continue
                key, step, why = at
                print(f"lost at {key}, {step}: {why}", flush=True)
                if [key, step] in [entry[:2] for entry in self.skipped] or step in ("inputs", "side by side"):
                    self.take(key, self.cells[key].record() | {"ours": {"why": why}, "rivals": {name: {"why": why} for name in RIVALS}}, lines)
                self.skipped.append([key, step, why])
        return self.records

    def one_process(self, lines, log):
        """Returns where and why the process ended early; `None` if it completed."""
        worker = subprocess.Popen(
            command(self.options, "--worker", "cells", "--deadline", self.deadline), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        worker.stdin.write(json.dumps({"left": self.left, "skipped": self.skipped}))
        worker.stdin.close()
        at = [self.left[0], "inputs"]
        watch = Watch(worker)
        for line in worker.stdout:
            watch.step()
            said = heard(line)
            if "begin" in said:
                at = [said["begin"], said["step"]]
            elif "done" in said:
                why_not = f": {said['why']}" if said["why"] else ""
                print(f"  {said['done']}, {said['step']}, {said['seconds']} s{why_not}", flush=True)
            elif "cell" in said:
                self.take(said["cell"], said["record"], lines)
        status = worker.wait()
        why = f"it took longer than {STEP_SECONDS} s" if watch.ended() else f"the process exited with status {status}"
        return None if status == 0 or not self.left else [*at, why]

    def take(self, key, record, lines):
        self.left.remove(key)
        self.records.append(record)
        lines.write(json.dumps(record) + "\n")
        lines.flush()
        print(summary(record), flush=True)


class Watch:
    """Kills a process that is silent for too long."""

    def __init__(self, worker):
        self.worker, self.timer, self.fired = worker, None, False
        self.step()

    def step(self):
        if self.timer:
            self.timer.cancel()
        self.timer = threading.Timer(STEP_SECONDS, self.fire)
        self.timer.daemon = True
        self.timer.start()

    def fire(self):
        self.fired = True
        self.worker.kill()

    def ended(self):
        self.timer.cancel()
        return self.fired


def heard(line):
    """Parses a worker's line; ignores output of libraries."""
    try:
        said = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def summary(record):
    own = record["ours"].get("microseconds")
    parts = [f"ours {own or record['ours'].get('why')}"]
    for name, rival in record["rivals"].items():
        theirs = rival.get("microseconds")
        parts.append(f"{name} {theirs} ({theirs / own:.2f}x)" if own and theirs else f"{name} {theirs or rival.get('why')}")
    return f"{record['plugin']}, {record['size']}: {record['what']}: {', '.join(parts)}"


def work(options, todo):
    """Runs as a worker process."""
    from . import worker

    if options.worker == "machine":
        worker.say(**machine())
        return 0
    if options.worker == "warm":
        worker.warm(todo, *options.part)
        return 0
    plan = json.load(sys.stdin)
    skipped = {(key, step): why for key, step, why in plan["skipped"]}
    one = worker.Worker(options.player.resolve(), [path.resolve() for path in options.libraries], options.deadline, skipped)
    by_key = {cell.key: cell for cell in todo}
    for key in plan["left"]:
        one.cell(by_key[key])
    return 0


def driver_version():
    """Returns the version from `nvidia-smi`, if available."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    if not shutil.which(query[0]):
        return None
    return subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip() or None


def machine():
    """Describes the GPU and its software."""
    import torch
    import triton

    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "capability": list(torch.cuda.get_device_capability()),
        "multiprocessors": properties.multi_processor_count,
        "driver": driver_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }


if __name__ == "__main__":
    sys.exit(main())
