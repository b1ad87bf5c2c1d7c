"""The benchmark's items from a source's chains, in memory (Algorithm 1).

The manifest says what was made from what: parameters, hashes of inputs and files, counts, what was dropped and why.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from c2faith.dataset import negate, perturb
from c2faith.dataset.chains import select
from c2faith.dataset.items import ROWS, Dataset, lines
from c2faith.dataset.perturb import ALPHA, BETA, Rational
from c2faith.dataset.sources import Request
from c2faith.records import CausalityItem, Chain, CoverageItem, InputError, rng, sha256, sha256_file

RATES = ("0.1", "0.3", "0.5", "0.7")
_VERSIONED = ("c2faith", "champ-dataset", "numpy", "sympy")


def build(
    source: str,
    *,
    path: str | None = None,
    require: bool = False,
    alpha: Rational = ALPHA,
    beta: Rational = BETA,
    rates: Sequence[Rational] = RATES,
    nested: bool = False,
    negator: str = "rules",
    recorded: Path | None = None,
    complete: negate.Complete | None = None,
    **asked: Any,
) -> Dataset:
    """Algorithm 1 on a source's perfect chains, with clean controls.

    Parameters
    ----------
    alpha, beta
        Bounds of the middle region, as shares of the chain's length.
    rates
        Deletion rates in (0, 1]; a control with nothing removed is always added.
    nested
        Let what a lower rate removes be a subset of what the next one removes.
    negator : {"rules", "recorded", "llm"}
        With `recorded`, the file to replay, and `complete`, the model to ask: see `negate.make`.
    asked
        `min_steps`, `limit`, `seed` and `human_steps`, which like `source`, `path` and `require` are those of
        `chains.load_chains`; and `natural_limit`: natural-error items come from at most that many problems (None:
        from all), at most two a problem, and no more correct solutions than wrong ones.

    Returns
    -------
    Dataset
        A chain without a valid negation has no causality item, and is counted in the manifest.
    """
    request = Request(**asked, natural=True)
    seed, levels = request.seed, _levels(rates)
    region = {"alpha": perturb.share(alpha, "ALPHA"), "beta": perturb.share(beta, "BETA")}
    found = select(source, request, path=path, require=require)
    maker = negate.make(negator, chains=found.chains, recorded_path=recorded, complete=complete)
    causality, unnegated = _causality(found.chains, maker, seed, region)
    coverage = [item for chain in found.chains for item in _coverage(chain, levels, nested, seed, region)]
    rows = dict(zip(ROWS, map(tuple, (found.chains, causality, coverage, found.natural)), strict=True))
    inputs = found.files | ({f"negations/{Path(recorded).name}": Path(recorded)} if recorded else {})
    manifest = {
        "parameters": {
            "source": source,
            **{name: value for name, value in asdict(request).items() if name != "natural"},
            **{name: str(bound) for name, bound in region.items()},
            "rates": [str(rate) for rate in levels],
            "nested": nested,
            "negator": negator,
        },
        "inputs": {name: sha256_file(file) for name, file in sorted(inputs.items())},
        "files": {f"{name}.jsonl": sha256(lines(items)) for name, items in rows.items()},
        "counts": {
            "records": found.dropped.read,
            "steps": sum(len(chain.steps) for chain in found.chains),
            **{name: len(items) for name, items in rows.items()},
            "natural_wrong": sum(item.first_error >= 0 for item in found.natural),
        },
        "dropped": {
            "chains": dict(found.dropped.chains),
            "natural": dict(found.dropped.natural),
            "causality": dict(unnegated),
        },
        "rejected_negations": dict(maker.rejections),
        "versions": _versions(),
    }
    return Dataset(**rows, manifest=manifest)


def rebuild(recorded: Mapping[str, Any], path: str | None = None) -> Dataset:
    """The dataset that today's code makes with the parameters of a recorded manifest; `path` as of `build`."""
    parameters = recorded["parameters"]
    return build(path=path, **parameters | {"rates": parameters["rates"][1:]})


def _levels(rates: Sequence[Rational]) -> list[Fraction]:
    levels = [Fraction(0), *(perturb.share(rate, "RATES") for rate in rates)]
    if sorted(set(levels)) != levels:
        raise InputError(f"RATES={', '.join(map(str, rates))}: must rise from above 0 to at most 1")
    return levels


def _causality(
    chains: Sequence[Chain], negator: negate.Negator, seed: int, region: Mapping[str, Fraction]
) -> tuple[list[CausalityItem], Counter[str]]:
    items, dropped = [], Counter()

    def drawn(chain: Chain) -> np.random.Generator:
        return rng(seed, "causality", chain.chain_id)

    if isinstance(negator, negate.LlmNegator):
        negator.ask((chain, perturb.targets(chain, drawn(chain), **region)) for chain in chains)
    for chain in chains:
        try:
            items.append(perturb.replace_step(chain, negator, drawn(chain), **region))
        except perturb.NoNegation:
            dropped["no valid negation"] += 1
    return items, dropped


def _coverage(
    chain: Chain, levels: Sequence[Fraction], nested: bool, seed: int, region: Mapping[str, Fraction]
) -> list[CoverageItem]:
    words = ("coverage", chain.chain_id)
    if nested:
        return perturb.delete_nested(chain, levels, rng(seed, *words), **region)
    return [perturb.delete_steps(chain, level, rng(seed, *words, str(level)), **region) for level in levels]


def _versions() -> dict[str, str]:
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _VERSIONED:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
