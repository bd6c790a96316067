# Calls reference functions, which compute a plugin's expected outputs: one request per line on standard input, one answer per line
# on the original standard output. Output that the functions print goes to standard error.
import importlib.util
import json
import os
import sys
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.stdout = sys.stderr
# A function that reads standard input must not consume requests: it reads an empty file.
requests = os.fdopen(os.dup(0))
with open(os.devnull) as nothing:
    os.dup2(nothing.fileno(), 0)
sys.stdin = open(0, closefd=False)

try:
    # A function may run forever; the process must end when its parent does: prctl(PR_SET_PDEATHSIG, SIGKILL).
    import ctypes

    ctypes.CDLL(None).prctl(1, 9)
except (ImportError, OSError, AttributeError):
    pass

try:
    import numpy

    missing = None
except ImportError as error:
    missing = f"{sys.executable} cannot import NumPy: {error}"

modules = {}


def module(path):
    if path not in modules:
        sys.path.insert(0, os.path.dirname(path))
        name = "cubinder_reference_" + str(len(modules))
        spec = importlib.util.spec_from_file_location(name, path)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
        modules[path] = loaded
    return modules[path]


def path_of(value):
    return value if isinstance(value, str) else os.fsdecode(bytes(value["bytes"]))


def special(value):
    return float(value["float"]) if set(value) == {"float"} else value


def named(result, names, names_without_sizes, needed):
    if isinstance(result, dict):
        unknown = sorted(set(result) - set(names))
        if unknown:
            raise ValueError(f"it returns {unknown}, but the outputs are {names}")
        missing = [name for name in needed if name not in result]
        if missing:
            raise ValueError(f"it returns {sorted(result)}, but {missing} is missing")
        return result
    results = result if isinstance(result, tuple) else (result,)
    for candidates in (names, names_without_sizes):
        if len(candidates) == len(results):
            return dict(zip(candidates, results))
    raise ValueError(f"it returns {len(results)} arrays, but the outputs are {names}")


for line in requests:
    request = json.loads(line, object_hook=special)
    if missing:
        print(json.dumps({"error": missing}), file=answers, flush=True)
        continue
    try:
        path = path_of(request["path"])
        function = getattr(module(path), request["function"])
        with numpy.load(request["inputs"]) as stored:
            inputs = [stored[name] for name in request["names"]]
        outputs = request["outputs"]
        result = named(function(*inputs, **request["attributes"]), outputs, request["without_sizes"], request["needed"])
        # Output names could collide with the parameters of `savez`, so arrays are named by index.
        arrays = {str(outputs.index(name)): numpy.asarray(value) for name, value in result.items()}
        with open(request["to"], "wb") as file:
            numpy.savez(file, **arrays)
        answer = {}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename != "<string>"]
        file = own[-1].filename if own else ""
        where = f"{request['shown'] if file == path else file}:{own[-1].lineno}: " if own else ""
        text = f"{where}{type(error).__name__}: {error}"
        # JSON cannot represent paths that are not UTF-8.
        answer = {"error": text.encode(errors="replace").decode()}
    print(json.dumps(answer), file=answers, flush=True)
