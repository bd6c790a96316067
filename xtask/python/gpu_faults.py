"""Runs prebuilt engines on a GPU while the driver fails: each call in turn, without free memory, in a context that another
kernel has broken, and while engines are loaded and freed during other runs.

    python3 gpu_faults.py DIRECTORY [--only TEXT]...

`cargo xtask gpu-test --prepare DIRECTORY` writes DIRECTORY. TensorRT must return every failure with an error in its log that names the
driver's call and code; afterwards the same process must compute correct results, byte for byte, if the context allows it, without
memory leaks. Ends with `N passed, M failed, K skipped`.
"""

import ctypes
import faulthandler
import itertools
import os
import sys

from cuda_driver import CudaError
from gpu_stress import SKIPPED, Held, Lane, engine_of, on_threads, parser_of, run_all, runs_of
from gpu_test import Client, numel

SHIM = "libdriver_faults.so"

# `CUresult`: code, whether later calls also fail, whether other code may replace rejected code.
DEINITIALIZED = "CUDA_ERROR_DEINITIALIZED"
FAULTS = [
    ("CUDA_ERROR_INVALID_VALUE (1), once", 1, False, True),
    ("CUDA_ERROR_OUT_OF_MEMORY (2), once", 2, False, False),
    ("an unknown error (999), once", 999, False, True),
    ("CUDA_ERROR_OUT_OF_MEMORY (2), from then on", 2, True, False),
    (f"{DEINITIALIZED} (4), from then on", 4, True, False),
    ("CUDA_ERROR_ILLEGAL_ADDRESS (700), from then on", 700, True, False),
]
INVALID_VALUE = 1
MOST_CALLS = 2000
LEAST_CALLS = 10
THREADS = 16
ENGINES = 4
# Stores to address 16. `.target`: CUDA 13's minimum.
BROKEN = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry broken() { .reg .u64 %a; .reg .u32 %v; mov.u64 %a, 16; mov.u32 %v, 1; st.global.u32 [%a], %v; ret; }
\0"""


class Shim:
    """The preloaded shim between plugin libraries and driver (`tests/driver-faults`)."""

    def __init__(self):
        self.library = ctypes.CDLL(None)
        self.library.faultsFailed.restype = self.library.faultsUnknown.restype = ctypes.c_char_p

    def arm(self, nth, code=0, lasts=False):
        self.library.faultsArm(nth, code, int(lasts))

    def calls(self):
        return self.library.faultsCalls()

    def failed(self):
        name = self.library.faultsFailed()
        return name.decode() if name else None

    def require_all_known(self):
        unknown = self.library.faultsUnknown()
        if unknown:
            raise RuntimeError(f"the shim does not support {unknown.decode()}: its calls did not fail")


class Life:
    """Libraries, an engine, a context, an inference, and cleanup."""

    def __init__(self, client, directory, case):
        self.client, self.directory, self.case = client, directory, case
        self.plan, runs = next(runs_of(case))
        # Empty tensors launch no kernel.
        self.run = max(runs, key=lambda run: sum(numel(tensor["shape"]) for tensor in run["outputs"]))

    def live(self, held=None):
        """Raises the application's error; `held` are reused buffers."""
        client, handles, lane = self.client, [], None
        client.log.lines.clear()
        try:
            handles = [client.load_library(os.path.join(self.directory, path)) for path in self.case["libraries"]]
            engine = engine_of(client, self.directory, self.plan)
            lane = Lane(client, self.directory, engine, self.plan, self.run, held)
            for turn in range(2):
                lane.load()
                lane.enqueue()
                lane.check(f"turn {turn}")
        finally:
            if lane:
                lane.close()
            lane = engine = client.runtime = None
            for handle in handles:
                client.unload_library(handle)

    def errors(self):
        return [text for severity, text in self.client.log.lines if severity in ("ERROR", "INTERNAL_ERROR")]

    def warnings(self):
        return [text for severity, text in self.client.log.lines if severity == "WARNING"]


def is_named(texts, call, code, lasts):
    """Returns whether a text names the failed call and code, or with `lasts` a later call."""
    called = "`cu" if lasts else f"`{call.removesuffix('_v2')}`"
    return any(f"({code})" in text and called in text for text in texts)


