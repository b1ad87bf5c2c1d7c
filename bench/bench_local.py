"""Local judge: verdicts per second of the score mode against a per-item `model.generate` loop.

One run, one model (SmolLM2-135M-Instruct), the same items: CHAMP chains, perturbed, clean and at every deletion
level. The loop writes at most 40 tokens of JSON an item. Ours must be at least 5 times as fast over all tasks.
`python bench/bench_local.py [chains]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import torch

from c2faith import dataset
from c2faith.judging import tasks
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.local import LocalJudge

REQUIRED = 5
NEW_TOKENS = 40


def queries(judge: LocalJudge, task: str, rows: dataset.Dataset) -> list[Query]:
    """What the chains make of a task; natural errors, which share nothing with them, are left out."""
    return [item.query(judge.fingerprint) for item in tasks.items(rows, task) if item.kind != "natural"]


def generate_each(judge: LocalJudge, asked: Sequence[Query]) -> float:
    """Seconds of one `model.generate` call an item."""
    model, tokenizer = judge.loaded.model, judge.loaded.tokenizer
    start = time.perf_counter()
    for query in asked:
        turns = [{"role": role, "content": text} for role, text in query.messages]
        given = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")
        with torch.inference_mode():
            written = model.generate(**given.to(model.device), max_new_tokens=NEW_TOKENS, do_sample=False)
        tokenizer.decode(written[0, given["input_ids"].shape[1] :])
    return time.perf_counter() - start


def main() -> None:
    """Print both rates and their ratio; exit 1 below the required one."""
    chains = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = dataset.build("champ", limit=chains)
    judge = LocalJudge("bench", "smollm2-135m")
    generate_each(judge, queries(judge, "detection", rows)[:1])  # loads the model and warms it up
    print(f"{judge.loaded.device.type}, {judge.loaded.dtype}, {torch.get_num_threads()} threads; verdicts/s")
    totals = [0.0, 0.0]
    for task in judge.tasks:
        asked = queries(judge, task, rows)
        start = time.perf_counter()
        replies = [reply for _, reply in judge.replies(asked)]
        ours = time.perf_counter() - start
        assert len(replies) == len(asked) and all(reply.scores for reply in replies)
        theirs = generate_each(judge, asked)
        totals = [totals[0] + ours, totals[1] + theirs]
        tokens = sum(reply.usage["prompt_tokens"] for reply in replies)
        rates = f"score {len(asked) / ours:6.2f} ({tokens / ours:5.0f} prompt tokens/s)"
        rates += f"  generate {len(asked) / theirs:6.2f}  ratio {theirs / ours:.1f}"
        print(f"{task:<12} {len(asked):3} items  {rates}", flush=True)
    ratio = totals[1] / totals[0]
    print(f"all tasks: ratio {ratio:.1f} (required {REQUIRED})")
    sys.exit(ratio < REQUIRED)


if __name__ == "__main__":
    main()
