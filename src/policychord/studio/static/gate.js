// The page Gate: draws what the server computed, and says where things were dragged to.
import { place, surface, tokens } from "./canvas.js";
import * as charts from "./charts.js";
import * as simplex from "./simplex.js";

const NAMES = ["1", "2", "3"], CLASSES = ["one", "two", "three"];
const LAYERS = { w: "w: weights", r: "r", y: "y: gradient", log_m: "ln m: normaliser", b: "b, as y hears it", energy: "energy of the flow" };
const MARGIN = { left: 14, right: 14, top: 26, bottom: 30 };

export const closed = ["Primitives", "Cost"];
export const restart = "Reset all"; // what the button says

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`);
  const frames = {};
  let layer = "w", held = null, relief = null, colours = tokens();

  const actions = surface(root.querySelector('[data-canvas="actions"]'), () => drawActions());
  const triangle = surface(root.querySelector('[data-canvas="simplex"]'), () => { relief = null; drawSimplex(); });

  slot("bars").innerHTML = CLASSES.map((name, k) => `<div class="bar ${name}"><b>${NAMES[k]}</b><div><i></i></div><output></output></div>`).join("");
  const bars = [...slot("bars").querySelectorAll(".bar")];
  for (const [name, text] of Object.entries(LAYERS)) {
    const label = document.createElement("label");
    label.className = "pick";
    label.innerHTML = `<input type="radio" name="layer" value="${name}"><span></span>`;
    label.querySelector("span").textContent = text;
    label.querySelector("input").checked = name === layer;
    label.querySelector("input").addEventListener("change", () => { layer = name; drawChart(); });
    slot("layers").append(label);
  }

  // ---------------------------------------------------------------- the actions

  const scale = () => {
    const inner = actions.width - MARGIN.left - MARGIN.right, floor = actions.height - MARGIN.bottom;
    const tall = floor - MARGIN.top, peak = Math.max(...frames.gate.arrays.pi.values);
    return {
      x: (u) => MARGIN.left + ((u + 3) / 6) * inner,
      u: (x) => Math.min(Math.max(((x - MARGIN.left) / inner) * 6 - 3, -3), 3),
      p: (v) => floor - (v / peak) * tall * 0.86,
      s: (v) => MARGIN.top + tall * (1 - v / 12.6), // nats: as high as the deepest valley that there can be
      cost: (y) => Math.min(Math.max(12.6 * (1 - (y - MARGIN.top) / tall), 0), 12),
      floor,
    };
  };

  // Handles: on top of every primitive, and where the valley's side meets the plain.
  function handles() {
    const s = scale(), now = studio.settings(), { pi, actions: u, cost } = frames.gate.arrays;
    const found = [0, 1, 2].map((k) => {
      const row = pi.values.subarray(k * u.values.length, (k + 1) * u.values.length);
      return { name: `position_${k + 1}`, k, x: s.x(now[`position_${k + 1}`]), y: s.p(Math.max(...row)) };
    });
    const bottom = Math.min(...cost.values);
    found.push({ name: "valley", x: s.x(now.valley), y: s.s(bottom) });
    return found;
  }

  function drawActions() {
    if (!frames.gate || !actions.ready()) return;
    const { context: c, width } = actions, s = scale();
    const { actions: u, pi, cost, mixture } = frames.gate.arrays, count = u.values.length;
    actions.begin();
    c.font = `12px ${colours.sans}`;
    c.textAlign = "center";
    c.strokeStyle = colours.faint;
    c.lineWidth = 1;
    for (let tick = -3; tick <= 3; tick++) {
      c.beginPath(); c.moveTo(s.x(tick), MARGIN.top - 10); c.lineTo(s.x(tick), s.floor); c.stroke();
      c.fillStyle = colours.soft;
      c.fillText(String(tick).replace("-", "−"), s.x(tick), s.floor + 18);
    }
    const curve = (values, y) => {
      c.beginPath();
      for (let i = 0; i < count; i++) c[i ? "lineTo" : "moveTo"](s.x(u.values[i]), y(values[i]));
    };
    curve(mixture.values, s.p);
    c.lineTo(s.x(3), s.floor); c.lineTo(s.x(-3), s.floor); c.closePath();
    c.globalAlpha = 0.16; c.fillStyle = colours.ink; c.fill(); c.globalAlpha = 1;
    c.setLineDash([6, 5]); c.strokeStyle = colours.soft; c.lineWidth = 1.8;
    curve(cost.values, s.s); c.stroke();
    c.setLineDash([]);
    for (let k = 0; k < 3; k++) {
      c.strokeStyle = colours.primitives[k]; c.lineWidth = 2.4;
      curve(pi.values.subarray(k * count, (k + 1) * count), s.p); c.stroke();
    }
    c.strokeStyle = colours.line; c.beginPath(); c.moveTo(MARGIN.left, s.floor); c.lineTo(width - MARGIN.right, s.floor); c.stroke();
    for (const handle of handles()) {
      const colour = handle.name === "valley" ? colours.soft : colours.primitives[handle.k];
      simplex.dot(c, [handle.x, handle.y], held?.name === handle.name ? 9 : 7, colours.paper, colour, 2.5);
    }
  }

  function nearest(event, reach) {
    if (!frames.gate) return null;
    const [x, y] = place(actions.canvas, event);
    const ranked = handles().map((h) => ({ ...h, far: Math.hypot(h.x - x, h.y - y) })).sort((a, b) => a.far - b.far);
    return ranked[0].far < reach ? ranked[0] : null;
  }
  actions.canvas.addEventListener("pointerdown", (event) => {
    held = nearest(event, event.pointerType === "touch" ? 44 : 26);
    if (held) { actions.canvas.setPointerCapture(event.pointerId); event.preventDefault(); drawActions(); }
  });
  actions.canvas.addEventListener("pointermove", (event) => {
    if (!held) { actions.canvas.style.cursor = nearest(event, 26) ? "grab" : "default"; return; }
    const [x] = place(actions.canvas, event);
    actions.canvas.style.cursor = "grabbing";
    studio.change(held.name, Number(scale().u(x).toFixed(2)));
  });
  for (const end of ["pointerup", "pointercancel"]) actions.canvas.addEventListener(end, () => { held = null; drawActions(); });

  // ---------------------------------------------------------------- the simplex

  function drawSimplex() {
    if (!frames.gate || !triangle.ready()) return;
    const { context: c, width, height } = triangle, box = simplex.frame(width, height);
    const { weights, prior, landscape } = frames.gate.arrays;
    if (!relief) { // drawn once for each problem: it is thousands of small triangles
      relief = document.createElement("canvas");
      relief.width = triangle.canvas.width;
      relief.height = triangle.canvas.height;
      const own = relief.getContext("2d");
      own.scale(triangle.ratio, triangle.ratio);
      simplex.landscape(own, box, frames.gate.rows, landscape.values, colours);
    }
    triangle.begin();
    c.drawImage(relief, 0, 0, width, height);
    simplex.border(c, box, colours, NAMES);
    const path = studio.fresh(frames.flow) ? frames.flow.arrays.weights : null; // none if it has a fault
    if (path) {
      const points = [];
      for (let i = 0; i < path.shape[0]; i++) points.push(simplex.at(box, ...path.values.subarray(3 * i, 3 * i + 3)));
      simplex.trail(c, points, [[colours.paper, 5], [colours.ink, 2.5]]);
      simplex.dot(c, points[0], 5, colours.paper, colours.ink, 2);
    }
    c.setLineDash([2, 3]);
    simplex.dot(c, simplex.at(box, ...prior.values), 6, null, colours.paper, 4);
    simplex.dot(c, simplex.at(box, ...prior.values), 6, null, colours.soft, 2);
    c.setLineDash([]);
    simplex.dot(c, simplex.at(box, ...weights.values), 7, colours.ink, colours.paper, 2.5);
  }
  let dragging = false;
  const go = (event) => {
    const [w1, w2] = simplex.weightsAt(simplex.frame(triangle.width, triangle.height), ...place(triangle.canvas, event));
    studio.change({ start_1: Number(w1.toFixed(3)), start_2: Math.min(Number(w2.toFixed(3)), Number((1 - w1.toFixed(3)).toFixed(3))) });
  };
  triangle.canvas.addEventListener("pointerdown", (event) => { dragging = true; triangle.canvas.setPointerCapture(event.pointerId); go(event); });
  triangle.canvas.addEventListener("pointermove", (event) => { if (dragging) go(event); });
  for (const end of ["pointerup", "pointercancel"]) triangle.canvas.addEventListener(end, () => { dragging = false; });

  // ---------------------------------------------------------------- text and chart

  function describe() {
    const { weights } = frames.gate.arrays;
    bars.forEach((bar, k) => {
      bar.querySelector("i").style.width = `${100 * weights.values[k]}%`;
      bar.querySelector("output").textContent = frames.gate.zeros[k] ? "0" : weights.values[k].toFixed(4);
    });
    const { gap, distance, passes, zeros } = frames.gate;
    const none = NAMES.filter((_, k) => zeros[k]);
    const silent = none.length ? ` Primitive ${none.join(" and ")} has exactly no weight.` : ""; // the entropy leaves each something
    slot("proof").innerHTML = `<b>Proved</b> within ${gap.toExponential(0)} of the least energy; no weight is off by more than ${distance.toExponential(0)}. It took ${passes} passes.${silent}`;
  }

  function describeCircuit() {
    const text = slot("verdict"), found = frames.circuit;
    text.className = found.fault ? "" : found.stable ? "settles" : "swings";
    const rate = Math.abs(found.growth ?? 0).toPrecision(2);
    text.textContent = found.fault ? "" : (found.stable
      ? `It settles at the optimum; what is left fades at a rate of ${rate} per second.`
      : `It never settles: a swing grows at a rate of ${rate} per second until it limits itself.`);
  }

  function drawChart() {
    const circuit = frames.circuit, path = frames.flow;
    if (layer === "energy") {
      if (!path || path.fault) return;
      const { times, energy } = path.arrays;
      charts.lines(slot("plot"), [{ name: "energy above the least", x: [...times.values], y: [...energy.values], colour: colours.ink }], { x: "time, s", y: "nats" });
      return;
    }
    if (!circuit || circuit.fault) { charts.clear(slot("plot")); return; }
    const times = [...circuit.arrays.times.values], { values, shape } = circuit.arrays[layer];
    const series = shape.length === 1
      ? [{ name: "ln m", x: times, y: [...values], colour: colours.ink }]
      : NAMES.map((name, k) => ({ name, x: times, y: times.map((_, i) => values[i * 3 + k]), colour: colours.primitives[k] }));
    charts.lines(slot("plot"), series, { x: "time, s", y: layer === "w" ? "weight" : "activity", range: layer === "w" ? [-0.02, 1.05] : undefined });
  }

  return {
    frame(one) {
      if (one.part === "gate") { frames.gate = one; relief = null; describe(); drawActions(); drawSimplex(); }
      if (one.part === "flow") { frames.flow = one; drawSimplex(); if (layer === "energy") drawChart(); }
      if (one.part === "circuit") { frames.circuit = one; describeCircuit(); drawChart(); }
    },
    recolour() { colours = tokens(); relief = null; drawActions(); drawSimplex(); drawChart(); },
    canvases: () => [actions.canvas, triangle.canvas],
    data: () => frames,
    free() { actions.free(); triangle.free(); charts.clear(slot("plot")); },
  };
}
