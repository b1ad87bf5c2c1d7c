// The item explorer: filters a list, draws only the rows in view, and shows one item. Texts are always set as text;
// the only markup is the formulas, which the page's maker rebuilt from an allowed set of elements.

const content = await unpacked(document.getElementById("content"));
const { judges, texts, items } = content;
const formulas = new Map(Object.entries(content.formulas));
const rowHeight = 58;
const words = {
  perturbed: { detection: "perturbed step", localization: "perturbed chain", coverage: "steps removed" },
  clean: { detection: "clean twin", localization: "clean twin", coverage: "nothing removed" },
  natural: { localization: "natural solution" },
};
const byId = (id) => document.getElementById(id);
const list = byId("list"), rows = byId("rows"), pane = byId("item"), found = byId("found");
const menus = Object.fromEntries(["task", "kind", "judge", "verdict", "edit", "disagreement"].map((id) => [id, byId(id)]));
const search = byId("search");
let shown = [], at = -1;

// The items' JSON, which stands deflated and in base64 in an element; a module may wait for it.
async function unpacked(holder) {
  if (!window.DecompressionStream) document.getElementById("found").value = "this browser is too old to unpack the items";
  const packed = atob(holder.textContent);
  holder.remove();
  const bytes = new Uint8Array(packed.length);
  for (let place = 0; place < packed.length; place++) bytes[place] = packed.charCodeAt(place);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// ---- texts with mathematics ----

const mathPattern = () => new RegExp(content.math, "gs");

function textWithMath(text, tag = "div", inline = false) {
  const made = element(tag, { className: "text" });
  let end = 0, afterBlock = false;
  // A formula on a line of its own needs no empty lines around it.
  const between = (from, to, beforeBlock) => {
    let part = text.slice(from, to);
    if (afterBlock) part = part.replace(/^\s*\n\s*/, "");
    return beforeBlock ? part.replace(/\s*\n\s*$/, "") : part;
  };
  for (const match of text.matchAll(mathPattern())) {
    const markup = formulas.get(match.slice(1).find((group) => group));
    if (markup === undefined) continue;
    const block = !inline && /^(\$\$|\\\[|\\begin)/.test(match[0]);
    const holder = document.createElement("template");
    holder.innerHTML = `<math display="${block ? "block" : "inline"}">${markup}</math>`;
    made.append(between(end, match.index, block), holder.content);
    end = match.index + match[0].length;
    afterBlock = block;
  }
  made.append(between(end, text.length, false));
  return made;
}

// What differs between two plain texts, marked in the first: all between the common beginning and end.
function markedChange(text, original) {
  if (mathPattern().test(text + original)) return textWithMath(text);
  const tokens = (value) => value.match(/\w+|\s+|[^\w\s]/g) ?? [];
  const now = tokens(text), before = tokens(original);
  let start = 0, end = 0;
  while (start < Math.min(now.length, before.length) && now[start] === before[start]) start++;
  while (end < Math.min(now.length, before.length) - start && now.at(-1 - end) === before.at(-1 - end)) end++;
  const part = (from, to) => now.slice(from, to).join("");
  const changed = element("mark", {}, part(start, now.length - end));
  return element("div", { className: "text" }, part(0, start), changed, part(now.length - end));
}

// ---- filters ----

function worth(outcome) {
  return content.right.includes(outcome) ? "right" : content.wrong.includes(outcome) ? "wrong" : "open";
}

function option(value, label = value) {
  return element("option", { value, textContent: label });
}

function fillMenus() {
  const present = (values) => [...new Set(values)].filter((value) => value !== undefined).sort();
  menus.task.append(option("", "all"), ...present(items.map((item) => item.task)).map((value) => option(value)));
  menus.kind.append(option("", "all"), ...present(items.map((item) => item.kind)).map((value) => option(value)));
  const edits = present(items.map((item) => item.edit));
  menus.edit.append(option("", "all"), ...edits.map((value) => option(value, value.replaceAll("_", " "))));
  menus.judge.append(option("", "any"), ...judges.map((judge, number) => option(String(number), judge.id)));
  const outcomes = present(items.flatMap((item) => item.verdicts.filter(Boolean).map((verdict) => verdict[1])));
  const exactly = element("optgroup", { label: "exactly" }, ...outcomes.map((value) => option(value)));
  menus.verdict.append(option("", "any"), option("*right", "right"), option("*wrong", "wrong"), exactly);
  menus.disagreement.append(
    option("", "any"), option("split", "disagree"), option("right", "all right"), option("wrong", "all wrong"));
}

function matches(verdict, wanted) {
  if (!verdict) return false;
  return !wanted || (wanted[0] === "*" ? worth(verdict[1]) === wanted.slice(1) : verdict[1] === wanted);
}

// Judges disagree where one is right and another wrong; without a reference, where their scores lie two apart.
function agreement(item) {
  const asked = item.verdicts.filter(Boolean);
  const worths = new Set(asked.map((verdict) => worth(verdict[1])));
  if (worths.has("right") && worths.has("wrong")) return "split";
  if (worths.size === 1 && !worths.has("open")) return [...worths][0];
  const scores = asked.map((verdict) => verdict[0]).filter((value) => value !== null);
  return item.task === "coverage" && Math.max(...scores) - Math.min(...scores) >= 2 ? "split" : "";
}

const agreements = items.map(agreement);
const references = items.map((item) => [
  item.question, ...item.steps, ...(item.was === undefined ? [] : [item.was]),
  ...item.verdicts.filter(Boolean).map((verdict) => verdict[4]),
]);
let lowered = null;

function textHits(query) {
  lowered ??= texts.map((text) => text.toLowerCase());
  return lowered.map((text) => text.includes(query));
}

function filter() {
  const keep = items[shown[at]];
  const [task, kind, judge, verdict, edit, disagreement] = Object.values(menus).map((menu) => menu.value);
  const query = search.value.trim().toLowerCase();
  const hits = query ? textHits(query) : null;
  shown = [];
  items.forEach((item, number) => {
    if (task && item.task !== task) return;
    if (kind && item.kind !== kind) return;
    if (edit && item.edit !== edit) return;
    if (disagreement && agreements[number] !== disagreement) return;
    const judged = judge ? [item.verdicts[Number(judge)]] : item.verdicts;
    if ((judge || verdict) && !judged.some((each) => matches(each, verdict))) return;
    if (hits && !item.id.toLowerCase().includes(query) && !references[number].some((text) => hits[text])) return;
    shown.push(number);
  });
  found.value = `${shown.length.toLocaleString("en")} of ${items.length.toLocaleString("en")} items`;
  rows.style.height = `${shown.length * rowHeight}px`;
  rows.replaceChildren();
  select(Math.max(0, shown.indexOf(items.indexOf(keep))), false);
}

// ---- the list, of which only the rows in view exist ----

function drawRows() {
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 5);
  const last = Math.min(shown.length, first + Math.ceil(list.clientHeight / rowHeight) + 10);
  rows.replaceChildren(...Array.from({ length: last - first }, (_, offset) => row(first + offset)));
}

function row(place) {
  const item = items[shown[place]];
  const marks = judges.flatMap((judge, number) => {
    const outcome = item.verdicts[number]?.[1];
    return outcome ? [element("span", { className: `mark ${worth(outcome)}`, title: `${judge.id}: ${outcome}` })] : [];
  });
  const what = element("div", { className: "what" }, `${item.task} · ${item.kind}`,
    element("span", { className: "marks" }, ...marks));
  const made = element("div", { className: "row", role: "option", onclick: () => select(place) }, what,
    textWithMath(texts[item.question], "div", true));
  made.style.top = `${place * rowHeight}px`;
  made.setAttribute("aria-selected", place === at);
  return made;
}

function select(place, remember = true) {
  at = shown.length ? Math.min(Math.max(place, 0), shown.length - 1) : -1;
  const top = at * rowHeight;
  if (at >= 0 && top < list.scrollTop) list.scrollTop = top;
  if (at >= 0 && top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
  drawRows();
  pane.scrollTop = 0;
  pane.replaceChildren(...(at < 0 ? [element("p", { className: "hint" }, "No item fits these filters.")] : parts(items[shown[at]])));
  if (remember && at >= 0) history.replaceState(null, "", `#item=${encodeURIComponent(address(items[shown[at]]))}`);
}

const address = (item) => `${item.task}:${item.id}`;

// ---- one item ----

function parts(item) {
  const badges = [item.task, words[item.kind][item.task]{% if others %} ?? item.kind{% endif %}, ...item.facts];
  const keys = element("p", { className: "hint" }, element("kbd", {}, "j"), " ", element("kbd", {}, "k"),
    " next and previous item, ", element("kbd", {}, "/"), " search");
  return [
    element("h3", { textContent: item.id }),
    element("div", { className: "badges" }, ...badges.map((badge) => element("span", { className: "badge" }, badge))),
    element("h4", {}, "Problem"),
    textWithMath(texts[item.question]),
    element("h4", {}, item.task === "detection" ? "Steps up to the one in question" : "Steps"),
    element("ol", { className: "steps" }, ...item.steps.map((text, index) => step(item, texts[text], index))),
    ...(item.task === "localization" ? outside(item) : []),
    element("h4", {}, "Verdicts"),
    element("div", { className: "verdicts" }, ...judges.map((judge, number) => card(item, judge, item.verdicts[number]))),
    keys,
  ];
}

function step(item, text, index) {
  const removed = item.removed?.includes(index) ?? false;
  const target = index === item.target;
  const faulty = target && item.kind !== "clean";
  const tag = removed ? "removed" : !target ? null : item.kind === "perturbed" ? "perturbed" :
    item.kind === "natural" ? "first wrong step, marked by a person" : "the step in question";
  const original = faulty && item.was !== undefined ? texts[item.was] : null;
  const body = element("div", {},
    tag && element("span", { className: "tag" }, tag),
    original === null ? textWithMath(text) : markedChange(text, original),
    original === null ? null : element("div", { className: "was" }, textWithMath(original, "span")));
  const picks = item.task === "localization" ? pickers(item, (value) => value === index) : [];
  return element("li", { className: removed ? "removed" : faulty ? "target" : target ? "shown" : "" },
    element("span", { className: "number" }, String(index)), body, element("span", { className: "picks" }, ...picks));
}

function pickers(item, chosen) {
  return judges.flatMap((judge, number) => {
    const verdict = item.verdicts[number];
    return verdict && chosen(verdict[0]) ? [element("span", { className: "pick" }, dot(judge), judge.id)] : [];
  });
}

function outside(item) {
  const groups = [["Every step follows, say", (value) => value === -1], ["No answer from", (value) => value === null]];
  return groups.flatMap(([label, chosen]) => {
    const picks = pickers(item, chosen);
    return picks.length ? [element("p", { className: "badges hint" }, `${label} `, ...picks)] : [];
  });
}

function dot(judge) {
  const made = element("span", { className: "dot" });
  made.style.background = judge.colour;
  return made;
}

function card(item, judge, verdict) {
  const name = element("span", {}, dot(judge), " ", judge.id);
  const made = element("div", { className: "verdict" });
  made.style.borderTopColor = judge.colour;
  if (!verdict) {
    made.append(element("header", {}, name), element("p", { className: "hint" }, "was not asked"));
    return made;
  }
  const [value, outcome, status, confidence, reasoning] = verdict;
  const sign = { right: "✓", wrong: "✗", open: "–" }[worth(outcome)];
  const meaning = { detection: "P(does not follow)", localization: "P(some step is wrong)", coverage: "P(this score)" }[item.task]{% if others %} ?? "confidence"{% endif %};
  made.append(
    element("header", {}, name, element("span", { className: `outcome ${worth(outcome)}` }, `${sign} ${outcome}`)),
    element("p", { className: "says" }, says(item.task, value, status),
      confidence === null ? null : element("span", { className: "hint" }, ` · ${meaning} = ${confidence}`)),
    texts[reasoning] ? textWithMath(texts[reasoning]) : element("p", { className: "hint" }, "gave no reasoning"));
  return made;
}

function says(task, value, status) {
  if (value === null) return `no answer (${status.replaceAll("_", " ")})`;
  if (task === "detection") return value === 0 ? "does not follow" : "follows";
  if (task === "coverage") return `${value} of 4`;
{% if others %}
  if (task !== "localization") return `answers ${value}`;
{% endif %}
  return value === -1 ? "every step follows" : `step ${value}`;
}

// ---- wiring ----

function fromAddress() {
  const wanted = location.hash.startsWith("#item=") ? decodeURIComponent(location.hash.slice(6)) : null;
  const place = wanted === null ? -1 : shown.findIndex((number) => address(items[number]) === wanted);
  if (place < 0) return;
  select(place, false);
  byId("items").scrollIntoView({ behavior: "instant" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  const inList = event.target === list;
  const by = event.key === "j" || (inList && event.key === "ArrowDown") ? 1 : event.key === "k" || (inList && event.key === "ArrowUp") ? -1 : 0;
  if (!by && event.key !== "/") return;
  event.preventDefault();
  byId("items").scrollIntoView({ behavior: "instant" });
  if (by) select(at + by);
  else search.focus();
});
fillMenus();
for (const menu of Object.values(menus)) menu.addEventListener("change", filter);
search.addEventListener("input", filter);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("reset", () => setTimeout(filter));
list.addEventListener("scroll", drawRows, { passive: true });
window.addEventListener("resize", drawRows);
window.addEventListener("hashchange", fromAddress);
filter();
fromAddress();
