"""Measures cells and prints a JSON line per step. A GPU fault ends this process; `__main__` starts another one."""

import json
import time

import torch

from . import timing
from .contenders import MODES, Bench, reason


# Nodes that move this multiple of L2 are measured with a copy.
BEYOND_CACHES = 1.2


def say(**what):
    print(json.dumps(what), flush=True)


class Worker:
    def __init__(self, player, libraries, deadline, skipped):
        self.player, self.libraries, self.deadline = player, libraries, deadline
        self.skipped = skipped

    def cell(self, cell):
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        say(begin=cell.key, step="inputs")
        record = cell.record()
        bench = Bench(cell, "cuda")
        record["bytes"] = bench.bytes_moved()
        captured, copies, notes, whys = {}, {}, {}, {}
        for name in ("ours", "torch", *MODES, "triton"):
            say(begin=cell.key, step=name)
            started = time.monotonic()
            try:
                self.admit(cell, name)
                captured[name], notes[name] = self.contender(bench, name)
            except Exception as error:  # one failure must not end the others
                whys[name] = reason(error)
            # Frees the graph's memory for the next contender.
            torch.cuda.empty_cache()
            say(done=cell.key, step=name, seconds=round(time.monotonic() - started, 1), why=whys.get(name))
        say(begin=cell.key, step="side by side")
        if record["bytes"] >= BEYOND_CACHES * torch.cuda.get_device_properties(0).L2_cache_size:
            try:
                copies = timing.copies(record["bytes"])
            except torch.OutOfMemoryError as error:
                say(done=cell.key, step="copies", seconds=0, why=reason(error))
        times = timing.side_by_side(captured | copies)
        if copies:
            # The faster copy is the GPU's limit.
            least = min(times.pop(name)["microseconds"] for name in copies)
            record["copy_gigabytes_per_second"] = round(record["bytes"] / least / 1e3, 1)
        results = {name: {**spread, **notes[name]} for name, spread in times.items()} | {name: {"why": why} for name, why in whys.items()}
        record["ours"] = results["ours"]
        record["rivals"] = {"torch": results["torch"], "compile": better([(name, results[name]) for name in MODES]), "triton": results["triton"]}
        say(cell=cell.key, record=record)

    def admit(self, cell, name):
        """Skips what ended an earlier process, and slow steps when time is short."""
        why = self.skipped.get((cell.key, name))
        if why:
            raise RuntimeError(why)
        if name == "compile max-autotune" and time.time() > self.deadline:
            raise TimeoutError("not enough time left")

    def contender(self, bench, name):
        """Returns what to measure, and a remark."""
        note = {}
        if name == "ours":
            call = bench.plugin(self.player, self.libraries)
        elif name == "torch":
            call = bench.eager()
        elif name == "triton":
            call, note["configuration"], refused = bench.best_of_triton()
            note |= {"refused": refused} if refused else {}
        else:
            call = bench.compiled(MODES[name])
        bench.verify(call())
        torch.cuda.synchronize()
        if getattr(bench.operator, "WAITS_FOR_THE_HOST", ()) and name in bench.operator.WAITS_FOR_THE_HOST:
            return timing.Eager(call), {**note, "how": "no graph: the host waits for the device during the run"}
        return timing.Captured(call), note


def better(results):
    """Returns the fastest of a rival's modes."""
    measured = [(one["microseconds"], name, one) for name, one in results if "microseconds" in one]
    if not measured:
        return {"why": "; ".join(f"{name}: {one['why']}" for name, one in results)}
    _, name, best = min(measured, key=lambda entry: entry[:2])
    return {**best, "mode": name, "modes": {name: one.get("microseconds", one.get("why")) for name, one in results}}


def warm(cells, part, parts):
    """Compiles a part of Triton's configurations into the shared cache."""
    for cell in cells:
        try:
            candidates = list(Bench(cell, "cuda").triton().values())
        except Exception as error:  # noqa: BLE001 - the measurement will say it
            say(warm=cell.key, why=reason(error))
            continue
        for call in candidates[part::parts]:
            try:
                call()
                torch.cuda.synchronize()
            except Exception as error:  # noqa: BLE001
                say(warm=cell.key, why=reason(error))
        torch.cuda.empty_cache()
