"use strict";
// One state, one function that asks (`ask`), one that draws (`draw`). A report carries its answers inside (`report`) and
// asks nobody. Whatever comes from file names and queries is set as text, never as HTML.

const $ = (id) => document.getElementById(id);
const inside = $("report");
const report = inside && JSON.parse(inside.textContent);
const STEP = 48; // pictures asked for at a time
const PAUSE = 10; // milliseconds without a key before the query is sent

const state = {
  text: "", // as typed
  tree: null, // as corrected by hand; then the text is not read
  examples: [], // pictures to be like, or not: {id or key, name, negated}
  limit: STEP,
  answer: null,
  chosen: new Map(), // id → result
  open: -1, // which of the results the dialog shows
};
let shown = []; // the results on the page, in its order
let cards = new Map(); // of the results on the page, to be drawn again without loading their pictures anew
let waiting = null; // the request under way
let timer = 0;

// ---------------------------------------------------------------- small tools

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-")) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

function pictureAddress(result, side) {
  if (report) return report.pictures[result.id] || "";
  const name = result.key ? `key=${encodeURIComponent(result.key)}` : `id=${encodeURIComponent(result.id)}`;
  return `picture?${name}&side=${side}`;
}

function say(text, doubtful = false) {
  $("note").hidden = !text;
  $("note").textContent = text || "";
  $("note").setAttribute("role", doubtful ? "status" : "alert");
}

// ---------------------------------------------------------------- asking

function soon() {
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
}

async function ask() {
  clearTimeout(timer);
  if (report) return void draw(fromReport());
  if (waiting) waiting.abort();
  waiting = new AbortController();
  const asked = {
    text: state.text,
    tree: state.tree,
    examples: state.examples.map(({ id, key, negated }) => ({ id, key, negated })),
    mode: $("mode").value,
    min_truth: leastTruth(),
    compare: $("compare").checked,
    limit: state.limit,
  };
  try {
    const reply = await fetch("search", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
      signal: waiting.signal,
    });
    const answer = await reply.json();
    if (answer.refused) return void say(answer.refused.split("\n")[0]); // half a query, mostly: what was found stays
    draw(answer);
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer. Is `lcse serve` still running?");
  }
}

/** The answer of the report to the query chosen, with the strictness applied here. */
function fromReport() {
  const answer = report.answers.find((one) => one.query === state.text) || report.answers[0];
  const least = leastTruth();
  const kept = (results) => results.filter((result) => result.truth >= least);
  const results = least ? kept(answer.results).map((result) => ({ ...result, satisfies: true })) : answer.results;
  const count = results.length;
  const held = count === 1 ? "1 picture satisfies this." : `${count || "No"} pictures satisfy this that strictly.`;
  return { ...answer, results, plain: $("compare").checked ? answer.plain : null, summary: least ? held : answer.summary };
}

async function watch() {
  const now = await (await fetch("state")).json();
  const held = now.ready && `${now.pictures.toLocaleString("en")} ${now.pictures === 1 ? "picture" : "pictures"}`;
  const doing = now.ready && now.busy && now.total ? `indexing ${now.done} of ${now.total}` : now.message;
  $("where").textContent = [now.title, held, doing].filter(Boolean).join(" · ");
  $("progress").hidden = now.ready || !now.busy;
  if (now.total) Object.assign($("bar"), { max: now.total, value: now.done });
  $("progress-text").textContent = `Indexing: ${now.done} of ${now.total || "…"} pictures`;
  if (!now.ready && now.message) say(now.message);
  if (now.ready && watch.seen !== now.version) {
    watch.seen = now.version;
    state.tries = now.examples;
    ask();
  }
  if (now.busy || !now.ready) setTimeout(watch, now.busy ? 400 : 1500);
  return now;
}

// ---------------------------------------------------------------- drawing

function draw(answer) {
  state.answer = answer;
  $("tools").hidden = false;
  drawReading(answer);
  say([...(answer.notes || []), answer.error].filter(Boolean).join(" · "), true);
  $("summary").textContent = answer.summary || "";
  const focused = document.activeElement?.closest?.(".card");
  const before = cards;
  cards = new Map();
  const parts = answer.plain ? [drawComparison(answer, before)] : drawAnswer(answer, before);
  if (answer.results.length >= state.limit && !report && !answer.plain) {
    parts.push(element("button", { className: "more", type: "button", textContent: "Show more", onclick: showMore }));
  }
  $("results").replaceChildren(...parts);
  $("results").dataset.query = answer.query;
  if (focused) cards.get(focused.dataset.key)?.firstChild.focus(); // what moves in the page loses it
  drawChosen();
}

function showMore() {
  state.limit += STEP;
  ask();
}

