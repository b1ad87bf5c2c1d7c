"""The local judge on a tiny random model: shared reading against plain reading, and what replies say."""


import numpy as np
import pytest

from c2faith.judges import scoring
from c2faith.judges.base import Query
from c2faith.judges.local import LocalJudge
from c2faith.records import sha256

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
CONTEXT = 512


def save_tokenizer(folder):
    """Byte-level, with merges that make "12" one token and "{"-quote another: answers differ in length."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("1", "2"), ("{", '"'), ("Ġ", "-")]
    vocabulary = {token: i for i, token in enumerate(SPECIAL + alphabet + [a + b for a, b in merges])}
    raw = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|end|>", pad_token="<|end|>", additional_special_tokens=SPECIAL[:3]
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return len(vocabulary)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Folder of a random two-layer model, its weights large enough for confident and varied answers."""
    folder = tmp_path_factory.mktemp("tiny")
    config = transformers.LlamaConfig(
        vocab_size=save_tokenizer(folder),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=3,
        pad_token_id=3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def judge(tiny):
    return LocalJudge("tiny", str(tiny), dtype="float32", device="cpu", batch_tokens=256)


def query(name, task, steps, question="What is 3 + 4?"):
    text = f"<problem>{question}</problem>" + "".join(f"\n[{i}] {step}" for i, step in enumerate(steps))
    messages = (("system", f"Check this. Task {task}."), ("user", text))
    return Query(name, task, messages, question, tuple(steps), None, sha256([task, text]))


def several(task):
    """Chains that share their beginnings, that share nothing, twice the same, and longer than ten steps."""
    long = [f"So {i} + 1 = {i + 1}." for i in range(14)]
    chains = {
        "long": long,
        "long, one less": long[:6] + long[7:],
        "long, other end": [*long[:13], "Thus 5."],
        "short": ["Add.", "7."],
        "short again": ["Add.", "7."],
        "other": ["No", "words", "shared"],
    }
    asked = [query(name, task, steps) for name, steps in chains.items()]
    return [*asked, query("other problem", task, ["x", "y"], "Find all primes p with p + 2 prime.")]


def naive(judge, asked):
    """Probabilities of the answers by one plain forward pass for each, over the whole text's tokens."""
    texts = scoring.admissible(asked.task, asked.n_steps)
    prompt = judge.loaded.encode_chat(asked.messages)
    log_p = []
    for text in texts:
        answer = judge.loaded.encode(text)
        with torch.no_grad():
            logits = judge.loaded.model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        log_p.append(logits.log_softmax(-1)[range(len(answer)), answer].sum().item())
    return np.exp(np.array(log_p) - np.logaddexp.reduce(log_p))


@pytest.mark.parametrize("task", ["detection", "localization", "coverage"])
def test_shared_reading_gives_what_separate_plain_passes_give(judge, task):
    found = dict(judge.replies(several(task)))
    assert {q.item_id for q in found} == {q.item_id for q in several(task)}
    for asked, reply in found.items():
        expected = naive(judge, asked)
        np.testing.assert_allclose(reply.scores, expected, atol=2e-6)
        assert reply.text == scoring.admissible(task, asked.n_steps)[int(np.argmax(expected))]
        assert sum(reply.scores) == pytest.approx(1, abs=2e-5)


def test_answers_vary_so_that_agreement_means_something(judge):
    replies = [reply for _, reply in judge.replies(several("localization"))]
    assert len({reply.text for reply in replies}) > 1
    assert max(max(reply.scores) for reply in replies) > 0.3


def test_batches_do_not_matter(tiny, judge):
    asked = several("localization")
    together = {q.item_id: r.scores for q, r in judge.replies(asked)}
    one_batch = LocalJudge("tiny", str(tiny), dtype="float32", device="cpu", batch_tokens=100_000)
    for other in (one_batch.replies(asked[::-1]), (pair for q in asked for pair in judge.replies([q]))):
        for q, reply in other:
            np.testing.assert_allclose(reply.scores, together[q.item_id], atol=2e-6)


def test_same_queries_same_replies(judge):
    def texts():
        return [(q.item_id, r.text, r.scores) for q, r in judge.replies(several("coverage"))]

    assert texts() == texts()
