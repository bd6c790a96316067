"""Host time of one enqueue of two engines, side by side in one process.

    python3 enqueue_bench.py NAME=PLAN[+LIBRARY...] NAME=PLAN[+LIBRARY...] --shape 10,3,32,32 --out-shape 10,3,34,34

Each round takes, for each engine in turn, the median over bursts of the time of one `execute_async_v3`; the stream is
empty when a burst begins. The ratio first / second is taken round by round, so that what else the machine does cancels.
Prints one JSON object: the medians in microseconds, the ratios, their mean and its one-sided 95 % upper bound.
"""

import argparse
import json
import math
import statistics
import time

from gpu_test import Client, numel

# Student's t, one-sided 95 %, for 20 rounds (19 degrees of freedom); other counts use the nearest below.
T95 = {4: 2.132, 9: 1.833, 14: 1.761, 19: 1.729, 29: 1.699, 39: 1.685}


class Engine:
    def __init__(self, client, text, shape, out_shape):
        self.name, rest = text.split("=", 1)
        plan, *libraries = rest.split("+")
        for library in libraries:
            client.load_library(library)
        self.engine = client.engine(plan)
        self.context = self.engine.create_execution_context()
        self.stream = client.cuda.stream()
        self.context.set_input_shape("x", shape)
        self.context.set_tensor_address("x", client.cuda.alloc(4 * numel(shape)))
        self.context.set_tensor_address("y", client.cuda.alloc(4 * numel(out_shape)))

    def burst(self, cuda, count):
        execute, stream, clock = self.context.execute_async_v3, self.stream, time.perf_counter
        cuda.synchronize()
        start = clock()
        for _ in range(count):
            execute(stream)
        elapsed = clock() - start
        cuda.synchronize()
        return elapsed / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs=2)
    parser.add_argument("--shape", type=lambda text: tuple(int(n) for n in text.split(",")), required=True)
    parser.add_argument("--out-shape", type=lambda text: tuple(int(n) for n in text.split(",")), required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bursts", type=int, default=15)
    parser.add_argument("--count", type=int, default=100)
    args = parser.parse_args()
    if args.rounds < 5:
        parser.error("--rounds: fewer than 5 give no bound")
    client = Client()
    first, second = (Engine(client, text, args.shape, args.out_shape) for text in args.engines)
    for engine in (first, second):
        for _ in range(10):
            engine.burst(client.cuda, args.count)
    medians = {first.name: [], second.name: []}
    for index in range(args.rounds):
        order = (first, second) if index % 2 == 0 else (second, first)
        for engine in order:
            bursts = [engine.burst(client.cuda, args.count) for _ in range(args.bursts)]
            medians[engine.name].append(statistics.median(bursts))
    ratios = [a / b for a, b in zip(medians[first.name], medians[second.name])]
    degrees = max(d for d in T95 if d <= len(ratios) - 1)
    bound = statistics.mean(ratios) + T95[degrees] * statistics.stdev(ratios) / math.sqrt(len(ratios))
    print(
        json.dumps(
            {
                "gpu": client.cuda.name(),
                "driver_cuda": client.cuda.driver_version(),
                "tensorrt_rtx": client.trt.__version__,
                "median_us": {name: round(statistics.median(values), 3) for name, values in medians.items()},
                "ratio_mean": round(statistics.mean(ratios), 4),
                "ratio_upper_95": round(bound, 4),
                "ratios": [round(ratio, 4) for ratio in ratios],
            }
        )
    )


if __name__ == "__main__":
    main()
