"""Shared code of engine benchmarks, independent of Cubinder. Engines are those of `bench_build.py`."""

import ctypes
import datetime
import json
import math
import os
import re
import statistics
import time

from gpu_test import Client

SHAPE = (4, 256)
COUNT = SHAPE[0] * SHAPE[1]

CREATORS = []

# Student's t, one-sided 95 %, by degrees of freedom; otherwise the next lower entry.
T95 = {4: 2.132, 9: 1.833, 14: 1.761, 19: 1.729, 29: 1.699, 39: 1.685}


def registration(folder, what):
    """Returns a function that registers the Python classes of an engine; import time is not part of the measurement."""
    import bench_plugin

    with open(os.path.join(folder, what["ops"])) as file:
        ops = json.load(file)
    return lambda: bench_plugin.register(ops, os.path.join(folder, what["code"]))


class Engine:
    """An engine from its file to a first result; `times` is in milliseconds."""

    def __init__(self, client, folder, what):
        self.client, self.times = client, {}
        clock = time.perf_counter
        register = registration(folder, what) if what.get("python") else lambda: []
        start = clock()
        for library in what["libraries"]:
            client.load_library(os.path.join(folder, library))
        CREATORS.extend(register())
        loaded = clock()
        self.engine = client.engine(os.path.join(folder, what["plan"]))
        deserialized = clock()
        self.context = self.engine.create_execution_context()
        if self.context is None:
            raise RuntimeError(f"no execution context of {what['plan']}")
        made = clock()
        cuda = client.cuda
        self.stream = cuda.stream()
        self.x, self.y = cuda.alloc(4 * COUNT), cuda.alloc(4 * COUNT)
        cuda.fill(self.x, 0, 4 * COUNT)
        cuda.synchronize()
        self.context.set_tensor_address("x", self.x)
        self.context.set_tensor_address("y", self.y)
        ready = clock()
        self.enqueue()
        cuda.synchronize()
        ran = clock()
        steps = {"libraries": loaded - start, "deserialize": deserialized - loaded, "context": made - deserialized, "first run": ran - ready}
        self.times = {name: value * 1e3 for name, value in steps.items()}
        self.times["all"] = sum(self.times.values())
        self.check(what["result"])

    def enqueue(self):
        if not self.context.execute_async_v3(self.stream):
            raise RuntimeError("execute_async_v3 failed")

    def forget(self):
        """Fills the output with invalid results."""
        self.client.cuda.fill(self.y, 0xFF, 4 * COUNT)
        self.client.cuda.synchronize()

    def check(self, expected):
        """Checks every output element; the input is zeros."""
        found = (ctypes.c_float * COUNT).from_buffer_copy(self.client.cuda.download(self.y, 4 * COUNT))
        if any(value != expected for value in found):
            raise RuntimeError(f"a result is {next(v for v in found if v != expected)}, expected {expected}")


def upper_bound(ratios):
    """Returns the one-sided 95 % bound of the mean."""
    degrees = max((d for d in T95 if d <= len(ratios) - 1), default=None)
    if degrees is None:
        return None
    return statistics.mean(ratios) + T95[degrees] * statistics.stdev(ratios) / math.sqrt(len(ratios))


def machine(client):
    """Describes the machine. The driver reports the compute capability, because interposed libraries may change it."""
    driver = found("/proc/driver/nvidia/version", r"Kernel Module.*?\s(\d+\.[\d.]+)")
    processor = found("/proc/cpuinfo", r"model name\s*: (.*)")
    return (
        f"{client.cuda.name()}, which the driver calls {client.cuda.capability()}, driver {driver} (CUDA {client.cuda.driver_version()}), "
        f"TensorRT-RTX {client.trt.__version__}; {processor}"
    )


def found(path, pattern):
    """Returns the match of a pattern in a system file, or a question mark."""
    try:
        with open(path) as file:
            match = re.search(pattern, file.read())
    except OSError:
        match = None
    return match[1].strip() if match else "?"


def command(name, **options):
    """Returns the command that repeats the measurement."""
    given = "".join(f" --{option} {value}" for option, value in options.items())
    return f"cargo xtask bench {name} --prepare DIR; python3 DIR/{name}_bench.py DIR{given}"


def report(name, command, machine, versions, tables, plots=()):
    """Builds a result for `cargo xtask bench publish`."""
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"name": name, "command": command, "machine": machine, "date": date, "versions": versions, "tables": tables, "plots": list(plots)}


def write(report, folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{report['name']}.json")
    with open(path, "w") as file:
        json.dump(report, file, indent=2)
        file.write("\n")
    print(f"wrote {path}", flush=True)


def new_client():
    return Client()
