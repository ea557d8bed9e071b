// A file of tracks in the page Flock: the data, and beside them a group that is simulated with the fitted parameters.
import { place, rgb, surface, tokens } from "./canvas.js";
import * as charts from "./charts.js";
import { aim, arrow, ground, lens, mixture, nearest, sizeOf } from "./flock.plane.js";
import * as simplex from "./simplex.js";
import { offer, send } from "./upload.js";

// Forces that the boids have too keep their colours.
const CLASSES = { separation: "one", alignment: "two", cohesion: "three", persist: "five" }, OTHERS = ["four", "bad", "link", "good"];
const CHART_EVERY = 1000; // ms
const MOST_MOMENTS = 1500;
const GROUP = "Your tracks"; // of the controls
const READING = "Reading the file";

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`), field = (name) => root.querySelector(`[data-field="${name}"]`);
  let now = null, shown = "", camera = null, colours = tokens(), series = empty(), chartDue = 0, named = "", known = "";
  function empty() { return { time: [], data: [], simulated: [] }; }

  const planes = { data: surface(root.querySelector('[data-canvas="tracks"]'), () => draw()), simulated: surface(root.querySelector('[data-canvas="simulated"]'), () => draw()) };
  const classes = () => { let other = 0; return now.names.map((name) => CLASSES[name] ?? OTHERS[other++ % OTHERS.length]); };
  const tones = () => classes().map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());

  function say(text, [words, done, total] = ["", 0, 0]) {
    slot("reading").hidden = !text;
    slot("progress").textContent = words ? `${text}: ${words}` : text;
    slot("cancel").hidden = text === READING;
    if (total) slot("meter").value = done / total; else slot("meter").removeAttribute("value");
  }
  function blame(text, wanted = "") { // with the input that mends it
    const before = slot("mend").hidden;
    slot("blamed").hidden = !text;
    slot("blame").textContent = text;
    slot("mend").hidden = !wanted;
    if (before && wanted) field(wanted).focus();
  }
  slot("mend").addEventListener("submit", (event) => {
    event.preventDefault();
    say(READING);
    studio.change("rate", Number(field("rate").value));
  });

  async function take(file) {
    blame("");
    say(READING);
    try { studio.act({ file: await send(file) }); } catch (error) { blame(error.message); say(""); }
  }
  offer(slot("tracks-file"), slot("tracks-drop"), take);
  for (const name of ["boids", "cancel"]) slot(name).addEventListener("click", () => studio.act({ boids: true }));
  for (const name of ["leave_out", "predator"]) field(name).addEventListener("change", (event) => studio.change(name, event.target.value));

  // With a file, its own settings and the way back are offered, also if it could not be read.
  function attend(file) {
    slot("boids").hidden = slot("marked").hidden = !file;
    slot("source").textContent = file || "Your tracks";
    const group = [...root.querySelectorAll(".side details")].find((one) => one.querySelector("summary").textContent === GROUP);
    if (group && file) group.open = true;
    const { leave_out, predator } = studio.settings();
    for (const [name, value] of Object.entries({ leave_out, predator })) if (document.activeElement !== field(name)) field(name).value = value;
  }

  // Which of the two is shown, and which controls mean something then.
  function show(what) {
    if (shown === what) return;
    shown = what;
    slot("flock-part").hidden = what === "tracks";
    slot("tracks-part").hidden = what !== "tracks";
    for (const group of root.querySelectorAll(".side details")) {
      group.toggleAttribute("data-idle", what === "tracks" && ["Experiment", "Zones"].includes(group.querySelector("summary").textContent));
    }
  }

  function drawPlane(plane, position, velocity, weights, member) {
    if (!plane.ready()) return;
    plane.begin();
    if (!camera || !position) return;
    const c = plane.context, v = lens(plane, camera), p = position.values, u = velocity.values, palette = tones().map(rgb);
    ground(plane, camera, v, colours, now.unit);
    const size = sizeOf(now.present || 1), w = weights.values, n = palette.length;
    for (let i = 0; i < position.shape[0]; i++) {
      if (!Number.isFinite(p[2 * i]) || !Number.isFinite(u[2 * i])) continue;
      const own = Number.isFinite(w[n * i]), [x, y] = [v.x(p[2 * i]), v.y(p[2 * i + 1])];
      c.fillStyle = own ? mixture(w, i, palette) : colours.soft;
      arrow(c, x, y, -Math.atan2(u[2 * i + 1], u[2 * i]), size);
      if (member && !member.values[i]) simplex.dot(c, [x, y], size * 1.5, null, colours.ink, 1.4);
      if (member && i === now.selected) simplex.dot(c, [x, y], size * 2, null, colours.link, 2.4);
    }
  }

  function draw() {
    if (!now?.arrays.position) return;
    const a = now.arrays;
    drawPlane(planes.data, a.position, a.velocity, a.weights, a.member);
    drawPlane(planes.simulated, a.simulated_position, a.simulated_velocity, a.simulated_weights, null);
  }

  function describe() {
    const key = now.names.join();
    if (named !== key) {
      named = key;
      slot("forces").innerHTML = classes().map((name, k) => `<li><i style="color: var(--${name})"></i><span></span></li>`).join("");
      slot("tracks-bars").innerHTML = classes().map((name) => `<div class="bar"><b></b><div><i style="background: var(--${name})"></i></div><output></output></div>`).join("");
      now.names.forEach((name, k) => { slot("forces").children[k].querySelector("span").textContent = name; slot("tracks-bars").children[k].querySelector("b").textContent = name; });
    }
    const n = now.names.length, own = now.arrays.weights.values.subarray(n * now.selected, n * now.selected + n);
    [...slot("tracks-bars").children].forEach((bar, k) => {
      const there = Number.isFinite(own[k]);
      bar.querySelector("i").style.width = there ? `${100 * own[k]}%` : "0";
      bar.querySelector("output").textContent = there ? own[k].toFixed(3) : "–";
    });
    slot("individual").textContent = `Individual ${now.who}`;
    slot("now").textContent = `${now.time.toFixed(1)} of ${now.duration.toFixed(0)} s, ${now.present} there` + (now.trials > 1 ? `, trial ${now.trial} of ${now.trials}` : "");
    slot("since").textContent = now.since === undefined ? "" : `as fitted; started where the data were ${now.since.toFixed(1)} s ago`;
    slot("answer").textContent = now.sentence ?? "";
    const three = (order) => `polarization ${number(order?.polarization, 2)}, spread ${number(order?.spread, 3)} ${now.unit}, speed ${number(order?.speed, 3)} ${now.unit}/s`;
    slot("data-order").textContent = `Data: ${three(now.order)}`;
    slot("simulated-order").textContent = now.simulated_order ? `Simulated: ${three(now.simulated_order)}` : "";
    slot("fitted").textContent = now.fitted ? `Fitted to ${now.fitted} of ${now.decisions} decisions; the command policychord tracks fit uses all, with more rivals.` : "";
  }
  const number = (value, digits) => (value === null || value === undefined ? "–" : digits === 2 ? value.toFixed(2) : Number(value.toPrecision(digits)).toString());

  function drawChart() {
    const step = Math.max(1, Math.floor(series.time.length / 400)), thin = (values) => values.filter((_, i) => i % step === 0);
    charts.lines(slot("tracks-plot"), [
      { name: "data", x: thin(series.time), y: thin(series.data), colour: colours.orders[0] },
      { name: "simulated", x: thin(series.time), y: thin(series.simulated), colour: colours.orders[0], dash: "dot" },
    ], { x: "time, s", y: "polarization", range: [0, 1.03] });
  }

  planes.data.canvas.addEventListener("click", (event) => {
    if (now && camera) studio.change("selected", nearest(lens(planes.data, camera), now.arrays.position, ...place(planes.data.canvas, event)));
  });

  return {
    show,
    frame(one) {
      blame(one.fault, one.field);
      if (known !== one.file || one.stage !== "playing") attend(one.file);
      known = one.file;
      if (one.stage === "fault") { now = null; camera = null; say(""); show("flock"); return; }
      const other = !now || now.file !== one.file || now.trial !== one.trial || one.time < now.time;
      if (other) { series = empty(); camera = null; }
      now = one;
      show("tracks");
      say({ fitting: `Fitting ${one.decisions > 1200 ? "1200 of " : ""}${one.decisions} decisions`, simulating: "Simulating" }[one.stage] ?? "", one.progress);
      if (one.stage === "playing" && (!series.time.length || one.time !== series.time[series.time.length - 1])) {
        series.time.push(one.time); series.data.push(one.order.polarization); series.simulated.push(one.simulated_order?.polarization ?? null);
        if (series.time.length > MOST_MOMENTS) for (const values of Object.values(series)) values.shift();
      }
      camera = aim(camera, one.arrays.position, 1e-9);
      draw();
      describe();
      if (performance.now() > chartDue && series.time.length) { chartDue = performance.now() + CHART_EVERY; drawChart(); }
    },
    leave() { now = null; camera = null; known = ""; say(""); blame(""); attend(""); show("flock"); },
    held: () => known !== "",
    active: () => shown === "tracks",
    recolour() { colours = tokens(); if (shown === "tracks") { draw(); drawChart(); } },
    canvases: () => [planes.data.canvas, planes.simulated.canvas],
    data: () => ({ now, series }),
    free() { planes.data.free(); planes.simulated.free(); charts.clear(slot("tracks-plot")); },
  };
}
