"""The CUDA driver calls of test clients, through ctypes without packages."""

import ctypes


class CudaError(RuntimeError):
    pass


class Cuda:
    """A device's primary context, with memory and streams."""

    def __init__(self, ordinal=0):
        self.lib, self.ordinal = ctypes.CDLL("libcuda.so.1"), ordinal
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()}")

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def device_count(self):
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def capability(self):
        """CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h."""
        numbers = []
        for attribute in (75, 76):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self.device)
            numbers.append(str(value.value))
        return ".".join(numbers)

    def driver_version(self):
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return f"{version.value // 1000}.{version.value % 1000 // 10}"

    def alloc(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return pointer.value

    def free(self, pointer):
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def upload(self, pointer, data):
        if data:
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))

    def download(self, pointer, size):
        data = ctypes.create_string_buffer(max(size, 1))
        if size:
            self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw[:size]

    def fill(self, pointer, byte, size):
        if size:
            self.call("cuMemsetD8_v2", ctypes.c_uint64(pointer), ctypes.c_ubyte(byte), ctypes.c_size_t(size))

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def make_current(self):
        """For threads without a context or with another GPU's."""
        self.call("cuCtxSetCurrent", self.context)

    def begin_capture(self, stream, mode):
        """`mode` is a CUstreamCaptureMode: 0 global, 1 thread-local, 2 relaxed."""
        self.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), mode)

    def end_capture(self, stream):
        """Returns the executable graph of the capture, before any run."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        self.call("cuGraphDestroy", graph)
        return executable.value

    def graph(self, stream, work):
        """Captures what `work` enqueues on `stream` and returns the executable graph, before any run."""
        # Thread-local: this thread's forbidden calls fail.
        self.begin_capture(stream, 1)
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            work()
        finally:
            self.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        self.call("cuGraphDestroy", graph)
        return executable.value

    def launch_graph(self, executable, stream):
        self.call("cuGraphLaunch", ctypes.c_void_p(executable), ctypes.c_void_p(stream))

    def destroy_graph(self, executable):
        self.call("cuGraphExecDestroy", ctypes.c_void_p(executable))

    def destroy_stream(self, stream):
        self.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))

    def synchronize_stream(self, stream):
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def synchronize(self):
        self.call("cuCtxSynchronize")

    def free_memory(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value
