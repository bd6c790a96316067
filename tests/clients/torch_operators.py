"""Checks `cubinder.torch` without a GPU: operators, shapes, mistakes and export.

    torch_operators.py LIBRARY OTHER_LIBRARY NO_LIBRARY OUT

LIBRARY has the plugins of `torch.rs`, OTHER_LIBRARY one of them, NO_LIBRARY none. Writes models to the folder OUT."""

import pathlib
import sys

import cubinder.torch
import onnx
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

library, other, none, out = sys.argv[1:]


def message(call, *args, **attributes):
    try:
        call(*args, **attributes)
    except cubinder.torch.PluginError as error:
        return str(error)
    raise AssertionError(f"{call} did not fail")


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
text = message(ops.circ_pad_plugin, x, pads=[1, 1])
assert text == "sample::circ_pad_plugin runs on CUDA devices only: move its inputs to a GPU, such as `x.cuda()`", text
assert "`sample::circ_pad_plugin` exists already" in message(cubinder.torch.load, other)
assert "compile it again" in message(cubinder.torch.load, none)


class Net(torch.nn.Module):
    def forward(self, x):
        padded = ops.circ_pad_plugin(x, pads=[1, 1, 0, 0])
        stretched = ops.stretch(x[0], [x.shape[1] * 2, 8], [2])
        indices, _ = ops.non_zero_plugin(padded)
        return padded, stretched, indices + 1, ops.attributes_plugin(x, modes=["a", "b"], half=0.25)


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
assert attributes["modes"] == [b"a", b"b"] and attributes["table"] == b"ab" and attributes["half"] == 0.25, attributes
print("all checks passed")
