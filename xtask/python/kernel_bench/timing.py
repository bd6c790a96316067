"""Measures device time side by side.

Contenders are CUDA graphs of many runs, so that gaps between replays are negligible, replayed in random order; a time
is the median over turns. The GPU is kept busy until the host has queued all work."""

import math
import random
import statistics
import time

import torch

RUNS = 20
MOST_RUNS = 200
LEAST_GRAPH_MICROSECONDS = 200
TURNS = 61
# Shorter measurements are repeated within one pair of events.
LEAST_MICROSECONDS = 400
# Longer ones are measured every fourth turn.
MOST_MICROSECONDS = 20_000


class Captured:
    """A graph of runs of `call`."""

    def __init__(self, call):
        # Keeps the tensors: the graph has only addresses.
        self.call = call
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        once = self.capture(RUNS)
        if once * RUNS < LEAST_GRAPH_MICROSECONDS:
            once = self.capture(min(MOST_RUNS, math.ceil(LEAST_GRAPH_MICROSECONDS / max(once, 0.1))))
        self.replays = max(1, min(10, round(LEAST_MICROSECONDS / max(once * self.runs, 1))))
        self.every = every(once * self.runs)

    def capture(self, runs):
        """Captures that many runs and returns microseconds per run."""
        torch.cuda.synchronize()
        self.runs, self.replays, self.host_microseconds = runs, 1, 100.0
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(runs):
                self.call()
        torch.cuda.synchronize()
        self.replay()
        self.host_microseconds = max(self.queued(), self.queued())
        return self.measured()

    def queued(self):
        """Returns host microseconds for queueing the graph."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.replay()
        end = time.perf_counter()
        torch.cuda.synchronize()
        return (end - begin) * 1e6

    def measured(self):
        """Returns microseconds per run."""
        ahead = 30 + 1.5 * self.replays * self.host_microseconds
        return between_events(self.replay, ahead) / (self.replays * self.runs)

    def replay(self):
        for _ in range(self.replays):
            self.graph.replay()


class Eager:
    """Calls that cannot be captured, because the host waits for the device."""

    def __init__(self, call, runs=RUNS):
        self.call, self.runs = call, runs
        for _ in range(3):
            call()
        self.every = every(self.measured() * runs)

    def measured(self):
        return between_events(self.work, 0) / self.runs

    def work(self):
        for _ in range(self.runs):
            self.call()


def every(microseconds):
    """Returns the interval of turns for such a duration."""
    return 4 if microseconds > MOST_MICROSECONDS else 1


def between_events(work, ahead_microseconds):
    """Returns device microseconds from earlier queued work to the end of `work`."""
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if ahead_microseconds:
        # Assumes at most 2 GHz.
        torch.cuda._sleep(int(ahead_microseconds * 2000))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def quick(call):
    """Returns a rough time, to choose a configuration."""
    captured = Captured(call)
    return statistics.median(captured.measured() for _ in range(5))


def side_by_side(contenders, turns=TURNS):
    """Returns median and interquartile range by name."""
    times = {name: [] for name in contenders}
    names = list(contenders)
    order = random.Random(1)
    for turn in range(turns):
        # Random: contenders inherit predecessors' caches.
        order.shuffle(names)
        for name in names:
            if turn % contenders[name].every == 0:
                times[name].append(contenders[name].measured())
    return {name: spread(values) for name, values in times.items()}


def spread(values):
    quarters = statistics.quantiles(values, n=4)
    return {"microseconds": round(statistics.median(values), 4), "middle_half": [round(quarters[0], 4), round(quarters[2], 4)], "times": len(values)}


def copies(total):
    """Copies of that many bytes: the driver's, which is slow for some sizes in graphs, and a kernel's."""
    source = torch.zeros(total // 8, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    return {"copy by the driver": Captured(lambda: target.copy_(source)), "copy by a kernel": Captured(lambda: torch.mul(source, 1.0, out=target))}
