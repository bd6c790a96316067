"""Runs prebuilt engines under load on a GPU: many contexts on separate threads, concurrent captures, every GPU of the
machine, engines created and freed a thousand times.

    python3 gpu_stress.py DIRECTORY [--cycles N] [--only TEXT]... [--contexts N]

`cargo xtask gpu-test --prepare DIRECTORY` writes DIRECTORY. Compares every output with its reference, byte for byte. Ends with
`N passed, M failed, K skipped`. `--contexts` sets the maximum of concurrent contexts (8), `--cycles` how often engines are created and freed (1000, the
minimum).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import traceback

from gpu_test import SIZES, Client, compare, mappings, numel, read

ROUNDS = 20


class Held:
    """Stream and tensor memory of a run."""

    def __init__(self, cuda, directory, run):
        self.cuda, self.run = cuda, run
        self.data = {t["name"]: read(directory, f"{run['prefix']}.{t['name']}") for t in run["inputs"] + run["outputs"]}
        self.stream = cuda.stream()
        self.buffers, self.addresses = [], {}
        try:
            self.reserve_all()
        except Exception:
            self.close()
            raise

    def reserve_all(self):
        for tensor in self.run["inputs"]:
            self.reserve(tensor["name"], len(self.data[tensor["name"]]))
        for tensor in self.run["outputs"]:
            alias = tensor["alias"]
            if alias:
                self.addresses[tensor["name"]] = self.addresses[alias]
            else:
                self.reserve(tensor["name"], numel(tensor["shape"]) * SIZES[tensor["type"]])

    def reserve(self, name, size):
        self.buffers.append(self.cuda.alloc(size))
        self.addresses[name] = self.buffers[-1]

    def load(self, zeros=False):
        """Loads the inputs of the references, or zeros, and fills outputs with wrong bytes."""
        for tensor in self.run["outputs"]:
            if not tensor["alias"]:
                self.cuda.fill(self.addresses[tensor["name"]], 0xA5, len(self.data[tensor["name"]]))
        for tensor in self.run["inputs"]:
            data = self.data[tensor["name"]]
            self.cuda.upload(self.addresses[tensor["name"]], bytes(len(data)) if zeros else data)
        # Copies use the default stream, for which this does not wait.
        self.cuda.synchronize_stream(0)

    def close(self):
        self.cuda.destroy_stream(self.stream)
        for buffer in self.buffers:
            self.cuda.free(buffer)


class Lane:
    """An execution context with stream and memory, for one thread; `held` is reused."""

    def __init__(self, client, directory, engine, plan, run, held=None):
        self.client, self.cuda, self.run, self.plan = client, client.cuda, run, plan
        self.context = engine.create_execution_context()
        if self.context is None:
            raise RuntimeError(f"no execution context for {plan['plan']}")
        self.held, self.is_own = held or Held(client.cuda, directory, run), held is None
        self.stream = self.held.stream
        try:
            self.bind()
        except Exception:
            self.close()
            raise

    def bind(self):
        """Sets the tensors' addresses."""
        for tensor in self.run["inputs"]:
            if not self.context.set_input_shape(tensor["name"], tuple(tensor["shape"])):
                raise RuntimeError(f"shape {tensor['shape']} of {tensor['name']} rejected")
        for name, address in self.held.addresses.items():
            if not self.context.set_tensor_address(name, address):
                raise RuntimeError(f"address of {name} rejected")

    def load(self, zeros=False):
        self.held.load(zeros)

    def enqueue(self):
        if not self.context.execute_async_v3(self.stream):
            raise RuntimeError(f"{self.plan['plan']}: execute_async_v3 failed")

    def check(self, what):
        self.cuda.synchronize_stream(self.stream)
        for tensor in self.run["outputs"]:
            expected = self.held.data[tensor["name"]]
            found = self.cuda.download(self.held.addresses[tensor["name"]], len(expected))
            compare(found, expected, f"{self.plan['plan']}, {what}: {tensor['name']}")

    def close(self):
        self.context = None
        if self.is_own:
            self.held.close()


