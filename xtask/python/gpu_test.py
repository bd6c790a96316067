"""Runs prebuilt engines on a GPU and holds their outputs against references, byte for byte.

    python3 gpu_test.py DIRECTORY [--only TEXT]

DIRECTORY is what `cargo xtask gpu-test --prepare DIRECTORY` wrote: `cases.json`, plans, libraries, inputs, references.
Each case runs in a process of its own: through trtexec where `$TRTEXEC` names it, and through TensorRT-RTX's Python
bindings. Neither knows anything of Cubinder. Ends with `N passed, M failed, K skipped`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

SIZES = {"f32": 4, "f16": 2}


def numel(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


# ---- the client: runs in a child process, one case each


class Client:
    """A C++ application in miniature: a registry, one IRuntime, engines, contexts."""

    def __init__(self):
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
        self.cuda = Cuda()
        self.log = Log()
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

    def run(self, engine, context, shape, out_shape, item, data, offset=0, graph=False):
        """One inference with fresh buffers; gives the output's bytes. The tensors begin `offset` bytes into their buffers, so that
        no more than that is known of their alignment. With `graph` it is captured, and what is run is the graph, twice."""
        cuda = self.cuda
        size = numel(out_shape) * item
        buffers = [cuda.alloc(len(data) + offset), cuda.alloc(size + offset)]
        x, y = (buffer + offset for buffer in buffers)
        cuda.upload(x, data)
        cuda.fill(y, 0xA5, size)
        if not context.set_input_shape("x", tuple(shape)):
            raise RuntimeError(f"input shape {shape} refused")
        for name, address in (("x", x), ("y", y)):
            if not context.set_tensor_address(name, address):
                raise RuntimeError(f"address of {name} with offset {offset} refused")
        found = tuple(context.get_tensor_shape("y"))
        if found != tuple(out_shape):
            raise RuntimeError(f"output shape {found}, expected {tuple(out_shape)}")
        stream = cuda.stream()

        def enqueue():
            if not context.execute_async_v3(stream):
                raise RuntimeError("execute_async_v3 failed")

        if graph:
            executable = cuda.graph(stream, enqueue)
            for _ in range(2):
                cuda.fill(y, 0xA5, size)
                cuda.synchronize()
                cuda.launch_graph(executable, stream)
                cuda.synchronize()
                result = cuda.download(y, size)
            cuda.destroy_graph(executable)
        else:
            enqueue()
            cuda.synchronize()
            result = cuda.download(y, size)
        cuda.destroy_stream(stream)
        for buffer in buffers:
            cuda.free(buffer)
        return result


def compare(found, expected, what):
    if found == expected:
        return
    first = next(i for i, (a, b) in enumerate(zip(found, expected)) if a != b) if len(found) == len(expected) else -1
    raise RuntimeError(f"{what}: differs from the reference, first at byte {first} of {len(expected)}")


def read(directory, name):
    with open(os.path.join(directory, name), "rb") as file:
        return file.read()


def client_case(directory, case):
    """Loads the case's libraries and plans, then runs each plan with each of its runs, twice round."""
    client = Client()
    for path in case["libraries"]:
        client.load_library(os.path.join(directory, path))
    contexts = []
    for plan in case["plans"]:
        engine = client.engine(os.path.join(directory, plan["plan"]))
        contexts.append((plan, engine, engine.create_execution_context()))
        if contexts[-1][2] is None:
            raise RuntimeError(f"no execution context for {plan['plan']}")
    for _ in range(2):
        for plan, engine, context in contexts:
            for run in plan["runs"]:
                data, expected = read(directory, run["input"]), read(directory, run["reference"])
                item = SIZES[plan["type"]]
                how = {"offset": run["offset"], "graph": run["graph"]}
                found = client.run(engine, context, run["shape"], run["out_shape"], item, data, **how)
                compare(found, expected, f"{plan['plan']} {run['shape']} {how}")
    print(f"{client.cuda.name()}, driver CUDA {client.cuda.driver_version()}, TensorRT-RTX {client.trt.__version__}")


def mappings():
    """Mappings of plugin libraries in this process, those that TensorRT takes out of plans into temporary files among them."""
    with open("/proc/self/maps") as file:
        return [line for line in file if "cubinder" in line or "pluginLibrary" in line]


def cycle_case(directory, case):
    """Loads the libraries, runs the plans and unloads everything, many times over: nothing may be left."""
    client = Client()
    free = []
    for _ in range(case["cycles"]):
        handles = [client.load_library(os.path.join(directory, path)) for path in case["libraries"]]
        for plan in case["plans"]:
            engine = client.engine(os.path.join(directory, plan["plan"]))
            context = engine.create_execution_context()
            run = plan["runs"][0]
            data, expected = read(directory, run["input"]), read(directory, run["reference"])
            found = client.run(engine, context, run["shape"], run["out_shape"], SIZES[plan["type"]], data)
            compare(found, expected, plan["plan"])
            del context, engine
        client.runtime = None
        for handle in handles:
            client.unload_library(handle)
        left = mappings()
        if left:
            raise RuntimeError(f"{len(left)} mappings are left, the first: {left[0].strip()}")
        free.append(client.cuda.free_memory())
    # The first rounds are the driver's own warming up.
    grown = free[len(free) // 5] - free[-1]
    if grown > 0:
        raise RuntimeError(f"{grown} bytes of GPU memory are gone after {len(free)} rounds: {free}")
    print(f"{len(free)} rounds, no mapping and no GPU memory left behind")


# ---- trtexec


def trtexec_case(directory, case, trtexec):
    """Makes each run of each plan with trtexec and compares the exported output."""
    for plan in case["plans"]:
        for run in plan["runs"]:
            with tempfile.TemporaryDirectory() as scratch:
                out = os.path.join(scratch, "y.json")
                command = [trtexec, f"--loadEngine={os.path.join(directory, plan['plan'])}"]
                command += [f"--dynamicPlugins={os.path.join(directory, path)}" for path in case["libraries"]]
                if plan["version_compatible"]:
                    command.append("--versionCompatible")
                if plan["dynamic"]:
                    command.append("--shapes=x:" + "x".join(str(n) for n in run["shape"]))
                command.append(f"--loadInputs=x:{os.path.join(directory, run['input'])}")
                command += [f"--exportOutput={out}", "--iterations=1", "--duration=0", "--warmUp=0"]
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
                log = done.stdout + done.stderr
                if done.returncode != 0:
                    raise RuntimeError("trtexec failed:\n" + "\n".join(log.splitlines()[-25:]))
                with open(out) as file:
                    tensors = {tensor["name"]: tensor for tensor in json.load(file)}
                expected = json.loads(read(directory, run["reference_json"]))
                found = [float(value) for value in tensors["y"]["values"]]
                if found != [float(value) for value in expected]:
                    raise RuntimeError(f"{plan['plan']}: trtexec's output differs from the reference")


# ---- the driver


def child(directory, name, how):
    cases = {case["name"]: case for case in json.loads(read(directory, "cases.json"))["cases"]}
    case = cases[name]
    if how == "cycles":
        cycle_case(directory, case)
    elif how == "trtexec":
        trtexec_case(directory, case, os.environ["TRTEXEC"])
    else:
        client_case(directory, case)
    sys.stdout.flush()
    os._exit(0)


def run_case(command, env):
    """Exit status and output; a case that hangs has failed."""
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
                print(f"skipped: {title}: TRTEXEC does not name trtexec")
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
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