function drawAnswer({ results, satisfying }, before) {
  const held = results.filter((result) => result.satisfies !== false);
  const others = results.filter((result) => result.satisfies === false);
  shown = [...held, ...others];
  const made = shown.map((result, place) => card(result, place, "one", before));
  const said = satisfying > held.length ? "These do not satisfy it; more that do come further on." : "The answer ends here; these are the nearest.";
  if (!held.length || !others.length) return [element("ul", { className: "grid" }, ...made)];
  return [
    element("ul", { className: "grid" }, ...made.slice(0, held.length)),
    element("h2", { className: "ends", textContent: said }),
    element("ul", { className: "grid nearest" }, ...made.slice(held.length)),
  ];
}

function drawComparison(answer, before) {
  const logic = answer.results.slice(0, answer.plain.length);
  shown = [...logic, ...answer.plain];
  const column = (title, results, start) => element("div", {}, element("h2", { textContent: title }),
    element("ul", { className: "grid" }, ...results.map((result, place) => card(result, start + place, title, before))));
  return element("div", { className: "columns" },
    column("With logic", logic, 0), column("Plain similarity", answer.plain, logic.length));
}

/** The card of a result: the one that is there already, with a new line, or a new one. */
function card(result, place, column, before) {
  const key = `${column} ${result.id}`;
  const made = before.get(key) || newCard(result, key);
  made.dataset.place = place;
  if (made.firstChild.firstChild.alt !== undefined) made.firstChild.firstChild.alt = result.alt;
  made.querySelector(".line").replaceChildren(...line(result));
  made.querySelector(".pick").checked = state.chosen.has(result.id);
  cards.set(key, made);
  return made;
}

function newCard(result, key) {
  const address = pictureAddress(result, 384);
  const missing = element("span", { className: "missing", textContent: `${result.name} cannot be shown` });
  const picture = element("img", { src: address, alt: result.alt, loading: "lazy", decoding: "async" });
  picture.onerror = () => picture.replaceWith(missing);
  const pick = element("input", { type: "checkbox", className: "pick", "aria-label": `Choose ${result.name}` });
  const made = element("li", { className: "card" },
    element("button", { type: "button", className: "open" }, address ? picture : missing), pick,
    element("p", { className: "line" }),
    element("p", { className: "name", textContent: result.name, title: result.path || result.name }));
  Object.assign(made.dataset, { id: result.id, key });
  return made;
}

/** "dog: clear · no person: not seen", with what speaks against the picture marked. */
function line(result) {
  if (!result.evidence.length) return [result.line];
  const last = result.evidence.length - 1;
  return result.evidence.flatMap((item, place) => {
    const against = item.negated ? "fails seen" : "fails"; // what is there and should not be stands out
    const text = element("span", { className: item.fits || result.satisfies ? "" : against, textContent: item.text });
    return [element("span", { className: "part" }, text, place < last ? " ·" : ""), " "];
  });
}

function drawReading(answer) {
  const parts = answer.tree ? chipsOf(answer.tree, [], answer.tree) : [];
  for (const example of state.examples) parts.push(exampleChip(example));
  if (state.tree) {
    const again = () => { state.tree = null; ask(); };
    parts.push(element("button", { className: "link", type: "button", textContent: "read the text again", onclick: again }));
  }
  if (!parts.length && state.tries?.length) {
    parts.push(element("span", { className: "word", textContent: "Try" }));
    for (const text of state.tries) {
      const use = () => { $("query").value = text; typed(); };
      parts.push(element("button", { className: "link", type: "button", textContent: text, onclick: use }));
    }
  }
  $("reading").replaceChildren(...parts);
}

/** The tree as chips with words between them; brackets around groups within groups. */
function chipsOf(node, path, root) {
  if (node.op === "concept" || node.op === "not") return [chip(node, path, root)];
  const parts = [];
  node.children.forEach((child, place) => {
    if (place) parts.push(element("span", { className: "word", textContent: node.op === "plain" ? "" : node.op }));
    const inner = chipsOf(child, [...path, place], root);
    const bracketed = child.children && child.op !== "plain";
    if (bracketed) parts.push(element("span", { className: "word", textContent: "(" }));
    parts.push(...inner);
    if (bracketed) parts.push(element("span", { className: "word", textContent: ")" }));
  });
  return parts;
}

function chip(node, path, root) {
  const negated = node.op === "not";
  const text = negated ? `no ${node.child.text}` : node.text;
  const className = negated ? "chip excluded" : "chip";
  if (report) return element("span", { className: `${className} fixed`, textContent: text });
  const flipped = negated ? node.child : { op: "not", child: node };
  const change = (tree) => { state.tree = tree; state.limit = STEP; if (!tree) clearText(); ask(); };
  const hint = negated ? `Excluded. Click to want ${node.child.text}` : `Wanted. Click to exclude ${text}`;
  return element("span", { className },
    element("button", { type: "button", textContent: text, title: hint, "aria-label": `${text}. ${hint}`, onclick: () => change(replaced(root, path, flipped)) }),
    element("button", { type: "button", textContent: "×", "aria-label": `Leave out ${text}`, onclick: () => change(replaced(root, path, null)) }));
}

