const $ = (query, at = document) => at.querySelector(query);
const $$ = (query, at = document) => [...at.querySelectorAll(query)];
const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};
const json = (id) => JSON.parse(document.getElementById(id).textContent);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const digits = (value, count = 4) => (Number.isFinite(value) ? String(Number(value.toPrecision(count))) : "–");

// Search and filters: claims and experiments that do not fit are hidden, and what stands for them elsewhere fades.
const form = $("#filters");
const items = $$(".item").map((element) => ({ element, text: element.textContent.toLowerCase(),
  twins: $$(`[data-of="${CSS.escape(element.id)}"]`) }));

function filter() {
  const chosen = Object.fromEntries(new FormData(form));
  const words = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  const asked = ["paper", "verdict", "method", "scale"].filter((name) => chosen[name]);
  const count = { claim: 0, experiment: 0 };
  for (const { element, text, twins } of items) {
    const fits = words.every((word) => text.includes(word))
      && asked.every((name) => element.dataset[name].split("|").includes(chosen[name]));
    element.hidden = !fits;
    twins.forEach((twin) => twin.classList.toggle("out", !fits));
    if (fits) count[element.classList.contains("claim") ? "claim" : "experiment"] += 1;
  }
  const active = words.length + asked.length > 0;
  for (const group of $$("details.group").filter((one) => $(".item", one))) {
    group.dataset.was ??= String(group.open);
    const some = $$(".item", group).some((item) => !item.hidden);
    group.hidden = !some;
    group.open = active ? some : group.dataset.was === "true";
    if (!active) delete group.dataset.was;
  }
  for (const button of $$("[data-choose]")) button.setAttribute("aria-pressed", button.dataset.choose === chosen.verdict);
  $("output", form).textContent = active ? `${count.claim} claims, ${count.experiment} experiments` : "";
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
$("details", form).open = !matchMedia("(max-width: 60rem)").matches;
for (const button of $$("[data-choose]")) {
  button.addEventListener("click", () => {
    form.verdict.value = form.verdict.value === button.dataset.choose ? "" : button.dataset.choose;
    filter();
  });
}

// A link opens all that its target lies in; a line of the forest plot is a link.
function show(hash) {
  const target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
  if (!target) return;
  if (target.closest("[hidden]")) { form.reset(); filter(); }
  for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  target.scrollIntoView();
  $("summary", target)?.focus({ preventScroll: true });
}
addEventListener("hashchange", () => show(location.hash));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const line = event.target.closest("[data-opens]");
  if (link && link.hash === location.hash) show(link.hash);
  if (line && !link) { if (location.hash === line.dataset.opens) show(line.dataset.opens); else location.hash = line.dataset.opens; }
  const fold = event.target.closest(".forest .fold");
  if (fold) fold.ariaExpanded = String(fold.closest("tbody").classList.toggle("open"));
  const enlarged = event.target.closest("button.enlarge");
  if (enlarged) {
    const from = $("img", enlarged), to = $("#lightbox img");
    to.src = from.src;
    to.alt = from.alt;
    $("#lightbox").showModal();
  }
});
$("#lightbox img").addEventListener("click", () => $("#lightbox").close());

