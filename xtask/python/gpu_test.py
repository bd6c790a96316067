"""Runs prebuilt engines on a GPU and compares their outputs with references, byte for byte.

    python3 gpu_test.py DIRECTORY [--only TEXT]

`cargo xtask gpu-test --prepare DIRECTORY` writes DIRECTORY: `cases.json`, plans, libraries, inputs, references.
Each case runs in a separate process: with trtexec if `$TRTEXEC` is set, and with TensorRT-RTX's Python
bindings. Both are independent of Cubinder. Ends with `N passed, M failed, K skipped`.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SIZES = {"f32": 4, "f16": 2, "bf16": 2, "f8": 1, "i8": 1, "i32": 4, "i64": 8, "bool": 1}


def numel(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


# ---- the client: a child process per case


class Client:
    """A minimal application: a registry, one IRuntime, engines, contexts.

    Threads share one `log`: TensorRT-RTX 1.7.1 reports a second logger while it holds its lock, and the bindings hold
    the GIL while they create an IRuntime, so two such threads deadlock."""

    def __init__(self, ordinal=0, log=None):
        import tensorrt_rtx_bindings as trt

        from cuda_driver import Cuda

        class Log(trt.ILogger):
            def __init__(self):
                trt.ILogger.__init__(self)
                self.lines = []

            def log(self, severity, text):
                self.lines.append((severity.name, text))
                if severity.value <= trt.ILogger.Severity.WARNING.value:
                    print(f"[{severity.name}] {text}")

        self.trt = trt
        self.cuda = Cuda(ordinal)
        self.log = log or Log()
        self.runtime = None
        self.engines = {}

    def load_library(self, path):
        handle = self.trt.get_plugin_registry().load_library(os.path.abspath(path))
        if handle is None:
            raise RuntimeError(f"load_library refused {path}")
        return handle

    def unload_library(self, handle):
        self.trt.get_plugin_registry().deregister_library(handle)

    def engine(self, path):
        if self.runtime is None:
            self.runtime = self.trt.Runtime(self.log)
            self.runtime.engine_host_code_allowed = True
        with open(path, "rb") as file:
            engine = self.runtime.deserialize_cuda_engine(file.read())
        if engine is None:
            raise RuntimeError(f"deserialize refused {path}")
        return engine

    def run(self, context, run, data):
        """Runs an inference and returns output bytes by name. Tensors start `offset` bytes into their buffers, to limit
        alignment. With `graph` the captured graph runs twice. Aliased outputs use the input's address, or with `apart`
        separate memory at `apart_offset`."""
        cuda, offset = self.cuda, run["offset"]
        stream = cuda.stream()
        memory = Memory(cuda)
        if context.active_optimization_profile != run["profile"]:
            if not context.set_optimization_profile_async(run["profile"], stream):
                raise RuntimeError(f"profile {run['profile']} refused")
        for tensor in run["inputs"]:
            name, bytes_ = tensor["name"], data[tensor["name"]]
            if context.engine.get_tensor_location(name) == self.trt.TensorLocation.HOST:
                # TensorRT reads shape inputs when their address is set.
                if not context.set_tensor_address(name, memory.keep(bytes_)):
                    raise RuntimeError(f"the values of {name} rejected")
                continue
            memory.upload(name, bytes_, offset)
            if not context.set_input_shape(name, tuple(tensor["shape"])):
                raise RuntimeError(f"shape {tensor['shape']} of {name} refused")
        for tensor in run["outputs"]:
            name, alias = tensor["name"], tensor["alias"]
            if tensor["data_dependent"]:
                memory.allocators[name] = self.output_allocator(context, name)
                continue
            found = tuple(context.get_tensor_shape(name))
            if found != tuple(tensor["shape"]):
                raise RuntimeError(f"shape {found} of {name}, expected {tuple(tensor['shape'])}")
            if alias and not run["apart"]:
                memory.addresses[name] = memory.addresses[alias]
            else:
                start = run["apart_offset"] if alias else offset
                memory.fill(name, numel(tensor["shape"]) * SIZES[tensor["type"]], start)
        for name, address in memory.addresses.items():
            if not context.set_tensor_address(name, address):
                raise RuntimeError(f"address of {name} with offset {offset} rejected")

        def enqueue():
            if not context.execute_async_v3(stream):
                raise RuntimeError("execute_async_v3 failed")

        if run["graph"]:
            executable = cuda.graph(stream, enqueue)
            for _ in range(2):
                memory.renew()
                cuda.synchronize()
                cuda.launch_graph(executable, stream)
                cuda.synchronize()
            cuda.destroy_graph(executable)
        else:
            # Buffers are filled in the default stream, for which this does not wait.
            cuda.synchronize()
            enqueue()
            cuda.synchronize()
        results = {tensor["name"]: memory.result(tensor) for tensor in run["outputs"]}
        cuda.destroy_stream(stream)
        memory.free()
        return results

    def output_allocator(self, context, name):
        """Allocates outputs whose shape is unknown in advance."""
        client = self

        class Allocator(self.trt.IOutputAllocator):
            def __init__(self):
                client.trt.IOutputAllocator.__init__(self)
                self.address = self.size = 0
                self.shape = None

            def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
                # Reused if large enough; filled to detect unwritten bytes.
                if size > self.size:
                    self.free()
                    self.address, self.size = client.cuda.alloc(size), size
                    client.cuda.fill(self.address, 0xA5, size)
                    client.cuda.synchronize()
                return self.address

            def reallocate_output(self, tensor_name, memory, size, alignment):
                return self.reallocate_output_async(tensor_name, memory, size, alignment, 0)

            def notify_shape(self, tensor_name, shape):
                self.shape = tuple(shape)

            def free(self):
                if self.address:
                    client.cuda.free(self.address)
                self.address = self.size = 0

        allocator = Allocator()
        if not context.set_output_allocator(name, allocator):
            raise RuntimeError(f"the output allocator of {name} is rejected")
        return allocator


class Memory:
    """Device memory of one inference."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.buffers = []
        self.addresses = {}
        self.contents = {}
        self.fills = {}
        self.allocators = {}
        self.host = []

    def reserve(self, name, size, offset):
        self.buffers.append(self.cuda.alloc(size + offset))
        self.addresses[name] = self.buffers[-1] + offset
        return self.addresses[name]

    def keep(self, data):
        """Copies the bytes to host memory and returns its address."""
        self.host.append(ctypes.create_string_buffer(data, len(data)))
        return ctypes.addressof(self.host[-1])

    def upload(self, name, data, offset):
        self.contents[name] = data
        self.cuda.upload(self.reserve(name, len(data), offset), data)

    def fill(self, name, size, offset):
        self.fills[name] = size
        self.cuda.fill(self.reserve(name, size, offset), 0xA5, size)

    def renew(self):
        """Restores all buffers, which aliased outputs have changed."""
        for name, data in self.contents.items():
            self.cuda.upload(self.addresses[name], data)
        for name, size in self.fills.items():
            self.cuda.fill(self.addresses[name], 0xA5, size)

    def result(self, tensor):
        """Returns an output's bytes, with TensorRT's size if it depends on data."""
        name, size = tensor["name"], SIZES[tensor["type"]]
        if not tensor["data_dependent"]:
            return self.cuda.download(self.addresses[name], numel(tensor["shape"]) * size)
        allocator = self.allocators[name]
        if allocator.shape != tuple(tensor["shape"]):
            raise RuntimeError(f"shape {allocator.shape} of {name}, expected {tuple(tensor['shape'])}")
        return self.cuda.download(allocator.address, numel(allocator.shape) * size)

    def free(self):
        for buffer in self.buffers:
            self.cuda.free(buffer)
        for allocator in self.allocators.values():
            allocator.free()


