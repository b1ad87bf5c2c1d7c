# %% [markdown]
# # 02 · What do the judges answer?
#
# **Question.** Put to every judge: does this step follow (detection), where is the break (localization), how
# complete is the reasoning (coverage)? Which items did they answer, and what does a reply look like?
#
# **Inputs.** `data/runs/<run>/` (notebook 01) and the replies recorded under `data/frozen/<run>/` or asked live
# by `make judge`. **Outputs.** The verdicts of all judges, one table a task, under `data/runs/<run>/verdicts/`.
# **Runtime.** Seconds: recorded replies are replayed, no model is called. To ask a judge from here, set `ask`.

# %%
import pandas as pd
from IPython.display import Markdown, display

from c2faith import dataset, notebooks, paths, records
from c2faith.judging import tasks, verdict_frames
from c2faith.judging.ask import ask_run

# %% tags=["parameters"]
run: str = "champ"  # name of the run, as in notebook 01
judges: str = ""  # comma list of judge ids; all that have replies if empty
ask: str = ""  # a judge to ask now what it has not answered, e.g. symbolic or openai/gpt-4.1
reference: str = "annotated"  # coverage is compared with: annotated, retention, or a judge of the reference task

# %%
notebooks.refuse_unknown_parameters(In)
rows = dataset.of_run(run)
chosen = [name.strip() for name in judges.split(",") if name.strip()]
print(f"{len(rows.chains)} chains, {len(rows.causality)} with a negated step, {len(rows.natural)} natural items")

# %% [markdown]
# ## What is asked
# A perturbed item and its clean twin differ in one step. Later steps are hidden from detection; the steps are
# numbered from 0, and −1 means that every step follows.

# %%
item = tasks.items(rows, "detection")[0]
for role, content in item.query("").messages:
    display(Markdown(f"**{role}**\n\n````text\n{content}\n````"))

# %% [markdown]
# ## Asking, or replaying
# Replies are append-only; what is finished is never asked again.

# %%
if ask:
    for task, tally in ask_run(run, ask).items():
        print(f"{ask} {task}: {tally.finished}/{tally.items} finished, {tally.calls} calls, ${tally.dollars:.2f}")

# %%
verdicts = verdict_frames.load(run, chosen, reference=reference)
for task, frame in verdicts.items():
    print(f"{task}: {frame['item_id'].nunique()} items × {frame['judge_id'].nunique()} judges")

# %% [markdown]
# ## Who answered what
# A reply that is no answer has a status of its own. `pending` items have no reply yet, or only failed calls.

# %%
everything = pd.concat(verdicts.values(), ignore_index=True)
statuses = pd.crosstab([everything["task"], everything["judge_id"]], everything["status"])
display(statuses)

# %%
answers = everything.dropna(subset="value")
shares = answers.groupby(["task", "judge_id"])["value"].agg(["count", "mean", "min", "max", "nunique"])
display(shares.round(2))

# %% [markdown]
# ## Three replies worth reading
# The same perturbed item as each judge answered it, where they disagree most.

# %%
split = verdicts["detection"].query("kind == 'perturbed'").groupby("item_id")["value"].std().sort_values()
worth = [item_id for item_id in split.index[::-1][:3]]
texts = {row.item_id: row for row in rows.causality}
for item_id in worth:
    row = texts[item_id]
    display(Markdown(f"**{item_id}**, step {row.target}\n\n- was: {row.original_step}\n- is: {row.perturbed_step}"))
    seen = verdicts["detection"].query("item_id == @item_id")
    display(seen[["judge_id", "value", "confidence", "status"]].set_index("judge_id"))

# %% [markdown]
# ## Checks

# %%
for task, frame in verdicts.items():
    planned = len(tasks.items(rows, task))
    counts = frame.groupby("judge_id")["item_id"].nunique()
    assert (counts == planned).all(), f"{task}: every judge has one row for each of the {planned} items"
    assert not frame.duplicated(["judge_id", "item_id"]).any(), f"{task}: an item appears twice"
    assert frame.loc[frame["status"] != "ok", "value"].isna().all(), f"{task}: a failed reply has a value"

# %%
pending = int(everything["status"].isin(["pending", "api_error"]).sum())
print(f"{pending} items are pending" if pending else "nothing is pending: the final tables can be made")

# %%
folder = paths.run_dir(run) / "verdicts"
for task, frame in verdicts.items():
    records.write_bytes(folder / f"{task}.csv", frame.to_csv(index=False).encode())
print(sorted(path.name for path in folder.iterdir()))

# %% [markdown]
# Every verdict of these judges is now a row of a table; notebook 03 turns the rows into estimates.
