"""The engine for whoever deploys with ONNX Runtime: the exported graphs, and our own search over them.

Shapes: R rows (sentences × beams), B sentences, S source length, T new tokens, V vocabulary.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from transduce.engines.stepper_engine import StepperEngine
from transduce.errors import BundleError, ConfigError

__all__ = ["DECODER", "DESCRIPTION", "ENCODER", "OnnxEngine", "OnnxModel"]

ENCODER, DECODER, DESCRIPTION = "encoder.onnx", "decoder.onnx", "onnx.json"
"""The files of an exported model: what reads the source, what writes the next token, and what both need to be told."""

Array = npt.NDArray[Any]


@dataclass
class OnnxState:
    """What is remembered of a batch between steps; steps and `reorder` change it in place."""

    source: dict[str, Array]
    """By name, what the encoder made: one row a sentence, shared by the sentence's beams."""
    past: dict[str, Array]
    """By name, keys and values of the tokens so far: one row a beam."""
    beams: int = 1


class OnnxModel:
    """An exported model as a stepper, which is all that search needs of it."""

    def __init__(self, path: Path) -> None:
        runtime = _runtime()
        where = str(path)
        try:
            description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
            self.pad_id, self.bos_id, self.eos_id, self.output_size = (
                int(description[name]) for name in ("pad_id", "bos_id", "eos_id", "output_size")
            )
            most = description["max_target_length"]
            self.max_target_length = None if most is None else int(most)
            # One thread: sentences are shared among threads already, each with a batch of its own.
            options = runtime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 3
            self._encoder, self._decoder = (
                runtime.InferenceSession(os.fspath(path / name), options, providers=["CPUExecutionProvider"])
                for name in (ENCODER, DECODER)
            )
            self._made = [output.name for output in self._encoder.get_outputs()]
            self._kept = [output.name for output in self._decoder.get_outputs()]
            inputs = {each.name: each.shape for each in self._decoder.get_inputs()}
            # [rows, heads, tokens so far, width]: of which heads and width are the model's own
            self._empty = {name: (inputs[name][1], inputs[name][3]) for name in inputs if name.startswith("past.")}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise BundleError(
                "the exported model is damaged or incomplete.", where=where, remedy="Export it again."
            ) from error
        except Exception as error:  # ONNX Runtime raises classes of its own, which share no base
            if not type(error).__module__.startswith("onnxruntime"):
                raise
            raise BundleError(
                "ONNX Runtime cannot read the exported model.", where=where, remedy="Export it again."
            ) from error

    def prefill(self, source_ids: Tensor, capacity: int) -> OnnxState:
        """Read the sources [B,S]; room is made as it is needed, whatever the `capacity`."""
        made = self._encoder.run(self._made, {"source_ids": source_ids.numpy()})
        empty = {
            name: np.zeros((len(source_ids), heads, 0, width), np.float32)
            for name, (heads, width) in self._empty.items()
        }
        return OnnxState(dict(zip(self._made, made, strict=True)), empty)

    def step(self, state: OnnxState, token_ids: Tensor) -> Tensor:
        """Logits [R,T,V] after each of the next T tokens [R,T] of every row."""
        given = {"token_ids": token_ids.numpy()} | state.source | state.past
        logits, *present = self._decoder.run(self._kept, given)
        state.past = dict(zip(state.past, present, strict=True))
        return torch.from_numpy(logits)

    def reorder(self, state: OnnxState, rows: Tensor) -> None:
        """Keep K beams for each of B sentences, `rows` [B,K] being rows of the present state."""
        chosen, stay = rows.flatten().numpy(), (rows[:, 0] // state.beams).numpy()
        rows_now = len(next(iter(state.past.values())))
        if len(chosen) != rows_now or not np.array_equal(chosen, np.arange(rows_now)):
            state.past = {name: value[chosen] for name, value in state.past.items()}
        if len(stay) < len(next(iter(state.source.values()))):
            state.source = {name: value[stay] for name, value in state.source.items()}
        state.beams = rows.size(1)


class OnnxEngine(StepperEngine):
    """Runs an exported model with ONNX Runtime; every decoding option means what it means with PyTorch."""

    def __init__(self, path: Path) -> None:
        self.model = OnnxModel(path)
        super().__init__(self.model)


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError(
            "ONNX Runtime is not installed.", remedy='Install it: pip install "transduce[onnx]"'
        ) from error
    return onnxruntime
