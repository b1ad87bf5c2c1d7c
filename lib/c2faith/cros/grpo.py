"""The sampled counterpart for judges that write JSON: GRPO by TRL, with the same rewards (ENGINE=grpo).

Nothing of GRPO is written here: this module makes the prompts and hands them, with the reward functions, to
`trl.GRPOTrainer`. On several GPUs start the same command under ``accelerate launch``; with `use_vllm` replies are
sampled by vLLM beside the training (``colocate``), which is where most of the time goes otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from c2faith.cros.rewards import TRL_REWARDS
from c2faith.dataset import Dataset
from c2faith.judging import tasks as judging_tasks
from c2faith.judging.judges import local_model
from c2faith.judging.tasks import Item
from c2faith.judging.verdict_frames import retention
from c2faith.records import InputError, rng

TASKS = ("detection", "localization", "coverage")


def prompts(
    dataset: Dataset, questions: set[str], tasks: Sequence[str] = TASKS, seed: int = 0
) -> list[dict[str, Any]]:
    """One row a prompt, as TRL wants them: the benchmark's own messages, with the labels as columns.

    Of detection and localization as many faulty as clean items are taken, of coverage all levels; in seeded order.
    """
    chains = {chain.chain_id: chain for chain in dataset.chains}
    rows = []
    for task in tasks:
        items = [item for item in judging_tasks.items(dataset, task) if item.question in questions]
        for item in _half_clean(items, seed) if task != "coverage" else items:
            known = {"truth": None, "target": None, "reference": None}
            if task == "coverage":
                known["reference"] = retention(chains[item.chain_id], item.removed)
            else:
                known |= {name: int(item.labels[name]) for name in known.keys() & item.labels.keys()}
            messages = [{"role": role, "content": content} for role, content in item.query("").messages]
            rows.append({"prompt": messages, "task": task, "n_steps": len(item.steps), **known})
    if not rows:
        raise InputError("no prompt is left to train on: give more problems or other TASKS")
    return [rows[i] for i in rng(seed, "grpo").permutation(len(rows))]


def _half_clean(items: Sequence[Item], seed: int) -> list[Item]:
    clean = [item for item in items if item.labels.get("truth", item.labels["target"] < 0)]
    faulty = [item for item in items if item not in clean]
    keep = min(len(clean), len(faulty))
    if not keep:
        raise InputError("half of the prompts must be clean, and there is no clean (or no faulty) item to train on")
    return [side[i] for side in (clean, faulty) for i in sorted(rng(seed, "half").permutation(len(side))[:keep])]


def train_grpo(
    model: str,
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    updates: int,
    generations: int = 8,
    prompts_per_update: int = 8,
    max_completion_tokens: int = 256,
    learning_rate: float = 1e-5,
    beta: float = 0.0,
    lora: bool = True,
    use_vllm: bool = False,
    seed: int = 0,
) -> list[dict[str, float]]:
    """Train a model to write verdicts, and leave it with its tokenizer in `folder/model`, ready for any server.

    An interrupted run goes on from its last checkpoint in `folder`.

    Returns TRL's log: reward, its spread, lengths, share of replies cut off, and more, one row an update.

    Parameters
    ----------
    rows
        What `prompts` gives.
    generations
        Replies sampled for a prompt: the group.
    beta
        Weight of the divergence from the model that training began with.
    lora
        Train an adapter and merge it at the end; else the whole model.
    """
    import torch
    from datasets import Dataset as Rows
    from transformers.trainer_utils import get_last_checkpoint
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = local_model.load_tokenizer(model, chat=True)
    if tokenizer.eos_token_id is None:
        raise InputError(f"MODEL={model}: its tokenizer has no end-of-text token, so that no reply would ever end")
    cuda = torch.cuda.is_available()
    settings = GRPOConfig(
        output_dir=str(folder),
        max_steps=updates,
        num_generations=generations,
        per_device_train_batch_size=generations * prompts_per_update,
        max_completion_length=max_completion_tokens,
        learning_rate=learning_rate,
        beta=beta,
        use_vllm=use_vllm,
        use_cpu=not cuda,
        bf16=cuda,
        activation_checkpointing=cuda,
        model_init_kwargs={"dtype": "bfloat16" if cuda and lora else "float32"},
        logging_steps=1,
        save_steps=max(1, updates // 4),
        save_total_limit=1,
        seed=seed,
        disable_tqdm=False,
    )
    trainer = GRPOTrainer(
        local_model.source(model),
        list(TRL_REWARDS),
        args=settings,
        train_dataset=Rows.from_list([dict(row) for row in rows]),
        processing_class=tokenizer,
        peft_config=local_model.lora() if lora else None,
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)) if folder.exists() else None)
    if trainer.accelerator.is_main_process:
        trained = trainer.accelerator.unwrap_model(trainer.model)
        (trained.merge_and_unload() if lora else trained).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
    return [row for row in trainer.state.log_history if "reward" in row]
