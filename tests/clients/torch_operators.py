"""Checks `cubinder.torch` without a GPU: operators, shapes, mistakes and export.

    torch_operators.py LIBRARY OTHER_LIBRARY NO_LIBRARY OUT

LIBRARY has the plugins of `torch.rs`, OTHER_LIBRARY one of them, NO_LIBRARY none. Writes models to the folder OUT."""

import pathlib
import sys
import types

import cubinder.torch
import onnx
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

library, other, none, out = sys.argv[1:]


def message_of(kind, call, *args, **attributes):
    try:
        call(*args, **attributes)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")


def message(call, *args, **attributes):
    return message_of(cubinder.torch.PluginError, call, *args, **attributes)


class Native:
    """A call of the C interface that needs 256 bytes of workspace, which another thread already found out."""

    def __init__(self, call):
        self.call, self.sizes = call, []

    def run(self, inputs, outputs, workspace, size, stream):
        self.sizes.append(size)
        self.call.workspace_bytes = 256
        return 256


def check_workspace():
    """A call that got too little workspace launched nothing, whatever other threads do."""
    call = object.__new__(cubinder.torch._Call)
    call.plugin = types.SimpleNamespace(aliases={}, sizes=[], result=lambda outputs, in_place: outputs)
    call.outputs, call.device, call.index, call.workspace_bytes = [], torch.device("cpu"), 0, 0
    call.native = Native(call)
    cubinder.torch.raw_stream, ensure = lambda index: 0, cubinder.torch.CONTEXT.ensure
    cubinder.torch.CONTEXT.ensure = lambda index: None
    call.run([], False)
    cubinder.torch.CONTEXT.ensure = ensure
    assert call.native.sizes == [0, 256], call.native.sizes


def check_keys():
    """Values that compare equal may mean different nodes, and NaN does not equal itself."""
    one, many = cubinder.torch.key_of("f32"), cubinder.torch.key_of("f32[]")
    assert one(0.0) != one(-0.0) and one(float("nan")) == one(float("nan"))
    assert many([0.0]) != many([-0.0]) and hash(many([1.0])) is not None


check_workspace()
check_keys()
ops = cubinder.torch.load(library)
assert cubinder.torch.load(pathlib.Path(library)) is ops
schemas = {name: str(getattr(ops, name).default._schema) for name in ops.names}
assert schemas["circ_pad_plugin"] == "sample::circ_pad_plugin(Tensor x, *, int[] pads) -> Tensor", schemas
assert schemas["non_zero_plugin"] == "sample::non_zero_plugin(Tensor inp0) -> (Tensor, Tensor)", schemas
assert schemas["stretch"] == "test::stretch(Tensor x, SymInt[] target, SymInt[] times) -> Tensor", schemas
assert 'str mode="wrap", int[] table=[97, 98]' in schemas["attributes_plugin"], schemas
assert "bool[]? flags=None, str[]? modes=None" in schemas["attributes_plugin"], schemas
in_place = str(ops.elemwise_add_plugin__.default._schema)
assert in_place == "sample::elemwise_add_plugin__(Tensor(a!) inp0, *, int delta) -> ()", in_place

x = torch.rand(2, 3, 4)
with FakeTensorMode():
    fake = torch.empty(2, 3, 4)
    padded = ops.circ_pad_plugin(fake.half(), pads=[1, 1, 2, 2])
    assert padded.shape == (2, 7, 6) and padded.dtype == torch.float16
    assert ops.stretch(torch.empty(3, 4), [6, 8], [2]).shape == (12, 16)
    assert ops.elemwise_add_plugin__(fake, delta=1) is None
    assert ops.attributes_plugin(fake, modes=["a", "b"], flags=[True]).shape == fake.shape
    text = message(ops.circ_pad_plugin, fake, pads=[1])
    assert "`pads` must hold pairs" in text and "pads = [1]" in text, text
    assert "the node asks for its values" in message(ops.attributes_plugin, fake, show=True, modes=["a"])
    assert "no variant" in message(ops.circ_pad_plugin, fake.long(), pads=[1, 1])
    assert "plugins have no type for torch.complex64" in message(ops.circ_pad_plugin, fake.to(torch.complex64), pads=[1, 1])
    text = message(ops.attributes_plugin, fake, single=1e300)
    assert "the attribute `single` is 1e+300, beyond the range of single precision" in text, text
assert "this library has no plugin `missing`; it has elemwise_add_plugin_" in message_of(AttributeError, lambda: ops.missing)
text = message(ops.circ_pad_plugin, x, pads=[1, 1])
assert text == "sample::circ_pad_plugin runs on CUDA devices only: move its inputs to a GPU, such as `x.cuda()`", text
assert "`sample::circ_pad_plugin` exists already" in message(cubinder.torch.load, other)
assert "cannot read" in message(cubinder.torch.load, none) and "README.md" in message(cubinder.torch.load, none)
assert {"stretch", "elemwise_add_plugin__"} <= set(dir(ops))


class Net(torch.nn.Module):
    def forward(self, x):
        padded = ops.circ_pad_plugin(x, pads=[1, 1, 0, 0])
        stretched = ops.stretch(x[0], [x.shape[1] * 2, 8], [2])
        indices, _ = ops.non_zero_plugin(padded)
        return padded, stretched, indices + 1, ops.attributes_plugin(x, modes=["a", "b"], half=0.25, table=[99, 100], scales=[])


program = torch.onnx.export(
    Net().eval(),
    (x,),
    dynamo=True,
    dynamic_shapes=({0: "batch", 1: "rows"},),
    custom_translation_table=ops.onnx_translation_table,
)
path = pathlib.Path(out) / "net.onnx"
program.save(path)
nodes = {node.op_type: node for node in onnx.load(path).graph.node}
attributes = {one.name: onnx.helper.get_attribute_value(one) for one in nodes["stretch"].attribute}
assert attributes == {
    "plugin_namespace": b"test",
    "plugin_version": b"1",
    "aot": 1,
    "tensorrt_plugin_shape_input_indices": [1, 2],
}, attributes
attributes = {one.name: onnx.helper.get_attribute_value(one) for one in nodes["attributes_plugin"].attribute}
assert attributes["modes"] == [b"a", b"b"] and attributes["table"] == b"cd" and attributes["half"] == 0.25, attributes
# Manifest defaults may have more precision than ONNX.
assert "double" not in attributes, attributes
print("all checks passed")