def compare(found, expected, what):
    if found == expected:
        return
    first = next(i for i, (a, b) in enumerate(zip(found, expected)) if a != b) if len(found) == len(expected) else -1
    raise RuntimeError(f"{what}: differs from the reference, first at byte {first} of {len(expected)}")


def read(directory, name):
    with open(os.path.join(directory, name), "rb") as file:
        return file.read()


def run_once(client, context, directory, plan, run):
    """Runs a plan once and checks its references."""
    data = {tensor["name"]: read(directory, f"{run['prefix']}.{tensor['name']}") for tensor in run["inputs"]}
    results = client.run(context, run, data)
    how = ", ".join([f"{tensor['name']} {tensor['shape']}" for tensor in run["inputs"]])
    how += f", offset {run['offset']}, graph {run['graph']}, apart {run['apart']}, profile {run['profile']}"
    for tensor in run["outputs"]:
        expected = read(directory, f"{run['prefix']}.{tensor['name']}")
        compare(results[tensor["name"]], expected, f"{plan['plan']}, {how}: {tensor['name']}")


def client_case(directory, case):
    """Makes all runs of the case twice."""
    client = Client()
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    contexts = []
    # An IRuntime loads a library only once.
    runtimes, embedded = [], set()
    for plan in case["plans"]:
        library = plan["plan"].split("-")[0]
        if plan["version_compatible"] and library in embedded:
            runtimes.append(client.runtime)
            client.runtime = None
            embedded.clear()
        embedded.add(library)
        engine = client.engine(os.path.join(directory, plan["plan"]))
        contexts.append((plan, engine, engine.create_execution_context()))
        if contexts[-1][2] is None:
            raise RuntimeError(f"no execution context for {plan['plan']}")
    for _ in range(2):
        for plan, _, context in contexts:
            for run in plan["runs"]:
                run_once(client, context, directory, plan, run)
    print(f"{client.cuda.name()}, driver CUDA {client.cuda.driver_version()}, TensorRT-RTX {client.trt.__version__}")


