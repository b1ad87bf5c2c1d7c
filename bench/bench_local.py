"""Local judge: verdicts per second of the score mode against a per-item `model.generate` loop.

One run, one model (SmolLM2-135M-Instruct), the same items: CHAMP chains with their twins, deletion levels and
natural errors. The loop writes up to 40 tokens of JSON an item. Ours must be at least 5 times as fast.
`python bench/bench_local.py [chains]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import torch

from c2faith import dataset
from c2faith.judges.base import Query
from c2faith.judges.local import LocalJudge
from c2faith.plan import plan

REQUIRED = 5
NEW_TOKENS = 40


def queries(judge: LocalJudge, chains: int) -> list[Query]:
    """All of the judge's queries on a few chains."""
    rows = dataset.build("champ", limit=chains, natural_limit=2 * chains)
    return [item.query(judge.fingerprint) for task in judge.tasks for item in plan(rows, task)]


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
    judge = LocalJudge("bench", "smollm2-135m")
    asked = queries(judge, int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    generate_each(judge, asked[:1])  # loads the model, warms both up
    start = time.perf_counter()
    replies = [reply for _, reply in judge.replies(asked)]
    ours = time.perf_counter() - start
    assert len(replies) == len(asked) and all(reply.scores for reply in replies)
    tokens = sum(reply.usage["prompt_tokens"] for reply in replies)
    theirs = generate_each(judge, asked)
    where = f"{judge.loaded.device.type}, {judge.loaded.dtype}, {torch.get_num_threads()} threads"
    print(f"{len(asked)} items of {tokens / len(asked):.0f} prompt tokens on average; {where}")
    print(f"score mode      {len(asked) / ours:7.2f} verdicts/s  {tokens / ours:7.0f} prompt tokens/s")
    print(f"model.generate  {len(asked) / theirs:7.2f} verdicts/s  {tokens / theirs:7.0f} prompt tokens/s")
    print(f"ratio {theirs / ours:.1f} (required {REQUIRED})")
    sys.exit(theirs / ours < REQUIRED)


if __name__ == "__main__":
    main()
