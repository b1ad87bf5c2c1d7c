# %% [markdown]
# # 05 · Do the paper's printed numbers stand together?
#
# **Question.** The paper gives enough to rebuild all its Exp 1 outcomes. Do they give back Table 1, its
# significance marks and Fig. 8? And which of its other numbers and claims fit together, and survive intervals?
#
# **Inputs.** None but the printed numbers (`analysis.published`). **Outputs.** `figures/published/`: Table 1
# again, its pairs, the failure patterns, ensembles and the audit, as CSV, Markdown and LaTeX.
# **Runtime.** Seconds.

# %%
# %matplotlib inline
import pandas as pd
from IPython.display import Markdown, display

from c2faith import notebooks, paths
from c2faith.analysis import figures, metrics, published, tables
from c2faith.analysis.audit import audit
from c2faith.analysis.claims import claims

# %% tags=["parameters"]
draws: int = 10000  # bootstrap draws behind every interval
seed: int = 0  # of the bootstrap

# %%
notebooks.refuse_unknown_parameters(In)
folder = paths.figures_dir("published")
outcomes = published.exp1_outcomes()
measured = metrics.Measured({"detection": published.exp1_frame()}, draws=draws, seed=seed)
outcomes.value_counts().rename("items").reset_index()

# %% [markdown]
# ## Table 1, rebuilt
# Eight counts of failure patterns are 450 × 3 outcomes. From here on they are verdicts like any judge's, and pass
# through the same functions. Printed values stand below.

# %%
table1 = tables.paper.table1_detection(measured, alpha=0.001)
pairs = tables.paper.table1_pairs(measured)
for name, table in {"table1_detection": table1, "table1_pairs": pairs}.items():
    tables.save(table, folder, name)
    display(Markdown(tables.markdown(table, table.attrs["caption"])))

# %%
ours, printed = (table1.query("origin == @origin").set_index("judge_id") for origin in ("run", "published"))
for judge in published.JUDGES:
    assert f"{ours.loc[judge, 'detection']:.1%}" == f"{printed.loc[judge, 'detection']:.1%}", f"{judge}: rate"
    assert f"{ours.loc[judge, 'sd']:.3f}" == f"{printed.loc[judge, 'sd']:.3f}", f"{judge}: standard deviation"
    for end in ("detection_low", "detection_high"):
        off = abs(ours.loc[judge, end] - printed.loc[judge, end])
        assert off < 1.5 / published.N_CHAINS, f"{judge}: {end} is within one item of the printed one"
marked = (ours["better_than"] == ours.loc["GPT-4.1", "key"]).to_list()
assert marked == published.table1()["significant"].to_list(), "better than GPT-4.1 at a corrected p < 0.001"
assert f"{pairs.set_index(['judge_a', 'judge_b']).loc[('DeepSeek-V3.1', 'o4-mini'), 'p']:.3f}" == "0.090", "p"

# %% [markdown]
# ## Fig. 8, rebuilt

# %%
patterns = metrics.failure_patterns(measured.verdicts["detection"])
patterns.attrs = {"caption": "Exp 1: which judges miss how many of the 450 perturbed steps.", "keys": ["missed_by"]}
tables.save(patterns, folder, "fig8_failures")
figure = figures.overall.fig8_failures(measured)
figures.save(figure, folder, "fig8_failures")
display(figure)

# %%
counts = patterns.set_index("missed_by")
assert counts["count"].to_dict() == {" + ".join(who): count for who, count in published.MISSED_BY.items()}, "Fig. 8"
assert f"{counts.loc['', 'share']:.1%}" == "79.8%", "caught by all three"
assert f"{counts.loc[' + '.join(published.JUDGES), 'share']:.1%}" == "1.8%", "missed by all three"

# %% [markdown]
# ## “Above 98%” together?
# Any flag of two judges or of all three. Without clean twins their false alarms cannot be known.

# %%
together = tables.supplement.ensembles(measured)
tables.save(together, folder, "ensembles")
display(Markdown(tables.markdown(together, together.attrs["caption"])))

# %% [markdown]
# ## The audit
# Which counts make each percentage, whether sums and weighted means agree, p from ρ, and the targets behind the two
# MAEs. A printed number is a range, half a unit of its last digit to each side.

# %%
lines = audit()
lines.attrs = {
    "caption": "Audit of the paper's Tables 2, 3, 5 and 6.",
    "keys": ["part", "line"],
}
tables.save(lines, folder, "audit")
display(lines["verdict"].value_counts(), Markdown(tables.markdown(lines)))

# %% [markdown]
# ## The claims
# Worst cases over everything that the printed numbers leave open.

# %%
claimed = claims()
claimed.attrs = {
    "caption": "Which printed claims survive intervals; worst case over what is not printed.",
    "keys": ["part", "line"],
}
tables.save(claimed, folder, "claims")
display(claimed["verdict"].value_counts(), Markdown(tables.markdown(claimed)))

# %% [markdown]
# ## Checks

# %%
known = {"consistent", "inconsistent", "undetermined"}
assert set(pd.concat([lines, claimed])["verdict"]) <= known, "every line has one of three verdicts"
for number in (2, 3, 5, 6):
    assert lines["part"].str.startswith(f"Table {number}").any(), f"Table {number} is audited"
made = {"table1_detection": table1, "table1_pairs": pairs, "ensembles": together, "audit": lines, "claims": claimed}
tables.save_numbers(made, folder / "numbers.json")

# %% [markdown]
# Exp 1 comes back to the printed digit; the verdicts above say which of the rest can be relied on.
