"""Training where a notebook cannot go: several GPUs, by ``accelerate launch -m c2faith.cros tune|grpo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from c2faith import dataset, paths
from c2faith.analysis import metrics
from c2faith.cros import compare, examples, grpo, judge, tuning
from c2faith.cros.experiment import Settings, Trainer
from c2faith.cros.reading import Encoder, FeatureStore
from c2faith.cros.train import Recipe
from c2faith.records import InputError, write_json

SHOWN = ["judge_id", "n", "exact", "clean_accuracy", "processbench_f1"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command resumes", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m c2faith.cros", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, command in (("tune", _tune), ("grpo", _grpo)):
        sub = commands.add_parser(name)
        sub.add_argument("--run", default="champ")
        sub.add_argument("--model", default="smollm2-135m", help="smollm2-135m, a folder or a hub id")
        sub.add_argument("--folds", type=int, default=5, help="a fold is tested on, the next developed on")
        sub.add_argument("--updates", type=int, default=400)
        sub.add_argument("--learning-rate", type=float)
        sub.add_argument("--batch", type=int, default=16, help="chains, or prompts of GRPO, an update and process")
        sub.add_argument("--seed", type=int, default=0)
        sub.set_defaults(command=command)
        if name == "tune":
            sub.add_argument("--mode", default="lora", choices=["lora", "full"])
            sub.add_argument("--max-tokens", type=int, default=2048)
        else:
            sub.add_argument("--generations", type=int, default=8)
            sub.add_argument("--completion-tokens", type=int, default=256)
            sub.add_argument("--full", action="store_true", help="train the whole model, not an adapter")
            sub.add_argument("--vllm", action="store_true", help="sample replies with vLLM beside the training")
    return parser


def _tune(options: argparse.Namespace) -> None:
    """Train head and encoder; JUDGE=cros/data/runs/<run>/cros-<mode> then asks the judge."""
    from accelerate import Accelerator

    accelerator = Accelerator()
    folder = paths.run_dir(options.run) / f"cros-{options.mode}"
    gathered, _ = examples.gather(dataset.of_run(options.run))
    parts = examples.split(gathered, 0, options.folds)
    # Whole weights keep float32: steps of 1e-5 would be lost in bfloat16.
    dtype = "bfloat16" if accelerator.device.type == "cuda" and options.mode == "lora" else "float32"
    encoder = Encoder(options.model, max_tokens=options.max_tokens, device=str(accelerator.device), dtype=dtype)
    chains = list(dict.fromkeys(e.written for part in (parts.train, parts.development) for e in part))
    with accelerator.main_process_first():
        features = dict(zip(chains, FeatureStore(paths.features_dir(), encoder).get(chains), strict=True))
    frozen, _ = Trainer(parts, features, Settings(), options.seed).judge("exact")
    tuned, run = tuning.tune(
        encoder,
        frozen,
        parts.train,
        parts.development,
        recipe=Recipe(
            "exact",
            updates=options.updates,
            optimizer="adamw",
            learning_rate=options.learning_rate or (1e-4 if options.mode == "lora" else 1e-5),
            batch_size=options.batch * accelerator.num_processes,
            seed=options.seed,
        ),
        folder=folder,
        mode=options.mode,
        accelerator=accelerator,
    )
    if not accelerator.is_main_process:
        return
    if options.mode == "full":
        encoder.model, encoder.settings = str(folder / "model"), encoder.settings | {"model": str(folder / "model")}
    judge.save(folder, [tuned], encoder, {"fold_seed": 0, "tested_fold": 0, "of_folds": options.folds})
    write_json(folder / "log.json", run.log)
    trained = judge.CrosJudge("tuned", folder, device=str(accelerator.device))
    rows, _ = compare.judged(
        "tuned", options.seed, parts.test, trained.read([e.written for e in parts.test]), tuned
    )
    found = metrics.localization(compare.by_task(rows)["localization"])
    print(found[SHOWN].to_string(index=False))


def _grpo(options: argparse.Namespace) -> None:
    """Train a judge that writes JSON; JUDGE=local/data/runs/<run>/grpo/model then asks it."""
    rows = dataset.of_run(options.run)
    tested = {0, 1}  # as in rotation 0 of the heads: test and development problems
    questions = {c.question for c in rows.chains if examples.fold_of(c.question, options.folds) not in tested}
    log = grpo.train_grpo(
        options.model,
        grpo.prompts(rows, questions, seed=options.seed),
        paths.run_dir(options.run) / "grpo",
        updates=options.updates,
        generations=options.generations,
        prompts_per_update=options.batch,
        max_completion_tokens=options.completion_tokens,
        learning_rate=options.learning_rate or 1e-5,
        lora=not options.full,
        use_vllm=options.vllm,
        seed=options.seed,
    )
    write_json(paths.run_dir(options.run) / "grpo" / "log.json", log)
    print(f"reward {log[0]['reward']:.3f} → {log[-1]['reward']:.3f} in {len(log)} updates")


if __name__ == "__main__":
    sys.exit(main())
