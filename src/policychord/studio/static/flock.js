// The page Flock: draws the boids as they come, and lets one be picked.
import { place, rgb, surface, tokens } from "./canvas.js";
import * as charts from "./charts.js";
import { aim, arrow, ground, lens, mixture, nearest, sizeOf } from "./flock.plane.js";
import * as tracks from "./flock.tracks.js";
import * as simplex from "./simplex.js";

const NAMES = ["separation", "alignment", "cohesion"], CLASSES = ["one", "two", "three"];
const RECENT = 150; // moments of the selected boid's weights
const CHART_EVERY = 1000; // ms: a chart takes longer to draw than the flock
const NARROWEST = 3.5; // m that the picture shows to each side at least
const SHORT = ["separation", "alignment", "cohesion"];

export const closed = ["Your tracks"];
export const restart = "Restart"; // what the button says

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`);
  let now = null, colours = tokens(), camera = null, trail = [], chartDue = 0, scheduled = false, freed = false;
  let series = { time: [], polarization: [], milling: [] };
  let drawn = [];

  const plane = surface(root.querySelector('[data-canvas="flock"]'), () => drawPlane());
  const triangle = surface(root.querySelector('[data-canvas="simplex"]'), () => drawSimplex());
  slot("bars").innerHTML = CLASSES.map((name, k) => `<div class="bar ${name}"><b>${NAMES[k]}</b><div><i></i></div><output></output></div>`).join("");
  const bars = [...slot("bars").querySelectorAll(".bar")];

  function rings(c, v, x, y, heading) {
    const half = (now.vision * Math.PI) / 360;
    now.radii.forEach((radius, k) => {
      c.globalAlpha = 0.7;
      c.strokeStyle = colours.primitives[k];
      c.setLineDash([4, 4]);
      c.lineWidth = 1.2;
      c.beginPath();
      c.arc(v.x(x), v.y(y), radius * v.unit, -heading - half, -heading + half);
      c.stroke();
    });
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  function goal(c, v) {
    if (!now.leaders) return;
    const [x, y] = [v.x(now.goal[0]), v.y(now.goal[1])];
    const edge = 22, inside = x > edge && y > edge && x < plane.width - edge && y < plane.height - edge;
    const at = [Math.min(Math.max(x, edge), plane.width - edge), Math.min(Math.max(y, edge), plane.height - edge)];
    simplex.dot(c, at, 8, null, colours.bad, 2);
    simplex.dot(c, at, 3, colours.bad);
    c.fillStyle = colours.bad;
    c.font = `600 12px ${colours.sans}`;
    c.textAlign = at[0] < 60 ? "left" : at[0] > plane.width - 60 ? "right" : "center";
    const text = inside ? "goal" : `goal, ${now.goal_distance.toFixed(0)} m`;
    c.fillText(text, at[0], at[1] > plane.height - 50 ? at[1] - 14 : at[1] + 24);
  }

  function drawPlane() {
    if (!now || !camera || !plane.ready()) return;
    const { context: c } = plane, { position, velocity, weights } = now.arrays, v = lens(plane, camera), count = position.shape[0];
    const [p, u, w] = [position.values, velocity.values, weights.values], tones = colours.primitives.map(rgb);
    plane.begin();
    ground(plane, camera, v, colours, "m");
    goal(c, v);
    const size = sizeOf(count);
    const pick = now.selected;
    rings(c, v, p[2 * pick], p[2 * pick + 1], Math.atan2(u[2 * pick + 1], u[2 * pick]));
    for (let i = 0; i < count; i++) {
      const x = v.x(p[2 * i]), y = v.y(p[2 * i + 1]), turn = -Math.atan2(u[2 * i + 1], u[2 * i]);
      const decides = i < weights.shape[0];
      c.fillStyle = decides ? mixture(w, i, tones) : colours.soft;
      arrow(c, x, y, turn, size);
      if (i < now.leaders) simplex.dot(c, [x, y], size * 1.5, null, colours.ink, 1.4);
    }
    simplex.dot(c, [v.x(p[2 * pick]), v.y(p[2 * pick + 1])], size * 2, null, colours.link, 2.4);
    drawn.push(performance.now());
  }

  function drawSimplex() {
    if (!triangle.ready()) return;
    const { context: c, width, height } = triangle, box = simplex.frame(width, height);
    triangle.begin();
    c.strokeStyle = colours.faint;
    c.lineWidth = 1;
    for (let k = 1; k < 4; k++) {
      const s = k / 4;
      for (const [from, to] of [[[s, 1 - s, 0], [s, 0, 1 - s]], [[1 - s, s, 0], [0, s, 1 - s]], [[1 - s, 0, s], [0, 1 - s, s]]]) {
        c.beginPath(); c.moveTo(...simplex.at(box, ...from)); c.lineTo(...simplex.at(box, ...to)); c.stroke();
      }
    }
    simplex.border(c, box, colours, SHORT);
    const points = trail.map((w) => simplex.at(box, ...w));
    for (let k = 1; k < points.length; k++) {
      c.globalAlpha = 0.08 + 0.7 * (k / points.length) ** 2;
      simplex.trail(c, [points[k - 1], points[k]], [[colours.ink, 1.6]]);
    }
    c.globalAlpha = 1;
    if (points.length) simplex.dot(c, points[points.length - 1], 6, colours.ink, colours.paper, 2);
  }

  function describe() {
    const { weights } = now.arrays;
    const own = now.decides ? weights.values.subarray(3 * now.selected, 3 * now.selected + 3) : null;
    bars.forEach((bar, k) => {
      bar.querySelector("i").style.width = own ? `${100 * own[k]}%` : "0";
      bar.querySelector("output").textContent = own ? own[k].toFixed(3) : "–";
    });
    slot("who").textContent = `Boid ${now.selected}${now.selected < now.leaders ? ", a leader" : ""}`;
    slot("proof").textContent = !now.decides
      ? "This boid follows a rule from the literature: it has no weights."
      : now.k ? `All ${weights.shape[0]} decisions are proved within ${now.gap.toExponential(0)}.` : "";
    const recent = drawn.filter((t) => t > performance.now() - 2000);
    drawn = recent;
    const seen = recent.length > 1 ? ((recent.length - 1) * 1000) / (recent[recent.length - 1] - recent[0]) : 0;
    Object.assign(root.dataset, { fps: seen.toFixed(1), made: now.fps }); // drawn here, and made by the server
    slot("clock").textContent = `${now.time.toFixed(1)} s, step ${now.k}` + (seen > 1 ? `, ${seen.toFixed(0)} pictures a second` : "");
    slot("order").textContent = `polarization ${now.polarization.toFixed(2)}, milling ${now.milling.toFixed(2)}`;
    slot("leaders").hidden = !now.leaders;
  }

  function drawChart() {
    const step = Math.max(1, Math.floor(series.time.length / 400));
    const thin = (values) => values.filter((_, i) => i % step === 0);
    charts.lines(slot("plot"), [
      { name: "polarization", x: thin(series.time), y: thin(series.polarization), colour: colours.orders[0] },
      { name: "milling", x: thin(series.time), y: thin(series.milling), colour: colours.orders[1] },
    ], { x: "time, s", y: "order", range: [0, 1.03] });
  }

  function show() {
    if (freed) return; // the page was left before the screen was ready
    scheduled = false;
    if (!now) return;
    camera = aim(camera, now.arrays.position, NARROWEST);
    drawPlane();
    drawSimplex();
    describe();
    if (performance.now() > chartDue) { chartDue = performance.now() + CHART_EVERY; drawChart(); }
  }

  plane.canvas.addEventListener("click", (event) => {
    if (!now) return;
    studio.change("selected", nearest(lens(plane, camera), now.arrays.position, ...place(plane.canvas, event)));
  });

  const file = tracks.mount(root, studio);
  return {
    frame(one) {
      if (one.part === "tracks") { file.frame(one); return; }
      if (file.held()) file.leave();
      if (now && (one.k < now.k || one.arrays.position.shape[0] !== now.arrays.position.shape[0])) {
        series = { time: [], polarization: [], milling: [] };
        trail = [];
        camera = null;
      }
      if (now && one.selected !== now.selected) trail = [];
      if (!now || one.k !== now.k || !series.time.length) {
        series.time.push(one.time); series.polarization.push(one.polarization); series.milling.push(one.milling);
        if (one.decides) trail.push([...one.arrays.weights.values.subarray(3 * one.selected, 3 * one.selected + 3)]);
        if (trail.length > RECENT) trail.shift();
      }
      now = one;
      // of frames that come faster than the screen shows them, only the last is drawn
      if (!scheduled) { scheduled = true; requestAnimationFrame(show); }
    },
    recolour() { colours = tokens(); drawPlane(); drawSimplex(); drawChart(); file.recolour(); },
    canvases: () => (file.active() ? file.canvases() : [plane.canvas, triangle.canvas]),
    data: () => (file.active() ? file.data() : { now, series }),
    free() { freed = true; plane.free(); triangle.free(); charts.clear(slot("plot")); file.free(); },
  };
}
