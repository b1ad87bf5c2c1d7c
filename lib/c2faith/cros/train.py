"""Training: a warm start by cross-entropy, then the exact policy gradient or one of its rivals.

`train` knows nothing of where the features come from: it asks a module for the logits of a batch, so that a head
on cached features and a head with its encoder (LoRA or whole) are trained alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from tqdm import tqdm

from c2faith.cros import policy
from c2faith.cros.examples import Batch
from c2faith.records import InputError, replacing, rng, sha256

Logits = tuple[Tensor, Tensor]  # hazard and gap, each of shape (batch, n_steps)


@dataclass(frozen=True)
class Recipe:
    """How to train; a run is named by the hash of its recipe and examples."""

    # Cross-entropy of the right verdict (and the likelihood of the removed steps' counts); the exact gradient of
    # the expected reward; or GRPO's sampled estimate of it with `group` verdicts a chain.
    objective: Literal["warm", "exact", "sampled"]
    # Momentum 0.9 suits linear heads: it follows the strong components first and so, stopped early, acts like a
    # ridge, where AdamW moves along faint and strong ones alike.
    optimizer: Literal["adamw", "sgd"] = "adamw"
    updates: int = 200
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    entropy: float = 0.0  # weight of the verdicts' entropy
    kl: float = 0.0  # weight of their divergence from the policy that training began with
    group: int = 8
    gap_share: float = 0.5  # weight of coverage beside localization
    batch_size: int = 256
    seed: int = 0


def right_verdicts(verdicts: Tensor, batch: Batch) -> Tensor:
    """Log-probability of each chain's right verdict, shape (batch,)."""
    return verdicts.gather(-1, (batch.truth % verdicts.shape[-1])[:, None])[:, 0]


def loss_of(
    logits: Logits, batch: Batch, recipe: Recipe, *, generator: torch.Generator, anchor: Logits | None = None
) -> Tensor:
    """The recipe's loss on a batch: localization, plus `gap_share` times coverage.

    Parameters
    ----------
    generator : torch.Generator
        Of the sampled verdicts.
    anchor : (hazard, gap), optional
        The logits of the policy to stay near.
    """
    hazard, gap = logits
    counted = batch.gap_weight > 0
    mask, gap = batch.mask[counted], gap[counted]
    verdicts, scores = policy.verdict_log_probs(hazard, batch.mask), policy.score_log_probs(gap, mask)
    if recipe.objective == "warm":
        expected = nn.functional.softplus(gap)
        counts = nn.functional.poisson_nll_loss(expected, batch.missing[counted], log_input=False, reduction="none")
        found, covered = right_verdicts(verdicts, batch), -(counts * mask).sum(-1)
    else:

        def objective(log_probs: Tensor, rewards: Tensor) -> Tensor:
            if recipe.objective == "exact":
                return policy.expected_reward(log_probs, rewards)
            return policy.sampled_objective(log_probs, rewards, recipe.group, generator)

        found = objective(verdicts, batch.rewards)
        covered = objective(scores, batch.score_rewards[counted])
    found = found + recipe.entropy * policy.entropy(verdicts)
    covered = covered + recipe.entropy * policy.entropy(scores)
    if anchor is not None and recipe.kl:
        held = policy.verdict_log_probs(anchor[0], batch.mask), policy.score_log_probs(anchor[1][counted], mask)
        found = found - recipe.kl * policy.kl_divergence(verdicts, held[0])
        covered = covered - recipe.kl * policy.kl_divergence(scores, held[1])
    located = (found * batch.weight).sum() / batch.weight.sum().clamp_min(1e-9)
    filled = (covered * batch.gap_weight[counted]).sum() / batch.gap_weight.sum().clamp_min(1e-9)
    return -(located + recipe.gap_share * filled)


def progress(logits: Logits, held: Batch) -> dict[str, float]:
    """Log-likelihood and reward of the development chains, faulty and clean ones weighing the same."""
    hazard, gap = logits
    verdicts, scores = policy.verdict_log_probs(hazard, held.mask), policy.score_log_probs(gap, held.mask)
    located = held.weight / held.weight.sum()
    counted = held.gap_weight / held.gap_weight.sum().clamp_min(1)
    return {
        "likelihood": float((right_verdicts(verdicts, held) * located).sum()),
        "reward": float((policy.expected_reward(verdicts, held.rewards) * located).sum()),
        "entropy": float((policy.entropy(verdicts) * located).sum()),
        "coverage_reward": float((policy.expected_reward(scores, held.score_rewards) * counted).sum()),
    }


