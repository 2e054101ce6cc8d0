"""ResNet-18, VGG-16 and WideResNet-16-4 for small images, by name, initialised as in PyTorch.

The networks of torchvision and timm are for 224 x 224 pixels; see docs/dependencies.md.
``width`` multiplies the channels of every layer: 1 is the paper's network.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from mpisim.core.registry import registered

MODELS: dict[str, Callable[[tuple[int, ...], int, float], nn.Module]] = {}


def model(name: str):
    """Decorator of a function (shape of a sample, classes, width) -> Module: registers it."""
    return registered(MODELS, name)


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Residual(nn.Module):
    """Two 3 x 3 convolutions with batch norm around a shortcut.

    ``early``: normalise and activate before each convolution (He et al., 2016b; WideResNet), not
    after it (He et al., 2016a; ResNet-18).
    """

    def __init__(self, inputs: int, outputs: int, stride: int, early: bool):
        super().__init__()
        self.early = early
        self.conv1, self.conv2 = _conv(inputs, outputs, 3, stride), _conv(outputs, outputs, 3)
        self.norm1 = nn.BatchNorm2d(inputs if early else outputs)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = _conv(inputs, outputs, 1, stride)
            if not early:
                self.shortcut = nn.Sequential(self.shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.early:
            y = torch.relu(self.norm1(x))
            x = x if isinstance(self.shortcut, nn.Identity) else self.shortcut(y)
            return x + self.conv2(torch.relu(self.norm2(self.conv1(y))))
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class MeanPool(nn.Module):
    """The mean over all pixels, (N, C, H, W) -> (N, C)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=(2, 3))


def _stages(inputs: int, widths: list[int], early: bool) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for stage, outputs in enumerate(widths):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            blocks.append(Residual(inputs, outputs, stride, early))
            inputs = outputs
    return blocks


def _channels(count: int, width: float) -> int:
    return max(1, round(count * width))


@model("resnet18")
def resnet18(shape: tuple[int, ...], classes: int, width: float) -> nn.Module:
    """ResNet-18 with a 3 x 3 stem and no pooling after it: 11,173,962 parameters on CIFAR-10."""
    widths = [_channels(count, width) for count in (64, 128, 256, 512)]
    stem = [_conv(shape[0], widths[0], 3), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    body = _stages(widths[0], widths, early=False)
    return nn.Sequential(*stem, *body, MeanPool(), nn.Linear(widths[-1], classes))


@model("wrn-16-4")
def wrn_16_4(shape: tuple[int, ...], classes: int, width: float) -> nn.Module:
    """WideResNet-16-4 (Zagoruyko, Komodakis, 2016): 2,748,890 parameters on CIFAR-10."""
    stem = _channels(16, width)
    widths = [_channels(count, 4 * width) for count in (16, 32, 64)]
    body = [_conv(shape[0], stem, 3), *_stages(stem, widths, early=True)]
    head = [nn.BatchNorm2d(widths[-1]), nn.ReLU(), MeanPool(), nn.Linear(widths[-1], classes)]
    return nn.Sequential(*body, *head)


@model("vgg16")
def vgg16(shape: tuple[int, ...], classes: int, width: float) -> nn.Module:
    """VGG-16 with batch norm and one linear layer: 14,728,266 parameters on CIFAR-10."""
    layers: list[nn.Module] = []
    inputs = shape[0]
    for count, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            outputs = _channels(count, width)
            conv = nn.Conv2d(inputs, outputs, 3, padding=1)
            layers += [conv, nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2, ceil_mode=True))  # a single pixel is kept
    return nn.Sequential(*layers, MeanPool(), nn.Linear(inputs, classes))


@model("small-cnn")
def small_cnn(shape: tuple[int, ...], classes: int, width: float) -> nn.Module:
    """Three 3 x 3 convolutions of stride 2 with batch norm: 24,346 parameters on CIFAR-10."""
    layers: list[nn.Module] = []
    inputs = shape[0]
    for count in (16, 32, 64):
        outputs = _channels(count, width)
        layers += [_conv(inputs, outputs, 3, 2), nn.BatchNorm2d(outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, MeanPool(), nn.Linear(inputs, classes))


@model("linear")
def linear(shape: tuple[int, ...], classes: int, width: float) -> nn.Module:
    """One linear layer: multinomial logistic regression."""
    size = int(torch.Size(shape).numel())
    return nn.Sequential(nn.Flatten(), nn.Linear(size, classes))