/** A copy of the tree with another node, or none, at a path; groups of one become what is in them. */
function replaced(node, path, put) {
  if (!path.length) return put;
  const children = node.children.map((child, place) => (place === path[0] ? replaced(child, path.slice(1), put) : child)).filter(Boolean);
  return children.length > 1 ? { op: node.op, children } : children[0] || null;
}

function exampleChip(example) {
  const text = `${example.negated ? "not like" : "like"} ${example.name}`;
  const flip = () => { example.negated = !example.negated; ask(); };
  const drop = () => { state.examples = state.examples.filter((other) => other !== example); ask(); };
  return element("span", { className: example.negated ? "chip excluded" : "chip" },
    element("img", { src: pictureAddress(example, 96), alt: "" }),
    element("button", { type: "button", textContent: text, title: "Click to turn it round", onclick: flip }),
    element("button", { type: "button", textContent: "×", "aria-label": `Leave out ${text}`, onclick: drop }));
}

// ---------------------------------------------------------------- one picture

function show(place) {
  const result = shown[place];
  if (!result) return;
  state.open = place;
  $("dialog-picture").src = pictureAddress(result, 1280);
  $("dialog-picture").alt = result.alt;
  $("dialog-name").textContent = result.name;
  const where = $("dialog-path");
  where.replaceChildren();
  if (result.href) where.append(element("a", { href: result.href, textContent: result.path }));
  else if (result.path) where.append(result.path, " ", element("button", { type: "button", textContent: "Copy", onclick: () => copy(result.path) }));
  $("dialog-verdict").textContent = !result.evidence.length ? result.line || "" : result.satisfies ? "Satisfies the query." : "Does not satisfy the query; among the nearest.";
  $("bars").replaceChildren(...result.evidence.map(bar));
  $("fold").hidden = !result.arithmetic?.length;
  $("arithmetic").textContent = (result.arithmetic || []).join("\n");
  $("more-like").hidden = $("not-like").hidden = Boolean(report);
  $("choose").textContent = state.chosen.has(result.id) ? "Chosen ✓" : "Choose";
  $("previous").disabled = place === 0;
  $("next").disabled = place === shown.length - 1;
  if (!$("dialog").open) $("dialog").showModal();
}

function bar(item) {
  const fill = element("i");
  const share = item.presence ?? { clear: 0.9, likely: 0.65, unclear: 0.3, "not seen": 0 }[item.word]; // not fitted: words
  fill.style.width = `${Math.round(100 * share)}%`;
  const said = item.presence === null ? item.word : `${item.word}, ${Math.round(100 * item.presence)} %`;
  return element("div", {}, element("dt", {}, item.label, element("span", { textContent: said })),
    element("dd", { className: item.negated ? "excluded" : "" }, fill));
}

function like(negated) {
  const { id, name } = shown[state.open];
  state.examples = [...state.examples.filter((other) => other.id !== id), { id, name, negated }];
  $("dialog").close();
  ask();
  scrollTo({ top: 0 });
}

async function searchBy(file) {
  if (!file || report) return;
  const reply = await fetch("drop", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  const kept = await reply.json();
  if (kept.refused) return void say(kept.refused);
  state.examples.push({ key: kept.key, name: file.name || "the picture", negated: false });
  ask();
}

// ---------------------------------------------------------------- choosing, copying, exporting

function choose(result, on) {
  if (on) state.chosen.set(result.id, result);
  else state.chosen.delete(result.id);
  for (const made of cards.values()) {
    if (made.dataset.id === String(result.id)) made.querySelector(".pick").checked = on;
  }
  drawChosen();
}

/** Where the result of a card, or of something in it, stands. */
function placeOf(target) {
  return Number(target.closest(".card").dataset.place);
}

function drawChosen() {
  $("chosen").textContent = state.chosen.size ? `${state.chosen.size} chosen` : "";
  $("unchoose").hidden = !state.chosen.size;
}

/** What is chosen; where nothing is, what satisfies the query; where nothing does, all that is shown. */
function taken() {
  if (state.chosen.size) return [...state.chosen.values()];
  const results = state.answer?.results || [];
  const held = results.filter((result) => result.satisfies);
  return held.length ? held : results;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    $("chosen").textContent = "copied";
  } catch {
    say("This browser does not let the page copy.");
  }
}

