// The page Choices: takes a table, shows how far its analysis is, and then the group and any one person.
import { place, surface, tokens } from "./canvas.js";
import * as charts from "./charts.js";
import * as simplex from "./simplex.js";
import { offer, send } from "./upload.js";

const CLASSES = { exploit: "one", uncertainty: "two", risk: "three", repeat: "four", random: "five" };
const LEFT = 52, RIGHT = 16; // as in the chart above, so that trials stand below each other

export const closed = ["Simulated people"];
export const restart = "Reset all"; // what the button says

const short = (p) => (p < 0.0005 ? "<.001" : p > 0.9995 ? ">.999" : p.toFixed(3));

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`);
  const frames = {}, canvas = (name) => root.querySelector(`[data-canvas="${name}"]`);
  let colours = tokens(), held = null, known = "", charted = null, drawn = "", gone = false;

  const models = surface(canvas("models"), () => drawModels());
  const values = surface(canvas("values"), () => drawValues());
  const triangle = surface(canvas("simplex"), () => drawMixtures());
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${CLASSES[name]}`).trim();
  const row = (array, i) => array.values.subarray(i * array.shape[1], (i + 1) * array.shape[1]);

  // ---------------------------------------------------------------- the data

  function showFault(text) {
    slot("fault").hidden = !text;
    slot("why").textContent = text;
  }

  async function upload(file) {
    if (!file) return;
    const most = frames.data?.largest;
    if (file.size > most) { showFault(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB: the studio takes up to ${most / 1e6} MB.`); return; }
    showProgress("Reading the file", null);
    try {
      const number = await send(file);
      held = file;
      studio.act({ file: number });
    } catch (error) {
      showFault(error.message);
      hideProgress();
    }
  }

  offer(slot("file"), slot("drop"), upload);
  slot("cohort").addEventListener("click", () => { held = null; studio.act({ cohort: true }); });
  for (const name of ["recovery", "ppc", "report"]) slot(name).addEventListener("click", () => studio.act({ [name]: true }));
  slot("cancel").addEventListener("click", () => {
    studio.act({ cancel: !slot("cancel").hasAttribute("data-stopped") });
    if (frames.group && studio.fresh(frames.group)) hideProgress();
  });

  // Which column of the table is which of ours: what was guessed stands there, and a drop-down changes it.
  // An answer may be older than the last drop-downs: what was taken since stands until an answer knows it.
  let taken = {}, takenFrom = null;
  function describeColumns({ columns, sums, needed, ours }) {
    slot("mapping").hidden = !columns;
    if (!columns) return;
    if (takenFrom !== String(columns)) [taken, takenFrom] = [{}, String(columns)];
    taken = Object.fromEntries(Object.entries(taken).filter(([name, column]) => ours[name] !== column));
    ours = { ...ours, ...taken };
    const lacking = needed.filter((name) => !ours[name]);
    slot("mapped").textContent = lacking.length ? `Which column is ${lacking.join(", ")}?` : "Columns of the table: change what was guessed";
    if (lacking.length) slot("mapping").open = true;
    const wanted = JSON.stringify([columns, ours]);
    if (slot("columns").dataset.shown === wanted) return;
    slot("columns").dataset.shown = wanted;
    slot("columns").replaceChildren(...Object.entries(ours).map(([name, theirs]) => {
      const select = document.createElement("select"), label = document.createElement("label");
      const offered = name === "reward" ? [...columns, ...sums] : columns;
      select.append(new Option(needed.includes(name) ? "choose" : "none", ""), ...offered.map((column) => new Option(column, column)));
      select.value = theirs;
      select.dataset.column = name;
      if (theirs) select.options[0].disabled = true; // what was taken can be another column, not none
      select.addEventListener("change", () => {
        taken[name] = select.value;
        const chosen = Object.fromEntries([...slot("columns").querySelectorAll("select")].filter((s) => s.value).map((s) => [s.dataset.column, s.value]));
        studio.change("columns", Object.entries(chosen).map((pair) => pair.join("=")).join(","));
      });
      label.append(name + (needed.includes(name) ? " (needed)" : ""), select);
      label.toggleAttribute("data-missing", needed.includes(name) && !theirs);
      return label;
    }));
  }

  function describeData(one) {
    describeColumns(one.table);
    slot("badge").textContent = one.simulated ? "simulated" : "your data";
    slot("badge").classList.toggle("human", !one.simulated);
    slot("whose").textContent = one.uploaded ? one.source : "Simulated people who use the Hybrid model";
    const late = one.left_out ? `, ${one.left_out} slower than 20 s left out` : "";
    slot("counts").textContent = `${one.people} people, ${one.trials} trials${late}; ${one.experiment.startsWith("experiment") ? one.task : `${one.arms} arms`}.${one.experiment === "measured" ? ` ${one.about}` : ""}`
      + one.notes.map((note) => ` ${note}`).join("") + (one.simulated ? " They say nothing about people." : "");
    slot("cohort").hidden = !one.uploaded;
    showFault(one.fault);
    if (one.fault && frames.group) hideProgress();
    slot("missing").hidden = !one.missing;
    slot("missing").textContent = `This link was made with ${one.missing}, which a link cannot hold. Choose that file to see the same; until then these are simulated people.`;
    for (const group of root.querySelectorAll(".side details")) group.toggleAttribute("data-idle", group.querySelector("summary").textContent === "Looking at");
    if (one.uploaded) known = one.file;
    if (one.missing && held && one.missing === known) { // the studio was started again: it gets the file once more
      const again = held;
      held = null;
      upload(again);
    }
  }

  function showProgress(text, share, stopped = false) {
    slot("working").hidden = false;
    slot("cancel").textContent = stopped ? "Go on" : "Cancel";
    slot("cancel").toggleAttribute("data-stopped", stopped);
    slot("stage").textContent = text;
    if (share === null) slot("bar").removeAttribute("value"); else slot("bar").value = share;
  }
  function hideProgress() { slot("working").hidden = true; }

  // ---------------------------------------------------------------- the group

  function drawModels() {
    const one = frames.group;
    if (!one || !models.ready()) return;
    const { context: c, width, height } = models, right = 62, top = 10, bottom = 26;
    c.font = `650 13px ${colours.sans}`;
    const left = Math.max(94, ...one.models.map((model) => c.measureText(model.name).width + 20));
    const inner = width - left - right, step = (height - top - bottom) / one.models.length;
    const x = (p) => left + p * inner;
    models.begin();
    c.font = `12px ${colours.sans}`;
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      c.strokeStyle = colours.faint;
      c.beginPath(); c.moveTo(x(tick), top); c.lineTo(x(tick), height - bottom); c.stroke();
      c.fillStyle = colours.soft; c.textAlign = "center";
      c.fillText(String(tick), x(tick), height - 9);
    }
    one.models.forEach((model, k) => {
      const y = top + k * step, ours = model.name === one.ours, bar = Math.min(step * 0.36, 16), middle = y + step / 2;
      c.fillStyle = ours ? colours.ink : colours.soft;
      c.font = `${ours ? 650 : 400} 13px ${colours.sans}`;
      c.textAlign = "right";
      c.fillText(model.name, left - 10, middle + 4);
      c.fillStyle = colours.primitives[0];
      c.fillRect(left, middle - bar, Math.max(model.pxp * inner, 1.5), bar);
      c.globalAlpha = 0.32;
      c.fillRect(left, middle, Math.max(model.frequency * inner, 1.5), bar);
      c.globalAlpha = 1;
      c.textAlign = "left";
      c.font = `12px ${colours.sans}`;
      c.fillStyle = colours.ink;
      c.fillText(short(model.pxp), x(model.pxp) + 6, middle - bar / 2 + 4);
      c.fillStyle = colours.soft;
      c.fillText(model.frequency.toFixed(2), x(model.frequency) + 6, middle + bar / 2 + 4);
    });
  }

  function describeGroup() {
    const one = frames.group;
    slot("sure").textContent = `BOR ${one.bor < 0.001 ? "<.001" : one.bor.toFixed(3)}: the probability that they differ by chance only`;
    const first = one.models.reduce((a, b) => (b.pxp > a.pxp ? b : a));
    slot("warnings").replaceChildren(...one.warnings.map((text) => Object.assign(document.createElement("p"), { className: "note", textContent: `Warning: ${text}` })));
    slot("verdict").textContent = one.verdict + one.groups.map((text) => ` ${text}`).join("")
      + (first.name === one.ours ? " Whether a mere floor under improbable choices would do as well is in the report." : "");
    slot("table").replaceChildren(...one.models.map((model) => {
      const line = document.createElement("tr");
      const cells = [model.name, model.parameters, model.log_evidence.toFixed(2), model.frequency.toFixed(4), model.pxp.toFixed(4)];
      line.append(...cells.map((text, k) => Object.assign(document.createElement(k ? "td" : "th"), { textContent: text })));
      line.firstChild.scope = "row";
      return line;
    }));
    slot("reference").textContent = one.reference;
    models.canvas.style.setProperty("--rows", one.models.length);
    slot("checked").replaceChildren();
    for (const name of ["recovery", "ppc"]) slot(name).disabled = false;
    slot("people").replaceChildren(...one.subjects.map((subject, k) => new Option(`${subject} (${one.best[k]})`, k + 1)));
    slot("report").disabled = false;
  }

  // ---------------------------------------------------------------- checks that somebody asked for

  function tableOf(head, rows) {
    const table = document.createElement("table"), make = (tag, texts) => {
      const line = document.createElement("tr");
      line.append(...texts.map((text, k) => Object.assign(document.createElement(k ? tag : "th"), { textContent: text })));
      return line;
    };
    table.createTHead().append(make("th", head));
    table.createTBody().append(...rows.map((cells) => make("td", cells)));
    return table;
  }
  const two = (x) => (x === null ? "–" : x.toFixed(2));

  function showCheck(kind, words, ...tables) {
    const box = Object.assign(document.createElement("section"), { className: "check" });
    box.dataset.check = kind;
    for (const [text, table] of tables) {
      const scroll = Object.assign(document.createElement("div"), { className: "scroll" });
      scroll.append(table);
      box.append(Object.assign(document.createElement("p"), { textContent: text }), scroll);
    }
    box.prepend(Object.assign(document.createElement("b"), { textContent: words }));
    slot("checked").querySelector(`[data-check="${kind}"]`)?.remove();
    slot("checked").append(box);
  }

  function describeRecovery(one) {
    showCheck("recovery", "Recovery on this task",
      ["As many people as here are simulated by each fitted model (row) and fitted by all: the share whose least BIC is the column's. Where the diagonal is low, this task cannot tell the models apart.",
        tableOf(["simulated", ...one.models], one.models.map((name, k) => [name, ...one.best[k].map(two)]))],
      ["How well coefficients are found again.",
        tableOf(["model", "coefficient", "correlation", "bias", "RMSE"], one.coefficients.map((c) => [c.model, c.name, two(c.correlation), two(c.bias), two(c.rmse)]))]);
  }

  function describeChecks(one) {
    showCheck("ppc", "One-step check",
      ["Shares of trials, mean over people: what these people did, and what each fitted model expects one step ahead.",
        tableOf(["", ...one.statistics], one.rows.map((row) => [row.who, ...row.shares.map(two)]))]);
  }

  function drawMean() {
    const one = frames.group;
    if (!one) return;
    const { trial, mean_weights: mean } = one.arrays, x = [...trial.values];
    charts.lines(slot("mean"), one.primitives.map((name, k) => ({ name, x, y: x.map((_, i) => row(mean, i)[k]), colour: colour(name) })),
      { x: "trial of the block", y: "weight", range: [-0.02, 1.02] });
  }

  // ---------------------------------------------------------------- one person

  const count = () => frames.person.arrays.trial.values.length;
  const pickedTrial = () => Math.min(Number(root.querySelector("#moment").value), count()) - 1;
  const scopes = [...root.querySelectorAll('[name="scope"]')], alone = () => scopes[1].checked;

  // The rows that are shown: all, or those of one block.
  function shownRows() {
    const { block } = frames.person.arrays, rows = Array.from(block.values, (_, i) => i);
    return alone() ? rows.filter((i) => block.values[i] === block.values[pickedTrial()]) : rows;
  }
  const across = () => {
    const rows = shownRows(), inner = values.width - LEFT - RIGHT, last = Math.max(rows.length - 1, 1);
    return { rows, x: (i) => LEFT + ((i - rows[0]) / last) * inner, i: (x) => rows[Math.min(Math.max(Math.round(((x - LEFT) / inner) * last), 0), rows.length - 1)] };
  };

  function drawWeights() {
    const one = frames.person;
    if (!one) return;
    const { block, weights } = one.arrays, x = [], from = [];
    for (const i of shownRows()) { // beliefs start again in every block, so lines end there
      if (x.length && block.values[i] !== block.values[i - 1]) { x.push(i + 0.5); from.push(null); }
      x.push(alone() ? one.arrays.trial.values[i] : i + 1); from.push(i);
    }
    drawn = chartKey();
    charts.lines(slot("plot"), one.primitives.map((name, k) => ({ name, x, y: from.map((i) => (i === null ? null : row(weights, i)[k])), colour: colour(name) })),
      { x: alone() ? `trial of block ${block.values[pickedTrial()]}` : "trial, blocks one after the other", y: "weight", range: [-0.02, 1.04] }).then(renderImage);
  }
  // What the chart was drawn from: another trial picked needs no new one.
  const chartKey = () => [frames.person.primitives, frames.person.arrays.weights.values, alone() ? frames.person.arrays.block.values[pickedTrial()] : ""].join();

  // The chart as a canvas, for the picture that can be saved.
  async function renderImage() {
    const chart = slot("plot");
    if (gone || !window.Plotly || !chart?.clientWidth) return;
    const ratio = window.devicePixelRatio || 1, size = { width: chart.clientWidth, height: chart.clientHeight };
    const image = new Image();
    image.src = await window.Plotly.toImage(chart, { format: "png", ...size, scale: ratio });
    await image.decode();
    const sheet = Object.assign(document.createElement("canvas"), { width: size.width * ratio, height: size.height * ratio });
    sheet.getContext("2d").drawImage(image, 0, 0, sheet.width, sheet.height);
    charted = sheet;
  }

  function drawValues() {
    const one = frames.person;
    if (!one || !values.ready()) return;
    const { context: c, width, height } = values, { block, mean, choice } = one.arrays, arms = mean.shape[1], { rows, x } = across();
    const seen = rows.flatMap((i) => [...row(mean, i)]);
    const top = 26, bottom = 14, low = Math.min(...seen), high = Math.max(...seen), span = high - low || 1;
    const y = (v) => top + (1 - (v - low) / span) * (height - top - bottom);
    const shade = (arm) => [colours.link, colours.bad, colours.good, colours.soft, colours.ink][arm % 5];
    values.begin();
    c.font = `12px ${colours.sans}`;
    c.lineWidth = 1;
    for (const i of rows.slice(1)) {
      if (block.values[i] === block.values[i - 1]) continue;
      c.strokeStyle = colours.faint;
      c.beginPath(); c.moveTo((x(i) + x(i - 1)) / 2, top - 6); c.lineTo((x(i) + x(i - 1)) / 2, height - 4); c.stroke();
    }
    c.strokeStyle = colours.line;
    if (low < 0 && high > 0) { c.beginPath(); c.moveTo(LEFT, y(0)); c.lineTo(width - RIGHT, y(0)); c.stroke(); }
    c.fillStyle = colours.soft; c.textAlign = "right";
    for (const v of new Set([low, ...(low < 0 && high > 0 ? [0] : []), high])) c.fillText(String(Number(v.toFixed(1))).replace("-", "−"), LEFT - 8, y(v) + 4);
    for (let arm = 0; arm < arms; arm++) {
      c.strokeStyle = shade(arm); c.lineWidth = 1.3; c.globalAlpha = 0.75;
      c.beginPath();
      for (const i of rows) c[i > rows[0] && block.values[i] === block.values[i - 1] ? "lineTo" : "moveTo"](x(i), y(row(mean, i)[arm]));
      c.stroke();
      c.globalAlpha = 1;
      c.fillStyle = shade(arm); c.textAlign = "left";
      c.fillText(`arm ${arm + 1}`, LEFT + arm * 56, 15);
    }
    const radius = Math.min(Math.max((width / rows.length) * 0.55, 1.4), 5);
    for (const i of rows) {
      const arm = choice.values[i] - 1;
      simplex.dot(c, [x(i), y(row(mean, i)[arm])], radius, shade(arm), null);
    }
    const at = pickedTrial();
    c.strokeStyle = colours.ink; c.lineWidth = 1.2;
    c.beginPath(); c.moveTo(x(at), top - 8); c.lineTo(x(at), height - 4); c.stroke();
    simplex.dot(c, [x(at), y(row(mean, at)[choice.values[at] - 1])], radius + 3, null, colours.ink, 1.6);
  }

  function drawMixtures() {
    const one = frames.person;
    if (!one || !triangle.ready()) return;
    const { context: c, width, height } = triangle, { weights } = one.arrays;
    triangle.begin();
    if (one.primitives.length === 3) {
      const box = simplex.frame(width, height), now = { ...colours, primitives: one.primitives.map(colour) };
      simplex.border(c, box, now, one.primitives);
      c.globalAlpha = 0.45;
      for (let i = 0; i < count(); i++) simplex.dot(c, simplex.at(box, ...row(weights, i)), 3, colours.soft, null);
      c.globalAlpha = 1;
      simplex.dot(c, simplex.at(box, ...row(weights, pickedTrial())), 7, colours.paper, colours.ink, 2.5);
      return;
    }
    const { trial } = one.arrays, most = Math.max(...trial.values), wide = (width - 32) / most;
    for (let k = 1; k <= most; k++) { // a column for every trial of a block: the mean weights on top of each other
      const rows = Array.from(trial.values, (t, i) => (t === k ? i : -1)).filter((i) => i >= 0);
      let floor = height - 32;
      one.primitives.forEach((name, n) => {
        const tall = (rows.reduce((sum, i) => sum + row(weights, i)[n], 0) / rows.length) * (height - 48);
        c.fillStyle = colour(name);
        c.fillRect(16 + (k - 1) * wide + 1, floor - tall, wide - 2, tall);
        floor -= tall;
      });
      c.fillStyle = colours.soft; c.textAlign = "center"; c.font = `12px ${colours.sans}`;
      if (wide > 16 || k % 5 === 0) c.fillText(String(k), 16 + (k - 0.5) * wide, height - 12);
    }
    c.strokeStyle = colours.ink; c.lineWidth = 2;
    c.strokeRect(16 + (trial.values[pickedTrial()] - 1) * wide, 15, wide, height - 46);
  }

  function describePerson() {
    const one = frames.person, slider = root.querySelector("#moment");
    slot("who").textContent = `Person ${one.subject}`;
    slot("people").value = one.participant;
    slot("previous").disabled = one.participant <= 1;
    slot("next").disabled = one.participant >= one.people;
    const share = one.models.find((model) => model.name === one.best).share;
    slot("best").textContent = `Given the group, most probably ${one.best} (${share.toFixed(2)}); by this person's choices alone, ${one.alone}.`
      + (one.separated.length ? ` ${one.separated.join(", ")}: explains every choice, so a weak prior holds the coefficients.` : "");
    slider.max = count();
    if (document.activeElement !== slider) slider.value = one.moment;
    scopes[one.only_block ? 1 : 0].checked = true;
    const simple = one.primitives.length === 3;
    slot("where").textContent = simple ? "On the simplex" : "Within a block";
    slot("where-hint").textContent = simple ? "all trials; the ring is the one picked" : "mean weights at each trial; the frame is the one picked";
    if (slot("bars").dataset.names !== one.primitives.join()) {
      slot("bars").dataset.names = one.primitives.join();
      slot("bars").innerHTML = one.primitives.map((name) => `<div class="bar ${CLASSES[name]}"><b>${name}</b><div><i></i></div><output></output></div>`).join("");
    }
    describeTrial();
  }

  function describeTrial() {
    const at = pickedTrial(), { block, trial, choice, reward, mean, weights, p_choice: p, distance } = frames.person.arrays;
    const text = `block ${block.values[at]}, trial ${trial.values[at]}`, slider = root.querySelector("#moment");
    slot("when").textContent = text;
    slot("this-block").textContent = `block ${block.values[at]}`;
    slider.setAttribute("aria-valuetext", text);
    slot("trial").textContent = text[0].toUpperCase() + text.slice(1);
    slot("bars").querySelectorAll(".bar").forEach((bar, k) => {
      bar.querySelector("i").style.width = `${100 * row(weights, at)[k]}%`;
      bar.querySelector("output").textContent = row(weights, at)[k].toFixed(4);
    });
    const worth = [...row(mean, at)].map((v) => v.toFixed(1).replace("-", "−")).join(" and ");
    slot("said").textContent = `Expected values: ${worth}. Arm ${choice.values[at]} was taken, which the composed model gives a probability of ${p.values[at].toFixed(3)}; it paid ${reward.values[at].toFixed(1).replace("-", "−")}.`;
    slot("proof").innerHTML = `<b>Proved</b>: these weights are within ${distance.values[at].toExponential(0)} of the optimal ones, and all of this person's within ${frames.person.distance.toExponential(0)}.`;
  }

  // Everything on one sheet, which says whose choices these are.
  function sheet() {
    const ratio = models.ratio, gap = 34 * ratio, parts = [["Which model is the most frequent?", models.canvas]];
    if (frames.person) {
      if (charted) parts.push([`Person ${frames.person.subject}: weights`, charted]);
      parts.push([`Person ${frames.person.subject}: values and choices`, values.canvas], [slot("where").textContent, triangle.canvas]);
    }
    const paper = document.createElement("canvas"), c = paper.getContext("2d");
    paper.width = Math.max(...parts.map(([, one]) => one.width));
    paper.height = parts.reduce((sum, [, one]) => sum + one.height + gap, gap + 8 * ratio);
    c.fillStyle = colours.paper;
    c.fillRect(0, 0, paper.width, paper.height);
    c.fillStyle = colours.soft;
    c.font = `${13 * ratio}px ${colours.sans}`;
    c.fillText(`${slot("whose").textContent}; ${slot("counts").textContent}`, 4 * ratio, 20 * ratio);
    c.font = `600 ${14 * ratio}px ${colours.sans}`;
    let y = gap;
    for (const [text, one] of parts) {
      c.fillStyle = colours.ink;
      c.fillText(text, 4 * ratio, y + 22 * ratio);
      c.drawImage(one, 0, y + gap);
      y += one.height + gap;
    }
    return paper;
  }

  const go = (to) => studio.change({ participant: to, moment: 1 });
  slot("people").addEventListener("change", (event) => go(Number(event.target.value)));
  slot("previous").addEventListener("click", () => go(frames.person.participant - 1));
  slot("next").addEventListener("click", () => go(frames.person.participant + 1));
  function pick(at) {
    root.querySelector("#moment").value = at + 1;
    studio.change("moment", at + 1);
    describeTrial(); drawValues(); drawMixtures();
    if (chartKey() !== drawn) drawWeights();
  }
  for (const one of scopes) one.addEventListener("change", () => { studio.change("only_block", alone()); if (frames.person) { drawWeights(); drawValues(); } });
  root.querySelector("#moment").addEventListener("input", (event) => { if (frames.person) pick(Number(event.target.value) - 1); });
  let dragging = false;
  const point = (event) => { if (frames.person) pick(across().i(place(values.canvas, event)[0])); };
  values.canvas.addEventListener("pointerdown", (event) => { dragging = true; values.canvas.setPointerCapture(event.pointerId); point(event); });
  values.canvas.addEventListener("pointermove", (event) => { if (dragging) point(event); });
  for (const end of ["pointerup", "pointercancel"]) values.canvas.addEventListener(end, () => { dragging = false; });

  function save(text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
    link.download = "policychord-choices.html";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return {
    frame(one) {
      if (one.part === "report") { save(one.html); hideProgress(); return; }
      if (one.part === "recovery") { describeRecovery(one); hideProgress(); }
      if (one.part === "ppc") { describeChecks(one); hideProgress(); }
      if (one.part === "asked") { showProgress(one.words, null); return; }
      if (one.part === "progress") { showProgress(one.words, one.done / one.total, one.stopped); return; }
      frames[one.part] = one;
      if (one.part === "data") describeData(one);
      if (one.part === "group") { hideProgress(); describeGroup(); drawModels(); drawMean(); }
      if (one.part !== "person") return;
      describePerson(); drawValues(); drawMixtures();
      if (chartKey() !== drawn) drawWeights();
    },
    recolour() { colours = tokens(); drawModels(); drawValues(); drawMixtures(); drawWeights(); drawMean(); },
    canvases: () => [sheet()],
    data: () => frames,
    free() { gone = true; models.free(); values.free(); triangle.free(); charts.clear(slot("plot")); charts.clear(slot("mean")); },
  };
}
