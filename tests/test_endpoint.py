"""Keys and addresses: which variables are read, what is missing is said, and the key shows nowhere."""

import pytest

from c2faith.judging import judges
from c2faith.judging.ask import shard
from c2faith.judging.judges import openai_api
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.endpoint import AZURE_API_VERSION, Endpoint, environment, find
from c2faith.records import InputError

OPENAI = {"OPENAI_API_KEY": "sk-o"}
ENDPOINT_SPELLING = {
    "AZURE_OPENAI_API_KEY": "az",
    "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/",
    "OPENAI_API_VERSION": "2024-10-21",
}
BASE_SPELLING = {
    "AZURE_API_KEY": "az",
    "AZURE_API_BASE": "https://r.openai.azure.com",
    "AZURE_API_VERSION": "2024-10-21",
}


def test_openai_has_a_default_address_and_the_customary_variable():
    assert find("openai", OPENAI) == Endpoint("openai", "https://api.openai.com/v1", "sk-o")
    proxied = find("openai", OPENAI | {"OPENAI_BASE_URL": "http://proxy:4000/v1/"})
    assert proxied.base_url == "http://proxy:4000/v1"


@pytest.mark.parametrize("env", [ENDPOINT_SPELLING, BASE_SPELLING])
def test_azure_is_taken_in_both_spellings(env):
    assert find("azure", env) == Endpoint("azure", "https://r.openai.azure.com", "az", "2024-10-21")


def test_azure_has_a_default_version():
    env = {name: value for name, value in BASE_SPELLING.items() if "VERSION" not in name}
    assert find("azure", env).api_version == AZURE_API_VERSION


@pytest.mark.parametrize(
    ("provider", "env", "words"),
    [
        ("openai", {}, "OPENAI_API_KEY is not set"),
        ("openai", {"OPENAI_API_KEY": "  "}, "OPENAI_API_KEY is not set"),
        ("deepseek", OPENAI, "DEEPSEEK_API_KEY is not set"),
        ("azure", {"AZURE_API_KEY": "az"}, "AZURE_OPENAI_ENDPOINT is not set"),
        ("azure", BASE_SPELLING | {"AZURE_API_BASE": "my-resource"}, "no http address"),
        ("mystery", OPENAI, "unknown provider"),
    ],
)
def test_what_is_missing_is_named_in_one_line(provider, env, words):
    with pytest.raises(InputError, match=words) as caught:
        find(provider, env)
    assert "\n" not in str(caught.value) and "az'" not in str(caught.value)


def test_a_server_needs_an_address_and_no_key():
    assert find("whatever", {}, "http://localhost:8000/v1").api_key == "none"
    assert find("whatever", OPENAI, "http://localhost:8000/v1").api_key == "sk-o"
    with pytest.raises(InputError, match="BASE_URL: no http address"):
        find("whatever", {}, "localhost:8000")


