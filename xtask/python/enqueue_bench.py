"""Host time of one enqueue of engines with one node, of each kind of plugin, side by side in one process.

    python3 enqueue_bench.py FOLDER [--rounds 20] [--out DIR]

`cargo xtask bench enqueue --prepare FOLDER` writes FOLDER. Each round computes, for each engine, the median over bursts of the time of one
`execute_async_v3`, or of one launch of its captured graph; the stream is empty when a burst starts. The engines' bursts alternate on one
processor, and ratios are computed per round, so that other load cancels. Writes DIR/enqueue.json for `cargo xtask bench publish`. Needs a GPU and TensorRT-RTX's Python bindings.
"""

import argparse
import contextlib
import gc
import json
import os
import statistics
import time

import bench_run


def burst(cuda, work, count):
    clock = time.perf_counter
    cuda.synchronize()
    start = clock()
    for _ in range(count - 1):
        work()
    said = work()
    elapsed = clock() - start
    cuda.synchronize()
    accepted(said)
    return elapsed / count * 1e6


def accepted(said):
    """Fails if an enqueue (bool) or a graph launch (CUresult) failed: failures are faster than any launch."""
    if said is False or (said is not True and said != 0):
        raise RuntimeError(f"the measured call failed: {said}")


def works(client, engines, graph):
    """Returns the timed call of each engine: an enqueue, or the launch of its graph."""
    found = {}
    for kind, engine in engines.items():
        if graph:
            executable = client.cuda.graph(engine.stream, engine.enqueue)
            launch, args = client.cuda.lib.cuGraphLaunch, (executable, engine.stream)
            found[kind] = lambda launch=launch, args=[bench_run.ctypes.c_void_p(value) for value in args]: launch(*args)
        else:
            execute, stream = engine.context.execute_async_v3, engine.stream
            found[kind] = lambda execute=execute, stream=stream: execute(stream)
    return found


def medians(cuda, works, args):
    for work in works.values():
        for _ in range(10):
            burst(cuda, work, args.count)
    kinds, found = list(works), {kind: [] for kind in works}
    for _ in range(args.rounds):
        bursts = {kind: [] for kind in kinds}
        for index in range(args.bursts):
            turn = index % len(kinds)
            for kind in kinds[turn:] + kinds[:turn]:
                bursts[kind].append(burst(cuda, works[kind], args.count))
        for kind in kinds:
            found[kind].append(statistics.median(bursts[kind]))
    return found


@contextlib.contextmanager
def undisturbed():
    """Pins this thread and disables garbage collection: either changes single bursts by more than a plugin does.
    Threads that are started meanwhile would be pinned too; nothing is loaded meanwhile."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor()})
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        os.sched_setaffinity(0, everywhere)


def processor():
    """Returns the current processor: field 39 of proc_pid_stat(5)."""
    with open("/proc/self/stat") as file:
        return int(file.read().rpartition(")")[2].split()[39 - 3])


def in_order(kinds):
    """Returns Cubinder first: JSON sorts the kinds."""
    return sorted(kinds, key=lambda kind: (kind != "Cubinder", kind))


def row(cell, graph, found):
    """Compares Cubinder with each other kind."""
    first, *others = in_order(found)
    row = [cell["arguments"], cell["launches"], "graph" if graph else "enqueue", statistics.median(found[first])]
    for other in others:
        ratios = [a / b for a, b in zip(found[first], found[other])]
        row += [statistics.median(found[other]), statistics.mean(ratios), bench_run.upper_bound(ratios)]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bursts", type=int, default=30)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    if args.rounds < 5:
        parser.error("--rounds must be at least 5 for a bound")
    with open(os.path.join(args.folder, "enqueue.json")) as file:
        prepared = json.load(file)
    cells = prepared["cells"]
    client = bench_run.new_client()
    rows, loaded = [], set()
    for cell in cells:
        engines = {}
        for kind, what in cell["kinds"].items():
            # Libraries and creators serve all engines of the process.
            new = {**what, "libraries": [name for name in what["libraries"] if name not in loaded]}
            new["python"] = what.get("python") and "python" not in loaded
            loaded.update(new["libraries"], ["python"] if new["python"] else [])
            engines[kind] = bench_run.Engine(client, args.folder, new)
        for graph in (False, True):
            timed = works(client, engines, graph)
            with undisturbed():
                found = medians(client.cuda, timed, args)
            for kind, work in timed.items():
                # They may contain one run before they failed.
                engines[kind].forget()
                accepted(work())
                engines[kind].check(cell["kinds"]["Cubinder"]["result"])
            rows.append(row(cell, graph, found))
            print(json.dumps(rows[-1]), flush=True)
    first, *others = in_order(cells[0]["kinds"])
    columns = ["arguments", "launches", "", f"{first}, us"]
    for other in others:
        columns += [f"{other}, us", f"{first} / {other}, mean", "95 % bound"]
    table = {
        "title": "Enqueue",
        "text": (
            f"Host time of one `execute_async_v3` of an engine with one node, or of launching a CUDA graph that captured one, in one process on one processor. {args.rounds} rounds; each time is the median of "
            f"{args.bursts} alternating bursts of {args.count}. The bound applies to the mean of the rounds' ratios. No plugin uses programmatic launches. The Python classes call the driver through `ctypes`."
        ),
        "columns": columns,
        "rows": rows,
    }
    command = bench_run.command("enqueue", rounds=args.rounds, bursts=args.bursts, count=args.count)
    bench_run.write(bench_run.report("enqueue", command, bench_run.machine(client), prepared["versions"], [table]), args.out)
    os._exit(0)


if __name__ == "__main__":
    main()
