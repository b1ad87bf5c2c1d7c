"""Plan → journal → frames: resuming, pinning, replaying, refusing."""

import pytest

from c2faith.judging import replies, tasks
from c2faith.judging.ask import ask
from c2faith.judging.judges.base import Reply
from c2faith.judging.verdict_frames import verdict_frame
from c2faith.records import InputError
from test_tasks import ROWS


class Scripted:
    """A judge that answers from a script and remembers what it was asked."""

    tasks = ("detection",)
    fingerprint = "scripted"

    def __init__(self, *script, judge_id="scripted"):
        self.script, self.judge_id, self.asked = list(script), judge_id, []

    def replies(self, queries):
        for query in queries:
            self.asked.append(query.item_id)
            reply = self.script.pop(0)
            if isinstance(reply, BaseException):
                raise reply
            yield query, reply


FOLLOWS, BREAKS = Reply('{"score": 1}', scores=(0.2, 0.8)), Reply('{"score": 0}', scores=(0.9, 0.1))
DOWN = Reply(None, None, error="api_error", usage={"prompt_tokens": 5})


@pytest.fixture
def queries():
    return [item.query("scripted") for item in tasks.items(ROWS, "detection")]


def test_a_second_run_asks_nothing(tmp_path, queries):
    ask(Scripted(BREAKS, FOLLOWS), queries, tmp_path)
    again = Scripted()
    tally = ask(again, queries, tmp_path)["detection"]
    assert (again.asked, tally.finished, tally.pending, tally.calls) == ([], 2, 0, 2)


def test_a_killed_run_resumes_where_it_was(tmp_path, queries):
    with pytest.raises(KeyboardInterrupt):
        ask(Scripted(BREAKS, KeyboardInterrupt()), queries, tmp_path)
    resumed = Scripted(FOLLOWS)
    tally = ask(resumed, queries, tmp_path)["detection"]
    assert (resumed.asked, tally.finished) == ([queries[1].item_id], 2)


def test_failed_calls_stay_pending_and_their_tokens_count(tmp_path, queries):
    tally = ask(Scripted(DOWN, FOLLOWS), queries, tmp_path)["detection"]
    assert (tally.finished, tally.pending, tally.errors) == (1, 1, 1)
    resumed = Scripted(BREAKS)
    tally = ask(resumed, queries, tmp_path)["detection"]
    assert (resumed.asked, tally.pending, tally.calls) == ([queries[0].item_id], 0, 3)
    assert tally.usage == {"prompt_tokens": 5}


def test_another_judge_under_the_same_name_is_refused(tmp_path, queries):
    ask(Scripted(BREAKS, FOLLOWS), queries, tmp_path)
    other = Scripted()
    other.fingerprint = "other parameters"
    with pytest.raises(InputError, match="recorded with another model or other parameters"):
        ask(other, queries, tmp_path)


def test_a_cost_limit_needs_prices(tmp_path, queries):
    with pytest.raises(InputError, match="has no prices"):
        ask(Scripted(), queries, tmp_path, max_cost=1.0)


def test_frames_hold_verdicts_labels_and_confidences(tmp_path, queries):
    ask(Scripted(BREAKS, DOWN), queries, tmp_path)
    rows = list(replies.read(replies.journal_path(tmp_path, "scripted", "detection")))
    frame = verdict_frame(tasks.items(ROWS, "detection"), rows, "scripted", "scripted")
    assert frame["status"].tolist() == ["ok", "api_error"]
    assert frame["value"].tolist()[0] == 0 and frame["value"].isna().tolist() == [False, True]
    assert frame["confidence"].tolist()[0] == 0.9
    assert frame["kind"].tolist() == ["perturbed", "clean"]
    assert frame["target"].tolist() == [2, 2] and frame["truth"].tolist() == [0, 1]


def test_replies_to_another_prompt_are_not_used_but_counted(tmp_path, queries):
    ask(Scripted(BREAKS, FOLLOWS), queries, tmp_path)
    rows = list(replies.read(replies.journal_path(tmp_path, "scripted", "detection")))
    frame = verdict_frame(tasks.items(ROWS, "detection"), rows, "scripted", "another fingerprint")
    assert frame["status"].tolist() == ["pending", "pending"]
    assert frame.attrs["stale"] == 2


def test_a_later_failure_does_not_undo_an_answer(tmp_path, queries):
    ask(Scripted(BREAKS, FOLLOWS), queries, tmp_path)
    rows = list(replies.read(replies.journal_path(tmp_path, "scripted", "detection")))
    late = {**rows[0], "attempt": 1, "text": None, "error": "api_error"}
    frame = verdict_frame(tasks.items(ROWS, "detection"), [*rows, late], "scripted", "scripted")
    assert frame["status"].tolist() == ["ok", "ok"]
