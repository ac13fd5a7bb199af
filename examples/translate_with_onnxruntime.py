"""Translate with an exported model and nothing but ONNX Runtime, SentencePiece and NumPy: greedy search by hand.

transduce export en-de --to onnx -o graphs
python translate_with_onnxruntime.py graphs "Where is the station?"
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece

folder, text = Path(sys.argv[1]), sys.argv[2]
ids = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
encoder, decoder = (onnxruntime.InferenceSession(folder / name) for name in ("encoder.onnx", "decoder.onnx"))

# The source is read once: which of its tokens are real, and keys and values for each layer of the decoder.
source_ids = np.array([[*tokenizer.encode(text), ids["eos_id"]]])
names = [output.name for output in encoder.get_outputs()]
given = dict(zip(names, encoder.run(None, {"source_ids": source_ids}), strict=True))

# What has been written is remembered as keys and values too: none at first, one position more after each step.
past = {each.name: each.shape for each in decoder.get_inputs() if each.name.startswith("past.")}
given |= {name: np.zeros((1, heads, 0, width), np.float32) for name, (_, heads, _, width) in past.items()}

written = [ids["bos_id"]]
while written[-1] != ids["eos_id"] and len(written) < source_ids.size + 50:
    logits, *present = decoder.run(None, given | {"token_ids": np.array([written[-1:]])})
    given |= dict(zip(past, present, strict=True))
    written.append(int(logits[0, -1].argmax()))
print(tokenizer.decode([token for token in written if token > ids["eos_id"]]))