@dataclass
class Run:
    """A training's progress: a row of `log` an evaluation, and the trained parameters at the best one."""

    log: list[dict[str, float]] = field(default_factory=list)
    update: int = 0
    best: float = -math.inf
    best_state: dict[str, Tensor] = field(default_factory=dict)

    def note(self, row: dict[str, float], merit: float, trained: dict[str, Tensor]) -> None:
        """Add an evaluation to the log, and keep the parameters if none had more merit."""
        self.log.append(row)
        if merit > self.best:
            self.best, self.best_state = merit, _copy(trained)


def train(
    module: nn.Module,
    make_batch: Callable[[Sequence[int]], Batch],
    n_examples: int,
    recipe: Recipe,
    evaluate: Callable[[nn.Module], dict[str, float]],
    *,
    anchor: nn.Module | None = None,
    select: str | None = "reward",
    evaluate_every: int = 20,
    checkpoint: Path | None = None,
    accelerator: Any = None,
    label: str = "",
) -> Run:
    """Train a module, called with a batch for its `Logits`, and leave it where its evaluation was best.

    Every draw depends on the seed and the number of the update alone, so that a run taken up again goes on as if
    it had never stopped.

    Parameters
    ----------
    anchor : nn.Module, optional
        The policy that `recipe.kl` holds the module to.
    select : str, optional
        The entry of the log whose largest value decides what is kept; None keeps the end.
    accelerator : accelerate.Accelerator, optional
        Trains on its device; of several processes each takes its share of every batch.

    Raises
    ------
    InputError
        If the loss is no longer a number, or the checkpoint is of another training.
    """
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    key = sha256([asdict(recipe), n_examples, select, {name: list(p.shape) for name, p in trained.items()}])
    options = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "sgd":
        optimizer = torch.optim.SGD(trained.values(), momentum=0.9, **options)
    else:
        optimizer = torch.optim.AdamW(trained.values(), **options)
    run = _resume(checkpoint, key, trained, optimizer)
    wrapped, share, main = module, slice(None), True
    if accelerator is not None:
        wrapped, optimizer = accelerator.prepare(module, optimizer)
        share = slice(accelerator.process_index, None, accelerator.num_processes)
        main = accelerator.is_main_process
    bar = tqdm(total=recipe.updates, initial=run.update, desc=label, disable=not (label and main), mininterval=2)
    while True:
        due = run.update % evaluate_every == 0 or run.update == recipe.updates
        if due and (not run.log or run.log[-1]["update"] < run.update):
            with torch.no_grad():
                row = {"update": run.update, **evaluate(module.eval())}
            run.note(row, run.update if select is None else row[select], trained)
            if checkpoint is not None and main:
                kept = {"state": _copy(trained), "optimizer": optimizer.state_dict()}
                with replacing(checkpoint) as file:
                    torch.save({"key": key, "run": vars(run), **kept}, file)
        if run.update == recipe.updates:
            break
        batch = make_batch(_drawn(recipe, run.update, n_examples)[share])
        module.train()
        with _seeded(recipe.seed, run.update) as generator:
            logits = wrapped(batch)
            with torch.no_grad():
                held = anchor.eval()(batch) if anchor is not None else None
            loss = loss_of(logits, batch, recipe, generator=generator, anchor=held)
        if not torch.isfinite(loss):
            kept = f"; what was reached is kept in {checkpoint}" if checkpoint else ""
            raise InputError(f"the loss is {loss.item()} at update {run.update}: lower LEARNING_RATE{kept}")
        optimizer.zero_grad()
        loss.backward() if accelerator is None else accelerator.backward(loss)
        nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimizer.step()
        run.update += 1
        bar.update()
    bar.close()
    _restore(trained, run.best_state)
    return run


def _drawn(recipe: Recipe, update: int, n_examples: int) -> list[int]:
    """Indices of an update's batch: whole shuffled passes, one after the other."""
    size = min(recipe.batch_size, n_examples)
    per_pass = n_examples // size
    order = rng(recipe.seed, "order", str(update // per_pass)).permutation(n_examples)
    start = update % per_pass * size
    return order[start : start + size].tolist()


@contextmanager
def _seeded(seed: int, update: int) -> Iterator[torch.Generator]:
    """Torch's global generator and one of its own for sampled verdicts, both fixed by seed and update."""
    number = int(rng(seed, "update", str(update)).integers(2**62))
    with torch.random.fork_rng():
        torch.manual_seed(number)
        yield torch.Generator().manual_seed(number)


def _resume(path: Path | None, key: str, trained: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> Run:
    if path is None or not path.exists():
        return Run()
    kept = torch.load(path, weights_only=True)
    if kept["key"] != key:
        raise InputError(
            f"{path}: is of a training with other examples or parameters; move it away or name another RUN"
        )
    _restore(trained, kept["state"])
    optimizer.load_state_dict(kept["optimizer"])
    return Run(**kept["run"])


def _copy(trained: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: parameter.detach().cpu().clone() for name, parameter in trained.items()}


def _restore(trained: dict[str, Tensor], state: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(state[name])