// Words that appear under the pointer, and at what the keyboard is on.
const tip = $("#tip");
const told = (element) => element?.closest?.("[data-tip]");
function tell(about, x, y) {
  tip.hidden = !about;
  if (!about) return;
  tip.textContent = about.dataset.tip;
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 10) : y + 18}px`;
}
function tellFocus() {
  const about = told(document.activeElement), box = about?.getBoundingClientRect();
  tell(about, box?.left, box?.bottom);
}
document.addEventListener("pointermove", (event) => tell(told(event.target), event.clientX, event.clientY));
for (const kind of ["focusin", "focusout", "scroll"]) document.addEventListener(kind, tellFocus, true);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

// Tables: a click on a heading sorts; long ones have a filter of their own.
const value = (cell) => cell.dataset.value ?? cell.textContent.trim();
function compare(one, other) {
  const [a, b] = [value(one), value(other)], [x, y] = [a, b].map((text) => parseFloat(text.replaceAll(",", "")));
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b);
}
for (const table of $$("table.data")) {
  const body = $("tbody", table);
  $$("th", table).forEach((heading, column) => {
    heading.scope = "col";
    const button = make("button", { type: "button" }, ...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      $$("th", table).forEach((one) => one.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(a.cells[column], b.cells[column]));
      body.append(...rows);
    });
  });
  if (body.rows.length > 8) {
    const search = make("input", { type: "search", placeholder: "Filter rows", ariaLabel: "Filter the rows of this table" });
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/);
      for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    table.parentElement.before(search);
  }
}

// Curves: Vega-Lite draws the lines that are computed here from the numbers of single seeds, or from the means of reference results.
const COSTS = [0, 0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400];
const UNITS = [["days", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const unit = (seconds) => UNITS.find(([, size]) => seconds >= 2 * size) ?? UNITS.at(-1);
const duration = (seconds) => { const [name, size] = unit(seconds); return `${digits(seconds / size, 3)} ${name}`; };

/** Mean and standard error of numbers. */
function located(values) {
  const n = values.length, middle = sum(values) / n;
  const error = n > 1 ? Math.sqrt(sum(values.map((one) => (one - middle) ** 2)) / (n - 1) / n) : 0;
  return { middle, low: middle - error, high: middle + error };
}

/** Where on the axis a seed of a run is after each round: evaluations, or seconds with what evaluations cost. */
const places = (run, seed, { time, cost }) => run.evaluations.map((n, i) => (time ? (run.seconds[seed] ?? run.seconds[0])[i] + cost * n : n));

/** What a seed has at a place: its last value before, or null. */
function at(x, values, place) {
  let found = null;
  for (let i = 0; i < x.length && x[i] <= place; i += 1) if (values[i] !== null) found = values[i];
  return found;
}
const grid = (low, high, count = 60) => Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

/** Lines of one metric on one task: [{method, points: [{x, middle, low, high}], seeds: [[{x, middle}]]}]. */
function curves(data, state) {
  return data.runs.filter((run) => run.task === state.task).map((run) => {
    if (run.means) {
      const x = places(run, 0, state), { [state.metric]: mean = [] } = run.means, error = run.errors[state.metric];
      const points = mean.map((middle, i) => ({ x: x[i], middle, low: middle - error[i], high: middle + error[i] }));
      return { method: run.method, points: points.filter((one) => one.middle !== null), seeds: [] };
    }
    const values = run.values[state.metric] ?? [];
    const x = values.map((_, seed) => places(run, seed, state));
    const seeds = values.map((of, seed) => of.map((middle, i) => ({ x: x[seed][i], middle })).filter((one) => one.middle !== null));
    let steps = x[0] ?? [];
    if (state.time && values.length) {
      const some = seeds.filter((one) => one.length);
      steps = some.length ? grid(Math.max(...some.map((one) => one[0].x)), Math.min(...some.map((one) => one.at(-1).x))) : [];
    }
    const points = steps.map((place, i) => {
      const there = values.map((of, seed) => (state.time ? at(x[seed], of, place) : of[i])).filter((one) => one !== null);
      return there.length ? { x: place, ...located(there) } : null;
    });
    return { method: run.method, points: points.filter(Boolean), seeds };
  });
}

/** Seeds of tasks that all methods in view have: [{method: {x, values}}], values oriented so that greater is better. */
function instances(data, state) {
  const sign = data.metrics[state.metric].better === "lower" ? -1 : 1, methods = [...state.shown], found = [];
  for (const task of Object.keys(data.tasks)) {
    const runs = methods.map((method) => data.runs.find((run) => run.task === task && run.method === method && run.values?.[state.metric]));
    if (runs.some((run) => !run)) continue;
    for (const seed of runs[0].seeds.filter((one) => runs.every((run) => run.seeds.includes(one)))) {
      found.push(Object.fromEntries(runs.map((run) => {
        const place = run.seeds.indexOf(seed);
        return [run.method, { x: places(run, place, state), values: run.values[state.metric][place].map((one) => one === null ? null : sign * one) }];
      })));
    }
  }
  return found;
}

/** Mean ranks of methods, 1 for the best, over the tasks and seeds that all have, along the share of a run. */
function ranks(data, state) {
  const all = instances(data, { ...state, time: false }), methods = [...state.shown];
  const lines = methods.map((method) => ({ method, points: [], seeds: [] }));
  for (let share = 0; share <= 100; share += 5) {
    const found = methods.map(() => []);
    for (const one of all) {
      const now = methods.map((method) => at(one[method].x, one[method].values, (one[method].x.at(-1) * share) / 100));
      if (now.some((value) => value === null)) continue;
      now.forEach((value, i) => found[i].push(1 + sum(now.map((other) => (other > value) + (other === value) / 2)) - 0.5));
    }
    if (found[0].length) lines.forEach((line, i) => line.points.push({ x: share, ...located(found[i]) }));
  }
  return lines;
}

/** Data profiles: the share of tasks and seeds in which a method has come so near to the best that any method found. */
function profile(data, state) {
  const all = instances(data, state);
  return all.length ? [...state.shown].map((method) => {
    const ends = all.map((one) => {
      const every = Object.values(one).flatMap((run) => run.values.filter((value) => value !== null));
      const start = Math.min(...Object.values(one).map((run) => run.values.find((value) => value !== null)));
      const best = Math.max(...every), place = one[method].values.findIndex((value) => value !== null && value >= best - state.near * (best - start));
      return place < 0 ? Infinity : one[method].x[place];
    }).sort((a, b) => a - b);
    const last = Math.max(...all.map((one) => one[method].x.at(-1)));
    const points = [0, ...ends.filter(Number.isFinite), last].map((x) => { const middle = ends.filter((end) => end <= x).length / ends.length; return { x, middle, low: middle, high: middle }; });
    return { method, points, seeds: [] };
  }) : [];
}

const VIEWS = { curves, ranks, profile };
const MEANT = {
  curves: "Lines are means over seeds, bands one standard error.",
  ranks: "Lines are mean ranks over the tasks and seeds that all of these methods have, bands one standard error.",
  profile: "Of the tasks and seeds that all of these methods have, the share in which a method has come so far from the start to the best value that any of them found (data profiles of Moré and Wild, 2009).",
  means: "Lines are means over seeds, bands one standard error; time is the median of a round times the rounds.",
};

function chart(data, state) {
  const spec = json("line-chart"), found = VIEWS[state.view](data, state).filter((line) => state.shown.has(line.method));
  if (!found.some((line) => line.points.length)) return null;
  const last = Math.max(...found.flatMap((line) => line.points.map((one) => one.x)));
  const [name, size] = state.time && state.view !== "ranks" ? unit(last) : ["", 1];
  const fits = (x, y) => (!state.logX || x > 0) && (!state.logY || y > 0);
  const look = ({ method }) => data.methods[method];
  spec.datasets = {
    lines: found.flatMap((line) => line.points.filter((one) => fits(one.x, one.middle)).map((one) => ({
      ...one, ...look(line), x: one.x / size, low: state.logY && one.low <= 0 ? one.middle : one.low,
      at: `${digits(one.x / size, 3)} ${name}`, said: `${digits(one.middle)} (${digits(one.low)} to ${digits(one.high)})` }))),
    seeds: !state.single ? [] : found.flatMap((line) => line.seeds.flatMap((points, seed) => points.filter((one) => fits(one.x, one.middle))
      .map((one) => ({ x: one.x / size, middle: one.middle, colour: look(line).colour, run: `${look(line).label}, seed ${seed}` })))),
  };
  const along = { curves: state.time ? `time (${name})` : "evaluations", ranks: "% of a run", profile: state.time ? `time (${name})` : "evaluations" };
  const metric = data.metrics[state.metric].label;
  const up = { curves: metric, ranks: `mean rank by ${metric}, 1 is best`, profile: "share of tasks and seeds" };
  const scale = (logarithmic) => (logarithmic ? { type: "log" } : { zero: false }), shares = state.view === "profile" && !state.logY;
  const single = spec.datasets.seeds.length > 0, bands = state.bands && state.view !== "profile";
  spec.layer = spec.layer.filter(({ mark, data: { name } }) => (single || name !== "seeds") && (bands || mark.type !== "area"));
  for (const layer of spec.layer) {
    if (layer.mark.type === "line" && state.view === "profile") layer.mark.interpolate = "step-after";
    Object.assign(layer.encoding.x, { title: along[state.view], scale: { ...scale(state.logX), nice: false },
      ...(along[state.view] === "evaluations" ? { axis: { tickMinStep: 1 } } : {}) });
    Object.assign(layer.encoding.y, { title: up[state.view], scale: { ...scale(state.logY), reverse: state.view === "ranks", ...(shares ? { domain: [0, 1] } : {}) } });
  }
  spec.description = `${up[state.view]} against ${along[state.view]} of ${found.map((line) => look(line).label).join(", ")}`;
  return spec;
}

/** Vega-Embed, which takes a moment to read: it is asked for where the first chart is. */
let library;
const charts = () => (library ??= import(URL.createObjectURL(new Blob([$("#library").textContent], { type: "text/javascript" }))));

function explore(details) {
  const data = json(details.dataset.curves), area = $(".chart", details), plot = make("div", { className: "plot-area" });
  const tasks = Object.keys(data.tasks), metrics = Object.keys(data.metrics), single = data.runs.some((run) => run.values);
  const state = { view: "curves", task: tasks[0], metric: metrics[0], time: false, cost: 0, near: 0.1, logX: false, logY: false,
    single: false, bands: Object.keys(data.methods).length <= 4, shown: new Set(Object.keys(data.methods)) };
  const draw = async () => {
    near.hidden = state.view !== "profile";
    task.hidden = state.view !== "curves" || tasks.length < 2;
    cost.hidden = !state.time || state.view === "ranks";
    time.hidden = state.view === "ranks";
    ofSeeds.hidden = !single || state.view !== "curves";
    bands.hidden = state.view === "profile";
    const { summary } = data.metrics[state.metric];
    about.textContent = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}. ${single ? MEANT[state.view] : MEANT.means}`;
    const words = `${details.dataset.curves.replace("curves-", "")}-${state.metric}`;
    await charts();
    plot.view?.finalize();
    plot.view = null;
    const spec = chart(data, state);
    if (!spec) { plot.textContent = "There is nothing to draw: no task and seed has all of the chosen methods. Choose fewer."; return; }
    const drawn = await vegaEmbed(plot, spec, { renderer: "svg", downloadFileName: words, actions: { export: true, source: true, compiled: false, editor: false } });
    plot.view = drawn.view;
    $("summary", plot).ariaLabel = "Save this chart";
  };
  const select = (words, name, options) => {
    const field = make("select", {}, ...options.map(([key, text]) => make("option", { value: key }, text)));
    field.addEventListener("change", () => { state[name] = field.value; draw(); });
    return make("label", {}, `${words} `, field);
  };
  const check = (words, name) => {
    const field = make("input", { type: "checkbox", checked: state[name] });
    field.addEventListener("change", () => { state[name] = field.checked; draw(); });
    return make("label", {}, field, ` ${words}`);
  };
  const slider = (words, name, values, said) => {
    const field = make("input", { type: "range", min: 0, max: values.length - 1, value: values.indexOf(state[name]) });
    const text = make("output", {}, said(state[name]));
    field.addEventListener("input", () => { state[name] = values[field.value]; text.textContent = said(state[name]); draw(); });
    return make("label", {}, `${words} `, field, " ", text);
  };
  const task = select("task", "task", Object.entries(data.tasks));
  const near = slider("as near to the best as", "near", [0.5, 0.3, 0.1, 0.03, 0.01], (share) => `${100 * share}% of the way`);
  const cost = slider("an evaluation costs", "cost", COSTS, (seconds) => (seconds ? duration(seconds) : "what it took"));
  const time = check("against time", "time"), ofSeeds = check("single seeds", "single"), bands = check("bands", "bands");
  const better = metrics.filter((name) => data.metrics[name].better);
  const view = select("show", "view", [["curves", "curves"], ...(single && better.length ? [["ranks", "ranks over all tasks"], ["profile", "data profiles over all tasks"]] : [])]);
  const metric = select("of", "metric", metrics.map((name) => [name, data.metrics[name].label]));
  view.addEventListener("change", () => {
    for (const option of $$("option", metric)) option.disabled = state.view !== "curves" && !data.metrics[option.value].better;
    if (state.view !== "curves" && !data.metrics[state.metric].better) { state.metric = better[0]; $("select", metric).value = better[0]; draw(); }
  });
  const about = make("p", { className: "soft" });
  const legend = Object.entries(data.methods).map(([name, look]) => {
    const field = make("input", { type: "checkbox", checked: true });
    field.addEventListener("change", () => { state.shown[field.checked ? "add" : "delete"](name); draw(); });
    const swatch = make("span", { className: look.dashed ? "swatch dashed" : "swatch" });
    swatch.style.borderTopColor = look.colour;
    return make("label", {}, field, swatch, look.label);
  });
  area.append(make("div", { className: "controls" }, view, metric, task, near, time, cost, check("log horizontal axis", "logX"),
    check("log values", "logY"), bands, ofSeeds), make("div", { className: "controls" }, ...legend), plot, about);
  draw();
}
for (const details of $$(".explorer")) {
  details.addEventListener("toggle", () => { if (details.open && !details.dataset.done) { details.dataset.done = "1"; explore(details); } });
}

