"""Measures time and memory of loading a plugin library into TensorRT-RTX, without a GPU.

    python3 bench_load.py LIBRARY

Prints a JSON object: milliseconds, private and file-backed megabytes, number of creators."""

import json
import os
import sys
import time

import tensorrt_rtx_bindings as trt


def memory():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return {name: int(lines[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile")}


def main():
    registry = trt.get_plugin_registry()
    creators = len(registry.all_creators)
    before = memory()
    start = time.perf_counter()
    handle = registry.load_library(os.path.abspath(sys.argv[1]))
    elapsed = time.perf_counter() - start
    if handle is None:
        raise SystemExit(f"error: TensorRT refused {sys.argv[1]}")
    after = memory()
    print(
        json.dumps(
            {
                "ms": elapsed * 1e3,
                "own_mb": after["RssAnon"] - before["RssAnon"],
                "file_mb": after["RssFile"] - before["RssFile"],
                "creators": len(registry.all_creators) - creators,
            }
        ),
        flush=True,
    )
    os._exit(0)


if __name__ == "__main__":
    main()
