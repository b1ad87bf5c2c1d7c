"""The recorded heads as a judge: asked like any other, cross-fitted, silent on what they never saw."""

import numpy as np
import pytest
import torch

import tiny_encoder
from c2faith import dataset, paths
from c2faith.cros import judge as cros_judge
from c2faith.cros.examples import fold_of
from c2faith.cros.heads import Projection, StepHead, TrainedHead
from c2faith.cros.reading import Encoder, FeatureStore
from c2faith.cros.rewards import chain_reward
from c2faith.judging import judges, replies, tasks, verdict_frames, verdicts
from c2faith.judging.ask import ask
from c2faith.records import InputError

FOLDS = 3


@pytest.fixture(scope="module")
def small():
    return dataset.build("synthetic", limit=6)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("C2FAITH_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def trained(small, home):
    """A folder with three random heads over a tiny encoder."""
    encoder = Encoder(tiny_encoder.save(home / "model", context=2048), layers=(1.0,), max_tokens=1200)
    written = [(chain.question, chain.steps) for chain in small.chains]
    projection = Projection.fit(FeatureStore(home / "features", encoder).get(written), 6)
    heads = []
    for seed in range(FOLDS):
        torch.manual_seed(seed)
        heads.append(TrainedHead(projection, StepHead(projection.n_features, 4), 0.3, 0.4))
    cros_judge.save(home / "cros", heads, encoder, {"fold_seed": 0, "record": "random"})
    return home / "cros"


@pytest.fixture(scope="module")
def judge(trained):
    return judges.make(f"cros/{trained}")


@pytest.mark.parametrize("task", ["detection", "localization", "coverage"])
def test_its_replies_go_the_ordinary_way(small, judge, home, task):
    items = tasks.items(small, task)
    queries = [item.query(judge.fingerprint) for item in items]
    tally = ask(judge, queries, home / "run")[task]
    assert tally.pending == 0
    path = replies.journal_path(home / "run", judge.judge_id, task)
    frame = verdict_frames.verdict_frame(items, replies.read(path), judge.judge_id, judge.fingerprint)
    assert (frame["status"] == "ok").all()
    assert frame["confidence"].between(0, 1).all()


def test_scores_are_probabilities_of_the_admissible_answers(small, judge):
    for task, n_answers in (("detection", 2), ("coverage", 5)):
        queries = [item.query("") for item in tasks.items(small, task)[:5]]
        for _, reply in judge.replies(queries):
            assert len(reply.scores) == n_answers
            assert sum(reply.scores) == pytest.approx(1)
    for query, reply in judge.replies([item.query("") for item in tasks.items(small, "localization")[:5]]):
        assert len(reply.scores) == query.n_steps + 1
        value = verdicts.parse(reply.text, "localization", query.n_steps).value
        likeliest = int(np.argmax(reply.scores[:-1]))
        assert value == (-1 if reply.scores[-1] >= 0.3 else likeliest)


def test_a_problem_is_judged_by_the_head_of_its_fold(small, judge):
    item = tasks.items(small, "localization")[0]
    head = judge.heads[fold_of(item.question, FOLDS)]
    features = judge.store.get([(item.question, item.steps)])
    (expected,) = head.read(features)
    (found,) = judge.read([(item.question, item.steps)])
    assert np.array_equal(expected.verdicts, found.verdicts)
    others = [other for fold, other in enumerate(judge.heads) if fold != fold_of(item.question, FOLDS)]
    assert all(not np.array_equal(other.read(features)[0].verdicts, found.verdicts) for other in others)


def test_a_chain_longer_than_the_context_has_no_verdict_clean(judge):
    steps = tuple(f"{i} + 1 = {i + 1}, as anybody who has counted that far will tell you." for i in range(40))
    item = tasks.items(dataset.build("synthetic", limit=1), "localization")[0]
    for task in ("localization", "coverage"):
        long = type(item)("x", task, "c", "p", "clean", "How far?", steps, len(steps)).query("")
        ((_, reply),) = judge.replies([long])
        verdict = verdicts.read_reply({"text": reply.text, "error": reply.error}, task, len(steps))
        assert reply.extra["seen"] < len(steps)
        assert verdict.status == "length" or (task == "localization" and verdict.value >= 0)


def test_the_fingerprint_changes_with_a_head(trained, judge, tmp_path):
    for file in trained.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    same = judges.make(f"cros/{tmp_path}")
    assert same.fingerprint == judge.fingerprint
    head = TrainedHead.load(tmp_path / "head-1.safetensors")
    head.clean_threshold = 0.9
    head.save(tmp_path / "head-1.safetensors")
    assert judges.make(f"cros/{tmp_path}").fingerprint != judge.fingerprint


def test_another_model_and_a_missing_judge_are_refused(trained, tmp_path):
    other = tiny_encoder.save(tmp_path / "other", context=64)
    with pytest.raises(InputError, match="is another model"):
        cros_judge.CrosJudge("cros", trained, model=other).read([("?", ("a",))])
    with pytest.raises(InputError, match=r"train one with make cros"):
        judges.make("cros/no-such-run")


def test_a_chain_is_rewarded_by_what_the_judge_makes_of_its_steps(judge, small):
    chain = small.chains[0]
    (reading,) = judge.read([(chain.question, chain.steps)])
    (earned,) = chain_reward(judge)(["\n\n".join(chain.steps)], question=[chain.question])
    assert earned == pytest.approx(np.log1p(-reading.hazards).mean() + reading.coverage / 8, rel=1e-5)


@pytest.mark.slow
def test_the_recorded_judge_rewards_clean_chains_above_their_perturbed_twins(smollm2_folder, home):
    """Cross-fitted: each problem is read by the head that never saw it."""
    rows = dataset.build("champ", limit=12)
    recorded = cros_judge.CrosJudge("cros", paths.FROZEN / "champ" / "cros", model=str(smollm2_folder))
    chains = {chain.chain_id: chain for chain in rows.chains}
    reward = chain_reward(recorded)
    pairs = [(chains[row.chain_id], row.steps) for row in rows.causality]
    texts = ["\n\n".join(steps) for chain, perturbed in pairs for steps in (chain.steps, perturbed)]
    earned = reward(texts, question=[chain.question for chain, _ in pairs for _ in range(2)])
    gaps = np.subtract(earned[::2], earned[1::2])
    assert len(gaps) == 12 and (gaps > 0).sum() >= 8 and gaps.mean() > 0