def is_no_refusal(problem):
    """Returns whether the failure is no answer of TensorRT."""
    return "differs from the reference" in str(problem) or isinstance(problem, CudaError)


def faults_case(directory, case):
    """Fails each driver call of a plugin library in turn."""
    shim, client = Shim(), Client()
    life = Life(client, directory, case)
    # The first lives fill caches.
    for _ in range(2):
        life.live()
    lives = failures = 0
    gone = {}
    for name, code, lasts, is_unclear in FAULTS:
        free = client.cuda.free_memory()
        for nth in itertools.count(1):
            if nth > MOST_CALLS:
                raise RuntimeError(f"more than {MOST_CALLS} calls in one life")
            shim.arm(nth, code, lasts)
            problem = None
            try:
                life.live()
            except RuntimeError as error:
                problem = error
            call = shim.failed()
            shim.arm(0)
            place = f"{name}, call {nth}, {call}"
            if call is None:
                if problem is not None:
                    raise RuntimeError(f"{place}: fails without a fault") from problem
                break
            lives += 1
            if problem is None:
                # The compute capability implies clusters; a failed unload is only logged.
                continue
            if is_no_refusal(problem):
                raise RuntimeError(f"{place}: wrong results") from problem
            failures += 1
            if code == INVALID_VALUE and call == "cuKernelGetParamInfo":
                # The driver reports the end of the parameters this way.
                continue
            told = life.errors() + (life.warnings() if is_unclear else [])
            if not is_named(told, call, code, lasts):
                raise RuntimeError(f"{place}: no message names the call and ({code}): {told}")
        if nth <= LEAST_CALLS:
            raise RuntimeError(f"{name}: {nth - 1} calls in one life, too few")
        life.live()
        gone[name] = free - client.cuda.free_memory()
    shim.require_all_known()
    if failures < lives // 2:
        raise RuntimeError(f"{failures} of {lives} lives failed: most faults were not seen")
    print(f"{lives} lives with a fault, {failures} of them failed with a message; leaked GPU memory: {sum(gone.values())} bytes")
    # The shim prevented an unload.
    lost = {name: count for name, count in gone.items() if count > 0 and DEINITIALIZED not in name}
    if lost:
        raise RuntimeError(f"leaked bytes of GPU memory: {lost}")


def filled(cuda):
    """Takes all device memory and returns a function that frees it."""
    taken = []
    size = 1 << 36
    while size >= 1 << 12:
        try:
            taken.append(cuda.alloc(size))
        except CudaError as error:
            if "OUT_OF_MEMORY" not in str(error):
                raise
            size //= 2
    return taken


def without_memory(life, what, act):
    """Returns whether `act` fails on a full device with a matching error."""
    life.client.log.lines.clear()
    taken = filled(life.client.cuda)
    try:
        act()
    except RuntimeError as problem:
        if is_no_refusal(problem):
            raise RuntimeError(f"no memory before {what}: succeeded with wrong results") from problem
        if not any("MEMORY" in text.upper() for text in life.errors()):
            raise RuntimeError(f"no memory before {what}: failed without a message about memory: {life.errors()}") from problem
        return True
    finally:
        for pointer in taken:
            life.client.cuda.free(pointer)
    return False


def memory_case(directory, case):
    """Fills the device before an engine is loaded, then before it runs."""
    client = Client()
    life = Life(client, directory, case)
    held = Held(client.cuda, directory, life.run)
    held.load()
    refused = []
    # No memory is reserved yet.
    if without_memory(life, "an engine is loaded", lambda: life.live(held)):
        refused.append("loading an engine")
    held.close()
    life.live()
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    engine = engine_of(client, directory, life.plan)
    lane = Lane(client, directory, engine, life.plan, life.run)

    def run(what):
        lane.load()
        lane.enqueue()
        lane.check(what)

    if without_memory(life, "it is run", lambda: run("no memory left")):
        refused.append("the first enqueue")
    for turn in range(2):
        run(f"after the memory was freed, turn {turn}")
    lane.close()
    del lane, engine
    if not refused:
        return print(f"{SKIPPED}: the remaining memory sufficed")
    print(f"failed: {' and '.join(refused)}; all other runs were correct, and all after memory was freed")


