"""The Python plugin that `swiglu.toml` replaces."""

from typing import List, Tuple

import tensorrt.plugin as trtp
import torch


@trtp.register("example::swiglu")
def swiglu_desc(x: trtp.TensorDesc, limit: float) -> trtp.TensorDesc:
    y = x.like()
    y.shape_expr[x.ndim - 1] = x.shape_expr[x.ndim - 1] // 2
    return y


@trtp.autotune("example::swiglu")
def swiglu_autotune(
    x: trtp.TensorDesc, limit: float, outputs: Tuple[trtp.TensorDesc]
) -> List[trtp.AutoTuneCombination]:
    return [trtp.AutoTuneCombination("FP32|FP16, FP32|FP16")]


@trtp.impl("example::swiglu")
def swiglu_impl(x: trtp.Tensor, limit: float, outputs: Tuple[trtp.Tensor], stream: int) -> None:
    with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
        gate, up = torch.as_tensor(x, device="cuda").chunk(2, dim=-1)
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        torch.as_tensor(outputs[0], device="cuda").copy_(torch.nn.functional.silu(gate) * up)