def mappings():
    """Returns mappings of plugin libraries, including those extracted from plans."""
    with open("/proc/self/maps") as file:
        return [line for line in file if "cubinder" in line or "pluginLibrary" in line]


def cycle_case(directory, case):
    """Loads, runs and unloads repeatedly, without leaks."""
    client = Client()
    free = []
    for _ in range(case["cycles"]):
        handles = [client.load_library(os.path.join(directory, path)) for path in case["libraries"]]
        for plan in case["plans"]:
            engine = client.engine(os.path.join(directory, plan["plan"]))
            context = engine.create_execution_context()
            run_once(client, context, directory, plan, plan["runs"][0])
            del context, engine
        client.runtime = None
        for handle in handles:
            client.unload_library(handle)
        left = mappings()
        if left:
            raise RuntimeError(f"{len(left)} mappings remain, the first: {left[0].strip()}")
        free.append(client.cuda.free_memory())
    grown = free[len(free) // 5] - free[-1]
    if grown > 0:
        raise RuntimeError(f"{grown} bytes of GPU memory leaked in {len(free)} rounds: {free}")
    print(f"{len(free)} rounds, no leaked mapping or GPU memory")


class Detached:
    """An execution context for threads without a CUDA context."""

    def __init__(self, context):
        self.context = context

    def __getattr__(self, name):
        return getattr(self.context, name)

    def execute_async_v3(self, stream):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.context.execute_async_v3, stream).result()


def thread_case(directory, case):
    """Makes each run in a new thread."""
    client = Client()
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    for plan in case["plans"]:
        engine = client.engine(os.path.join(directory, plan["plan"]))
        context = engine.create_execution_context()
        for run in plan["runs"]:
            run_once(client, Detached(context), directory, plan, run)


