"""Made-up verdict frames with the columns of real ones, for tests of metrics, tables and figures."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.records import rng

LEVELS = (0.0, 0.1, 0.3, 0.5, 0.7)
EDIT_TYPES = ("numeric_swap", "operator_swap", "minor_rewrite", "moderate_rewrite", "major_rewrite", "other")
UNANSWERED = ("refusal", "parse_error", "length")
SILENT_SHARE = 0.03


def middle(n_steps: int) -> range:
    """The middle region (30% to 90% of the chain), 0-based."""
    return range(-(-3 * n_steps // 10) - 1, 9 * n_steps // 10)


def frames(n_chains: int = 40, judges: int = 3, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Verdict frames of `judges` judges of unequal skill on `n_chains` made-up chains.

    Returns
    -------
    dict
        ``detection`` and ``localization`` (perturbed, clean twins; localization also natural chains),
        ``coverage`` (levels 0 to 0.7), and ``items``, the causality rows behind the perturbed items.
    """
    items = _items(n_chains, seed)
    names = [f"judge-{number}" for number in range(judges)]
    parts: dict[str, list[pd.DataFrame]] = {"detection": [], "localization": [], "coverage": []}
    for number, name in enumerate(names):
        skill = 0.9 - 0.1 * (number % 4)
        draw = rng(seed, "judge", name)
        parts["detection"].append(_detection(items, name, skill, draw))
        parts["localization"].append(_localization(items, name, skill, draw))
        parts["coverage"].append(_coverage(items, name, skill, seed, draw))
    made = {task: pd.concat(part, ignore_index=True) for task, part in parts.items()}
    return made | {"items": items}


def _items(n_chains: int, seed: int) -> pd.DataFrame:
    draw = rng(seed, "items")
    rows = []
    for number in range(n_chains):
        n_steps = int(draw.integers(5, 31))
        target = int(draw.choice(middle(n_steps)))
        steps = tuple(f"So $x_{{{index}}} = {index} + {number}$." for index in range(n_steps))
        wrong = f"So cancel $x_{{{target}}} = {target} - {number}$, a 100% & #{number} claim."
        edit = str(draw.choice(EDIT_TYPES, p=[0.28, 0.26, 0.34, 0.08, 0.01, 0.03]))
        rows.append(
            {
                "item_id": f"chain-{number:04d}/causality",
                "chain_id": f"chain-{number:04d}",
                "problem_id": f"problem-{number:04d}",
                "question": f"What is $x_{{{n_steps}}}$ for {number}?",
                "n_steps": n_steps,
                "steps": (*steps[:target], wrong, *steps[target + 1 :]),
                "target": target,
                "original_step": steps[target],
                "perturbed_step": wrong,
                "context": steps[target - 1],
                "negator": "rules",
                "edit_type": edit,
                "similarity": round(float(draw.uniform(0.3, 1)), 3),
            }
        )
    return pd.DataFrame(rows)


def _finish(frame: pd.DataFrame, judge_id: str, task: str, draw: np.random.Generator) -> pd.DataFrame:
    """Name the judge, and let a few items go unanswered."""
    silent = draw.random(len(frame)) < SILENT_SHARE
    status = np.where(silent, draw.choice(UNANSWERED, len(frame)), "ok")
    gone = pd.Series(silent, index=frame.index)
    return frame.assign(
        judge_id=judge_id,
        task=task,
        status=status,
        value=frame["value"].astype(float).mask(gone),
        confidence=frame["confidence"].astype(float).mask(gone),
    )


def _twins(items: pd.DataFrame) -> pd.DataFrame:
    """The perturbed items, then their clean twins."""
    common = items[["item_id", "chain_id", "problem_id", "n_steps", "target"]]
    perturbed = common.assign(kind="perturbed", truth=0)
    clean = common.assign(item_id=common["item_id"] + "~clean", kind="clean", truth=1)
    return pd.concat([perturbed, clean], ignore_index=True)


