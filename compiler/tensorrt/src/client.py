"""The common part of `builder.py` and `runner.py`, which print one JSON object per line."""

import importlib
import json
import os
import sys

# TensorRT and plugins may print to standard output.
EVENTS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), file=EVENTS, flush=True)


def stop(stage, *texts):
    emit("failed", stage=stage, texts=texts)
    leave(1)


def leave(code):
    # TensorRT's static destructors can crash.
    sys.stderr.flush()
    os._exit(code)


def load(module):
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:
        stop("import", str(error))


def logger(trt, verbose):
    class Log(trt.ILogger):
        def log(self, severity, text):
            if verbose or severity.value <= trt.ILogger.Severity.WARNING.value:
                emit("log", severity=severity.name, text=text)

    return Log()


def load_plugins(trt, log, libraries):
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(log, "")
    for library in libraries:
        if trt.get_plugin_registry().load_library(library) is None:
            stop("plugin", library)
