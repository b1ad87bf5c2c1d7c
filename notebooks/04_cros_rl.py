# %% [markdown]
# # 04 · Can a judge be trained on the benchmark's own labels?
#
# **Question.** The labels are exact, so every possible verdict has an exact reward. Does a judge that climbs this
# reward's exact gradient judge problems it never saw better than its warm start, than sampled policy gradients,
# than chance? And what of it carries over from injected errors to natural ones?
#
# **CRoS** is our reading, *Causality-and-Coverage Reward over Steps*: a model reads a chain once; a head gives step
# $i$ the hazard $h_i$ of being the first that does not follow. This is a policy over verdicts,
# $p(j) = h_j \prod_{i<j} (1 - h_i)$ and $p(-1) = \prod_i (1 - h_i)$, few enough to sum $\sum_v p(v)\,r(v)$ over all
# of them: the gradient needs no sampling. A second output counts the steps missing before each step: coverage.
#
# **Inputs.** `data/runs/<run>/` (notebook 01). **Outputs.** The trained judge, its log and the settings in
# `data/runs/<run>/cros/`, tables and figures in `figures/<run>/cros/`. **Runtime.** Under 30 minutes on two cores,
# most of it spent on reading the chains once; what was read and each finished training is kept and not repeated.

# %%
# %matplotlib inline
from dataclasses import replace

import pandas as pd
from IPython.display import Markdown, display

from c2faith import dataset, notebooks, paths, records
from c2faith.analysis import figures, stats, tables
from c2faith.cros import examples, experiment, grpo, judge, rewards, summaries
from c2faith.cros.reading import Encoder, FeatureStore
from c2faith.cros.train import Recipe

# %% tags=["parameters"]
run: str = "champ"  # name of the run, as in notebook 01
model: str = "smollm2-135m"  # the encoder: smollm2-135m, a folder or a hub id of any causal language model
device: str = "cpu"  # or cuda
dtype: str = "float32"  # what the encoder computes in; bfloat16 on GPUs and on processors that are fast at it
max_tokens: int = 1536  # context; later steps of a longer chain are unseen, which is never the verdict −1
folds: int = 5  # problems are dealt into so many parts, each tested once
seeds: int = 3  # trainings of each judge
workers: int = 2  # trainings at the same time; the result does not depend on it
extra: int = 10  # further negations of each chain, to train on
synthetic: int = 150  # synthetic chains: does it help to train on them too?
more_natural: int = 100  # natural-error chains to train on beyond those that judges are asked
warm_updates: int = 200  # of the warm start that all judges have in common
updates: int = 200  # of each judge after it
entropy: float = 0.0  # weight of the verdicts' entropy
kl: float = 0.3  # weight of the divergence from the warm start, of the judge `anchored` alone
recorded: str = "anchored"  # which of the trained judges is kept, as the judge "cros"
engine: str = "exact"  # grpo: also train a judge that writes JSON, by TRL
grpo_updates: int = 4
draws: int = 10000  # bootstrap draws behind every interval

# %% [markdown]
# ## What is learned from, and what is tested on
# The benchmark's items; beside them, for training alone, further negations of the same chains, each cut off after
# its error, and synthetic chains. Problems, not chains, are dealt into folds, by their text.

# %%
notebooks.refuse_unknown_parameters(In)
rows = dataset.of_run(run)
everything, dropped = examples.gather(rows, extra=extra, synthetic=synthetic, more_natural=more_natural)
labels = ["clean" if e.target == -1 else "steps removed" if e.target is None else "faulty" for e in everything]
kinds = pd.DataFrame(
    {"group": [e.group for e in everything], "label": labels, "tested": [bool(e.item) for e in everything]}
)
display(kinds.value_counts(sort=False).unstack("label", fill_value=0))
print(f"left out: {dict(dropped)}")

# %% [markdown]
# ## Reading
# Each chain once, shared beginnings once. Kept of a step: the model's states in a few layers, and how much its
# tokens surprised the model.

# %%
source = paths.model_folder(model)
encoder = Encoder(source, max_tokens=max_tokens, device=device, dtype=dtype)
store = FeatureStore(paths.features_dir(), encoder)
written = list(dict.fromkeys(example.written for example in everything))
features = dict(zip(written, store.get(written), strict=True))
cut_short = sum(features[e.written].n_seen < len(e.steps) for e in everything)
print(
    f"{len(written)} chains, {sum(f.n_seen for f in features.values())} steps; {cut_short} longer than the context"
)

