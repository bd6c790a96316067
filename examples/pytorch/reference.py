import torch
from model import Net


def evaluate(net, x):
    net.load_state_dict(torch.load("build/weights.pt"))
    with torch.no_grad():
        return net.eval().cuda()(torch.from_numpy(x).cuda())


def with_plugin(x):
    return evaluate(Net(), x)


def with_pytorch(x):
    def snake(x, alpha):
        alpha = alpha[:, None]
        return x + torch.sin(alpha * x) ** 2 / alpha

    return evaluate(Net(snake), x)
