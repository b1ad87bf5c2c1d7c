"""The Batch API against a stand-in of the files and batches endpoints, interrupted everywhere it can be."""

from __future__ import annotations

import json
import os
import ssl
import time

import openai
import pytest
from aiohttp import web
from tenacity import wait_fixed

from c2faith.judging import ask as asking
from c2faith.judging import replies, verdicts
from c2faith.judging.judges import batch_api
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.batch_api import BatchJudge
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.records import InputError
from faulty_server import Call, Server, completion, error, verdict

KEY = "sk-very-secret-key"
PRICES = {"as_of": "2026-11-30", "input": 2, "cached_input": 0.5, "output": 8, "batch": 0.5}


class BatchServer(Server):
    """Files and batches; a batch's requests are answered by `behave` when it has been looked at `looks` times."""

    def __init__(self, behave=lambda call: completion(), looks=2):
        super().__init__(behave)
        self.looks, self.ends_as = looks, "completed"
        self.room = 100  # batches under way at once; more are refused
        self.forget()

    def forget(self):
        """Begin anew, with no files and batches."""
        self.files, self.batches = {}, {}
        self.calls, self.log, self.lose = [], [], set()

    def routes(self, app):
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._retrieve)

    def _reply(self, request, name, body):
        """Answer, or lose the answer once after what was asked is done."""
        self.log.append(name)
        if name in self.lose:
            self.lose.remove(name)
            request.transport.abort()
        return web.json_response(body)

    async def _upload(self, request):
        form = await request.post()
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = form["file"].file.read()
        assert form["purpose"] == "batch"
        body = {"id": file_id, "object": "file", "bytes": 1, "created_at": 1, "filename": "f", "purpose": "batch"}
        return self._reply(request, "files.create", body | {"status": "processed"})

    async def _create(self, request):
        asked = await request.json()
        batch = {
            "id": f"batch-{len(self.batches)}",
            "object": "batch",
            "status": "in_progress",
            "created_at": int(time.time()),
            "request_counts": {"total": 1, "completed": 0, "failed": 0},
            **asked,
        }
        self.batches[batch["id"]] = batch | {"looked": 0}
        return self._reply(request, "batches.create", batch)

    async def _list(self, request):
        newest_first = sorted(self.batches.values(), key=lambda batch: batch["id"], reverse=True)
        return self._reply(request, "batches.list", {"object": "list", "data": newest_first, "has_more": False})

    async def _retrieve(self, request):
        batch = self.batches[request.match_info["id"]]
        batch["looked"] += 1
        running = [other["id"] for other in self.batches.values() if other["status"] == "in_progress"]
        if batch["id"] in running[self.room :]:
            self._refuse(batch)
        elif batch["looked"] == self.looks:
            self._finish(batch)
        return self._reply(request, "batches.retrieve", batch)

    async def _content(self, request):
        self.log.append("files.content")
        return web.Response(body=self.files[request.match_info["id"]])

    def _refuse(self, batch):
        batch["status"] = "failed"
        batch["errors"] = {"object": "list", "data": [{"code": "x", "message": "Enqueued token limit reached"}]}

    def _finish(self, batch):
        batch["status"] = self.ends_as
        if self.ends_as == "failed":
            self._refuse(batch)
            return
        good, bad = [], []
        for line in map(json.loads, self.files[batch["input_file_id"]].splitlines()):
            call = Call(len(self.calls), {}, line["body"], time.monotonic())
            self.calls.append(call)
            answer = self.behave(call)
            if answer is None:
                code = {"code": "batch_expired", "message": "This request could not be executed in time."}
                bad.append({"custom_id": line["custom_id"], "response": None, "error": code})
                continue
            response = {"status_code": answer.status, "request_id": f"req-{call.number}", "body": answer.body}
            row = {"custom_id": line["custom_id"], "response": response, "error": None}
            (good if answer.status == 200 else bad).append(row)
        for name, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[name] = f"{name}-{batch['id']}"
                self.files[batch[name]] = b"".join(json.dumps(row).encode() + b"\n" for row in reversed(rows))


def queries(count, task="detection", first=0):
    system = ("system", "Answer with one JSON object.")
    return [
        Query(f"item-{i}", task, (system, ("user", f"number {i}")), "q", ("a",) * 5, 0, f"{i:064x}")
        for i in range(first, first + count)
    ]


