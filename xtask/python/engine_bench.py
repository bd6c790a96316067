"""Measures loading engines until the first result: all kinds of plugins in turn, each in a new process.

    python3 engine_bench.py FOLDER [--rounds 5] [--out DIR]

`cargo xtask bench engine --prepare FOLDER` writes FOLDER. Writes DIR/engine.json for `cargo xtask bench publish`. Needs a GPU and TensorRT-RTX's
Python bindings.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

# A cache of compiled PTX would hide its cost.
ENVIRONMENT = {"CUDA_CACHE_DISABLE": "1"}
STEPS = ["libraries", "deserialize", "context", "first run", "all"]


def child_engine(folder, cell, kind):
    import bench_run

    client = bench_run.new_client()
    engine = bench_run.Engine(client, folder, cell["kinds"][kind])
    return {"times": engine.times, "machine": bench_run.machine(client)}


def child_code(folder, kind):
    """Loads single code objects as a plugin does and measures the time."""
    from cuda_driver import Cuda

    cuda = Cuda()
    names = sorted(name for name in os.listdir(os.path.join(folder, "code")) if name.endswith("." + kind))
    images = []
    for name in names:
        with open(os.path.join(folder, "code", name), "rb") as file:
            images.append(file.read() + b"\0")
    start = time.perf_counter()
    for image in images:
        library, kernel, function, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
        cuda.call("cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0)
        cuda.call("cuLibraryGetKernelCount", ctypes.byref(count), library)
        cuda.call("cuLibraryEnumerateKernels", ctypes.byref(kernel), 1, library)
        cuda.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        cuda.call("cuFuncLoad", function)
    return {"times": {"all": (time.perf_counter() - start) * 1e3}, "count": len(images)}


def run(arguments):
    command = [sys.executable, os.path.abspath(__file__), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **ENVIRONMENT})
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(arguments)} failed\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measured(names, rounds, command):
    """Returns each name's results of all rounds, in a different order each time."""
    results = {name: [] for name in names}
    for index in range(rounds):
        turn = index % len(names)
        for name in names[turn:] + names[:turn]:
            results[name].append(run(command(name)))
    return results


def middle(results, step):
    return statistics.median(one["times"][step] for one in results)


def ratio(results, other, step):
    return statistics.median(a["times"][step] / b["times"][step] for a, b in zip(results, other))


def table_of_cell(cell, results):
    """Compares with the plugins in C++, as the other tables do."""
    rival = "C++"
    rows = []
    for kind, what in cell["kinds"].items():
        numbers = [middle(results[kind], step) for step in STEPS]
        rows.append([kind, what["plan_bytes"] / 1e3, *numbers, ratio(results[kind], results[rival], "all")])
    alike = "alike" if cell["distinct"] == 1 else "each with a kernel of its own"
    nodes = "1 node" if cell["nodes"] == 1 else f"{cell['nodes']} nodes, {alike}"
    return {
        "title": f"Load to first result: {nodes}",
        "text": "",
        "columns": ["", "plan, kB", *[f"{step}, ms" for step in STEPS], f"all / {rival}"],
        "rows": rows,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default="out")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    with open(os.path.join(args.folder, "engine.json")) as file:
        prepared = json.load(file)
    cells = prepared["cells"]
    if args.child:
        what, *rest = args.child
        result = child_code(args.folder, rest[0]) if what == "code" else child_engine(args.folder, cells[int(rest[0])], rest[1])
        print("\n" + json.dumps(result), flush=True)
        os._exit(0)
    import bench_run

    tables, curves, machine = [], {}, "?"
    for number, cell in enumerate(cells):
        kinds = list(cell["kinds"])
        results = measured(kinds, args.rounds, lambda kind: [args.folder, "--child", "engine", str(number), kind])
        machine = results[kinds[0]][0]["machine"]
        tables.append(table_of_cell(cell, results))
        print(json.dumps(tables[-1]), flush=True)
        if cell["distinct"] == 1:
            for kind in kinds:
                curves.setdefault(kind, []).append([cell["nodes"], middle(results[kind], "all")])
    tables[0]["text"] = (
        f"Medians of {args.rounds} turns, each in a new process with `CUDA_CACHE_DISABLE=1`: loading plugin libraries (or registering Python classes), deserializing the plan, "
        "creating the execution context, and a first run. CUDA is initialized and Python's modules are imported before. The first result is checked. A ratio is the median of the ratios of the turns."
    )
    code = measured(["cubin", "ptx"], args.rounds, lambda kind: [args.folder, "--child", "code", kind])
    count = code["cubin"][0]["count"]
    tables.append(
        {
            "title": f"Code loading: {count} distinct kernels",
            "text": f"The driver alone: {count} code objects with one kernel each, loaded in order until they can be launched, with `CUDA_CACHE_DISABLE=1`; medians of {args.rounds} turns.",
            "columns": ["cubin, ms", "PTX, ms", "cubin / PTX"],
            "rows": [[middle(code["cubin"], "all"), middle(code["ptx"], "all"), ratio(code["cubin"], code["ptx"], "all")]],
        }
    )
    plot = {
        "name": "growth",
        "title": "time from loading to a first result",
        "x": "nodes",
        "y": "ms",
        "curves": [{"name": kind, "points": points} for kind, points in curves.items()],
    }
    bench_run.write(bench_run.report("engine", bench_run.command("engine", rounds=args.rounds), machine, prepared["versions"], tables, [plot]), args.out)


if __name__ == "__main__":
    main()
