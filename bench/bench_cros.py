"""Training a judge: what sharing chains' beginnings saves, and what the exact gradient costs beside a sampled one.

Limits: reading the families with shared beginnings takes at most 0.8 of the time of reading every chain afresh; an
exact gradient takes at most 1.5 times as long as one sampled with 8 verdicts a chain, which is noisier.
"""

from __future__ import annotations

import sys
from time import process_time

import torch
import transformers

from c2faith.cros import policy
from c2faith.cros.reading import Encoder, Layout
from c2faith.records import rng

MOST_READING, MOST_EXACT = 0.8, 1.5


class TinyEncoder(Encoder):
    """A random four-layer Llama behind an encoder."""

    layers = (2, 4)

    def __init__(self) -> None:
        config = transformers.LlamaConfig(
            vocab_size=1000,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=4,
            num_attention_heads=4,
            max_position_embeddings=1024,
        )
        self.network = transformers.LlamaForCausalLM(config).eval()


def families(count: int = 10, length: int = 400) -> list[Layout]:
    """Token sequences in families of a chain and four that leave it at some point, as perturbed chains do."""
    layouts, draw = [], rng(0, "bench_cros")
    for _ in range(count):
        whole = draw.integers(1, 1000, length)
        for at in (length, *draw.integers(length * 3 // 10, length * 9 // 10, 4)):
            other = draw.integers(1, 1000, length - at)
            ids = tuple(map(int, [*whole[:at], *other]))
            layouts.append(Layout(ids, (1, length), 1))
    return layouts


def seconds(action, repeats: int = 3) -> float:
    """The fastest of some runs, in processor time."""
    times = []
    for _ in range(repeats):
        start = process_time()
        action()
        times.append(process_time() - start)
    return min(times)


def reading() -> float:
    """Time with shared beginnings over time without."""
    encoder, layouts = TinyEncoder(), families()

    def shared() -> None:
        list(encoder.read(layouts))

    def afresh() -> None:
        for layout in layouts:
            list(encoder.read([layout]))

    return seconds(shared) / seconds(afresh)


def gradients(n_chains: int = 256, n_steps: int = 20, n_samples: int = 8) -> tuple[float, float]:
    """(time of an exact gradient over that of a sampled one, share of the sampled gradient that is noise)."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n_chains, n_steps, generator=generator).requires_grad_()
    rewards = torch.rand(n_chains, n_steps + 1, generator=generator)

    def exact() -> torch.Tensor:
        value = policy.expected_reward(policy.verdict_log_probs(logits), rewards)
        return torch.autograd.grad(value.sum(), logits)[0]

    def sampled() -> torch.Tensor:
        log_probs = policy.verdict_log_probs(logits)
        value = policy.sampled_objective(log_probs, rewards, n_samples, generator, scale=False)
        return torch.autograd.grad(value.sum(), logits)[0] / (1 - 1 / n_samples)

    truth = exact()
    noise = torch.stack([(sampled() - truth).square().sum() for _ in range(50)]).mean()
    ratio = seconds(lambda: [exact() for _ in range(50)]) / seconds(lambda: [sampled() for _ in range(50)])
    return ratio, float(noise / (noise + truth.square().sum()))


def main() -> int:
    """Print both ratios; 1 if a limit is passed."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    read, (exact, noise) = reading(), gradients()
    print(f"reading families with shared beginnings: {read:.2f} of reading afresh (at most {MOST_READING})")
    print(
        f"exact gradient: {exact:.2f} of the time of a sampled one (at most {MOST_EXACT}), "
        f"whose noise is {noise:.0%}"
    )
    return int(read > MOST_READING or exact > MOST_EXACT)


if __name__ == "__main__":
    sys.exit(main())