def make(server, folder, *, parameters=None, prices=None, **settings):
    config = {"judge_id": "j", "provider": "openai", "model": "judge", "parameters": parameters or {}}
    config |= {"prices": prices} if prices else {}
    endpoint = Endpoint("openai", server.url, KEY)
    judge = BatchJudge(config, endpoint, folder / "batches", attempts=3, backoff=wait_fixed(0.01), timeout_s=10)
    for name, value in ({"poll_s": 0.01} | settings).items():
        setattr(judge, name, value)
    return judge


def ask(server, folder, count=1, task="detection", max_cost=None, **settings):
    judge = make(server, folder, **settings)
    tally = asking.ask(judge, queries(count, task), folder, max_cost=max_cost)[task]
    return tally, *read(folder, task)


def ask_all(server, folder, counts, **settings):
    """Tallies and finished items by task; `counts` are those of the items."""
    asked = {task: queries(count, task, first=10 * n) for n, (task, count) in enumerate(counts.items())}
    tallies = asking.ask(make(server, folder, **settings), [q for part in asked.values() for q in part], folder)
    return tallies, {task: sorted(read(folder, task)[1]) for task in counts}


def read(folder, task="detection"):
    rows = list(replies.read(replies.journal_path(folder, "j", task)))
    final = {row["item_id"]: verdicts.read_reply(row, task, 5) for row in rows if replies.is_final(row)}
    return rows, final


def number(call):
    return int(call.body["messages"][-1]["content"].split()[-1])


def open_tickets(folder):
    return sorted(path.name for path in (folder / "batches").rglob("*") if path.is_file())


def test_a_batch_is_written_submitted_polled_and_ingested(tmp_path):
    with BatchServer() as server:
        tally, rows, final = ask(server, tmp_path, 7, prices=PRICES)
    assert (tally.finished, tally.calls, len(server.batches)) == (7, 7, 1)
    assert server.log == ["files.create", "batches.create", *["batches.retrieve"] * 2, "files.content"]
    assert {v.value for v in final.values()} == {1}
    assert {row["extra"]["batch"] for row in rows} == {"batch-0"} and rows[0]["mode"] == "json_schema"
    assert open_tickets(tmp_path) == []
    # Half price: 7 × (100 × 2 + 20 × 8) / 10⁶ / 2.
    assert tally.dollars == pytest.approx(7 * 360e-6 / 2)
    line = json.loads(server.files["file-0"].splitlines()[0])
    assert line["url"] == "/v1/chat/completions" and line["method"] == "POST"
    assert line["body"]["response_format"]["type"] == "json_schema" and len(line["custom_id"]) <= 64


def test_the_statuses_are_those_of_the_live_client(tmp_path):
    answers = [
        completion(),
        completion('{"reasoning": "so', "length"),
        completion(None, "content_filter"),
        error(400, "filtered", code="content_filter"),
        completion(None, refusal="no"),
        completion(verdict(9)),
        completion("prose"),
        completion(None, reasoning_content=verdict(0)),
    ]
    with BatchServer(lambda call: answers[number(call)]) as server:
        tally, rows, final = ask(server, tmp_path, len(answers))
    assert tally.finished == len(answers)
    assert [final[f"item-{i}"].status for i in range(len(answers))] == [
        "ok",
        "length",
        "content_filter",
        "content_filter",
        "refusal",
        "schema_error",
        "parse_error",
        "ok",
    ]
    # Only the unreadable one is asked again, in a batch of its own.
    assert len(server.batches) == 2 and len(server.calls) == len(answers) + 1
    assert [row["item_id"] for row in rows if row["extra"].get("will_retry")] == ["item-6"]


def test_requests_that_failed_go_into_the_next_round_a_few_times(tmp_path):
    down = [None, error(500, "internal"), error(429, "rate limit")]

    def behave(call):
        return down[len(server.batches) - 1] if number(call) == 2 and len(server.batches) <= 3 else completion()

    with BatchServer(behave) as server:
        tally, rows, _ = ask(server, tmp_path, 4)
        assert (tally.finished, tally.pending, len(server.batches)) == (3, 1, 3)
        assert [row["error"] for row in rows if row["item_id"] == "item-2"] == ["api_error"] * 3
        tally, _, _ = ask(server, tmp_path, 4)
    assert tally.pending == 0 and len(server.batches) == 4 and tally.calls == 7


