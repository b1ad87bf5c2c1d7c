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
from c2faith.judging.judges import smollm2
from c2faith.judging.tasks import Item
from c2faith.judging.verdict_frames import retention
from c2faith.records import InputError, rng

TASKS = ("detection", "localization", "coverage")


def prompts(
    dataset: Dataset, questions: set[str], tasks: Sequence[str] = TASKS, seed: int = 0
) -> list[dict[str, Any]]:
    """One row a prompt, as TRL wants them: the benchmark's own messages, with the labels as columns.

    Parameters
    ----------
    questions : set of str
        The problems to train on.
    tasks : sequence of str
        Faulty and clean items of detection and localization are as many; of coverage all levels are taken.

    Returns
    -------
    list of dict
        `prompt` (messages), `task`, `n_steps`, `truth`, `target`, `reference`; in seeded order.
    """
    removed = {row.item_id: row.removed for row in dataset.coverage}
    chains = {chain.chain_id: chain for chain in dataset.chains}
    rows = []
    for task in tasks:
        items = [item for item in judging_tasks.items(dataset, task) if item.question in questions]
        for item in _half_clean(items, seed) if task != "coverage" else items:
            known = {"truth": None, "target": None, "reference": None}
            if task == "coverage":
                known["reference"] = retention(chains[item.chain_id], removed[item.item_id])
            else:
                known |= {name: int(item.labels[name]) for name in known.keys() & item.labels.keys()}
            messages = [{"role": role, "content": content} for role, content in item.query("").messages]
            rows.append({"prompt": messages, "task": task, "n_steps": len(item.steps), **known})
    if not rows:
        raise InputError("no prompt is left to train on: give more problems or other TASKS")
    return [rows[i] for i in rng(seed, "grpo").permutation(len(rows))]


def _half_clean(items: Sequence[Item], seed: int) -> list[Item]:
    """As many clean items as faulty ones."""
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

    Parameters
    ----------
    model : str
        ``smollm2-135m``, a folder or a hub id; it needs a chat template.
    rows : sequence of mapping
        What `prompts` gives.
    generations : int
        Replies sampled for a prompt: the group.
    beta : float
        Weight of the divergence from the model that training began with.
    lora : bool
        Train an adapter and merge it at the end; else the whole model.

    Returns
    -------
    list of dict
        TRL's log: reward, its spread, lengths, share of replies cut off, and more, one row an update.
        An interrupted run goes on from its last checkpoint in `folder`.
    """
    import torch
    from datasets import Dataset as Rows
    from transformers.trainer_utils import get_last_checkpoint
    from trl import GRPOConfig, GRPOTrainer

    cuda = torch.cuda.is_available()
    source = str(smollm2.folder()) if model == smollm2.NAME else model
    tokenizer = _tokenizer(source)
    settings = GRPOConfig(
        output_dir=str(folder),
        max_steps=updates,
        num_generations=generations,
        per_device_train_batch_size=generations * prompts_per_update,
        max_completion_length=max_completion_tokens,
        learning_rate=learning_rate,
        beta=beta,
        use_vllm=use_vllm,
        vllm_mode="colocate",
        use_cpu=not cuda,
        bf16=cuda,
        activation_checkpointing=cuda,
        model_init_kwargs={"dtype": "bfloat16" if cuda and lora else "float32"},
        logging_steps=1,
        save_steps=max(1, updates // 4),
        save_total_limit=1,
        report_to="none",
        seed=seed,
        disable_tqdm=False,
    )
    trainer = GRPOTrainer(
        source,
        list(TRL_REWARDS),
        args=settings,
        train_dataset=Rows.from_list([dict(row) for row in rows]),
        processing_class=tokenizer,
        peft_config=_lora() if lora else None,
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)) if folder.exists() else None)
    if trainer.accelerator.is_main_process:
        trained = trainer.accelerator.unwrap_model(trainer.model)
        (trained.merge_and_unload() if lora else trained).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
    return [row for row in trainer.state.log_history if "reward" in row]


def _tokenizer(source: str) -> Any:
    """The model's tokenizer, once it has what a written reply needs."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"MODEL={source}: cannot be loaded ({reason})") from error
    if tokenizer.chat_template is None:
        raise InputError(f"MODEL={source}: has no chat template; choose a model tuned to follow instructions")
    if tokenizer.eos_token_id is None:
        raise InputError(f"MODEL={source}: its tokenizer has no end-of-text token, so that no reply would ever end")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def _lora() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
