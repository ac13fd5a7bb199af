"""The network of *Attention Is All You Need*, importable alone: tensors in, tensors out, no text."""

from transduce.model.attention import MultiHeadAttention, attention, attention_weights
from transduce.model.config import TransformerConfig
from transduce.model.decoder import Decoder
from transduce.model.encoder import Encoder
from transduce.model.feedforward import FeedForward
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.positions import sinusoidal_positions
from transduce.model.recurrent import RecurrentConfig, RecurrentTranslator
from transduce.model.transformer import AttentionRecord, Transformer

__all__ = [
    "AttentionRecord",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "RecurrentConfig",
    "RecurrentTranslator",
    "Transformer",
    "TransformerConfig",
    "attention",
    "attention_weights",
    "sinusoidal_positions",
]