def test_parameters_and_the_ladder_are_adapted_between_rounds(tmp_path):
    def behave(call):
        if "max_tokens" in call.body:
            return error(
                400, "Unsupported parameter: 'max_tokens'", code="unsupported_parameter", param="max_tokens"
            )
        if call.body.get("response_format", {}).get("type") == "json_schema":
            return error(400, "This response_format type is unavailable now")
        return completion()

    with BatchServer(behave) as server:
        tally, rows, _ = ask(server, tmp_path, 3, parameters={"max_tokens": 50})
    assert tally.finished == 3 and len(server.batches) == 3
    assert rows[-1]["mode"] == "json_object" and rows[-1]["extra"]["parameters"] == {"max_completion_tokens": 50}


def test_limits_on_a_batch_make_several(tmp_path):
    with BatchServer() as server:
        assert ask(server, tmp_path / "a", 7, most_requests=3)[0].finished == 7
        assert len(server.batches) == 3
        assert ask(server, tmp_path / "b", 6, most_bytes=1500)[0].finished == 6
    assert len(server.batches) > 4 and all(
        len(raw) <= 1500 for name, raw in server.files.items() if "-id" not in name
    )


def test_lost_answers_submit_nothing_twice(tmp_path):
    with BatchServer() as server:
        server.lose = {"files.create", "batches.create", "batches.retrieve"}
        tally, _, _ = ask(server, tmp_path, 5)
    assert tally.finished == 5 and len(server.batches) == 1 and tally.calls == 5
    assert server.log.count("batches.create") == 1 and "batches.list" in server.log


class Interrupted(BaseException):
    """A kill, as far as this process can feel one."""


def interrupting(monkeypatch, at):
    """Raise `Interrupted` at the given event; events are the moments before and after each outside effect."""
    events = iter(range(10_000))

    def event():
        if next(events) == at:
            raise Interrupted

    def around(owner, name):
        original = getattr(owner, name)

        def wrapped(*arguments, **named):
            event()
            value = original(*arguments, **named)
            event()
            return value

        monkeypatch.setattr(owner, name, wrapped)

    around(batch_api, "write_bytes")
    around(batch_api, "write_json")
    around(batch_api.Ticket, "close")
    around(openai.resources.Files, "create")
    around(openai.resources.Files, "content")
    for name in ("create", "retrieve"):
        around(openai.resources.Batches, name)
    around(replies.Journal, "append")


TWO_TASKS = {"detection": 2, "coverage": 1}


@pytest.mark.slow
def test_interrupted_at_any_point_it_is_picked_up_and_never_submitted_twice(tmp_path, monkeypatch):
    # Ninety runs: none of them needs certificates (0.1 s a client) or survives a power cut.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    interrupted = 0
    with BatchServer() as server:
        for at in range(100):
            server.forget()
            with monkeypatch.context() as patch:
                interrupting(patch, at)
                try:
                    ask_all(server, tmp_path / str(at), TWO_TASKS)
                    break
                except Interrupted:
                    interrupted += 1
            tallies, final = ask_all(server, tmp_path / str(at), TWO_TASKS)
            assert {task: (tally.finished, tally.calls) for task, tally in tallies.items()} == {
                "detection": (2, 2),
                "coverage": (1, 1),
            }, at
            assert final == {"detection": ["item-0", "item-1"], "coverage": ["item-10"]}, at
            assert len(server.batches) == 2 and len(server.calls) == 3, at
    # Two for each effect: batch file, intent, file id, batch id, upload, create, looks, download and close of each
    # of two batches; three rows.
    assert interrupted == 2 * (2 * (4 + 1 + 1 + 2 + 1 + 1) + 3)


def test_the_batches_of_all_tasks_are_submitted_before_the_first_is_waited_for(tmp_path):
    counts = {"detection": 3, "localization": 1, "coverage": 2}

    def behave(call):
        return completion(verdict(1, "index" if number(call) == 10 else "score"))

    with BatchServer(behave) as server:
        tallies, final = ask_all(server, tmp_path, counts)
    assert server.log[:6] == ["files.create", "batches.create"] * 3 and set(server.log[6:9]) == {"batches.retrieve"}
    assert {task: tally.finished for task, tally in tallies.items()} == counts
    assert {task: len(items) for task, items in final.items()} == counts
    assert {v.status for task in counts for v in read(tmp_path, task)[1].values()} == {"ok"}
    assert open_tickets(tmp_path) == []


