"use strict";
// The page asks for all its data at once and draws them. Texts go in as text, never as markup.

const BASE = new URL("../", document.baseURI); // of Airflow: this page lies at BASE/lowtide/
const REFRESH_SECONDS = 30;
let drawn = null;
/** The chosen store: as the address of Airflow's page says, null where it does not; the server then chooses. */
let store = new URLSearchParams(window.parent.location.search).get("store");

const $ = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const number = (value) => value.toLocaleString("en");
const moment = (iso, length = 16) => (iso ? `${iso.slice(0, length).replace("T", " ")} UTC` : "");

/**
 * Give *there* these children, and leave every node that is still the same where it is: what a reader has marked, or stands on
 * with the keyboard, stays while the page is drawn anew.
 */
function put(there, ...children) {
  const made = there.cloneNode(false);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  merge(there, made);
}

/** Make *there* equal to *made*, node by node. */
function merge(there, made) {
  if (there.isEqualNode(made)) return;
  if (there.nodeName !== made.nodeName) return there.replaceWith(made);
  if (there.nodeType === Node.TEXT_NODE) {
    there.data = made.data;
    return;
  }
  for (const { name } of [...there.attributes]) if (!made.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of made.attributes) there.setAttribute(name, value);
  const [old, wanted] = [[...there.childNodes], [...made.childNodes]];
  wanted.forEach((child, at) => (at < old.length ? merge(old[at], child) : there.append(child)));
  old.slice(wanted.length).forEach((child) => child.remove());
}

/** A table's head and rows; a cell is text, an element, or [text, class]. */
function fill(table, columns, rows) {
  const cell = (tag, value, more = {}) => (Array.isArray(value) ? el(tag, { class: value[1], ...more }, value[0]) : el(tag, more, value));
  put(table,
    el("thead", {}, el("tr", {}, ...columns.map((name) => cell("th", name, { scope: "col" })))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((value) => cell("td", value))))),
  );
}

/**
 * A link into Airflow's own page. Airflow shows this page in a frame whose links may not leave it, so the click is handed
 * to a link of the page around it.
 */
function airflowLink(path, text) {
  const link = el("a", { href: new URL(path, BASE).href }, text);
  link.addEventListener("click", (event) => {
    if (window.parent === window) return;
    event.preventDefault();
    const outside = window.parent.document.createElement("a");
    outside.href = link.href;
    window.parent.document.body.append(outside);
    outside.click();
    outside.remove();
  });
  return link;
}

// -- light and dark, as Airflow has it, or as the browser has it where this page stands alone

function followTheme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const outer = window.parent === window ? null : window.parent.document.documentElement;
  const apply = () => {
    const known = outer && (outer.classList.contains("dark") || outer.classList.contains("light"));
    document.documentElement.classList.toggle("dark", known ? outer.classList.contains("dark") : system.matches);
    if (drawn) drawCharts(drawn);
  };
  if (outer) new MutationObserver(apply).observe(outer, { attributes: true, attributeFilter: ["class"] });
  system.addEventListener("change", apply);
  apply();
}

// -- the parts

function showHealth(data) {
  const { level, sentence } = data.health;
  const signs = { fine: "✓ ", attention: "! ", alarm: "✗ ", unknown: "? " };
  $("health").className = level;
  put($("health"), el("p", { class: "sentence" }, signs[level] + sentence),
    data.known && data.as_of !== data.at ? el("p", { class: "soft small" }, `What follows was read before, at ${moment(data.as_of)}.`) : null);
  $("asof").textContent = `read ${moment(data.at)}`;
}

