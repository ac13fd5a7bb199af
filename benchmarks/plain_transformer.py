"""What a Python user has without us: `torch.nn.Transformer` with what it needs to translate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.model.positions import sinusoidal_positions
from transduce.text.tokenizer import BOS, EOS, PAD

__all__ = ["PlainTransformer"]


class PlainTransformer(nn.Module):
    """`nn.Transformer` with embeddings, positions and a tied projection; a stepper that remembers nothing."""

    bos_id, eos_id, pad_id, max_target_length = BOS, EOS, PAD, None

    def __init__(self, vocabulary: int, d_model: int, heads: int, layers: tuple[int, int], d_ff: int) -> None:
        super().__init__()
        self.output_size, self.scale = vocabulary, d_model**0.5
        self.embedding = nn.Embedding(vocabulary, d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.positions = sinusoidal_positions(1024, d_model)
        self.transformer = nn.Transformer(d_model, heads, *layers, d_ff, dropout=0.1, batch_first=True)
        self.transformer.encoder.use_nested_tensor = False  # it warns of itself
        self.dropout = nn.Dropout(0.1)

    def embed(self, ids_BT: Tensor) -> Tensor:
        """Scaled embeddings with positions."""
        return self.dropout(self.embedding(ids_BT) * self.scale + self.positions[: ids_BT.size(1)])

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits."""
        return self.written(self.read(source_BS), source_BS, target_BT)

    def read(self, source_BS: Tensor) -> Tensor:
        """The source, encoded."""
        memory_BSD: Tensor = self.transformer.encoder(self.embed(source_BS), None, source_BS == PAD)
        return memory_BSD

    def written(self, memory_BSD: Tensor, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits after each target token, of a source that is encoded."""
        length = target_BT.size(1)
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = self.transformer.decoder(
            self.embed(target_BT), memory_BSD, causal, memory_key_padding_mask=source_BS == PAD, tgt_is_causal=True
        )
        return hidden @ self.embedding.weight.T

    def prefill(self, source_ids: Tensor, capacity: int) -> list[Tensor]:
        """Encode; nothing is written yet."""
        return [self.read(source_ids), source_ids, source_ids[:, :0]]

    def step(self, state: list[Tensor], token_ids: Tensor) -> Tensor:
        """All that was written is read again each time."""
        state[2] = torch.cat((state[2], token_ids), dim=1)
        return self.written(*state)[:, -token_ids.size(1) :]

    def reorder(self, state: list[Tensor], rows: Tensor) -> None:
        """The beams that go on."""
        state[:] = [each[rows.flatten()] for each in state]
