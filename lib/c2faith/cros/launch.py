"""Training where a notebook cannot go: several GPUs, by ``accelerate launch -m c2faith tune|grpo``."""

from __future__ import annotations

from typing import Any

import pandas as pd
from accelerate import Accelerator

from c2faith import dataset, paths
from c2faith.analysis import metrics
from c2faith.cros import examples, judge, summaries, tuning
from c2faith.cros import grpo as sampled
from c2faith.cros.experiment import Settings, Trainer
from c2faith.cros.reading import Encoder, FeatureStore
from c2faith.cros.train import Recipe
from c2faith.records import write_json


def tune(
    run: str,
    model: str,
    *,
    mode: tuning.Mode,
    folds: int,
    updates: int,
    batch: int,
    learning_rate: float | None,
    max_tokens: int,
    seed: int,
) -> pd.DataFrame | None:
    """Train head and encoder; JUDGE=cros/data/runs/<run>/cros-<mode> then asks the judge.

    Its localization on the test problems comes back, from the main process alone.
    """
    accelerator = Accelerator()
    folder = paths.run_dir(run) / f"cros-{mode}"
    gathered, _ = examples.gather(dataset.of_run(run))
    parts = examples.split(gathered, 0, folds)
    # Whole weights keep float32: steps of 1e-5 would be lost in bfloat16.
    dtype = "bfloat16" if accelerator.device.type == "cuda" and mode == "lora" else "float32"
    encoder = Encoder(model, max_tokens=max_tokens, device=str(accelerator.device), dtype=dtype)
    chains = list(dict.fromkeys(e.written for part in (parts.train, parts.development) for e in part))
    with accelerator.main_process_first():
        features = dict(zip(chains, FeatureStore(paths.features_dir(), encoder).get(chains), strict=True))
    frozen, _ = Trainer(parts, features, Settings(), seed).judge("exact")
    recipe = Recipe(
        "exact",
        updates=updates,
        optimizer="adamw",
        learning_rate=learning_rate or (1e-4 if mode == "lora" else 1e-5),
        batch_size=batch * accelerator.num_processes,
        seed=seed,
    )
    options = {"recipe": recipe, "folder": folder, "mode": mode, "accelerator": accelerator}
    tuned, progress = tuning.tune(encoder, frozen, parts.train, parts.development, **options)
    if not accelerator.is_main_process:
        return None
    if mode == "full":
        encoder.model, encoder.settings = str(folder / "model"), encoder.settings | {"model": str(folder / "model")}
    judge.save(folder, [tuned], encoder, {"fold_seed": 0, "tested_fold": 0, "of_folds": folds})
    write_json(folder / "log.json", progress.log)
    trained = judge.CrosJudge("tuned", folder, device=str(accelerator.device))
    readings = trained.read([e.written for e in parts.test])
    rows, _ = summaries.judged("tuned", seed, parts.test, readings, tuned)
    found = metrics.localization(summaries.by_task(rows)["localization"])
    return found[["judge_id", "n", "exact", "clean_accuracy", "processbench_f1"]]


def grpo(
    run: str, model: str, *, folds: int, batch: int, learning_rate: float | None, seed: int, **options: Any
) -> str:
    """Train a judge that writes JSON; JUDGE=local/data/runs/<run>/grpo/model then asks it. Says what it gained.

    `options` go to `train_grpo`.
    """
    rows, folder = dataset.of_run(run), paths.run_dir(run) / "grpo"
    # Neither test nor development problems of rotation 0 of the heads.
    taught = {c.question for c in rows.chains if examples.fold_of(c.question, folds) > 1}
    options |= {"prompts_per_update": batch, "learning_rate": learning_rate or 1e-5, "seed": seed}
    log = sampled.train_grpo(model, sampled.prompts(rows, taught, seed=seed), folder, **options)
    write_json(folder / "log.json", log)
    return f"reward {log[0]['reward']:.3f} → {log[-1]['reward']:.3f} in {len(log)} updates"
