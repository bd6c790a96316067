"""Tests `gpu_faults.py` for full devices, with stand-ins for TensorRT and the device: python memory.py
FOLDER_OF_GPU_FAULTS."""

import contextlib
import io
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

import gpu_faults
from cuda_driver import CudaError

CAPACITY = 1 << 20
SCRATCH = 1 << 14
TENSOR = {"shape": [4], "type": "f32", "host": False, "alias": None, "data_dependent": False}
RUN = {"prefix": "run", "inputs": [{"name": "x", **TENSOR}], "outputs": [{"name": "y", **TENSOR}], "apart": False, "offset": 0, "profile": 0}
CASE = {"libraries": ["l"], "plans": [{"plan": "p", "version_compatible": False, "runs": [RUN]}]}
DATA = bytes(range(16))


class Cuda:
    """A device of `CAPACITY` bytes."""

    def __init__(self, how):
        self.how, self.sizes, self.contents, self.next = how, {}, {}, 1

    def alloc(self, size):
        if size > self.free_memory():
            raise CudaError("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY")
        pointer, self.next = self.next, self.next + 1
        self.sizes[pointer] = size
        return pointer

    def free(self, pointer):
        del self.sizes[pointer]

    def free_memory(self):
        return CAPACITY - sum(self.sizes.values())

    def upload(self, pointer, data):
        if self.how == "copies fail" and self.free_memory() < SCRATCH:
            raise CudaError("cuMemcpyHtoD_v2: CUDA_ERROR_OUT_OF_MEMORY")
        self.contents[pointer] = data

    def fill(self, pointer, byte, size):
        self.contents[pointer] = bytes([byte]) * size

    def download(self, pointer, size):
        return self.contents[pointer][:size]

    def stream(self):
        return 7

    def destroy_stream(self, stream):
        pass

    def synchronize_stream(self, stream):
        pass


class Client:
    def __init__(self, how):
        self.how, self.cuda, self.runtime, self.has_failed = how, Cuda(how), None, False
        self.log = type("Log", (), {"lines": []})()

    def load_library(self, path):
        return 1

    def unload_library(self, handle):
        pass

    def engine(self, path):
        if self.how == "loading wants memory" and self.cuda.free_memory() < SCRATCH:
            self.log.lines.append(("ERROR", "out of memory"))
            raise RuntimeError("deserialize refused p")
        client = self

        class Engine:
            def create_execution_context(self):
                return Context(client)

        return Engine()


class Context:
    """Copies its input to its output."""

    def __init__(self, client):
        self.client, self.addresses, self.scratch = client, {}, None

    def set_input_shape(self, name, shape):
        return True

    def set_tensor_address(self, name, address):
        self.addresses[name] = address
        return True

    def execute_async_v3(self, stream):
        client, how = self.client, self.client.how
        cuda = client.cuda
        has_memory = how in ("nothing is wanted", "loading wants memory") or cuda.free_memory() >= SCRATCH
        if not has_memory:
            client.has_failed = True
            if how == "refuses silently":
                return False
            if how != "is wrong":
                client.log.lines.append(("ERROR", "`cuMemAlloc`: CUDA_ERROR_OUT_OF_MEMORY (2)"))
                return False
        if (how == "is wrong" and not has_memory) or (how == "is wrong for ever" and client.has_failed):
            return True
        cuda.contents[self.addresses["y"]] = cuda.contents[self.addresses["x"]]
        return True


def tried(how):
    """Returns the script's report about such a plugin."""
    gpu_faults.Client = lambda: Client(how)
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("run.x", "run.y"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(DATA)
        try:
            with contextlib.redirect_stdout(printed):
                gpu_faults.memory_case(folder, CASE)
        except RuntimeError as problem:
            return f"fails: {problem}"
    return printed.getvalue().strip()


EXPECTED = {
    "refuses": "failed: loading an engine and the first enqueue; all other runs were correct",
    "loading wants memory": "failed: loading an engine; all other runs were correct",
    "nothing is wanted": "skipped: the remaining memory sufficed",
    "refuses silently": "fails: no memory before an engine is loaded: failed without a message about memory: []",
    "is wrong": "fails: no memory before an engine is loaded: succeeded with wrong results",
    "is wrong for ever": "fails: p, turn 0: y: differs from the reference",
    "copies fail": "fails: no memory before an engine is loaded: succeeded with wrong results",
}


def of_the_second_half():
    """Checks that the script also reports wrong results without memory for an engine that was correct before."""
    told = []
    for how in ("is wrong", "refuses silently"):
        lives = gpu_faults.Life.live
        # Skips the first half.
        gpu_faults.Life.live = lambda life, held=None: None
        try:
            told.append(tried(how))
        finally:
            gpu_faults.Life.live = lives
    return told


def main():
    for how, expected in EXPECTED.items():
        found = tried(how)
        if not found.startswith(expected):
            raise SystemExit(f"{how}: the script printed `{found}`, expected `{expected}`")
    wrong, silent = of_the_second_half()
    if not wrong.startswith("fails: no memory before it is run: succeeded with wrong results"):
        raise SystemExit(f"a wrong result of an enqueue is not detected: `{wrong}`")
    if not silent.startswith("fails: no memory before it is run: failed without a message about memory"):
        raise SystemExit(f"an enqueue that fails silently is not detected: `{silent}`")
    print(f"{len(EXPECTED) + 2} behaviours distinguished")


if __name__ == "__main__":
    main()