# %% [markdown]
# ## The judges
# `warm` goes on with the cross-entropy of the right verdict. `exact` climbs the shaped reward, `exact-only` one
# that pays nothing for a near miss, `anchored` the shaped one while it pays for leaving the warm start, `sampled`
# is GRPO on the same head with 8 verdicts a chain, `random` gets random rewards. All go on from the same warm
# start, with as many updates on the same examples. `surprisal` learns nothing: it suspects the step whose tokens
# surprise the model most. Each judge's threshold is chosen on the development fold.

# %%
warm = Recipe("warm", updates=warm_updates, **experiment.LINEAR)
tuned = Recipe("exact", updates=updates, entropy=entropy, kl=kl, **experiment.LINEAR)
settings = experiment.Settings(warm=warm, tuned=tuned, groups=("injected", "natural", "coverage"))
folder = paths.run_dir(run) / "cros"
found = experiment.compare(
    everything,
    features,
    settings=settings,
    folds=folds,
    seeds=range(seeds),
    folder=folder / "checkpoints",
    workers=workers,
)
print(f"{found.unseen} training examples said nothing within the context")

# %%
shown = paths.figures_dir(run) / "cros"
table = summaries.comparison(found, draws=draws)
table.attrs["caption"] = (
    f"Trained judges on problems they never saw, {seeds} trainings each, all verdicts counted. ProcessBench F1: "
    "harmonic mean of exact match and clean accuracy. AUROC: hazards of first faulty steps against those of sound "
    "ones. Brackets: 95% percentile bootstrap intervals that resample chains."
)
tables.save(table, shown, "comparison")
display(Markdown(tables.markdown(table, table.attrs["caption"])))

# %%
rest = summaries.other_tasks(found, draws=draws)
tables.save(rest, shown, "other_tasks", caption="Detection, and coverage against the share of steps kept.")
tests = summaries.pairs(found, ["warm", "exact", "anchored", "sampled"])
tables.save(tests, shown, "pairs", caption="McNemar's test on the same chains, by what most trainings say.")
display(rest, tests)

# %%
log = found.log[found.log["update"] <= updates]
figure = summaries.training_curves(log, "reward", "reward on development problems")
figures.save(figure, shown, "training")
display(figure)

# %% [markdown]
# ## How many problems does it take?

# %%
learners = {"folds": folds, "seeds": range(seeds), "judges": ("warm", "anchored", "sampled"), "workers": workers}
curve = experiment.learning_curve(everything, features, shares=[1 / 4, 1 / 2], settings=settings, **learners)
curve = pd.concat([curve, summaries.by_seed(found, 1.0).query("judge_id in @learners['judges']")])
problems = len({e.problem_id for e in everything if e.item}) * (folds - 2) // folds
figure = summaries.learning_curves(curve, problems)
figures.save(figure, shown, "learning_curves")
display(figure)

# %%
goal = 0.9 * curve.query("judge_id == 'warm' and share == 1 and kind == 'injected'")["processbench_f1"].mean()
needed = (summaries.share_needed(curve.query("kind == 'injected'"), goal) * problems).rename("problems needed")
print(f"training problems to reach an F1 of {goal:.3f}, nine tenths of the warm start's:")
display(needed.round().to_frame())
tables.save(curve, shown, "learning_curves", caption="F1 by the share of the training problems.")

# %% [markdown]
# ## From injected errors to natural ones, and back
# The same judge taught by one kind of error alone, thresholds included, and tested on both; and taught by both and
# by synthetic chains beside them.

# %%
lessons = {"injected": ("injected", "coverage"), "natural": ("natural", "coverage"), "with synthetic": ()}
parts, learners["judges"] = [table.assign(taught="both")], ("warm", "anchored")
for taught, groups in lessons.items():
    if taught == "with synthetic" or any(e.group == taught for e in everything):
        alone = experiment.compare(everything, features, settings=replace(settings, groups=groups), **learners)
        parts.append(summaries.comparison(alone, draws=draws).assign(taught=taught))
transfer = pd.concat(parts).query("judge_id in ['warm', 'anchored']")
tables.save(transfer, shown, "transfer", caption="Localization by the kind of error that was learned from.")
display(transfer[["taught", "kind", "judge_id", "processbench_f1", "exact", "clean_accuracy", "auroc"]])

