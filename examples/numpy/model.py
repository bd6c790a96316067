import onnx

text = """
<ir_version: 10, opset_import: ["": 20, "example": 1]>
model (float[n, 3] a, float[n, 3] b) => (float[n, 3] c)
{
    c = example.cross<aot = 1>(a, b)
}
"""
onnx.save(onnx.parser.parse_model(text), "build/model.onnx")
