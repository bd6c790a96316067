import torch
from model import Net, ops

net = Net().eval()
program = torch.onnx.export(
    net,
    (torch.rand(2, 8, 100),),
    input_names=["x"],
    output_names=["y"],
    dynamo=True,
    dynamic_shapes=({0: "batch", 2: "length"},),
    custom_translation_table=ops.onnx_translation_table,
)
program.save("build/model.onnx")
torch.save(net.state_dict(), "build/weights.pt")