# %% [markdown]
# ## The judge that is kept
# One head a fold: each problem is judged by the head that never saw it. `make judge JUDGE=cros/<run>` asks it.

# %%
heads = [found.heads[recorded, 0, rotation] for rotation in range(folds)]
how = {"run": run, "recorded": recorded, "settings": records.as_dict(settings), "fold_seed": 0}
sizes = {"extra": extra, "synthetic": synthetic, "more_natural": more_natural, "examples": len(everything)}
judge.save(folder, heads, encoder, {**how, **sizes, "dataset": rows.manifest["files"]})
records.write_jsonl(folder / "log.jsonl", found.log.round(6).to_dict("records"))
kept = judge.CrosJudge("cros", folder, device=device)

# %%
item = next(e for e in everything if e.group == "injected" and e.item and e.target >= 0)
twin = next(e for e in everything if e.item and e.item.item_id == f"{item.item_id}~clean" and e.group == "injected")
readings = kept.read([item.written, twin.written])
hazards = {name: r.hazards for name, r in zip(("perturbed", "clean twin"), readings, strict=True)}
figure = summaries.hazards(hazards, item.target)
figures.save(figure, shown, "hazards")
display(
    Markdown(f"**Step {item.target} was:** {twin.steps[item.target]}\n\n**is:** {item.steps[item.target]}"), figure
)

# %% [markdown]
# ## A reward for reasoners
# The kept judge scores any written chain, in TRL's signature. Does a clean chain earn more than its perturbed twin?

# %%
reward = rewards.chain_reward(kept)
pairs = [e for e in everything if e.group == "injected" and e.item]
earned = reward(["\n\n".join(e.steps) for e in pairs], question=[e.question for e in pairs])
scores = pd.Series(earned, index=[e.item_id for e in pairs], dtype=float)
clean = scores[scores.index.str.endswith("~clean")].rename(lambda name: name.removesuffix("~clean"))
gaps = (clean - scores[clean.index]).dropna()
ranked = stats.bootstrap_ci((gaps > 0) + (gaps == 0) / 2, clusters=gaps.index, draws=draws)
print(f"clean above perturbed: {ranked.value:.3f} [{ranked.low:.3f}, {ranked.high:.3f}] of {ranked.n} pairs")

# %% [markdown]
# ## The sampled counterpart for judges that write JSON
# The same rewards, handed to TRL's `GRPOTrainer`. On a GPU, and on several, use the command line
# (`accelerate launch -m c2faith grpo --vllm`); here it runs if `engine` is `grpo`, for a few updates.

# %%
taught = {e.question for e in everything if examples.fold_of(e.question, folds) > 1}
if engine == "grpo":
    options = {"updates": grpo_updates, "generations": 4, "prompts_per_update": 2, "max_completion_tokens": 48}
    prompts = grpo.prompts(rows, taught, ("detection", "localization"))
    history = pd.DataFrame(grpo.train_grpo(source, prompts, paths.run_dir(run) / "grpo", **options))
    records.write_jsonl(paths.run_dir(run) / "grpo" / "log.jsonl", history.to_dict("records"))
    display(history[["reward", "reward_std", "completions/mean_length", "completions/clipped_ratio", "step_time"]])

# %% [markdown]
# ## Checks

# %%
located = found.frames["localization"]
asked = located.groupby(["judge_id", "seed"])["item_id"].nunique()
assert asked.nunique() == 1, f"judges were tested on different numbers of chains: {asked.to_dict()}"
assert asked.iloc[0] == sum(e.group in ("injected", "natural") for e in everything if e.item), (
    "each item once a seed"
)
assert (located.query("status == 'length'")["value"].isna()).all(), "an unseen step is never called clean"
for (name, seed, rotation), head in found.heads.items():
    assert 0 <= head.clean_threshold <= 1 + 1e-8, f"{name} {seed} {rotation}: a threshold is a probability"
records.write_json(folder / "figures.json", {path.name: records.sha256_file(path) for path in shown.iterdir()})
print(*sorted(path.name for path in (*folder.iterdir(), *shown.iterdir())), sep="\n")

# %% [markdown]
# What was trained is a judge like any other now: its replies go into the same journals and the same tables.