def break_context(cuda):
    """Runs a kernel with an invalid store."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.call("cuModuleLoadData", ctypes.byref(module), BROKEN)
    cuda.call("cuModuleGetFunction", ctypes.byref(function), module, b"broken")
    nothing = ctypes.c_void_p()
    one, none = ctypes.c_uint(1), ctypes.c_uint(0)
    cuda.call("cuLaunchKernel", function, one, one, one, one, one, one, none, nothing, nothing, nothing)
    try:
        cuda.synchronize()
    except CudaError as error:
        if "ILLEGAL_ADDRESS" in str(error):
            return
        raise
    raise RuntimeError("the invalid write of a kernel was not detected")


def sticky_case(directory, case):
    """Enqueues in a broken context fail with a message."""
    client = Client()
    life = Life(client, directory, case)
    life.live()
    handles = [client.load_library(os.path.join(directory, path)) for path in case["libraries"]]
    engine = engine_of(client, directory, life.plan)
    lane = Lane(client, directory, engine, life.plan, life.run)
    lane.load()
    lane.enqueue()
    lane.check("before")
    second = Lane(client, directory, engine, life.plan, life.run)
    break_context(client.cuda)
    told = []
    for what, lane_of in (("a context that has run", lane), ("one that has not", second)):
        client.log.lines.clear()
        try:
            lane_of.enqueue()
        except RuntimeError:
            told += [(what, life.errors())]
        else:
            raise RuntimeError(f"an enqueue of {what} succeeds in a broken context")
    # TensorRT calls the driver before it calls a plugin.
    for what, errors in told:
        if not any("700" in text for text in errors):
            raise RuntimeError(f"{what}: no message names 700: {errors}")
    lane.context = second.context = None
    del engine
    client.runtime = None
    for handle in handles:
        client.unload_library(handle)
    print(f"both contexts failed: {told[0][1][0][:160]}")


def churn_case(directory, case):
    """Runs 16 threads over 4 engines while engines, and libraries inside plans, come and go."""
    # Prints the stacks if the test deadlocks.
    faulthandler.dump_traceback_later(200, exit=True)
    client = Client()
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    plan, runs = next(runs_of(case))
    engines = [engine_of(client, directory, plan)]
    # An IRuntime loads a library only once.
    while len(engines) < ENGINES:
        runtime, client.runtime = client.runtime, None
        engines.append(engine_of(client, directory, plan))
        client.engines[len(engines)] = runtime
    lanes = [Lane(client, directory, engines[i % ENGINES], plan, runs[i % len(runs)]) for i in range(THREADS)]
    beside = [Client(log=client.log) for _ in range(2)]
    cycles = [0, 0]
    ended = []

    def come_and_go(index):
        other = beside[index]
        while len(ended) < THREADS:
            other.runtime = None
            lane = Lane(other, directory, engine_of(other, directory, plan), plan, runs[index % len(runs)])
            lane.load()
            lane.enqueue()
            lane.check("an engine that is loaded and freed")
            lane.close()
            other.runtime = None
            cycles[index] += 1

    def work(index, lane):
        client.barrier.wait()
        if index >= THREADS:
            return come_and_go(index - THREADS)
        try:
            for turn in range(50):
                lane.load()
                lane.enqueue()
                lane.check(f"thread {index}, turn {turn}")
        finally:
            ended.append(index)

    class Other:
        def __init__(self, client):
            self.cuda = client.cuda

    on_threads(client, lanes + [Other(other) for other in beside], work)
    if not all(cycles):
        raise RuntimeError("no engine was loaded and freed")
    print(f"{THREADS * 50} inferences, {sum(cycles)} engines loaded and freed")


WORKS = {"faults": faults_case, "memory": memory_case, "sticky": sticky_case, "churn": churn_case}


def main():
    args = parser_of(__doc__).parse_args()
    here = os.path.abspath(__file__)

    def started(how, case):
        environment = dict(case["env"])
        if how == "faults":
            environment["LD_PRELOAD"] = ":".join(filter(None, [os.path.join(os.path.abspath(args.directory), SHIM), os.environ.get("LD_PRELOAD")]))
        if how == "sticky":
            environment["CUDA_DISABLE_PTX_JIT"] = "0"
        return [here], environment

    return run_all(args, WORKS, lambda how, case: WORKS[how](args.directory, case), started)


if __name__ == "__main__":
    sys.exit(main())
