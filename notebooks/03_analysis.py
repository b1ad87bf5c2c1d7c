# %% [markdown]
# # 03 · What are the verdicts worth?
#
# **Question.** Can these judges tell whether a step follows, where a chain breaks, and what it leaves out? Which
# differences between them would survive other chains?
#
# **Inputs.** `data/runs/<run>/` (notebook 01) and the replies of notebook 02. **Outputs.** `figures/<run>/`: every
# table as CSV, Markdown and LaTeX, every figure as PDF and PNG, all numbers in `numbers.json`, and `report.html`
# with all of it and an explorer of the items.
# **Runtime.** Under a minute on two cores.

# %%
# %matplotlib inline
from IPython.display import Markdown, display

from c2faith import dataset, notebooks, paths
from c2faith.analysis import figures, metrics, report, tables
from c2faith.judging import verdict_frames

# %% tags=["parameters"]
run: str = "champ"  # name of the run, as in notebooks 01 and 02
judges: str = ""  # comma list of judge ids; all that have replies if empty
reference: str = "annotated"  # coverage is compared with: annotated, retention, or a judge of the reference task
draws: int = 10000  # bootstrap draws behind every interval
seed: int = 0  # of the bootstrap

# %%
notebooks.refuse_unknown_parameters(In)
chosen = [name.strip() for name in judges.split(",") if name.strip()]
verdicts = verdict_frames.load(run, chosen, reference=reference)
rows = dataset.of_run(run)
items = tables.items_frame(rows.causality)
folder = paths.figures_dir(run)

# %% [markdown]
# ## What there is to count
# One row an item and judge. A reply that is no answer keeps its row and counts as wrong; as long as a call has
# failed or is still to be made, no table is.

# %%
for task, frame in verdicts.items():
    counts = frame.groupby(["judge_id", "kind"], sort=False)["status"].value_counts().unstack(fill_value=0)
    display(Markdown(f"**{task}**"), counts)

# %% [markdown]
# ## Tables
# The paper's tables with its printed rows under ours; then what stands beside and beyond them. All intervals
# resample chains, with the same resamples everywhere.

# %%
totals = verdict_frames.spending(run, verdicts)
measured = metrics.Measured(verdicts, items=items, totals=totals, reference=reference, draws=draws, seed=seed)
made = dict(tables.compute(measured))
for name, table in made.items():
    tables.save(table, folder, name)
    display(Markdown(f"### {name}\n\n{tables.markdown(table, table.attrs['caption'])}"))

# %% [markdown]
# ## Figures

# %%
captions = figures.captions()
for name, figure in figures.draw(measured):
    figures.save(figure, folder, name)
    display(Markdown(f"### {name}\n\n{captions[name]}"), figure)

# %% [markdown]
# ## Three items worth reading
# Perturbed steps that the judges are most divided about: the reasons they give, if they give any.

# %%
if "detection" in verdicts:
    bad = verdicts["detection"].query("truth == 0 and status == 'ok'")
    divided = bad.groupby("item_id")["value"].std().fillna(0).sort_values(kind="stable").index[-3:]
    texts = items.set_index("item_id")
    for item_id in divided:
        step = texts.loc[item_id]
        display(Markdown(f"**{item_id}**\n\n- was: {step['original_step']}\n- is: {step['perturbed_step']}"))
        display(bad.query("item_id == @item_id").set_index("judge_id")[["value", "confidence", "reasoning"]])

# %% [markdown]
# ## Checks

# %%
for task, frame in verdicts.items():
    asked = frame.groupby("judge_id")["item_id"].nunique()
    assert asked.nunique() == 1, f"{task}: judges were asked different numbers of items: {asked.to_dict()}"
for name, table in made.items():
    lows = [low for low in table if low.endswith("_low") and f"{low[:-4]}_high" in table]
    for low in lows:
        wrong = table[low] > table[f"{low[:-4]}_high"] + 1e-12
        assert not wrong.any(), f"{name}: an interval of {low[:-4]} is upside down"

# %%
if "table1_detection" in made:
    ours = made["table1_detection"].query("origin == 'run'").set_index("judge_id")
    planned = verdicts["detection"].query("truth == 0").groupby("judge_id")["item_id"].nunique()
    assert (ours["n"] == planned).all(), "Table 1 counts every planned perturbed step"
    assert ours["detection"].between(0, 1).all(), "a rate lies between 0 and 1"
if "table2_localization" in made:
    ours = made["table2_localization"].query("origin == 'run'")
    assert (ours["exact"] <= ours["detection"] + 1e-12).all(), "an exact match is a detection"
    assert (ours["mae_all"].isna() | (ours["mae_all"] <= ours["mae_worst"] + 1e-12)).all(), "the worst case bounds"

# %%
tables.save_numbers(made, folder / "numbers.json")
page = folder / "report.html"
report.build(page, run=run, verdicts=verdicts, tables=made, figures_folder=folder, items=rows)
print(*sorted(path.name for path in folder.iterdir()), sep="\n")

# %% [markdown]
# Every number above comes from recorded replies: the same command gives it again, with no key and no network.
