import onnx

text = """
<ir_version: 10, opset_import: ["": 20, "example": 1]>
model (float[rows, columns] x) => (float[rows, half] y)
{
    y = example.swiglu<limit = 0.5, aot = 1>(x)
}
"""
onnx.save(onnx.parser.parse_model(text), "build/model.onnx")