// Seed roulette: as few of our seeds as the paper had, and whether all estimates lie on the claimed side.
const statistic = {
  mean: (values) => sum(values) / values.length,
  median: (values) => { const s = [...values].sort((a, b) => a - b), m = s.length / 2; return s.length % 2 ? s[Math.floor(m)] : (s[m - 1] + s[m]) / 2; },
};

/** The estimate of a part from the seeds drawn. */
function estimate(part, drawn) {
  const pick = (rows) => rows.flatMap((of) => drawn.map((seed) => of[seed]));
  if (part.pairs) return sum(pick(part.pairs.map((both) => both[0]))) / sum(pick(part.pairs.map((both) => both[1])));
  return statistic[part.location](pick(part.values));
}
const claimed = (part, at) => (part.low === null || at > part.low) && (part.high === null || at < part.high);

/** Distinct seeds, all samples alike. */
function sample(seeds, few) {
  const all = Array.from({ length: seeds }, (_, i) => i);
  for (let i = 0; i < few; i += 1) { const j = i + Math.floor(Math.random() * (seeds - i)); [all[i], all[j]] = [all[j], all[i]]; }
  return all.slice(0, few);
}
const shapes = (name, fields) => Object.entries(fields).reduce((one, [key, to]) => { one.setAttribute(key, to); return one; }, document.createElementNS("http://www.w3.org/2000/svg", name));

