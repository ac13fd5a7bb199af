"""Small models of `transformers` with weights at random, of every kind that can be imported and with their options."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

MARIAN, PEGASUS, BART, MBART, M2M, T5 = (
    "MarianMTModel",
    *(f"{family}ForConditionalGeneration" for family in ("Pegasus", "Bart", "MBart", "M2M100", "T5")),
)
VOCABULARY = 50
STEPS = 60
"""That a model is taught."""
SIDES = {
    "vocab_size": VOCABULARY, "d_model": 16, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 20, "max_position_embeddings": 40,
}  # fmt: skip
MARIANS = SIDES | {"pad_token_id": 39, "decoder_start_token_id": 39, "eos_token_id": 0, "forced_eos_token_id": None}
FAIRSEQ = SIDES | {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None}
PEGASI = SIDES | {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": None}
T5S = {
    "vocab_size": VOCABULARY, "d_model": 16, "d_kv": 5, "d_ff": 24, "num_layers": 3, "num_decoder_layers": 2,
    "num_heads": 3, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
    "decoder_start_token_id": 0,
}  # fmt: skip
ENCODER = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 20,
}  # fmt: skip
GPT2 = {
    "vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 20, "bos_token_id": 5,
    "eos_token_id": 5,
}  # fmt: skip
VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "num_labels": 5}


@dataclass
class Case:
    """A class of theirs, its settings, and what is done to it that no setting says."""

    architecture: str
    settings: dict[str, Any]
    logits_bias: bool = False
    untied_head: bool = False

    @property
    def translates(self) -> bool:
        return self.architecture.endswith(("MTModel", "ForConditionalGeneration"))

    @cached_property
    def theirs(self) -> Any:
        """The model in `transformers`, the same each time."""
        import transformers

        architecture = getattr(transformers, self.architecture)
        torch.manual_seed(len(str(self.settings)))
        model = architecture(architecture.config_class(**self.settings)).eval()
        if self.untied_head:
            model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
        for parameter in model.parameters():
            if parameter.requires_grad:
                nn.init.normal_(parameter, std=0.4)
        if self.logits_bias:
            model.final_logits_bias.normal_()
        return model

    @cached_property
    def taught(self) -> Any:
        """The same, having begun to learn to count from what it reads to 15: it writes this and that, and ends."""
        model = deepcopy(self.theirs).train()
        torch.manual_seed(0)
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.2)
            elif parameter.requires_grad:
                nn.init.constant_(parameter, float(name.endswith("weight")))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for step in range(STEPS):
            source, labels = self.lesson(32, seed=step)
            mask = (source != model.config.pad_token_id).long()
            optimizer.zero_grad()
            model(input_ids=source, attention_mask=mask, labels=labels).loss.backward()
            optimizer.step()
        return model.eval()

    def lesson(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """Sources of one number a few times, padded, and targets that count on from it; -100 is no target."""
        generator, config = torch.Generator().manual_seed(seed), self.theirs.config
        first = torch.randint(8, 16, (count, 1), generator=generator)
        lengths = torch.randint(2, 8, (count, 1), generator=generator)
        source = first.repeat(1, 8)
        source[torch.arange(8) > lengths] = config.pad_token_id
        target = first + torch.arange(9)
        target[target == 16] = config.eos_token_id
        return source.scatter(1, lengths, config.eos_token_id), target.masked_fill(target > 15, -100)

    def saved(self, path: Path) -> Path:
        """The directory that `transformers` writes of it."""
        self.theirs.save_pretrained(path)
        return path

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """What it is given: texts padded at their ends, and what a decoder reads; or pictures."""
        generator, config = torch.Generator().manual_seed(3), self.theirs.config
        if self.architecture.startswith("ViT"):
            size = config.image_size
            height, width = size if isinstance(size, list | tuple) else (size, size)
            return (torch.randn(3, config.num_channels, height, width, generator=generator),)
        source = torch.randint(8, 38, (4, 11), generator=generator)  # no special ids among them
        if self.architecture.startswith("GPT2"):
            return (source,)
        source[1, 7:], source[3, 2:] = config.pad_token_id, config.pad_token_id
        if not self.translates:
            return (source,)
        target = torch.randint(8, 38, (4, 9), generator=generator)
        target[:, 0] = config.decoder_start_token_id
        return source, target

    @property
    def real(self) -> Tensor:
        """Which places of the logits mean something: of an encoder's, those of tokens that are no padding."""
        if self.architecture in ("BertForMaskedLM", "BertForTokenClassification"):
            return self.inputs[0] != self.theirs.config.pad_token_id
        return torch.ones(1, dtype=torch.bool).expand(self.logits.shape[:2])

    @cached_property
    def logits(self) -> Tensor:
        """What `transformers` makes of the inputs."""
        first = self.inputs[0]
        with torch.inference_mode():
            if self.architecture.startswith("ViT"):
                return self.theirs(first).logits.unsqueeze(1)
            pad = self.theirs.config.pad_token_id
            mask = torch.ones_like(first) if pad is None else (first != pad).long()
            if self.translates:
                return self.theirs(input_ids=first, attention_mask=mask, decoder_input_ids=self.inputs[1]).logits
            found = self.theirs(first, attention_mask=mask).logits
            return found.unsqueeze(1) if found.dim() == 2 else found


