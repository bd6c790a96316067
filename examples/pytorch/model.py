import cubinder.torch
import torch

ops = cubinder.torch.load("build/libsnake.so")


class Net(torch.nn.Module):
    def __init__(self, snake=ops.snake):
        super().__init__()
        self.snake = snake
        self.before = torch.nn.Conv1d(8, 32, 7, padding=3)
        self.alpha = torch.nn.Parameter(torch.linspace(0.5, 2.0, 32))
        self.after = torch.nn.Conv1d(32, 8, 7, padding=3)

    def forward(self, x):
        return self.after(self.snake(self.before(x), self.alpha))
