"""Runs an engine with TensorRT's Python bindings, for `cubinder run`. Knows nothing of Cubinder.

    runner.py run --module MODULE --plan FILE --folder FOLDER ...

Prints one JSON object per line: log lines, the engine's tensors, and the result. After the tensors it reads one line: the shapes of the
inputs in order, whose bytes are in FOLDER, named by the tensor's number. It writes the outputs' bytes there.
"""

import argparse
import ctypes
import json
import math
import os
import sys

from client import emit, leave, load, load_plugins, logger, stop

BITS = {"FLOAT": 32, "HALF": 16, "BF16": 16, "INT8": 8, "INT32": 32, "INT64": 64, "BOOL": 8, "UINT8": 8, "FP8": 8, "INT4": 4}
WARM_UP = 10
# Most floats of these bytes are NaN.
UNWRITTEN = 0xFF


class Cuda:
    """The primary context of the first device."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            stop("driver", str(error))
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.stream = self.create("cuStreamCreate", 1)

    def call(self, name, *args):
        status = getattr(self.driver, name)(*args)
        if status != 0:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorName(status, ctypes.byref(text))
            stop("driver", f"{name}: {(text.value or str(status).encode()).decode()}")

    def create(self, name, *args):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *args)
        return handle

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.call("cuMemsetD8Async", address, ctypes.c_ubyte(UNWRITTEN), ctypes.c_size_t(max(size, 1)), self.stream)
        self.synchronize()
        return address.value

    def upload(self, address, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def download(self, address, size):
        data = ctypes.create_string_buffer(max(size, 1))
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw[:size]

    def synchronize(self):
        # Uploads use the default stream, for which the own stream does not wait.
        self.call("cuCtxSynchronize")

    def graph(self, enqueue):
        """Returns the executable graph of what `enqueue` does, captured in this thread."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 1)
        is_enqueued = enqueue()
        status = self.driver.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        if not is_enqueued or status != 0:
            stop("capture")
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        self.call("cuGraphDestroy", graph)
        return executable

    def microseconds(self, work, count):
        """Returns the GPU time of each of `count` calls of `work`, which the stream runs back to back."""
        events = [self.create("cuEventCreate", 0) for _ in range(count + 1)]
        self.call("cuEventRecord", events[0], self.stream)
        for event in events[1:]:
            work()
            self.call("cuEventRecord", event, self.stream)
        self.synchronize()
        milliseconds, times = ctypes.c_float(), []
        for pair in zip(events, events[1:]):
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), *pair)
            times.append(milliseconds.value * 1e3)
        return times


def size(dtype, shape):
    return (math.prod(shape) * BITS[dtype] + 7) // 8


def allocator(trt, cuda, context, name):
    """Allocates an output whose shape depends on data."""

    class Allocator(trt.IOutputAllocator):
        def __init__(self):
            trt.IOutputAllocator.__init__(self)
            self.address = self.size = 0
            self.shape = ()

        def reallocate_output_async(self, tensor, memory, size, alignment, stream):
            if size > self.size or not self.address:
                # Earlier memory is used until the process ends.
                self.address, self.size = cuda.allocate(size), size
            return self.address

        def reallocate_output(self, tensor, memory, size, alignment):
            return self.reallocate_output_async(tensor, memory, size, alignment, 0)

        def notify_shape(self, tensor, shape):
            self.shape = tuple(shape)

    own = Allocator()
    if not context.set_output_allocator(name, own):
        stop("tensor", name, "the output allocator")
    return own


class Tensor:
    """An input or output of the engine, and its memory."""

    def __init__(self, trt, engine, number):
        self.number = number
        self.name = name = engine.get_tensor_name(number)
        self.is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
        self.is_host = engine.get_tensor_location(name) == trt.TensorLocation.HOST
        self.type = engine.get_tensor_dtype(name).name
        self.shape = tuple(engine.get_tensor_shape(name))
        self.format = engine.get_tensor_format(name).name
        shapes = engine.get_tensor_profile_shape(name, 0) if self.is_input else []
        values = engine.get_tensor_profile_values(0, name) if self.is_input and self.is_host else []
        self.alias = getattr(engine, "get_aliased_input_tensor", lambda _: None)(name) if not self.is_input else None
        self.profile = [tuple(shape) for shape in shapes]
        self.values = [list(one) for one in values or []]
        self.address = 0
        self.allocator = self.host = None

    def described(self):
        names = ("name", "is_input", "is_host", "type", "shape", "format", "profile", "values")
        return {name: getattr(self, name) for name in names}

    def reserve(self, cuda, data, length):
        if self.is_host:
            self.host = ctypes.create_string_buffer(data or bytes(length), max(length, 1))
            self.address = ctypes.addressof(self.host)
            return
        self.address = cuda.allocate(length)
        if data:
            cuda.upload(self.address, data)

    def bytes(self, cuda):
        if self.allocator:
            self.shape, self.address = self.allocator.shape, self.allocator.address
        length = size(self.type, self.shape)
        return self.host.raw[:length] if self.is_host else cuda.download(self.address, length)