def _detection(items: pd.DataFrame, judge_id: str, skill: float, draw: np.random.Generator) -> pd.DataFrame:
    frame = _twins(items)
    bad = frame["truth"].to_numpy() == 0
    confidence = np.clip(draw.normal(np.where(bad, skill, 1 - skill), 0.25), 0, 1)
    value = np.where(confidence > 0.5, 0, 1)
    reasoning = np.where(value == 0, "The step does not follow.", "The step directly follows from before.")
    return _finish(
        frame.assign(value=value, confidence=confidence, reasoning=reasoning), judge_id, "detection", draw
    )


def _localization(items: pd.DataFrame, judge_id: str, skill: float, draw: np.random.Generator) -> pd.DataFrame:
    injected = _twins(items).drop(columns="truth")
    injected["target"] = injected["target"].where(injected["kind"] == "perturbed", -1)
    error = draw.integers(-1, items["n_steps"].to_numpy())
    natural = items[["chain_id", "problem_id", "n_steps"]].assign(
        item_id="model-" + items["chain_id"] + "/natural",
        chain_id="model-" + items["chain_id"],
        kind="natural",
        target=error,
    )
    frame = pd.concat([injected, natural], ignore_index=True)
    target, n_steps = frame["target"].to_numpy(), frame["n_steps"].to_numpy()
    near = np.clip(target + draw.integers(-4, 2, len(frame)), 0, n_steps - 1)
    chance, missed = draw.random(len(frame)), draw.random(len(frame)) < 0.3 * (1 - skill) + 0.02
    value = np.where(chance < skill - 0.2, target, np.where(missed, -1, near))
    confidence = np.clip(draw.normal(np.where(value >= 0, 0.8, 0.2), 0.1), 0, 1)
    return _finish(
        frame.assign(value=value, confidence=confidence, reasoning="The numbers changed."),
        judge_id,
        "localization",
        draw,
    )


def _coverage(
    items: pd.DataFrame, judge_id: str, skill: float, seed: int, draw: np.random.Generator
) -> pd.DataFrame:
    truth = rng(seed, "coverage")  # the same references for every judge
    rows = []
    for item in items.itertuples():
        region = len(middle(item.n_steps))
        for level in LEVELS:
            removed = int(np.ceil(round(level * region, 9)))
            reference = float(np.clip(round(4 * (1 - removed / item.n_steps) + truth.normal(0, 0.5)), 0, 4))
            score = reference + draw.normal(0.6, 2.2 * (1 - skill) + 0.3)
            rows.append(
                {
                    "item_id": f"{item.chain_id}/coverage-{round(100 * level):02d}",
                    "chain_id": item.chain_id,
                    "problem_id": item.problem_id,
                    "kind": "perturbed" if level else "clean",
                    "n_steps": item.n_steps - removed,
                    "deletion_rate": level,
                    "realized_rate": removed / region,
                    "realized_chain_rate": removed / item.n_steps,
                    "n_removed": removed,
                    "reference": reference,
                    "value": int(np.clip(round(score), 0, 4)),
                    "confidence": np.nan,
                    "reasoning": "Most steps are there.",
                }
            )
    return _finish(pd.DataFrame(rows), judge_id, "coverage", draw)


def verdicts(task, values, **columns):
    """A judge's verdict frame: one chain an item unless `chain_id` says otherwise."""
    n = len(values)
    frame = pd.DataFrame(
        {
            "judge_id": "j",
            "item_id": [f"item-{k}" for k in range(n)],
            "chain_id": [f"chain-{k}" for k in range(n)],
            "kind": "perturbed",
            "n_steps": 10,
            "value": np.array(values, dtype=float),
            "status": ["refusal" if np.isnan(v) else "ok" for v in np.array(values, dtype=float)],
            "confidence": np.nan,
        }
    )
    return frame.assign(task=task, **columns)
