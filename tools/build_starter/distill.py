"""Distilling the teacher into the student: same sentence vectors, same hidden states, a third of the weights."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from text_tower import TextTower, pooled
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

BATCH = 128
PEAK_RATE, TABLE_RATE, WARM_UP = 4e-4, 2e-3, 60
HIDDEN_WEIGHT = 0.5


def tokenised(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text, without padding."""
    return [[i for i, real in zip(e.ids, e.attention_mask, strict=True) if real] for e in tokenizer.encode_batch(texts)]


def padded(rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    """(n, longest) ids and mask; the padding piece has id 0."""
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    return ids, mask


@torch.inference_mode()
def hidden_states(teacher: TextTower, rows: Sequence[list[int]], *, batch: int = 512) -> list[np.ndarray]:
    """The teacher's last hidden states of each text, (length, width) float16."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    states: list[np.ndarray] = [np.empty(0)] * len(rows)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        ids, mask = padded([rows[i] for i in chosen])
        for i, state in zip(chosen, teacher.hidden(ids, mask).half().numpy(), strict=True):
            states[i] = state[: len(rows[i])].copy()
    return states


def batches(rows: Sequence[list[int]], *, steps: int, seed: int) -> Iterator[list[int]]:
    """`steps` random batches of texts alike in length, epoch after epoch."""
    rng, made = random.Random(seed), 0
    while made < steps:
        order = rng.sample(range(len(rows)), len(rows))
        window = 32 * BATCH
        epoch = []
        for start in range(0, len(order), window):
            near = sorted(order[start : start + window], key=lambda i: len(rows[i]))
            epoch += [near[i : i + BATCH] for i in range(0, len(near) - BATCH + 1, BATCH)]
        rng.shuffle(epoch)
        yield from epoch[: steps - made]
        made += len(epoch)


def distil(
    student: TextTower, rows: Sequence[list[int]], states: Sequence[np.ndarray], *, steps: int, seed: int
) -> None:
    """Train the student in place to give the teacher's vectors."""
    torch.manual_seed(seed)
    table = list(student.tokens.parameters())
    others = [p for name, p in student.named_parameters() if not name.startswith("tokens.")]
    groups = [{"params": others, "peak": PEAK_RATE}, {"params": table, "peak": TABLE_RATE}]
    optimiser = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    student.train()
    for step, chosen in enumerate(batches(rows, steps=steps, seed=seed)):
        pace = min((step + 1) / WARM_UP, 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * pace
        ids, mask = padded([rows[i] for i in chosen])
        target = torch.zeros(*ids.shape, states[0].shape[1])
        for row, i in enumerate(chosen):
            target[row, : len(rows[i])] = torch.from_numpy(states[i]).float()
        hidden = student.hidden(ids, mask)
        vectors = 1 - (pooled(hidden, mask) * pooled(target, mask)).sum(1)
        tokens = (1 - F.cosine_similarity(hidden, target, dim=-1))[mask.bool()]
        optimiser.zero_grad(set_to_none=True)
        (vectors.mean() + HIDDEN_WEIGHT * tokens.mean()).backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"distil {step:5d}/{steps}  1-cos {vectors.mean():.4f}  tokens {tokens.mean():.4f}", flush=True)
    student.eval()
