"""The command line behind the Makefile: the one place that turns arguments into calls, errors into exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from c2faith import paths
from c2faith.records import InputError

USAGE_ERROR, FAILURE = 2, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        print("stopped; the same command resumes", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m c2faith", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    notebook = commands.add_parser("notebook", help="execute a numbered notebook into the run's folder")
    notebook.add_argument("name")
    notebook.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE")
    notebook.set_defaults(command=_notebook)

    judge = commands.add_parser("judge", help="ask a judge what it has not answered yet")
    judge.add_argument("--run", default="champ")
    judge.add_argument("--judge", required=True)
    judge.add_argument("--tasks", default="", help="comma list; the judge's own if empty")
    judge.add_argument("--base-url")
    judge.add_argument("--connections", type=int)
    judge.add_argument("--max-cost", type=float, help="dollars, over all tasks and resumes")
    judge.add_argument("--shard", default="", help="k/n: only this part of the items")
    judge.add_argument("--batch", action="store_true", help="through the provider's Batch API")
    judge.set_defaults(command=_judge)

    freeze = commands.add_parser("freeze", help="copy a run's replies to data/frozen")
    freeze.add_argument("--run", default="champ")
    freeze.add_argument("--judges", default="", help="comma list; all if empty")
    freeze.set_defaults(command=_freeze)

    pair = commands.add_parser("pair", help="rewrite the .ipynb pairs from their .py sources")
    pair.add_argument("--check", action="store_true", help="only compare")
    pair.set_defaults(command=_pair)

    verify = commands.add_parser("verify", help="compare everything committed with what was made again")
    verify.add_argument("--run", default="champ")
    verify.add_argument(
        "--against", required=True, type=Path, help="the C2FAITH_HOME where figures were made again"
    )
    verify.add_argument("--path", help="what the items were built from, if that is a file of yours")
    verify.set_defaults(command=_verify)

    tune = commands.add_parser("tune", help="train a CRoS head and its encoder; several GPUs by accelerate launch")
    grpo = commands.add_parser("grpo", help="train a judge that writes JSON, by TRL; several GPUs likewise")
    for training, command in ((tune, _tune), (grpo, _grpo)):
        training.add_argument("--run", default="champ")
        training.add_argument("--model", default="smollm2-135m", help="smollm2-135m, a folder or a hub id")
        training.add_argument("--folds", type=int, default=5, help="a fold is tested on, the next developed on")
        training.add_argument("--updates", type=int, default=400)
        training.add_argument("--learning-rate", type=float)
        training.add_argument("--batch", type=int, default=16, help="chains or prompts an update and process")
        training.add_argument("--seed", type=int, default=0)
        training.set_defaults(command=command)
    tune.add_argument("--mode", default="lora", choices=["lora", "full"])
    tune.add_argument("--max-tokens", type=int, default=2048)
    grpo.add_argument("--generations", type=int, default=8)
    grpo.add_argument("--completion-tokens", dest="max_completion_tokens", type=int, default=256)
    grpo.add_argument("--full", dest="lora", action="store_false", help="train the whole model, not an adapter")
    grpo.add_argument("--vllm", dest="use_vllm", action="store_true", help="sample with vLLM beside the training")
    return parser


def _notebook(options: argparse.Namespace) -> int:
    from c2faith import notebooks

    given = {}
    for pair in options.parameter:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"-p {pair}: parameters are given as NAME=VALUE")
        given[name] = value
    run = given.get("run", "champ")
    print(notebooks.execute(options.name, given, paths.run_dir(run) / "notebooks"))
    return 0


def _judge(options: argparse.Namespace) -> int:
    from c2faith.judging import ask

    tallies = ask.ask_run(
        options.run,
        options.judge,
        tuple(filter(None, options.tasks.split(","))),
        part=options.shard,
        max_cost=options.max_cost,
        batch=options.batch,
        base_url=options.base_url,
        connections=options.connections,
    )
    for task, tally in tallies.items():
        tokens = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.usage.items()))
        cost = f", ${tally.dollars:.2f}" if tally.dollars else ""
        print(f"{task}: {tally.finished}/{tally.items} finished, {tally.calls} calls, {tokens or '0 tokens'}{cost}")
    pending = sum(tally.pending for tally in tallies.values())
    if pending:
        print(f"{pending} items are pending; the same command resumes", file=sys.stderr)
    return FAILURE if pending else 0


def _freeze(options: argparse.Namespace) -> int:
    from c2faith.judging import recording

    print(*recording.freeze(options.run, tuple(filter(None, options.judges.split(",")))), sep="\n")
    return 0


def _pair(options: argparse.Namespace) -> int:
    from c2faith import notebooks

    differing = notebooks.pair(check=options.check)
    if differing and options.check:
        raise InputError(f"{', '.join(differing)}: the .ipynb differs from its .py source; run `make pair`")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from c2faith.analysis.verify import verify

    print(*verify(options.run, options.against, options.path), sep="\n")
    return 0


def _tune(options: argparse.Namespace) -> int:
    from c2faith.cros import launch

    table = launch.tune(**_given(options))
    if table is not None:  # in the main process
        print(table.to_string(index=False))
    return 0


def _grpo(options: argparse.Namespace) -> int:
    from c2faith.cros import launch

    print(launch.grpo(**_given(options)))
    return 0


def _given(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if name != "command"}


if __name__ == "__main__":
    sys.exit(main())