def capture_case(directory, case):
    """Captures one plan while another thread closes the other's libraries."""
    client = Client()
    cuda = client.cuda
    kept, dropped = case["plans"]
    context = client.engine(os.path.join(directory, kept["plan"])).create_execution_context()
    run_once(client, context, directory, kept, kept["runs"][0])
    free = []
    for _ in range(case["cycles"]):
        handles = [client.load_library(os.path.join(directory, path)) for path in case["libraries"]]
        other = client.engine(os.path.join(directory, dropped["plan"])).create_execution_context()
        run_once(client, other, directory, dropped, dropped["runs"][0])
        # Only the library's calls may fall into the capture.
        del other

        def captured(stream, work, handles=handles):
            cuda.begin_capture(stream, 0)
            work()
            with ThreadPoolExecutor(1) as pool:
                for handle in handles:
                    pool.submit(client.unload_library, handle).result()
            return cuda.end_capture(stream)

        cuda.graph = captured
        run_once(client, context, directory, kept, {**kept["runs"][0], "graph": True})
        left = [line for line in mappings() if any(os.path.basename(path) in line for path in case["libraries"])]
        if left:
            raise RuntimeError(f"the library was not closed: {left[0].strip()}")
        free.append(cuda.free_memory())
    grown = free[len(free) // 5] - free[-1]
    if grown > 0:
        raise RuntimeError(f"{grown} bytes of GPU memory leaked in {len(free)} rounds: {free}")
    print(f"{len(free)} captures succeeded, without leaked GPU memory")


# ---- trtexec


def trtexec_case(directory, case, trtexec):
    """Makes each run with trtexec and compares the exported output."""
    for plan in case["plans"]:
        for run in plan["runs"]:
            with tempfile.TemporaryDirectory() as scratch:
                out = os.path.join(scratch, "outputs.json")
                command = [trtexec, f"--loadEngine={os.path.join(directory, plan['plan'])}"]
                command += [f"--dynamicPlugins={os.path.join(directory, path)}" for path in case["libraries"]]
                if plan["version_compatible"]:
                    command.append("--versionCompatible")
                inputs = [(tensor["name"], "x".join(str(n) for n in tensor["shape"])) for tensor in run["inputs"]]
                if plan["dynamic"]:
                    command.append("--shapes=" + ",".join(f"{name}:{shape}" for name, shape in inputs))
                files = [f"{name}:{os.path.join(directory, run['prefix'])}.{name}" for name, _ in inputs]
                command.append("--loadInputs=" + ",".join(files))
                command += [f"--exportOutput={out}", "--iterations=1", "--duration=0", "--warmUp=0"]
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
                log = done.stdout + done.stderr
                if done.returncode != 0:
                    raise RuntimeError("trtexec failed:\n" + "\n".join(log.splitlines()[-25:]))
                with open(out) as file:
                    tensors = {tensor["name"]: tensor for tensor in json.load(file)}
                for name in (tensor["name"] for tensor in run["outputs"]):
                    expected = json.loads(read(directory, f"{run['prefix']}.{name}.json"))
                    if [float(value) for value in tensors[name]["values"]] != [float(value) for value in expected]:
                        raise RuntimeError(f"{plan['plan']}: trtexec's {name} differs from the reference")


# ---- the driver


def child(directory, name, how):
    cases = {case["name"]: case for case in json.loads(read(directory, "cases.json"))["cases"]}
    case = cases[name]
    if how == "cycles":
        cycle_case(directory, case)
    elif how == "threads":
        thread_case(directory, case)
    elif how == "captures":
        capture_case(directory, case)
    elif how == "trtexec":
        trtexec_case(directory, case, os.environ["TRTEXEC"])
    else:
        client_case(directory, case)
    sys.stdout.flush()
    os._exit(0)


def run_case(command, env):
    """Returns exit status and output; a timeout is a failure."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env, timeout=300)
    except subprocess.TimeoutExpired:
        return 1, "timed out after 300 s"
    return done.returncode, (done.stdout + done.stderr).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.directory, *args.child)
    passed = failed = skipped = 0
    for case in json.loads(read(args.directory, "cases.json"))["cases"]:
        for how in case["clients"]:
            title = f"{case['name']} [{how}]"
            if args.only not in title:
                continue
            if how == "trtexec" and "TRTEXEC" not in os.environ:
                print(f"skipped: {title}: TRTEXEC is not set")
                skipped += 1
                continue
            command = [sys.executable, os.path.abspath(__file__), args.directory, "--child", case["name"], how]
            status, text = run_case(command, {**os.environ, **case["env"]})
            expect = case.get("fails_with")
            good = (status == 0) if expect is None else (status != 0 and expect in text)
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok' if good else 'FAILED'} {title}: {case['what']}")
            if not good:
                print("    " + "\n    ".join(text.splitlines()[-30:]))
            elif case.get("show"):
                print("    " + "\n    ".join(line for line in text.splitlines() if line)[:2000])
            sys.stdout.flush()
    if os.path.isdir(os.path.join(args.directory, "kernels")):
        import kernel_tests

        more = kernel_tests.run_all(os.path.join(args.directory, "kernels"), args.only)
        passed, failed = passed + more[0], failed + more[1]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