/** A strip of the numbers of all seeds, those drawn in colour, with the estimate and the ends of what is claimed. */
function strip(part, drawn, found) {
  const every = part.values.flat(), sorted = [...every].sort((a, b) => a - b), ends = [part.low, part.high].filter((one) => one !== null);
  const low = Math.min(...ends, found, sorted[Math.floor(sorted.length * 0.03)]), high = Math.max(...ends, found, sorted[Math.ceil(sorted.length * 0.97) - 1]);
  const x = (one) => `${(3 + 94 * Math.min(1, Math.max(0, (one - low) / (high - low || 1)))).toFixed(2)}%`;
  const svg = shapes("svg", { role: "img", "aria-label": `${every.length} seeds, estimate ${digits(found, 3)}` });
  for (const end of ends) svg.append(shapes("line", { class: "threshold", x1: x(end), x2: x(end), y1: 0, y2: 34 }));
  part.values.forEach((of) => of.forEach((one, seed) => svg.append(shapes("circle", { cx: x(one), cy: 9 + ((seed * 7) % 17), r: drawn.includes(seed) ? 4.5 : 3, class: drawn.includes(seed) ? "drawn" : "" }))));
  svg.append(shapes("line", { class: "estimate", x1: x(found), x2: x(found), y1: 3, y2: 31 }));
  return svg;
}

