"""Checks `cubinder.torch` with the plugins that ship, on a GPU.

    torch_check.py LIBRARY FOLDER_OF_REFERENCE.PY

For each node: PyTorch's `opcheck`; the result equals the reference within tolerances; `torch.compile` without graph
breaks returns the same bytes, also with dynamic shapes; a CUDA graph replays it; operators that share memory change
their input. Prints a line for each; exits with 1 on a difference."""

import importlib
import sys
import threading

import cubinder.torch
import torch

CUDA = torch.device("cuda")
EXACT, CLOSE = (0.0, 0.0), (1e-3, 2e-3)


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).to(CUDA)


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=CUDA)


def nodes():
    """Returns plugin, inputs, attributes and tolerance (atol, rtol) of nodes."""
    half = torch.float16
    yield "circ_pad_plugin", [normal(2, 3, 5, 9)], {"pads": [1, 2, 3, 1]}, EXACT
    yield "circ_pad_plugin", [normal(4, 4, dtype=half)], {"pads": [1, 1]}, EXACT
    yield "elemwise_add_plugin", [normal(5, 33)], {"block_size": 64}, EXACT
    yield "elemwise_add_plugin", [normal(0, 3)], {"block_size": 64}, EXACT
    yield "elemwise_add_plugin_", [normal(7, 5)], {"delta": 3}, EXACT
    yield "non_zero_plugin", [(normal(40, 50) > 1).float()], {}, EXACT
    yield "non_zero_plugin", [torch.zeros(3, 4, device=CUDA)], {}, EXACT
    yield "rms_norm", [normal(7, 33), normal(33)], {}, CLOSE
    yield "rms_norm", [normal(5, 64, dtype=torch.bfloat16), normal(64, dtype=torch.bfloat16)], {"epsilon": 1e-3}, (1e-2, 2e-2)
    yield "add_rms_norm", [normal(7, 33), normal(7, 33), normal(33)], {}, CLOSE
    angles = normal(11, 8)
    yield "rotary_embedding", [normal(2, 3, 5, 16), angles.cos(), angles.sin(), integers([[0, 1, 2, 3, 4]] * 2, torch.int64)], {"interleaved": True}, CLOSE
    yield "pillar_scatter", [normal(3, 5), integers([[0, 0, 1, 2], [0, 0, 3, 4], [0, 0, 8, 6]])], {"height": 9, "width": 7}, EXACT
    locations = normal(2, 11, 3, 2, 4, 2).sigmoid()
    extents = [integers([[6, 5], [3, 4]]), integers([0, 30])]
    yield "multiscale_deformable_attention", [normal(2, 42, 3, 8), *extents, locations, normal(2, 11, 3, 2, 4)], {}, CLOSE
    corners = normal(150, 2).abs() * 20
    boxes = torch.cat([corners, corners + 4], 1)
    yield "nms", [boxes, normal(150), integers([0, 1] * 75)], {"iou_threshold": 0.3}, EXACT


# Reference functions with other names.
NAMES = {"circ_pad_plugin": "circ_pad", "elemwise_add_plugin": "add_one", "elemwise_add_plugin_": "add", "non_zero_plugin": "non_zero"}
DEFAULTS = {"rms_norm": {"epsilon": 1e-5}, "add_rms_norm": {"epsilon": 1e-5}, "pillar_scatter": {"batch": 1}, "nms": {"score_threshold": -3.4028234663852886e38}}


def results(value):
    return list(value) if isinstance(value, (tuple, list)) else list(value.values()) if isinstance(value, dict) else [value]


def compared(found, expected, tolerance):
    """Raises an error at a difference; references may omit size tensors."""
    for number, (one, other) in enumerate(zip(found, expected)):
        other = torch.as_tensor(other)
        assert tuple(one.shape) == tuple(other.shape), f"output {number} has shape {tuple(one.shape)}, expected {tuple(other.shape)}"
        atol, rtol = tolerance
        one, other = one.cpu().double(), other.cpu().double()
        wrong = ~((one - other).abs() <= atol + rtol * other.abs())
        assert not wrong.any(), f"{int(wrong.sum())} elements of output {number} are wrong"


def same(found, expected):
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape, f"output {number} has another type or shape"
        assert torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8)), f"output {number} has other bytes"