def on_threads(client, lanes, work):
    """Runs `work(index, lane)` on a thread per lane; raises the first failure."""
    failures = []

    def body(index, lane):
        try:
            lane.cuda.make_current()
            work(index, lane)
        except Exception:
            failures.append(traceback.format_exc())
            client.barrier.abort()

    client.barrier = threading.Barrier(len(lanes))
    threads = [threading.Thread(target=body, args=pair) for pair in enumerate(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Broken barriers follow from another thread's failure.
    real = [text for text in failures if "BrokenBarrierError" not in text] or failures
    if real:
        raise RuntimeError(real[0])


def runs_of(case):
    """Returns the runs that plain memory can serve."""
    for plan in case["plans"]:
        fit = [
            run
            for run in plan["runs"]
            if not run["apart"]
            and run["offset"] == 0
            and run["profile"] == 0
            and not any(t["data_dependent"] for t in run["outputs"])
            and not any(t["host"] for t in run["inputs"])
        ]
        if fit:
            yield plan, fit


def engine_of(client, directory, plan):
    """Loads an engine; plans with the same embedded library need separate IRuntimes."""
    if plan["version_compatible"]:
        client.runtime = None
    return client.engine(os.path.join(directory, plan["plan"]))


def prepare(directory, case, ordinal=0):
    client = Client(ordinal)
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    return client


def contexts_case(directory, case, most):
    """Runs 2 to `most` contexts per engine on separate threads."""
    client = prepare(directory, case)
    total = 0
    for plan, runs in runs_of(case):
        engine = engine_of(client, directory, plan)
        for count in sorted({2, most // 2, most}):
            lanes = [Lane(client, directory, engine, plan, runs[i % len(runs)]) for i in range(count)]

            def work(index, lane):
                client.barrier.wait()
                for turn in range(ROUNDS):
                    lane.load()
                    lane.enqueue()
                    lane.check(f"context {index} of {count}, turn {turn}")

            on_threads(client, lanes, work)
            total += count * ROUNDS
            for lane in lanes:
                lane.close()
    print(f"{total} inferences")


def captures_case(directory, case, most):
    """Captures fresh contexts on all threads; replays the graphs with other inputs."""
    client = prepare(directory, case)
    total = 0
    for plan, runs in runs_of(case):
        engine = engine_of(client, directory, plan)
        # Relaxed and thread-local captures, concurrently.
        lanes = [Lane(client, directory, engine, plan, runs[i % len(runs)]) for i in range(most)]

        def work(index, lane):
            lane.load(zeros=True)
            client.barrier.wait()
            lane.cuda.begin_capture(lane.stream, 1 + index % 2)
            client.barrier.wait()
            lane.enqueue()
            client.barrier.wait()
            executable = lane.cuda.end_capture(lane.stream)
            for turn in range(3):
                lane.load()
                lane.cuda.launch_graph(executable, lane.stream)
                lane.check(f"graph of context {index}, turn {turn}")
            lane.cuda.destroy_graph(executable)

        on_threads(client, lanes, work)
        total += most
        for lane in lanes:
            lane.close()
    print(f"{total} graphs, each captured before any run")


def devices_case(directory, case, most):
    """Uses every GPU at once with `most` contexts in total."""
    clients = [prepare(directory, case)]
    count = clients[0].cuda.device_count()
    if count < 2:
        return print(f"{SKIPPED}: the case needs several GPUs")
    clients += [Client(ordinal, clients[0].log) for ordinal in range(1, count)]
    total = 0
    for plan, runs in runs_of(case):
        lanes = []
        for client in clients:
            client.cuda.make_current()
            engine = engine_of(client, directory, plan)
            lanes += [Lane(client, directory, engine, plan, runs[i % len(runs)]) for i in range(-(-most // count))]

        def work(index, lane):
            clients[0].barrier.wait()
            for turn in range(ROUNDS):
                lane.load()
                lane.enqueue()
                lane.check(f"context {index} on GPU {lane.cuda.ordinal}, turn {turn}")

        on_threads(clients[0], lanes, work)
        total += len(lanes) * ROUNDS
        for lane in lanes:
            lane.cuda.make_current()
            lane.close()
    print(f"{total} inferences on {count} GPUs")


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cycles_case(directory, case, cycles):
    """Creates and frees engines repeatedly; memory must not grow."""
    client = prepare(directory, case)
    found = list(runs_of(case))[:1]
    memory, resident = [], []
    for turn in range(cycles):
        for plan, runs in found:
            engine = engine_of(client, directory, plan)
            lane = Lane(client, directory, engine, plan, runs[0])
            lane.load()
            lane.enqueue()
            lane.check(f"turn {turn}")
            lane.close()
            del engine, lane
        client.runtime = None
        client.log.lines.clear()
        memory.append(client.cuda.free_memory())
        resident.append(resident_bytes())
    start = len(memory) // 5
    gone, grown = memory[start] - memory[-1], resident[-1] - resident[start]
    print(f"{cycles} engines: GPU memory {gone:+d} bytes, resident memory {grown:+d} bytes, {len(mappings())} mappings")
    if gone > 0:
        raise RuntimeError(f"{gone} bytes of GPU memory leaked")
    # The allocator's arenas vary by about 250 kB; 1 kB per engine would be 800 kB in a thousand rounds.
    if grown > 400 * cycles:
        raise RuntimeError(f"resident memory grew by {grown} bytes in {cycles - start} rounds")


LEAST_CYCLES = 1000

# Starts the last line of a child without work.
SKIPPED = "skipped"

WORKS = {"contexts": contexts_case, "captures": captures_case, "devices": devices_case, "cycles": cycles_case}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--contexts", type=int, default=8)
    args = parser.parse_args()
    if args.cycles < LEAST_CYCLES:
        parser.error(f"--cycles {args.cycles} must be at least {LEAST_CYCLES} to detect leaks; `--only contexts` skips these cases")

    def work(how, case):
        WORKS[how](args.directory, case, args.cycles if how == "cycles" else args.contexts)

    more = ["--cycles", str(args.cycles), "--contexts", str(args.contexts)]
    return run_all(args, WORKS, work, lambda how, case: ([os.path.abspath(__file__), *more], case["env"]))


def parser_of(text):
    """Creates the shared options."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--only", action="append", help="only cases whose title contains TEXT; repeatable")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser


def ended(code):
    """Describes the exit of a process without an exception."""
    return f"\nended by {signal.Signals(-code).name}" if code < 0 else ""


def run_all(args, works, work, started):
    """Runs each of `works` over each case in a new process; `started` returns script and environment. Returns the exit
    code."""
    cases = [
        case
        for case in json.loads(read(args.directory, "cases.json"))["cases"]
        if "python" in case["clients"] and case["fails_with"] is None and any(runs_of(case))
    ]
    if args.child:
        name, how = args.child
        work(how, next(case for case in cases if case["name"] == name))
        sys.stdout.flush()
        os._exit(0)
    passed = failed = skipped = 0
    for how in works:
        for case in cases:
            title = f"{case['name']} [{how}]"
            if args.only and not any(text in title for text in args.only):
                continue
            script, environment = started(how, case)
            command = [sys.executable, script[0], args.directory, "--child", case["name"], how, *script[1:]]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", env={**os.environ, **environment}, timeout=240
                )
                good, text = done.returncode == 0, done.stdout + done.stderr + ended(done.returncode)
            except subprocess.TimeoutExpired:
                good, text = False, "timed out"
            told = (text.strip().splitlines() or [""])[-1 if good else 0]
            is_skipped = good and told.startswith(SKIPPED)
            passed, failed, skipped = passed + (good and not is_skipped), failed + (not good), skipped + is_skipped
            print(f"{'SKIPPED' if is_skipped else 'ok' if good else 'FAILED'} {title}: {told}")
            if not good:
                print("    " + "\n    ".join(text.splitlines()[-40:]))
            sys.stdout.flush()
    if skipped:
        print(f"SKIPPED: {skipped} cases did not run")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
