"""Measures NVRTC alone: calls it through ctypes, in processes that each make their share sequentially.

    python3 bare_nvrtc.py LIBNVRTC --source FILE --instances FILE --arch sm_90 [--arch ...] [--processes N] [--together] [--out DIR]

Appends each line of `--instances` to the source and compiles the result for each architecture. With `--together`, appends all lines
at once, or as many as give each process a program. Prints one JSON object: number of calls, the sum of their times in seconds, the time from the first to the last, processor
time, and bytes of code. With `--out`, stores the code there.
"""

import argparse
import ctypes
import glob
import json
import multiprocessing
import os
import time


class Nvrtc:
    def __init__(self, path):
        # NVRTC loads it by bare name, which loaded libraries match.
        for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
            ctypes.CDLL(builtins)
        self.lib = ctypes.CDLL(path)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name}: {self.lib.nvrtcGetErrorString(status).decode()}")

    def compile(self, source, arch):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, b"kernel.cu", 0, None, None)
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
        self.call("nvrtcCompileProgram", program, 1, options)
        kind = "CUBIN" if arch.startswith("sm_") else "PTX"
        self.call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{kind}", program, code)
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return code.raw


def share(args, instances, index, barrier, results):
    """Compiles one process's share: every n-th call."""
    with open(args.source, "rb") as file:
        source = file.read()
    calls = [(number, instance, arch) for number, instance in enumerate(instances) for arch in args.arch][index :: args.processes]
    nvrtc = Nvrtc(args.nvrtc)
    barrier.wait()
    seconds, size, first, used = 0.0, 0, time.perf_counter(), time.process_time()
    for number, instance, arch in calls:
        start = time.perf_counter()
        code = nvrtc.compile(source + instance, arch)
        seconds += time.perf_counter() - start
        size += len(code)
        if args.out:
            kind = "cubin" if arch.startswith("sm_") else "ptx"
            with open(os.path.join(args.out, f"{number}.{arch}.{kind}"), "wb") as file:
                file.write(code)
    results.put({"calls": len(calls), "seconds": seconds, "bytes": size, "first": first, "last": time.perf_counter(), "cpu": time.process_time() - used})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nvrtc")
    parser.add_argument("--source", required=True)
    parser.add_argument("--instances")
    parser.add_argument("--arch", action="append", required=True, help="sm_90 for machine code, compute_80 for PTX")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--out")
    args = parser.parse_args()
    instances = [b""]
    if args.instances:
        with open(args.instances, "rb") as file:
            instances = file.read().splitlines(keepends=True)
    if args.together:
        programs = max(1, args.processes // len(args.arch))
        instances = [b"".join(instances[index::programs]) for index in range(min(programs, len(instances)))]
    args.processes = min(args.processes, len(instances) * len(args.arch))
    barrier, results = multiprocessing.Barrier(args.processes), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=share, args=(args, instances, index, barrier, results)) for index in range(args.processes)]
    for process in processes:
        process.start()
    shares = [results.get(timeout=3600) for _ in processes]
    for process in processes:
        process.join()
    total = {name: sum(one[name] for one in shares) for name in ("calls", "seconds", "cpu", "bytes")}
    total["wall"] = max(one["last"] for one in shares) - min(one["first"] for one in shares)
    print(json.dumps(total))


if __name__ == "__main__":
    main()