function showNumbers(data) {
  const regions = data.tables.reduce((sum, table) => sum + table.regions, 0);
  const never = data.tables.reduce((sum, table) => sum + table.never_cleaned, 0);
  const acted = data.runs.filter((run) => run.execute);
  const total = (name) => number(acted.reduce((sum, run) => sum + run.counts[name], 0));
  const card = (mark, text) => (mark ? [mark.short, text, mark.date] : ["none", text]);
  const shown = [
    card(data.low_watermark, "low watermark"),
    card(data.bound, "prune bound"),
    [number(regions), `region${regions === 1 ? "" : "s"} of ${data.tables.length} table${data.tables.length === 1 ? "" : "s"}${never ? `, ${number(never)} never cleaned` : ""}`],
    [total("healed"), `cells healed in ${acted.length} run${acted.length === 1 ? "" : "s"}`],
    [total("deleted"), "cells deleted"],
    [total("pruned"), "commit table rows pruned"],
  ];
  // Since when the bound stands there is told below, by the chart and its table.
  put($("numbers"), ...shown.map(([value, text, date]) =>
    el("li", {}, el("b", {}, value), date ? el("span", { class: "date" }, date) : null, el("span", {}, text))));
}

function showFindings(data) {
  $("findings").hidden = data.findings.length === 0;
  put($("findings"),
    el("h2", {}, "What does not move, and what to do"),
    el("ul", {}, ...data.findings.map(finding)),
  );
}

/**
 * What is found once, or of several things alike; a remedy that is the same for all stands there once, with all its commands: one
 * that several have comes after all that it must follow.
 */
function finding(found) {
  const [first] = found;
  const more = (one) => [one.since ? `Since ${moment(one.since)}.` : "", one.setting ? `Setting ${one.setting}.` : ""].filter(Boolean).join(" ");
  const alike = found.every((one) => one.what === first.what);
  const remedies = new Map();
  for (const one of found) remedies.set(one.remedy, [...(remedies.get(one.remedy) ?? []), ...one.commands]);
  const said = found.length === 1
    ? [el("p", {}, el("span", { class: "tag" }, first.severity), el("strong", {}, first.what), `: ${first.why}.`), el("p", { class: "small soft" }, more(first))]
    : [el("p", {}, el("span", { class: "tag" }, first.severity), el("strong", {}, alike ? first.what : `${found.length} of a kind`), ":"),
      el("ul", { class: "alike" }, ...found.map((one) => el("li", {}, `${alike ? "" : `${one.what}: `}${one.why}.`, el("span", { class: "small soft" }, ` ${more(one)}`))))];
  return el("li", { class: first.severity, "data-cause": first.cause }, ...said,
    ...[...remedies].flatMap(([remedy, commands]) => [
      el("p", {}, remedy + (commands.length ? ":" : ".")),
      commands.length ? el("pre", { tabindex: "0" }, el("code", {}, [...new Set(commands.reverse())].reverse().join("\n"))) : null,
    ]));
}

function showTables(data) {
  fill($("tables"), ["table", "mode", ["regions", "right"], ["never cleaned", "right"], "clean up to", "behind the low watermark", "collected"],
    data.tables.map((table) => [
      table.table, table.mode, [number(table.regions), "right"], [number(table.never_cleaned), table.never_cleaned ? "right warn" : "right"],
      table.lowest.text, table.behind, [moment(table.collected), "nowrap"],
    ]));
  fill($("bounds"), ["collected", "prune bound"],
    [...data.bounds].reverse().map((bound) => [[moment(bound.at), "nowrap"], bound.text]));
}

function showCommits(data) {
  const known = data.commits.length > 0;
  $("commits-none").hidden = known;
  $("commits-drawn").hidden = !known;
  fill($("counts"), ["counted", ["commit entries", "right"], ["invalidation marks", "right"]],
    [...data.commits].reverse().map((count) => [[moment(count.at, 19), "nowrap"], [number(count.entries), "right"], [number(count.marks), "right"]]));
}