const percent = (share) => `${digits(100 * share, 2)}%`;
const wheels = json("wheels");
if (wheels.length) {
  const place = $("#roulette"), choose = make("select", {}, ...wheels.map((one) => make("option", { value: one.claim }, `${one.claim}: ${one.statement}`)));
  const said = make("p", { className: "said-by-few", ariaLive: "polite" }), tally = make("p"), bar = make("progress", { max: 1, value: 0, ariaLabel: "share of draws that look as claimed" });
  const body = make("tbody"), once = make("button", { type: "button" }), often = make("button", { type: "button" }, "Draw 1,000 times"), again = make("button", { type: "button" }, "Start again");
  let draws = 0, hits = 0;
  const wheel = () => wheels.find((one) => one.claim === choose.value);
  const draw = (times) => {
    const { claim, parts, seeds, few, pattern, chance } = wheel();
    let drawn = [], found = [];
    for (let i = 0; i < times; i += 1) {
      drawn = sample(seeds, few);
      found = parts.map((part) => estimate(part, drawn));
      draws += 1;
      hits += parts.every((part, j) => claimed(part, found[j]));
    }
    if (!times) { drawn = []; found = parts.map((part) => estimate(part, Array.from({ length: seeds }, (_, i) => i))); }
    const held = parts.filter((part, j) => claimed(part, found[j])).length;
    const words = parts.length > 1 ? `${held} of ${parts.length} parts on the claimed side` : held ? "on the claimed side" : "on the other side";
    said.replaceChildren(times ? make("b", {}, held === parts.length ? "◆ as claimed" : held ? "◐ partly as claimed" : "■ not as claimed") : make("b", {}, `All ${seeds} seeds`), `: ${words}.`);
    tally.replaceChildren(bar, draws ? ` ${hits.toLocaleString("en")} of ${draws.toLocaleString("en")} draw${draws > 1 ? "s" : ""} look as claimed (${percent(hits / draws)}).` : " Nothing is drawn yet.",
      make("span", { className: "soft" }, ` All our seeds: ${percent(pattern)} of 2,000 draws${chance === null ? "" : `, and ${percent(chance)} if the methods were alike`}. `), make("a", { href: `#${claim}` }, `Claim ${claim}`));
    bar.value = draws ? hits / draws : 0;
    body.replaceChildren(...parts.map((part, j) => make("tr", {}, Object.assign(make("td", {}, part.words), { title: part.measured }), make("td", {}, strip(part, drawn, found[j])),
      make("td", { className: "n" }, digits(found[j], 3)), make("td", {}, part.supports), make("td", {}, claimed(part, found[j]) ? "yes" : "no"))));
    once.textContent = `Draw ${few} of ${seeds} seeds`;
  };
  const start = () => { draws = 0; hits = 0; draw(0); };
  once.addEventListener("click", () => draw(1));
  often.addEventListener("click", () => draw(1000));
  again.addEventListener("click", start);
  choose.addEventListener("change", start);
  choose.style.maxWidth = "min(46rem, 90vw)";
  const head = ["compared", "numbers of seeds", "estimate", "supports", "as claimed"].map((one) => make("th", { scope: "col" }, one));
  place.append(make("label", {}, "Claim ", choose), make("div", { className: "controls" }, once, often, again), said, tally,
    Object.assign(make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Parts of the claim" }, make("table", { className: "draws" }, make("thead", {}, make("tr", {}, ...head)), body))));
  for (const link of $$("[data-wheel]")) link.addEventListener("click", () => { choose.value = link.dataset.wheel; start(); });
  start();
}

// Which methods do best where
const standings = json("standings-data");
if (standings) {
  const FIRST = 12;
  const { tracks, costs } = standings;
  const steps = [["", "no time"], ...Object.keys(costs).map((name) => [name, name])];
  const state = { track: Object.keys(tracks)[0], cost: "", all: false };
  const body = make("tbody"), more = make("button", { type: "button" });
  const track = make("select", {}, ...Object.keys(tracks).map((name) => make("option", { value: name }, name)));
  const cost = make("input", { type: "range", min: 0, max: steps.length - 1, value: 0 }), said = make("output");
  const bar = ({ share, low, high }) => {
    const strip = shapes("svg", { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    strip.append(shapes("rect", { class: "mean", x: 0, y: 2, width: 100 * share, height: 6 }));
    if (low !== null) strip.append(shapes("rect", { class: "interval", x: 100 * low, y: 4.3, width: 100 * (high - low), height: 1.4 }));
    return strip;
  };
  const draw = () => {
    const rows = state.cost ? costs[state.cost] : tracks[state.track];
    said.textContent = steps.find(([name]) => name === state.cost)[1];
    track.disabled = Boolean(state.cost);
    track.title = state.cost ? "with a cost, methods are compared on all tasks" : "";
    const shown = state.all ? rows : rows.slice(0, FIRST);
    body.replaceChildren(...shown.map((row) => make("tr", {}, Object.assign(make("td", {}, row.method), { title: row.entry }),
      make("td", { className: "bar" }, bar(row)),
      make("td", { className: "n" }, row.low === null ? percent(row.share) : `${percent(row.share)} (${digits(100 * row.low, 2)} to ${digits(100 * row.high, 2)})`),
      make("td", { className: "n" }, String(row.tasks)))));
    more.hidden = rows.length <= FIRST;
    more.textContent = state.all ? `Show the first ${FIRST}` : `Show all ${rows.length} methods`;
  };
  track.addEventListener("change", () => { state.track = track.value; draw(); });
  cost.addEventListener("input", () => { [state.cost] = steps[cost.value]; draw(); });
  more.addEventListener("click", () => { state.all = !state.all; draw(); });
  const head = ["method", "0 to 100%", "others behind", "tasks"].map((one, i) => make("th", { scope: "col", className: i > 1 ? "n" : "" }, one));
  $("#standings").append(make("div", { className: "controls" }, make("label", {}, "tasks ", track), make("label", {}, "an evaluation takes ", cost, " ", said)),
    Object.assign(make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Methods of the atlas" },
      make("table", { className: "standings" }, make("thead", {}, make("tr", {}, ...head)), body))), more);
  draw();
}

filter();
show(location.hash);