def test_another_tasks_batch_is_left_for_the_run_that_asks_for_it(tmp_path, monkeypatch):
    with BatchServer(looks=3) as server:
        with monkeypatch.context() as patch, pytest.raises(Interrupted):
            interrupting(patch, 26)  # both are submitted, and both looked at
            ask_all(server, tmp_path, TWO_TASKS)
        assert len(server.batches) == 2 and len(open_tickets(tmp_path)) == 4
        assert ask(server, tmp_path, 2)[0].finished == 2
        assert len(open_tickets(tmp_path)) == 2
        assert ask_all(server, tmp_path, TWO_TASKS)[1]["coverage"] == ["item-10"]
    assert len(server.batches) == 2 and len(server.calls) == 3


def test_a_batch_for_which_there_is_no_room_yet_goes_when_another_one_ends(tmp_path):
    with BatchServer() as server:
        server.room = 1
        tallies, _ = ask_all(server, tmp_path, {"detection": 2, "localization": 2, "coverage": 2}, prices=PRICES)
    assert [tally.pending for tally in tallies.values()] == [0, 0, 0] and len(server.calls) == 6
    # Three; the one that is refused goes again when the first has ended, is refused beside the third, goes last.
    assert len(server.batches) == 3 + 2


def test_queries_beside_an_open_batch_get_one_of_their_own(tmp_path, monkeypatch):
    with BatchServer(looks=4) as server:
        with monkeypatch.context() as patch, pytest.raises(Interrupted):
            interrupting(patch, 12)  # after the submission, between two looks
            ask(server, tmp_path, 2)
        assert len(server.batches) == 1 and len(open_tickets(tmp_path)) == 2
        assert ask(server, tmp_path, 5)[0].finished == 5
    assert [len(server.files[batch["input_file_id"]].splitlines()) for batch in server.batches.values()] == [2, 3]


@pytest.mark.parametrize("ended", ["expired", "cancelled"])
def test_what_an_ended_batch_did_is_kept_and_the_rest_is_asked_again(tmp_path, ended):
    with BatchServer(lambda call: completion() if number(call) % 2 or len(server.batches) > 1 else None) as server:
        server.ends_as = ended
        tally, rows, _ = ask(server, tmp_path, 4)
    assert tally.finished == 4 and len(server.batches) == 2
    assert sum(row["error"] == "api_error" for row in rows) == 2


def test_a_batch_the_server_refuses_stops_in_one_line_and_can_be_tried_again(tmp_path):
    with BatchServer() as server:
        server.ends_as = "failed"
        with pytest.raises(InputError, match="Enqueued token limit reached"):
            ask(server, tmp_path, 2)
        server.ends_as = "completed"
        assert ask(server, tmp_path, 2)[0].finished == 2
    assert len(server.batches) == 2


def test_a_wrong_key_stops_before_anything_is_submitted(tmp_path):
    class Locked(BatchServer):
        async def _upload(self, request):
            return web.json_response(
                {"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}}, status=401
            )

    with Locked() as server, pytest.raises(InputError, match="key is refused") as caught:
        ask(server, tmp_path, 2)
    assert KEY not in str(caught.value)
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_max_cost_limits_what_is_submitted(tmp_path):
    with BatchServer() as server:
        # A request reserves (30 // 3 … + 50 tokens in, 400 out) at half price: about $0.0017.
        tally, _, _ = ask(server, tmp_path, 20, prices=PRICES, max_cost=0.01)
        assert 3 <= tally.finished <= 6 and tally.dollars < 0.01 and len(server.calls) == tally.finished
        tally, _, _ = ask(server, tmp_path, 20, prices=PRICES, max_cost=1.0)
    assert tally.finished == 20 and len(server.calls) == 20


def test_a_spoilt_ticket_is_named(tmp_path):
    (tmp_path / "batches" / "j").mkdir(parents=True)
    (tmp_path / "batches" / "j" / "x.json").write_text("{}")
    (tmp_path / "batches" / "j" / "x.jsonl").write_text("")
    with BatchServer() as server, pytest.raises(InputError, match=r"x\.json: no ticket"):
        ask(server, tmp_path, 1)