def bind(trt, cuda, context, tensors, shapes, folder):
    inputs = [tensor for tensor in tensors if tensor.is_input]
    for tensor, shape in zip(inputs, shapes):
        if -1 in tensor.shape and not context.set_input_shape(tensor.name, shape):
            stop("shape", tensor.name)
        with open(os.path.join(folder, str(tensor.number)), "rb") as file:
            data = file.read()
        tensor.reserve(cuda, data, len(data))
        # TensorRT reads the values of shape inputs now.
        if not context.set_tensor_address(tensor.name, tensor.address):
            stop("tensor", tensor.name, "the address")
    missing = context.infer_shapes()
    if missing:
        stop("shape", *missing)
    by_name = {tensor.name: tensor for tensor in tensors}
    for tensor in tensors:
        if tensor.is_input:
            continue
        tensor.shape = tuple(context.get_tensor_shape(tensor.name))
        if -1 in tensor.shape:
            tensor.allocator = allocator(trt, cuda, context, tensor.name)
            continue
        if tensor.alias:
            tensor.address = by_name[tensor.alias].address
        else:
            tensor.reserve(cuda, b"", size(tensor.type, tensor.shape))
        if not context.set_tensor_address(tensor.name, tensor.address):
            stop("tensor", tensor.name, "the address")


def run(args):
    trt = load(args.module)
    log = logger(trt, args.verbose)
    cuda = Cuda()
    load_plugins(trt, log, args.plugin)
    runtime = trt.Runtime(log)
    runtime.engine_host_code_allowed = args.host_code
    with open(args.plan, "rb") as file:
        engine = runtime.deserialize_cuda_engine(file.read())
    if engine is None:
        stop("deserialize")
    context = engine.create_execution_context()
    if context is None:
        stop("context")
    tensors = [Tensor(trt, engine, number) for number in range(engine.num_io_tensors)]
    emit("tensors", tensors=[tensor.described() for tensor in tensors])
    line = sys.stdin.readline()
    # The parent rejected the tensors, or ended.
    if not line.strip():
        leave(1)
    bind(trt, cuda, context, tensors, json.loads(line), args.folder)

    def enqueue():
        return context.execute_async_v3(cuda.stream.value)

    def checked(work):
        if not work():
            stop("enqueue")

    if args.cuda_graph and any(tensor.allocator for tensor in tensors):
        stop("capture")
    cuda.synchronize()
    checked(enqueue)
    cuda.synchronize()
    outputs = [tensor for tensor in tensors if not tensor.is_input]
    for tensor in outputs:
        with open(os.path.join(args.folder, str(tensor.number)), "wb") as file:
            file.write(tensor.bytes(cuda))
    times = []
    if args.iterations:
        work = lambda: checked(enqueue)
        if args.cuda_graph:
            graph = cuda.graph(enqueue)
            work = lambda: cuda.call("cuGraphLaunch", graph, cuda.stream)
        cuda.microseconds(work, WARM_UP)
        times = cuda.microseconds(work, args.iterations)
    emit("ran", shapes=[tensor.shape for tensor in outputs], microseconds=times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    one = parser.add_subparsers(dest="command", required=True).add_parser("run")
    for option in ("--module", "--plan", "--folder"):
        one.add_argument(option, required=True)
    one.add_argument("--plugin", action="append", default=[])
    one.add_argument("--iterations", type=int, default=0)
    for option in ("--host-code", "--cuda-graph", "--verbose"):
        one.add_argument(option, action="store_true")
    run(parser.parse_args())
    leave(0)


main()