function showRuns(data) {
  const counts = ["healed", "deleted", "marked", "pruned"];
  fill($("runs"), ["started", "job", ...counts.map((name) => [name, "right"]), ["seconds", "right"], "result", "log"],
    data.runs.map((run) => [
      [moment(run.started), "nowrap"],
      el("span", {}, run.job + (run.execute ? "" : " (dry run)"), ...(run.by ? [el("br"), el("span", { class: "small soft" }, run.by)] : [])),
      ...counts.map((name) => [number(run.counts[name]), run.execute ? "right" : "right soft"]),
      [run.seconds.toFixed(1), "right"],
      el("span", { class: run.state === "done" ? "good" : "bad" },
        run.state, ...run.problems.flatMap((problem) => [el("br"), el("span", { class: "small" }, problem)]),
        ...(run.more_problems ? [el("br"), `and ${run.more_problems} more`] : [])),
      run.log ? airflowLink(run.log, "log") : "",
    ]));
}

function showSections(data) {
  $("sections").hidden = data.sections.length === 0;
  put($("sections"), ...data.sections.flatMap((section) => {
    const table = el("table");
    const columns = section.columns.map((name, i) => (section.rows.every((row) => typeof row[i] === "number") ? [name, "right"] : name));
    fill(table, columns, section.rows.map((row) => row.map((value) => (typeof value === "number" ? [number(value), "right"] : value))));
    return [el("h2", {}, section.title), el("p", { class: "soft" }, section.text),
      el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": section.title }, table)];
  }));
}

/** All DAGs of Lowtide's, of every store, that the user may see: Airflow gives a hundred at a time. None: it gives none. */
async function dagsOfLowtide() {
  const found = [];
  for (;;) {
    const answer = await fetch(new URL(`api/v2/dags?tags=lowtide&limit=100&offset=${found.length}`, BASE)).catch(() => null);
    if (!answer || !answer.ok) return null;
    const { dags, total_entries: all } = await answer.json();
    found.push(...dags);
    if (dags.length === 0 || found.length >= (all ?? 0)) return found;
  }
}

/** What Airflow itself knows of the DAGs, as far as the user may see them. */
async function showDags(data) {
  const all = await dagsOfLowtide();
  if (all === null) return;
  const dags = all.filter((dag) => storeOf(dag.dag_id, data.stores ?? []) === (data.store ?? ""));
  $("dags").hidden = dags.length === 0;
  fill($("daglist"), ["DAG", "", "schedule", "next run"], dags.map((dag) => [
    airflowLink(`dags/${encodeURIComponent(dag.dag_id)}`, dag.dag_id),
    dag.is_paused ? ["paused", "warn"] : "active",
    dag.timetable_summary || "",
    [moment(dag.next_dagrun_run_after), "nowrap"],
  ]));
}

// -- the charts

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function draw(id, traces, layout, height) {
  const ink = style("--ink");
  const line = style("--line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, fixedrange: true };
  Plotly.react($(id), traces, {
    height,
    margin: { l: 10, r: 10, t: 10, b: 10 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, family: getComputedStyle(document.body).fontFamily, size: 12 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hoverlabel: { bgcolor: style("--card"), bordercolor: line, font: { color: ink } },
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  }, { displayModeBar: false, responsive: true });
}

function drawCharts(data) {
  drawRegions(data);
  drawBounds(data);
  if (data.commits.length) drawCommits(data);
  drawWork(data);
}

function drawRegions(data) {
  // Of many, those furthest behind.
  const charted = data.tables.filter((table) => table.marks !== null);
  $("regions-more").hidden = charted.length === data.tables.length;
  $("regions-more").textContent = `Drawn are the ${number(charted.length)} tables furthest behind, of ${number(data.tables.length)}; the others are in the table below.`;
  const marks = charted.flatMap((table) => table.marks.map((mark) => ({ ...mark, table: table.table })));
  const lines = [["low watermark", data.low_watermark, "--heal", "solid"], ["prune bound", data.bound, "--before", "dash"]]
    .filter(([, mark]) => mark && mark.x);
  // Regions that were never cleaned, or whose records are void, have no time: they stand at the left edge.
  const known = [...marks, ...lines.map(([, mark]) => mark)].map((mark) => mark.x).filter(Boolean);
  const value = (x) => (data.world ? Date.parse(x) : x);
  const low = Math.min(...known.map(value));
  const high = Math.max(...known.map(value));
  const edge = data.world ? low - Math.max((high - low) * 0.06, 60_000) : 0;
  const at = (x) => (data.world ? new Date(x ? value(x) : edge).toISOString() : x);
  const tables = charted.map((table) => table.table);
  const narrow = $("regions-chart").clientWidth < 600;
  const short = (name) => (narrow && name.length > 16 ? `${name.slice(0, 15)}…` : name);
  const group = (name, wanted, colour, symbol) => {
    const shown = marks.filter(wanted);
    return {
      name, type: "scatter", mode: "markers", x: shown.map((mark) => at(mark.x)), y: shown.map((mark) => mark.table),
      text: shown.map((mark) => `${mark.regions} region${mark.regions === 1 ? "" : "s"} at ${mark.text}`),
      hovertemplate: "%{y}: %{text}<extra></extra>",
      cliponaxis: false,
      marker: { symbol, size: 13, color: style(colour), line: { width: 3, color: style(colour) } },
    };
  };
  const bars = lines.map(([name, mark, colour, dash]) => ({
    name: `${name} ${mark.text}`, type: "scatter", mode: "lines",
    x: [at(mark.x), at(mark.x)], y: [tables[0], tables.at(-1)],
    line: { color: style(colour), dash, width: 2 }, hoverinfo: "skip",
  }));
  const shapes = lines.map(([, mark, colour, dash]) => ({
    type: "line", xref: "x", yref: "paper", x0: at(mark.x), x1: at(mark.x), y0: 0, y1: 1, line: { color: style(colour), dash, width: 2 }, layer: "below",
  }));
  draw("regions-chart", [
    ...bars,
    group("clean up to here", (mark) => mark.x !== 0, "--after", "line-ns-open"),
    group("clean up to 0", (mark) => mark.x === 0, "--bad", "x-thin-open"),
  ], {
    shapes,
    xaxis: { type: data.world ? "date" : "linear", tickformat: data.world ? undefined : ",d", ...(data.world ? {} : { rangemode: "tozero" }) },
    yaxis: { type: "category", categoryorder: "array", categoryarray: [...tables].reverse(), tickvals: tables, ticktext: tables.map(short) },
  }, 130 + 26 * Math.max(tables.length, 1));
}

function drawBounds(data) {
  draw("bound-chart", [{
    type: "scatter", mode: "lines+markers", x: data.bounds.map((bound) => bound.at), y: data.bounds.map((bound) => bound.x || (data.world ? null : 0)),
    text: data.bounds.map((bound) => bound.text), hovertemplate: "%{x}: %{text}<extra></extra>", showlegend: false,
    line: { shape: "hv", color: style("--before"), width: 2 }, marker: { size: 7, color: style("--before") },
  }], {
    xaxis: { type: "date" },
    yaxis: { type: data.world ? "date" : "linear", tickformat: data.world ? undefined : ",d", ...(data.world ? {} : { rangemode: "tozero" }) },
  }, 230);
}

function drawCommits(data) {
  const kinds = [["entries", "commit entries", "--heal", "circle", "solid"], ["marks", "invalidation marks", "--before", "square", "dot"]];
  draw("commits-chart", kinds.map(([key, name, colour, symbol, dash]) => ({
    name, type: "scatter", mode: "lines+markers", x: data.commits.map((count) => count.at), y: data.commits.map((count) => count[key]),
    hovertemplate: `%{x}: %{y:,} ${name}<extra></extra>`, cliponaxis: false,
    line: { color: style(colour), width: 2, dash }, marker: { size: 8, symbol, color: style(colour) },
  })), {
    xaxis: { type: "date" },
    yaxis: { tickformat: ",d", rangemode: "tozero" },
  }, 250);
}

function drawWork(data) {
  const runs = data.runs.filter((run) => run.execute).reverse();
  const kinds = [["healed", "--heal", ""], ["deleted", "--delete", "/"], ["marked", "--after", "."], ["pruned", "--prune", "x"]];
  const shown = ticks(runs);
  draw("work-chart", kinds.map(([name, colour, shape]) => ({
    name, type: "bar", x: runs.map((run) => run.started), y: runs.map((run) => run.counts[name]),
    text: runs.map((run) => run.job), textposition: "none", hovertemplate: `%{text}, %{x}: %{y:,} ${name}<extra></extra>`,
    // A pattern each, for eyes that see no colours.
    marker: { color: style(colour), pattern: { shape, fillmode: "overlay", fgcolor: style("--card"), solidity: 0.3, size: 6 } },
  })), {
    barmode: "stack",
    // Few runs are not stretched over the whole width.
    xaxis: { type: "category", range: [-0.5, Math.max(runs.length, 12) - 0.5], tickangle: -35, tickvals: shown, ticktext: shown.map((at) => at.slice(5, 16).replace("T", " ")) },
    yaxis: { tickformat: ",d", rangemode: "tozero" },
  }, 270);
}

/** At most eight of the runs' times, spread over all. */
function ticks(runs) {
  const step = Math.max(1, Math.ceil(runs.length / 8));
  return runs.map((run) => run.started).filter((_, index) => index % step === 0);
}

// -- the whole

async function load() {
  let data;
  try {
    const answer = await fetch(store === null ? "data" : `data?store=${encodeURIComponent(store)}`, { cache: "no-store" });
    if (answer.status === 401 || answer.status === 403) return refuse(answer.status);
    if (answer.status === 404 && store !== null) {
      store = null; // one that is no longer there
      return load();
    }
    if (!answer.ok) throw new Error(`Airflow answered ${answer.status}`);
    data = await answer.json();
  } catch (error) {
    unknown(`Airflow does not answer (${error.message}): how the store is, is not known.`);
    return;
  }
  if (store !== null && data.store !== store) return; // another was chosen meanwhile
  showStores(data);
  if (data.waiting) {
    $("asof").textContent = "the store takes its time to answer";
    setTimeout(load, 2000);
    return;
  }
  show(data);
}

/** Which stores there are to choose from; nothing where there is one. */
function showStores(data) {
  const names = data.stores ?? [];
  $("which").hidden = names.length < 2;
  if (names.join() !== [...$("store").options].map((option) => option.value).join()) {
    $("store").replaceChildren(...names.map((name) => el("option", { value: name }, name || "of LOWTIDE_CONFIG")));
  }
  $("store").value = data.store;
}

/** The name of the store whose DAG it is: what stands before its dot, if that is a store's. */
function storeOf(dag, names) {
  return names.find((name) => name && dag.startsWith(`${name}.`)) ?? "";
}

/** Say why the store's health is not known; what was read before stays, and so does its time. */
function unknown(why) {
  $("health").className = "unknown";
  put($("health"), el("p", { class: "sentence" }, `? ${why}`));
}

function refuse(status) {
  $("content").hidden = true;
  $("health").className = "unknown";
  const why = status === 401 ? "You are not logged in: log in to Airflow and come back." : "You may not see this: ask for the permission to view plugins.";
  $("health").replaceChildren(el("p", { class: "sentence" }, why));
}

function show(data) {
  showHealth(data);
  $("content").hidden = !data.known;
  if (!data.known) return;
  showNumbers(data);
  showFindings(data);
  showTables(data);
  showCommits(data);
  showRuns(data);
  showSections(data);
  for (const [id, empty] of [["regions", !data.tables.length], ["bound", !data.bounds.length], ["work", !data.runs.some((run) => run.execute)], ["last", !data.runs.length]]) $(id).hidden = empty;
  drawn = data;
  drawCharts(data);
  showDags(data);
  document.body.dataset.ready = data.at;
}

window.addEventListener("DOMContentLoaded", () => {
  followTheme();
  $("again").addEventListener("click", load);
  $("store").addEventListener("change", () => {
    store = $("store").value;
    load();
  });
  load();
  setInterval(() => { if (!document.hidden) load(); }, REFRESH_SECONDS * 1000);
});