def test_the_environment_stands_over_the_env_file(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("DEEPSEEK_API_KEY=from-file\nOPENAI_API_KEY=from-file\nEMPTY\n")
    monkeypatch.setenv("OPENAI_API_KEY", "from-process")
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    env = environment(tmp_path)
    assert (env["OPENAI_API_KEY"], env["DEEPSEEK_API_KEY"]) == ("from-process", "from-file")
    assert "EMPTY" not in env


def test_the_key_is_not_shown():
    endpoint = Endpoint("openai", "https://user:password@host:8000/v1", "sk-abcdef")
    assert "sk-abcdef" not in repr(endpoint)
    assert endpoint.redact("key sk-abcdef refused") == "key [key] refused"
    assert endpoint.host == "host:8000"
    assert Endpoint("server", "http://h", "none").redact("none of it") == "none of it"


@pytest.mark.parametrize("name", ["gpt-4.1", "o4-mini", "deepseek-v3.1"])
def test_the_papers_judges_are_ready_to_run(name):
    config = judges.read_config(name)
    judge = openai_api.from_config(config, env=OPENAI | BASE_SPELLING)
    assert judge.judge_id == name and judge.dialect.parameters == {}
    assert judge.prices.as_of.year >= 2026 and judge.prices.output > judge.prices.input > 0
    assert judge.tasks == ("detection", "localization", "coverage")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("my-model", "my-model"),
        ("llama3:8b", "llama3:8b"),
        ("server/my-model", "my-model"),
        ("openai/gpt-4.1", "gpt-4.1"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("hub/org/model/v2", "hub/org/model/v2"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("vllm/openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("vllm/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("server//models/mine", "/models/mine"),
    ],
)
def test_a_server_is_asked_for_the_model_under_its_own_name(name, model):
    judge = judges.make(name, base_url="http://localhost:8000/v1")
    assert judge.model == model and "/" not in judge.judge_id


def test_a_bare_name_needs_an_address_and_a_description_goes_before_it():
    with pytest.raises(InputError, match=r"unknown judge 'my-model': choose from .*, or give provider/model"):
        judges.make("my-model")
    assert judges.make("my-model", base_url="http://localhost:8000/v1").judge_id == "my-model"
    described = judges.make("gpt-4.1", base_url="http://localhost:8000/v1")
    assert described.prices is not None and described.endpoint.base_url == "http://localhost:8000/v1"


def test_a_descriptions_model_is_sent_as_it_says_whatever_its_provider(tmp_path):
    (tmp_path / "mine.yaml").write_text("{judge_id: mine, provider: lmstudio, model: org/model}")
    judge = judges.make(str(tmp_path / "mine.yaml"), base_url="http://localhost:8000/v1")
    assert judge.model == "org/model"


def test_a_model_named_on_the_spot_has_the_prices_of_its_named_judge():
    listed = judges.read_config("gpt-4.1")["prices"]
    assert judges.read_config("openai/gpt-4.1")["prices"] == judges.read_config("azure/gpt-4.1")["prices"] == listed
    assert "prices" not in judges.read_config("openai/some-model")
    assert "prices" not in judges.read_config("local/gpt-4.1")


def test_a_model_named_on_the_spot_is_kept_in_a_plain_folder():
    assert judges.read_config("local/models/my judge")["judge_id"] == "local-models-my-judge"


def test_a_description_with_wrong_prices_is_refused():
    config = {"judge_id": "j", "provider": "openai", "model": "m", "prices": {"as_of": "2026-11-30", "in": 1}}
    with pytest.raises(InputError, match=r"judge j: prices\.\w+"):
        openai_api.from_config(config, env=OPENAI)


def test_shards_are_disjoint_and_whole():
    queries = [Query(f"chain-{i}/causality", "detection", (), "", (), 0, "") for i in range(400)]
    parts = [shard(queries, f"{k}/8") for k in range(1, 9)]
    ids = [query.item_id for part in parts for query in part]
    assert len(ids) == 400 and set(ids) == {query.item_id for query in queries}
    # 400 draws over 8 parts: 50 expected, standard deviation √(400 · 1/8 · 7/8) = 6.6.
    assert all(25 < len(part) < 75 for part in parts)
    assert shard(queries[::2], "3/8") == [q for q in parts[2] if q in queries[::2]]
    assert shard(queries, "") == queries


@pytest.mark.parametrize("part", ["0/8", "9/8", "3", "3/", "a/b", "-1/8", "1/0"])
def test_a_shard_that_is_none_is_refused(part):
    with pytest.raises(InputError, match="k/n"):
        shard([], part)


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://127.0.0.1:abc/v1", "http://127.0.0.1:99999/v1", "localhost:1"]
)
def test_an_address_that_is_none_is_one_line(address):
    with pytest.raises(InputError, match="BASE_URL: no http address"):
        find("server", {}, address)


@pytest.mark.parametrize("key", ["sk-a\rb", "sk-ä"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key):
    with pytest.raises(InputError, match="OPENAI_API_KEY: holds characters") as refused:
        find("server", {"OPENAI_API_KEY": key}, "http://localhost/v1")
    assert "sk-" not in str(refused.value)


def test_a_key_that_a_server_sends_back_is_taken_out_everywhere():
    found = find("server", {"OPENAI_API_KEY": "sk-SECRET-123456\n"}, "http://localhost/v1")
    echo = "key sk-SECRET-123456"
    reply = found.redacted(Reply(echo, model=echo, extra={"refusal": echo, "retries": 2}))
    assert reply == Reply("key [key]", model="key [key]", extra={"refusal": "key [key]", "retries": 2})


@pytest.mark.parametrize(
    "text", ["judge_id: ../../esc", "judge_id: 5", "judge_id: a\nparameters: [1]", "judge_id: a\ntasks: detection"]
)
def test_a_description_that_is_none_is_one_line(tmp_path, text):
    path = tmp_path / "judge.yaml"
    path.write_text(f"provider: openai\nmodel: m\n{text}\n")
    with pytest.raises(InputError, match=r"judge_id|parameters|tasks"):
        judges.read_config(str(path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("parameters: {since: 2026-11-30}", "parameters.since: input was not a valid JSON value"),
        ("parameters: {logit_bias: {50256: -100}}", "parameters.logit_bias.50256: a key must be a text; quote it"),
        ("parameters: {5: 1}", "parameters.5: a key must be a text; quote it"),
        ("parameters: {temperature: .nan}", "parameters.temperature: Input should be a finite number"),
        ("parameters: {stop: [-.inf]}", "parameters.stop.0: Input should be a finite number"),
        *(
            (f"parameters: {{{name}: x}}", f"parameters.{name} is filled in by the library; leave it out")
            for name in ("messages", "model", "stream", "response_format")
        ),
        ("note: 2026-11-30", "note: Input should be a valid string"),
        ("5: 1", "5: Keys should be strings"),
        ("colour: red", "colour: unknown key; a judge has judge_id, provider, model, "),
        ("tasks: [1]", "tasks.0: Input should be a valid string"),
        (
            "prices: {as_of: 2026-11-30, input: .inf, cached_input: 1, output: 1}",
            "prices.input: Input should be a fi",
        ),
        (
            "prices: {as_of: soon, input: 1, cached_input: 1, output: 1}",
            "prices.as_of: Input should be a valid date",
        ),
        ("provider: ''", "provider: String should have at least 1 character"),
        ("model: 2026-11-30", "model: Input should be a valid string"),
    ],
)
def test_a_description_is_refused_by_file_and_key(tmp_path, line, words):
    path = tmp_path / "judge.yaml"
    whole = {"judge_id": "j", "provider": "openai", "model": "m"}
    whole.pop(line.split(":")[0], None)
    path.write_text("".join(f"{key}: {value}\n" for key, value in whole.items()) + line + "\n")
    with pytest.raises(InputError) as refused:
        judges.read_config(str(path))
    assert str(refused.value).startswith(f"{path}: {words}") and "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "- 1", "[", "judge_id: j"])
def test_a_file_that_describes_no_judge_is_one_line(tmp_path, text):
    (tmp_path / "judge.yaml").write_text(text)
    with pytest.raises(InputError, match=r"judge\.yaml: .+") as refused:
        judges.read_config(str(tmp_path / "judge.yaml"))
    assert "\n" not in str(refused.value)


def test_a_trained_judge_may_say_where_its_model_lies(tmp_path):
    (tmp_path / "judge.yaml").write_text("{judge_id: j, provider: cros, model: champ, parameters: {model: here}}")
    assert judges.read_config(str(tmp_path / "judge.yaml"))["parameters"] == {"model": "here"}
