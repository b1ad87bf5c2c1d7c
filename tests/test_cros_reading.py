"""Reading with a shared past against reading afresh; pooling by hand; what lies on disk; contexts too short."""

import numpy as np
import pytest
import torch

import tiny_encoder
from c2faith.cros.reading import SCALARS, Encoder, FeatureStore, Layout, TokenReading, pool
from c2faith.records import InputError

CHAINS = [
    ("What is 3 + 4?", ("First 3 + 4 = 7.", "So it is 7.")),
    ("What is 3 + 4?", ("First 3 + 4 = 8.", "So it is 7.")),
    ("What is 3 + 4?", ("First 3 + 4 = 7.",)),
    ("What is 3 + 4?", ("So it is 7.",)),
    ("And 12?", ("12.", "Yes, 12.", "Done.")),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_encoder.save(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(model):
    return Encoder(model, layers=(0.5, 1.0))


def assert_same(one, other):
    for name in ("states", "surprisal", "entropy"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), atol=1e-4, rtol=1e-4)


def test_sharing_the_past_changes_nothing(encoder):
    layouts = [encoder.layout(*chain) for chain in CHAINS]
    together = dict(encoder.read(layouts))
    assert sorted(together) == list(range(len(CHAINS)))
    for index, layout in enumerate(layouts):
        ((_, alone),) = encoder.read([layout])
        assert_same(together[index], alone)


def test_a_padded_batch_reads_as_one_by_one(encoder):
    layouts = [encoder.layout(*chain) for chain in CHAINS]
    with torch.no_grad():
        batch = encoder.forward(layouts)
    for index, reading in encoder.read(layouts):
        assert_same(batch[index], reading)


def test_surprisal_is_the_model_s_own_loss(encoder):
    layout = encoder.layout(*CHAINS[0])
    ids = torch.tensor([layout.ids])
    with torch.no_grad():
        loss = encoder.network(ids, labels=ids).loss
    ((_, reading),) = encoder.read([layout])
    assert reading.surprisal[0] == 0
    assert reading.surprisal[1:].mean().item() == pytest.approx(loss.item(), rel=1e-4)


def test_steps_are_tokenized_apart(encoder):
    layout = encoder.layout(*CHAINS[0])
    text = encoder.tokenizer.decode(layout.ids[layout.starts[0] : layout.starts[1]])
    assert text == "First 3 + 4 = 7.\n\n"
    assert layout.starts[-1] == len(layout.ids)


def test_pooling_by_hand():
    # two steps of two tokens each after one token of the question; one layer of width 1
    reading = TokenReading(
        states=torch.tensor([0.0, 1, 3, 10, 20])[:, None, None],
        surprisal=torch.tensor([0.0, 4, 1, 2, 6]),
        entropy=torch.tensor([0.0, 1, 1, 1, 1]),
    )
    layout = Layout(ids=(0, 1, 2, 3, 4), starts=(1, 3, 5), n_steps=2)
    pooled = pool(reading, layout, ("2?", ("x2", "y7")), ["?", "x", "2", "y", "7"])
    # last, mean, and the state of the most unexpected token: the first one in step 0, the second in step 1
    assert pooled.states[:, 0, :, 0].tolist() == [[3, 2, 1], [20, 15, 20]]
    scalars = dict(zip(SCALARS, pooled.scalars.T.tolist(), strict=True))
    assert scalars["surprisal_mean"] == [2.5, 4]
    assert scalars["surprisal_max"] == [4, 6]
    assert scalars["surprisal_second"] == [1, 2]
    assert scalars["number_excess_max"] == [0, 5]
    assert scalars["log_tokens"] == pytest.approx([np.log(2)] * 2)
    assert scalars["known_numbers"] == [1, 0]  # 2 stands in the question, 7 nowhere before


def test_features_come_back_from_disk_without_the_model(encoder, tmp_path, monkeypatch):
    read = FeatureStore(tmp_path, encoder).get(CHAINS)
    monkeypatch.setattr(encoder, "read", lambda layouts: iter(()) if not layouts else pytest.fail("read again"))
    again = FeatureStore(tmp_path, encoder).get(CHAINS)
    for one, other in zip(read, again, strict=True):
        assert torch.equal(one.states, other.states)
        assert torch.equal(one.scalars, other.scalars)
    assert [chain.n_steps for chain in again] == [2, 2, 1, 1, 3]


def test_a_beginning_is_not_read_again(encoder, tmp_path):
    store = FeatureStore(tmp_path, encoder)
    store.get([CHAINS[4]])
    (beginning,) = store.get([(CHAINS[4][0], CHAINS[4][1][:2])])
    assert len(list(store.folder.glob("*.npz"))) == 1
    ((_, alone),) = encoder.read([encoder.layout(CHAINS[4][0], CHAINS[4][1][:2])])
    layout = encoder.layout(CHAINS[4][0], CHAINS[4][1][:2])
    afresh = pool(alone, layout, CHAINS[4], encoder.tokens(layout))
    torch.testing.assert_close(beginning.scalars, afresh.scalars, atol=1e-3, rtol=1e-3)


def test_a_torn_file_or_line_is_read_again(encoder, tmp_path):
    store = FeatureStore(tmp_path, encoder)
    store.get(CHAINS[:1])
    (file,) = store.folder.glob("*.npz")
    file.write_bytes(file.read_bytes()[:100])
    (store.folder / "index.jsonl").write_bytes((store.folder / "index.jsonl").read_bytes()[:40])
    (again,) = FeatureStore(tmp_path, encoder).get(CHAINS[:1])
    assert again.n_seen == 2


def test_a_chain_longer_than_the_context_is_seen_in_whole_steps_only(model, tmp_path):
    encoder = Encoder(model, max_tokens=60)
    question, steps = CHAINS[4][0], ("12 is a number.", "And so is 13, as all of them are.", "Done.")
    layout = encoder.layout(question, steps)
    assert (layout.n_seen, layout.n_steps) == (1, 3)
    (seen,) = FeatureStore(tmp_path, encoder).get([(question, steps)])
    assert (seen.n_seen, seen.n_steps) == (1, 3)
    (nothing,) = FeatureStore(tmp_path, encoder).get([("Long? " * 20, steps)])
    assert (nothing.n_seen, nothing.n_steps) == (0, 3)


def test_the_model_s_own_context_is_a_limit(tmp_path):
    assert Encoder(tiny_encoder.save(tmp_path, context=64), max_tokens=1000).max_tokens == 64


def test_a_model_with_too_few_rows_is_refused_in_one_line(tmp_path):
    folder = tiny_encoder.save(tmp_path, spare_tokens=-3)
    with pytest.raises(InputError, match="258 tokens, the model only 255"):
        Encoder(folder)


def test_a_missing_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        Encoder(str(tmp_path / "nothing"))
    assert "\n" not in str(caught.value)
