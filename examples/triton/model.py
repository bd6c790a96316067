import onnx

text = """
<ir_version: 10, opset_import: ["": 20, "example": 1]>
model (float16[rows, columns] x) => (float16[rows, columns] y)
{
    y = example.softmax<temperature = 0.25, aot = 1>(x)
}
"""
onnx.save(onnx.parser.parse_model(text), "build/model.onnx")