def checks(name, operator, in_place, inputs, attributes, expected, tolerance):
    """Returns the checks of a node, by name."""
    call = lambda *tensors: operator(*tensors, **attributes)
    eager = results(call(*inputs))
    has_sizes = name in ("non_zero_plugin", "nms")

    def opcheck():
        torch.library.opcheck(operator.default, tuple(inputs), attributes)

    def compiled(dynamic):
        torch._dynamo.reset()
        # Data-dependent sizes are symbols without a graph break.
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            same(results(torch.compile(call, fullgraph=True, dynamic=dynamic)(*inputs)), eager)

    def graph():
        copies = [tensor.clone() for tensor in inputs]
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            captured = results(call(*copies))
        for tensor in captured:
            tensor.reshape(-1).view(torch.uint8).fill_(0xFF)
        graph.replay()
        torch.cuda.synchronize()
        same(captured, eager)

    def strided():
        spread = [torch.stack([tensor, tensor], -1)[..., 0] for tensor in inputs]
        same(results(call(*spread)), eager)

    def gradients():
        floats = [tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs]
        try:
            call(*floats)
        except RuntimeError as error:
            assert "has no gradient" in str(error), error
        else:
            raise AssertionError("a call that needs a gradient did not fail")
        with torch.no_grad():
            same(results(call(*floats)), eager)

    def thread():
        found = []
        worker = threading.Thread(target=lambda: found.append(results(call(*inputs))))
        worker.start()
        worker.join()
        torch.cuda.synchronize()
        same(found[0], eager)

    def other_device():
        moved = [tensor.to("cuda:1") for tensor in inputs]
        found = results(call(*moved))
        assert all(tensor.device.index == 1 for tensor in found) and torch.cuda.current_device() == 0
        same([tensor.to(CUDA) for tensor in found], eager)
        if len(inputs) > 1:
            try:
                call(*moved[:-1], inputs[-1])
            except RuntimeError as error:
                assert "move them to one device" in str(error), error
            else:
                raise AssertionError("inputs on two devices did not fail")

    def changed():
        versions = [tensor._version for tensor in inputs]
        copies = [tensor.clone() for tensor in inputs]
        assert in_place(*copies, **attributes) is None
        assert copies[0]._version == 1 and versions == [tensor._version for tensor in inputs], "the version counter"
        same(copies[:1], eager[:1])
        assert not torch.equal(copies[0], inputs[0])
        torch.library.opcheck(in_place.default, tuple(copies), attributes)
        copies = [tensor.clone() for tensor in inputs]
        torch._dynamo.reset()
        torch.compile(lambda *tensors: in_place(*tensors, **attributes), fullgraph=True)(*copies)
        same(copies[:1], eager[:1])

    yield "reference", lambda: compared(eager, expected, tolerance)
    yield "opcheck", opcheck
    yield "compiled", lambda: compiled(False)
    yield "compiled, dynamic", lambda: compiled(True)
    yield "strided inputs", strided
    yield "gradients", gradients
    yield "a new thread", thread
    if torch.cuda.device_count() > 1:
        yield "another device", other_device
    if not has_sizes:
        yield "graph", graph
    if in_place is not None:
        yield "in place", changed


def main(library, folder):
    assert cubinder.torch.NATIVE is not None, "kernels would be in Python"
    sys.path.insert(0, folder)
    references = importlib.import_module("reference")
    ops = cubinder.torch.load(library)
    wrong, tried = 0, set()
    for name, inputs, attributes, tolerance in nodes():
        tried.add(name)
        function = getattr(references, NAMES.get(name, name))
        arrays = [tensor.float().cpu().numpy() if tensor.dtype == torch.bfloat16 else tensor.cpu().numpy() for tensor in inputs]
        expected = results(function(*arrays, **{**DEFAULTS.get(name, {}), **attributes}))
        in_place = getattr(ops, name + "_") if name == "elemwise_add_plugin_" else None
        label = f"{name} {[list(tensor.shape) for tensor in inputs]}"
        try:
            for what, check in checks(name, getattr(ops, name), in_place, inputs, attributes, expected, tolerance):
                check()
                print(f"ok {label}: {what}", flush=True)
        except Exception as error: # noqa: BLE001 - others are tried, too
            wrong += 1
            print(f"wrong {label}: {type(error).__name__}: {error}", flush=True)
    missing = sorted(set(ops.names) - tried)
    print(f"not tried: {missing}" if missing else f"all {len(tried)} plugins were tried, {wrong} nodes are wrong")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
