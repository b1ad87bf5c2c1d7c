# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 01 · Chains and what is done to them
#
# **Question.** Which solutions are right in every step, and what do they look like once a step is broken or some
# are missing?
#
# **Inputs.** A source of solutions: `champ` (in a package), `prm800k` (files, a folder, or the hub), any JSON lines
# file, or made-up ones. **Outputs.** `data/runs/<run>/`: `chains.jsonl`, `causality.jsonl`, `coverage.jsonl`,
# `natural.jsonl` and `manifest.json`. **Runtime.** Seconds; for all of PRM800K under a minute, once it is there.

# %%
# %matplotlib inline
from pathlib import Path

import pandas as pd
from IPython.display import HTML, display

from c2faith import dataset, notebooks, paths
from c2faith.analysis import dataset_views
from c2faith.dataset import chains
from c2faith.judging import negations

# %% tags=["parameters"]
run: str = "champ"  # name of the run: the folder under data/runs
source: str = "champ"  # champ, prm800k, jsonl or synthetic
path: str = ""  # prm800k: file, folder, URL or hub; jsonl: the file (from the checkout); nothing for the others
min_steps: int = 5  # shortest chain taken; the paper's N_min
limit: str = "up to 450"  # chains: a number that must be there, "up to" one, or all; the paper has 450
natural_limit: int = 450  # natural errors come from at most so many problems
human_steps: bool = False  # prm800k: let steps in that the labeler wrote and nobody rated
seed: int = 0  # of every draw
alpha: str = "3/10"  # the middle region begins at this share of the chain
beta: str = "9/10"  # and ends at this one
rates: str = "0.1 0.3 0.5 0.7"  # deletion rates; a control without deletions is always made
nested: bool = False  # let each deletion rate remove what the lower one does, and more
negator: str = "rules"  # how a step is negated: rules, llm (the paper's way), or recorded (replay)
recorded: str = ""  # recorded: the causality.jsonl to replay
negation_judge: str = "gpt-4.1"  # llm: the API model that writes the negations, as for `make judge`
base_url: str = ""  # llm: its server, if it is not the provider's own
connections: int = 16  # llm: calls under way at once
max_cost: float = -1.0  # llm: dollars, over all resumes; below 0: no limit

# %%
notebooks.refuse_unknown_parameters(In)
folder = paths.run_dir(run)
at_most, require = chains.parse_limit(limit)

# %% [markdown]
# ## Build
# Algorithm 1 of the paper, in exact rationals and with a generator for each chain. Beside every perturbed chain
# stands its clean twin, beside every degraded one a control with nothing removed.

# %%
options = {
    "path": paths.from_root(path),
    "min_steps": min_steps,
    "limit": at_most,
    "require": require,
    "natural_limit": natural_limit,
    "human_steps": human_steps,
    "seed": seed,
    "alpha": alpha,
    "beta": beta,
    "rates": rates.split(),
    "nested": nested,
    "negator": negator,
    "recorded": Path(paths.from_root(recorded)) if recorded else None,
}

# %%
paid = folder / "negations.jsonl"  # a model's negations are asked once, and journaled
edge = {
    "base_url": base_url or None,
    "connections": connections,
    "max_cost": max_cost if max_cost >= 0 else None,
}
complete = negations.writer(negation_judge, paid, **edge) if negator == "llm" else None
built = dataset.build(source, complete=complete, **options)
pd.Series(built.manifest["counts"], name="count").to_frame()

# %% [markdown]
# What was left out, and why; and the negations that were drawn but turned down.

# %%
left_out = built.manifest["dropped"] | {"negations drawn": built.manifest["rejected_negations"]}
pd.DataFrame(
    [(kind, reason, count) for kind, reasons in left_out.items() for reason, count in reasons.items()],
    columns=["of", "reason", "count"],
)

# %% [markdown]
# ## Look: three chains with their perturbed step
# The step's index counts from 0, as everywhere. What is struck out was replaced by the line under it; the steps
# after it stay as they were.

# %%
named = {chain.chain_id: chain for chain in built.chains}
for item in built.causality[:3]:
    display(HTML(dataset_views.marked_chain(named[item.chain_id], item)))

# %% [markdown]
# ## Look: lengths and positions
# The paper's chains have 8 to 30 steps, 13 in the median. A perturbed step lies between 30 and 90% of its chain,
# so that the first and the last step are never the answer.

# %%
display(dataset_views.lengths_and_positions(built))

# %% [markdown]
# ## Look: edits and deletions
# The paper's negations were written by a language model; Table 6 counts their kinds of edit. ⌈d·|I|⌉ steps are
# removed from a middle region I, so that short chains lose more than the nominal rate d.

# %%
display(dataset_views.edits_and_deletions(built))

# %%
display(dataset_views.edit_mix(built).round(3), dataset_views.deletion_rates(built).round(3))

# %% [markdown]
# ## Check
# These hold for every source.

# %%
levels = 1 + len(rates.split())
assert len(built.chains) == len({chain.problem_id for chain in built.chains}), "one chain a problem"
assert min(len(chain.steps) for chain in built.chains) >= min_steps, f"no chain under {min_steps} steps"
assert len(built.coverage) == levels * len(built.chains), f"{levels} levels, the control among them, for each chain"
for item in built.causality:
    pairs = zip(named[item.chain_id].steps, item.steps, strict=True)
    differing = [index for index, (old, new) in enumerate(pairs) if old != new]
    assert differing == [item.target], f"{item.item_id}: exactly the target differs from the original"
assert dataset_views.is_nested(built) or not nested, "a lower rate's removals are part of the next one's"

# %% [markdown]
# CHAMP as its package ships it: 270 problems, 179 with at least 5 steps, 7 in the median, 1,331 in all.

# %%
if source == "champ" and min_steps == 5 and (at_most is None or at_most >= 179):
    lengths = pd.Series([len(chain.steps) for chain in built.chains])
    assert (built.manifest["counts"]["records"], len(lengths)) == (270, 179), "CHAMP: 179 of 270 have 5 steps"
    assert (lengths.median(), lengths.sum()) == (7, 1331), "CHAMP: median 7, 1,331 steps in all"

# %% [markdown]
# A recorded run keeps its items beside its replies, and whatever is made of it later rests on those. Code that
# negates or selects differently makes another run: give it another name.

# %%
print(dataset.compare_with_recorded(built, run))

# %% [markdown]
# ## Write

# %%
dataset.write(built, folder)
pd.Series(built.manifest["files"], name="sha256").str[:16].to_frame()

# %% [markdown]
# The chains are right, their flaws are known by construction; notebook 02 asks the judges about them.
