"""Device time, side by side.

What is compared is captured as a CUDA graph of some tens of runs, or of hundreds where they are short, so that what lies between two replays counts little. The graphs are
replayed in turns, each in another order; a time is the median of many turns. Before each measurement the GPU is kept busy for as long as the host needs to queue it all, so that
no wait of the host's is in it.
"""

import math
import random
import statistics
import time

import torch

RUNS = 20
MOST_RUNS = 200
# A graph shorter than that has more runs.
LEAST_GRAPH_MICROSECONDS = 200
TURNS = 61
# A measurement shorter than that is repeated within one pair of events.
LEAST_MICROSECONDS = 400
# One longer than that is taken in every fourth turn.
MOST_MICROSECONDS = 20_000


class Captured:
    """Runs of `call` as a graph."""

    def __init__(self, call):
        # It holds the tensors of which the graph knows nothing but the addresses.
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
        """Captures so many, and gives the microseconds of one."""
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
        """Microseconds that the host needs to queue the graph once."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.replay()
        end = time.perf_counter()
        torch.cuda.synchronize()
        return (end - begin) * 1e6

    def measured(self):
        """Microseconds of one run."""
        ahead = 30 + 1.5 * self.replays * self.host_microseconds
        return between_events(self.replay, ahead) / (self.replays * self.runs)

    def replay(self):
        for _ in range(self.replays):
            self.graph.replay()


class Eager:
    """Calls that cannot be captured, because the host waits for the device in the middle of them."""

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
    """In which turns something is measured that takes so long."""
    return 4 if microseconds > MOST_MICROSECONDS else 1


def between_events(work, ahead_microseconds):
    """Microseconds of device time between what was queued before `work` and the end of it."""
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if ahead_microseconds:
        # Cycles of at most 2 GHz.
        torch.cuda._sleep(int(ahead_microseconds * 2000))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def quick(call):
    """A first impression, for choosing among configurations."""
    captured = Captured(call)
    return statistics.median(captured.measured() for _ in range(5))


def side_by_side(contenders, turns=TURNS):
    """Of each contender by its name: the median of its times, and how far apart the middle half of them lies."""
    times = {name: [] for name in contenders}
    names = list(contenders)
    order = random.Random(1)
    for turn in range(turns):
        # Who comes behind whom is another each time: what one leaves in the cache is not always met by the same.
        order.shuffle(names)
        for name in names:
            if turn % contenders[name].every == 0:
                times[name].append(contenders[name].measured())
    return {name: spread(values) for name, values in times.items()}


def spread(values):
    quarters = statistics.quantiles(values, n=4)
    return {"microseconds": round(statistics.median(values), 4), "middle_half": [round(quarters[0], 4), round(quarters[2], 4)], "times": len(values)}


def copies(total):
    """Copies that read and write so many bytes together: the driver's, which is slow for some sizes in a graph, and a kernel's."""
    source = torch.zeros(total // 8, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    return {"copy by the driver": Captured(lambda: target.copy_(source)), "copy by a kernel": Captured(lambda: torch.mul(source, 1.0, out=target))}
