import numpy as np
import onnx

text = """
<ir_version: 10, opset_import: ["": 20, "example": 1]>
model (float16[1024, 128] cache, float16[n, 128] rows, int32[1] position) => (float16[1024, 128] updated)
{
    updated = example.append<aot = 1>(cache, rows, position)
}
"""
onnx.save(onnx.parser.parse_model(text), "build/model.onnx")
np.save("build/position.npy", np.array([600], np.int32))
