import onnx

text = """
<ir_version: 10, opset_import: ["": 20, "example": 1]>
model (float[n] x) => (float[m] y, int32 count)
{
    y, count = example.above<threshold = 0.5, aot = 1>(x)
}
"""
onnx.save(onnx.parser.parse_model(text), "build/model.onnx")
