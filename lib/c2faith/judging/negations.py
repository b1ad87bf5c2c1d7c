"""Negations from an API model: the task ``negation``, asked while a dataset is made, through the same engine.

A negation is paid for once: the nth request of the same messages is answered from the journal if it was answered
before, so the same command resumes after an interruption and rebuilds the same items for nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from c2faith.dataset.negate import MAX_TOKENS, TEMPERATURE, Complete
from c2faith.judging import judges, prompts, replies
from c2faith.judging.ask import ask_into
from c2faith.judging.judges import openai_api, pricing
from c2faith.judging.judges.base import Query, Reply
from c2faith.records import InputError, sha256


def writer(name: str, path: Path, *, max_cost: float | None = None, **edge: Any) -> Complete:
    """What `negate.LlmNegator` asks: a judge's model, sampled as in the paper (Section 4.2).

    `name` and `edge` are as for `judges.make`; `path` is the journal of negations; `max_cost` are dollars over all
    resumes: no call is begun that might take the journal's cost past them. An `InputError` if the name is no API
    judge's, its endpoint is not set up, or `max_cost` is given and it has no prices; when called, if the endpoint
    refuses or gives no answer, or `max_cost` is reached: what was written is kept.
    """
    config = judges.read_config(name, edge.get("base_url"))
    if not judges.is_api(config["provider"]):
        raise InputError(f"negator 'llm' asks an API model, which judge {name!r} is not")
    config["parameters"] = {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}
    if config.get("prices"):
        config["prices"] = {**config["prices"], "expected_output_tokens": MAX_TOKENS}
    judge = openai_api.from_config(config, **edge)
    if max_cost is not None:
        judge.limit_spending(max_cost)
    samples: Counter[str] = Counter()

    def query(context: str, step: str) -> Query:
        messages = prompts.render_negation(context, step)
        key = sha256([judge.fingerprint, messages])
        samples[key] += 1
        return Query(f"negation/{key[:16]}/{samples[key] - 1}", "negation", messages, "", (), None, key)

    def write(steps: Sequence[tuple[str, str]]) -> list[Reply]:
        first = not samples
        queries = [query(*step) for step in steps]
        known = replies.settled(replies.read(path))
        if first and (left := [asked for asked in queries if asked.key not in known]):
            forecast = pricing.forecast(left, judge.model, judge.prices)
            print(f"{judge.judge_id} negations: {forecast.line()}, more for rejected ones", file=sys.stderr)
        tally = ask_into(judge, {path: queries}, max_cost=max_cost)[path]
        rows = replies.latest(replies.read(path))
        found = [rows.get(asked.key, {}) for asked in queries]
        if tally.pending:
            for row in found:
                if row.get("error") == "api_error" and "will_retry" not in row["extra"]:
                    why = f"no negation came back ({row['extra'].get('message', '')}); the same command resumes"
                    raise InputError(f"{judge.endpoint.host}: {why}")
            raise InputError(
                f"MAX_COST={max_cost:g} is reached (${tally.dollars:.4g} are spent on negations); "
                "they are kept, the same command with a larger one resumes"
            )
        return [Reply(row["text"], row["finish_reason"], model=row["model"], error=row["error"]) for row in found]

    return write