TRANSLATORS = {
    "marian": Case(MARIAN, MARIANS),
    "marian-scaled-swish-bias": Case(
        MARIAN, MARIANS | {"scale_embedding": True, "activation_function": "swish"}, logits_bias=True
    ),
    "marian-two-vocabularies": Case(
        MARIAN,
        MARIANS | {
            "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 44, "activation_function": "relu",
        },
        logits_bias=True,
    ),
    "marian-untied": Case(MARIAN, MARIANS | {"tie_word_embeddings": False}),
    "marian-two-vocabularies-untied": Case(
        MARIAN,
        MARIANS | {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ),
    "pegasus": Case(PEGASUS, PEGASI | {"scale_embedding": True}, logits_bias=True),
    "bart": Case(BART, FAIRSEQ),
    "bart-scaled-bias": Case(
        BART, FAIRSEQ | {"scale_embedding": True, "activation_function": "relu"}, logits_bias=True
    ),
    "bart-untied": Case(BART, FAIRSEQ, untied_head=True),
    "mbart": Case(MBART, FAIRSEQ | {"scale_embedding": True}, logits_bias=True),
    "mbart-untied": Case(MBART, FAIRSEQ | {"tie_word_embeddings": False, "activation_function": "relu"}),
    "m2m100": Case(M2M, FAIRSEQ | {"scale_embedding": True, "activation_function": "relu"}),
    "m2m100-odd-pad": Case(M2M, FAIRSEQ | {"pad_token_id": 7, "scale_embedding": False}),
    "t5": Case(T5, T5S),
    "t5-gated": Case(T5, T5S | {"feed_forward_proj": "gated-gelu"}),
    "t5-gated-untied": Case(
        T5, T5S | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, untied_head=True
    ),
    "t5-untied": Case(T5, T5S | {"tie_word_embeddings": False}, untied_head=True),
    "t5-gated-silu": Case(T5, T5S | {"feed_forward_proj": "gated-silu"}),
}  # fmt: skip
OTHERS = {
    "bert": Case("BertForMaskedLM", ENCODER),
    "bert-untied": Case("BertForMaskedLM", ENCODER | {"tie_word_embeddings": False, "hidden_act": "gelu_new"}),
    "bert-sentence": Case("BertForSequenceClassification", ENCODER | {"num_labels": 3, "hidden_act": "relu"}),
    "bert-token": Case("BertForTokenClassification", ENCODER | {"num_labels": 4}),
    "gpt2": Case("GPT2LMHeadModel", GPT2),
    "gpt2-inner-scales": Case(
        "GPT2LMHeadModel",
        GPT2 | {"n_inner": 20, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
    ),
    "gpt2-untied-relu": Case("GPT2LMHeadModel", GPT2 | {"tie_word_embeddings": False, "activation_function": "relu"}),
    "vit": Case("ViTForImageClassification", VIT | {"image_size": 8, "patch_size": 4}),
    "vit-wide-grey": Case(
        "ViTForImageClassification",
        VIT | {"image_size": [6, 9], "patch_size": 3, "num_channels": 1, "qkv_bias": False, "hidden_act": "relu"},
    ),
}
CASES = TRANSLATORS | OTHERS


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each kind of model, with each of its options."""
    return CASES[request.param]


@pytest.fixture
def case_named() -> Callable[[str], Case]:
    """One of them."""
    return CASES.__getitem__