function exportJson() {
  const { query, tree, mode, sure, notes, summary } = state.answer || {};
  const results = taken().map(({ id, path, score, truth, satisfies, evidence }) => ({ id, path, score, truth, satisfies, evidence }));
  const text = JSON.stringify({ query, tree, mode, sure, notes, summary, results }, null, 2);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: "lcse-results.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// ---------------------------------------------------------------- what a person does

function typed() {
  Object.assign(state, { text: $("query").value, tree: null, limit: STEP });
  soon();
}

function clearText() {
  $("query").value = state.text = "";
}

/** From one half, which is as likely as not, to nearly one; even steps of evidence. */
function leastTruth() {
  const steps = Number($("strict").value);
  return steps ? 1 / (1 + Math.exp(-0.07 * steps)) : 0;
}

function strictness() {
  const least = leastTruth();
  $("strict-text").textContent = least ? `truth ≥ ${least.toFixed(least > 0.99 ? 3 : 2)}` : "off";
  $("strict").setAttribute("aria-valuetext", $("strict-text").textContent);
  soon();
}

/** Arrows go from picture to picture: up and down to the nearest of the next row. */
function move(key) {
  const cards = [...document.querySelectorAll(".open")];
  const here = cards.indexOf(document.activeElement);
  if (here < 0) return false;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    cards[here + (key === "ArrowRight" ? 1 : -1)]?.focus();
    return true;
  }
  const from = cards[here].getBoundingClientRect();
  const down = key === "ArrowDown";
  const beyond = cards.filter((other) => (down ? other.getBoundingClientRect().top > from.top + 5 : other.getBoundingClientRect().top < from.top - 5));
  const far = (other) => Math.abs(other.getBoundingClientRect().top - from.top) * 10 + Math.abs(other.getBoundingClientRect().left - from.left);
  beyond.sort((one, other) => far(one) - far(other));
  (beyond[0] || (down ? null : $("query")))?.focus();
  return true;
}

function pressed(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ($("dialog").open) {
    if (key === "ArrowLeft") show(state.open - 1);
    if (key === "ArrowRight") show(state.open + 1);
    return;
  }
  if (target === $("query")) {
    if (key === "ArrowDown") { event.preventDefault(); document.querySelector(".open")?.focus(); }
    return;
  }
  if (target.matches("input, select, textarea")) return;
  if (key === "/") { event.preventDefault(); $("query").focus(); $("query").select(); }
  if (key.startsWith("Arrow") && move(key)) event.preventDefault();
  const pick = key === "x" && target.closest(".card")?.querySelector(".pick");
  if (pick) pick.click();
}

$("search").onsubmit = (event) => { event.preventDefault(); typed(); ask(); };
$("query").oninput = typed;
$("strict").oninput = strictness;
$("compare").onchange = ask;
$("mode").onchange = ask;
$("more-like").onclick = () => like(false);
$("not-like").onclick = () => like(true);
$("choose").onclick = () => { const result = shown[state.open]; choose(result, !state.chosen.has(result.id)); show(state.open); };
$("previous").onclick = () => show(state.open - 1);
$("next").onclick = () => show(state.open + 1);
$("copy").onclick = () => copy(taken().map((result) => result.path || result.name).join("\n"));
$("export").onclick = exportJson;
$("unchoose").onclick = () => { state.chosen.clear(); draw(state.answer); };
$("by-picture").onclick = () => $("file").click();
$("file").onchange = () => searchBy($("file").files[0]);
$("results").onclick = ({ target }) => { if (target.closest(".open")) show(placeOf(target)); };
$("results").onchange = ({ target }) => choose(shown[placeOf(target)], target.checked);
$("dialog").onclick = (event) => { if (event.target === $("dialog")) $("dialog").close(); };
$("dialog").onclose = () => document.querySelectorAll(".open")[state.open]?.focus();
document.addEventListener("keydown", pressed);
document.addEventListener("dragover", (event) => { event.preventDefault(); $("drop").hidden = Boolean(report); });
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").hidden = true; });
document.addEventListener("drop", (event) => { event.preventDefault(); $("drop").hidden = true; searchBy(event.dataTransfer.files[0]); });
document.addEventListener("paste", (event) => searchBy([...event.clipboardData.files].find((file) => file.type.startsWith("image/"))));

// ---------------------------------------------------------------- beginning

function beginReport() {
  $("where").textContent = report.title;
  $("by-picture").hidden = $("mode-label").hidden = true;
  const box = element("select", { id: "query", "aria-label": "Query", onchange: typed },
    ...report.answers.map(({ query }) => element("option", { textContent: query, value: query })));
  $("query").replaceWith(box);
  state.text = box.value;
  draw(fromReport());
}

async function begin() {
  $("query").focus();
  state.text = $("query").value;
  try {
    const { modes, mode } = await watch();
    $("mode").append(...modes.map((name) => element("option", { value: name, textContent: name, selected: name === mode })));
  } catch {
    say("The server does not answer. Is `lcse serve` still running?");
  }
}

if (report) beginReport();
else begin();
