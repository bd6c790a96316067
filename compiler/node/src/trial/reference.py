# Calls reference functions for expected outputs, or evaluates an ONNX model: a request per line on standard input, an answer per line on
# the original standard output. Functions print to standard error.
import importlib.util
import json
import os
import sys
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.stdout = sys.stderr
# Functions that read standard input get an empty file, not requests.
requests = os.fdopen(os.dup(0))
with open(os.devnull) as nothing:
    os.dup2(nothing.fileno(), 0)
sys.stdin = open(0, closefd=False)

try:
    # Functions may run forever; the process ends with its parent: prctl(PR_SET_PDEATHSIG, SIGKILL).
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


def array(value):
    if hasattr(value, "detach"):
        # A PyTorch tensor; NumPy lacks some of its types.
        value = value.detach().cpu()
        is_unknown = str(value.dtype) == "torch.bfloat16" or str(value.dtype).startswith("torch.float8")
        value = value.float() if is_unknown else value
    return numpy.asarray(value)


# Attributes that TensorRT reads itself.
OF_TENSORRT = {"aot", "plugin_namespace", "plugin_version", "tensorrt_plugin_shape_input_indices"}


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return [text(item) for item in value] if isinstance(value, list) else value


def operator(base, op):
    import onnx

    function = getattr(module(path_of(op["path"])), op["function"])

    class Operator(base):
        op_domain, op_schema = op["op"].rpartition("::")[0], None

        def _run(self, *inputs, **_):
            attributes = {one.name: text(onnx.helper.get_attribute_value(one)) for one in self.onnx_node.attribute}
            result = function(*inputs, **{name: value for name, value in attributes.items() if name not in OF_TENSORRT})
            return tuple(array(value) for value in (result if isinstance(result, tuple) else (result,)))

    Operator.__name__ = op["op"].rpartition("::")[2]
    return Operator


def evaluated(path, ops, inputs, outputs):
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator, op_run
    except ImportError as error:
        raise ImportError(f"{sys.executable} cannot import onnx: {error}") from None
    model = onnx.load(path)
    types = {one.name: onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type) for one in model.graph.input}
    evaluator = ReferenceEvaluator(model, new_ops=[operator(op_run.OpRun, op) for op in ops])
    fed = {name: value.astype(types[name]) for name, value in inputs.items() if name in types}
    results = dict(zip(evaluator.output_names, evaluator.run(None, fed)))
    return {name: value for name, value in results.items() if name in outputs}


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
        with numpy.load(request["inputs"]) as stored:
            inputs = {name: stored[name] for name in request["names"]}
        outputs = request["outputs"]
        if "function" in request:
            function = getattr(module(path), request["function"])
            result = function(*inputs.values(), **request["attributes"])
        else:
            result = evaluated(path, request["ops"], inputs, outputs)
        result = named(result, outputs, request["without_sizes"], request["needed"])
        # Names could collide with `savez`'s parameters, so indices name arrays.
        arrays = {str(outputs.index(name)): array(value) for name, value in result.items()}
        with open(request["to"], "wb") as file:
            numpy.savez(file, **arrays)
        answer = {}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        is_own = lambda name: name != "<string>" and ("function" in request or name in modules)
        own = [frame for frame in frames if is_own(frame.filename)]
        file = own[-1].filename if own else ""
        where = f"{request['shown'] if file == path else file}:{own[-1].lineno}: " if own else ""
        text = f"{where}{type(error).__name__}: {error}"
        # JSON cannot represent paths that are not UTF-8.
        answer = {"error": text.encode(errors="replace").decode()}
    print(json.dumps(answer), file=answers, flush=True)
