// The page Flight: plays what was flown, lets drones be pushed, and looks back.
import { place, surface, tokens } from "./canvas.js";
import * as scene from "./flight.scene.js";
import * as strips from "./flight.strips.js";

const COLOURS = { composed: "one", rival: "rival", "fixed 50/50": "three", baseline: "ink", stabilise: "half", track: "two" };
const FASTEST = 4; // m/s, the strongest push
const PAUSE = 1800; // ms between the end of a flight and the next
const FLASH = 0.45; // s for which a push is shown
const TOLD_EVERY = 150; // ms between numbers that change: faster ones cannot be read
// what may differ between flights whose costs are averaged
const WATCHING = ["flight", "layout", "turn", "tilt", "pace", "onward", "playing", "push_speed", "push_angle", "pushes"];

export const closed = ["World", "Push"];
export const restart = "Restart"; // what the button says

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`), button = (name) => root.querySelector(`[data-press="${name}"]`);
  let record = null, now = null, colours = tokens(), tones = [], reached = 0, scheduled = false, freed = false, drawn = [], toldAt = 0, waiting = 0;
  let pull = null, turning = null, held = null, look = null; // what is dragged, and the moment that is shown meanwhile
  let tally = { key: "", costs: new Map() };

  const air = surface(root.querySelector('[data-canvas="flight"]'), () => drawAir());
  const time = surface(root.querySelector('[data-canvas="strips"]'), () => drawStrips());
  const moment = () => held ?? now?.moment ?? 0;
  const view = () => look ?? studio.settings();

  function recolour() {
    colours = tokens();
    const style = getComputedStyle(document.documentElement);
    tones = record ? record.drones.map((drone) => style.getPropertyValue(`--${COLOURS[drone.role]}`).trim() || colours.ink) : [];
  }

  // ------------------------------------------------------------------ drawing

  function drawAir() {
    if (!record || !air.ready()) return;
    air.begin();
    const at = moment(), recent = record.pushes.filter(([k]) => at >= k * record.dt - 1e-6 && at < k * record.dt + FLASH).pop();
    scene.draw(air.context, air.width, air.height, record, view(), at, tones, colours, pull, recent?.slice(1));
    scene.wind(air.context, air.width - 32, 32, record, at, colours);
    if (pull) {
      const { context: c } = air, [vx, vz] = speeds();
      c.font = `600 13px ${colours.sans}`;
      c.fillStyle = colours.bad;
      c.textAlign = "center";
      c.fillText(`${Math.hypot(vx, vz).toFixed(1)} m/s for all`, Math.min(Math.max(pull.x, 60), air.width - 60), Math.max(pull.y - 14, 16));
    }
    drawn.push(performance.now());
  }

  function drawStrips() {
    if (!record || !time.ready()) return;
    time.begin();
    strips.draw(time.context, time.width, time.height, record, moment(), reached, tones, colours);
  }

  const steps = () => Math.round(record.steps);
  const row = () => Math.min(Math.floor(moment() / record.dt + 1e-6), record.known);
  const value = (name, i, k) => { const { values, shape } = record.arrays[name]; return values[i * shape[1] + Math.min(k, shape[1] - 1)]; };

  function board() {
    const body = slot("board");
    body.replaceChildren(...record.drones.map((drone, i) => {
      const line = document.createElement("tr"), swatch = document.createElement("i"), name = document.createElement("td");
      swatch.style.background = tones[i];
      name.append(swatch, drone.label);
      line.append(name, ...Array.from({ length: 4 }, () => document.createElement("td")));
      return line;
    }));
  }

  function average(name) {
    const flights = [...tally.costs.values()];
    return flights.length ? flights.reduce((sum, costs) => sum + costs[name], 0) / flights.length : null;
  }

  function proof(k) {
    return record.drones.map((drone, i) => {
      if (!drone.gate || !k) return "";
      let worst = 0;
      for (let j = 0; j < Math.min(k, record.known); j++) worst = Math.max(worst, value("gap", i, j));
      const name = drone.label[0].toUpperCase() + drone.label.slice(1);
      if (drone.gate === "equilibrium") return `${name}: all ${k} decisions proved within ${worst.toExponential(0)} of the optimum.`;
      const why = drone.gate === "one-step" ? "one step, not the optimum" : "always half, not the optimum";
      return `${name}: ${why}; within ${value("gap", i, k - 1).toPrecision(2)} of it now, ${worst.toPrecision(2)} at worst.`;
    }).filter(Boolean).join(" ");
  }

  function describe() {
    const k = row(), seconds = moment(), over = seconds >= steps() * record.dt - 1e-6;
    slot("time").textContent = `${seconds.toFixed(2)} of ${(steps() * record.dt).toFixed(1)} s`;
    button("play").textContent = now.playing && !over ? "Pause" : over ? "Again" : "Play";
    button("push").disabled = over;
    const slider = slot("moment");
    slider.max = steps();
    if (held === null) slider.value = k;
    slider.setAttribute("aria-valuetext", `${seconds.toFixed(1)} seconds`);
    const recent = drawn.filter((t) => t > performance.now() - 2000);
    drawn = recent;
    const seen = recent.length > 1 ? ((recent.length - 1) * 1000) / (recent[recent.length - 1] - recent[0]) : 0;
    Object.assign(root.dataset, { fps: seen.toFixed(1), made: now.fps, moment: seconds.toFixed(3) }); // drawn here, made by the server
    describeMixture(k);
    if (performance.now() - toldAt < TOLD_EVERY && now.playing && !over) return;
    toldAt = performance.now();
    slot("clock").textContent = `flight ${record.flight}, decision ${k} of ${steps()}` + (seen > 1 && now.playing ? `, ${seen.toFixed(0)} pictures a second` : "");
    [...slot("board").children].forEach((line, i) => {
      const drone = record.drones[i], weighs = drone.gate || drone.role === "fixed 50/50", mean = average(drone.name);
      const cells = [weighs && record.known ? value("weight", i, Math.max(k - 1, 0)).toFixed(2) : "–", value("distance", i, k).toFixed(2), value("cost", i, k).toFixed(0), mean === null ? "–" : mean.toFixed(0)];
      cells.forEach((word, column) => { line.children[column + 1].textContent = word; });
    });
    slot("flights").textContent = tally.costs.size ? `Mean: whole flights without pushes, ${tally.costs.size} so far.` : "";
    slot("proof").textContent = proof(k);
    const pushes = record.pushes.map(([when, x, z]) => `${(when * record.dt).toFixed(2)} s: ${Math.hypot(x, z).toFixed(1)} m/s ${direction(x, z)}`);
    const impulse = record.impulse !== null && k >= record.impulse ? `The study's impulse came at ${(record.impulse * record.dt).toFixed(2)} s. ` : "";
    slot("pushes").textContent = impulse + (pushes.length ? `Pushed at ${pushes.join("; ")}. The link holds this.` : "No pushes yet: drag a drone.");
    button("forget").hidden = !pushes.length;
  }

  // What the first gate there is makes of the two.
  function describeMixture(k) {
    const i = record.drones.findIndex((drone) => drone.gate), box = slot("mix");
    box.hidden = i < 0 || !record.known;
    if (box.hidden) return;
    const share = value("weight", i, Math.max(k - 1, 0)), [left, name, right] = box.querySelector("p").children;
    left.textContent = `${Math.round(100 * share)}% stabilise`;
    name.textContent = record.drones[i].label;
    right.textContent = `track ${100 - Math.round(100 * share)}%`;
    box.querySelector("i").style.width = `${100 * share}%`;
  }

  function direction(x, z) {
    const names = ["right", "up and right", "up", "up and left", "left", "down and left", "down", "down and right"];
    return names[(Math.round(Math.atan2(z, x) / (Math.PI / 4)) + 8) % 8];
  }

  function show() {
    if (freed) return; // the page was left before the screen was ready
    scheduled = false;
    if (!record || !now) return;
    reached = Math.max(reached, moment());
    drawAir();
    drawStrips();
    describe();
  }

  function schedule() { if (!scheduled) { scheduled = true; requestAnimationFrame(show); } }

  // ------------------------------------------------------------------ whole flights

  function count() {
    const same = Object.entries(studio.settings()).filter(([name]) => !WATCHING.includes(name)).sort();
    const key = JSON.stringify(same);
    if (key !== tally.key) tally = { key, costs: new Map() };
    if (!record.pushes.length && record.known === record.steps) {
      tally.costs.set(record.flight, Object.fromEntries(record.drones.map((drone, i) => [drone.name, value("cost", i, record.steps)])));
    }
  }

  function goOn() {
    count();
    toldAt = 0;
    clearTimeout(waiting);
    const flight = record.flight;
    waiting = setTimeout(() => {
      if (now.over && now.playing && held === null && !pull && !record.pushes.length && studio.settings().onward && record.flight === flight) studio.change("flight", (flight + 1) % 1000);
    }, PAUSE);
  }

  // ------------------------------------------------------------------ hands

  const speeds = () => {
    const [x, z] = [pull.dx / scene.PIXELS_FOR_SPEED, -pull.dy / scene.PIXELS_FOR_SPEED], cut = Math.min(1, FASTEST / (Math.hypot(x, z) || 1));
    return [x * cut, z * cut];
  };
  const push = (x, z, at = moment()) => studio.act({ push: [Number(x.toFixed(3)), Number(z.toFixed(3))], moment: at });
  const droneUnder = (event) => (record ? scene.droneAt(record, view(), moment(), air.width, air.height, place(air.canvas, event)) : null);

  function turnView(turn, tilt) {
    const settings = view(), within = (value, low, high) => Math.round(Math.min(Math.max(value, low), high));
    look = { ...settings, turn: within(turn, -80, 80), tilt: within(tilt, 0, 80) };
    studio.change({ turn: look.turn, tilt: look.tilt });
    schedule();
  }

  air.canvas.addEventListener("pointerdown", (event) => {
    if (!record) return;
    const drone = droneUnder(event), [x, y] = place(air.canvas, event);
    air.canvas.setPointerCapture(event.pointerId);
    if (drone !== null && !(now.over && now.moment === moment())) {
      held = moment(); // time stops while a drone is dragged
      pull = { drone, x, y, dx: 0, dy: 0, from: [x, y] };
      air.canvas.classList.add("pulling");
    } else {
      turning = { x, y, turn: view().turn, tilt: view().tilt };
      air.canvas.classList.add("turning");
    }
  });
  air.canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(air.canvas, event);
    if (pull) { Object.assign(pull, { x, y, dx: x - pull.from[0], dy: y - pull.from[1] }); schedule(); }
    else if (turning) turnView(turning.turn + (x - turning.x) * 0.4, turning.tilt + (y - turning.y) * 0.4);
    else air.canvas.classList.toggle("over-drone", droneUnder(event) !== null);
  });
  function releaseDrone(event) {
    if (pull) {
      const far = Math.hypot(pull.dx, pull.dy), at = held, [x, z] = speeds();
      pull = null;
      if (event.type === "pointerup" && far > 6) push(x, z, at);
      release(at);
    }
    turning = look = null;
    air.canvas.classList.remove("pulling", "turning");
    schedule();
  }
  air.canvas.addEventListener("pointerup", releaseDrone);
  air.canvas.addEventListener("pointercancel", releaseDrone);
  // a finger on a drone pulls it, elsewhere it scrolls the page
  air.canvas.addEventListener("touchstart", (event) => { if (droneUnder(event.touches[0]) !== null) event.preventDefault(); }, { passive: false });

  air.canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.key === " ") { event.preventDefault(); button("play").click(); }
    if (!way || !record) return;
    event.preventDefault();
    const { turn, tilt, push_speed: speed } = studio.settings();
    if (event.shiftKey) push(way[0] * speed, way[1] * speed);
    else { turnView(turn + 5 * way[0], tilt + 5 * way[1]); look = null; }
  });

  // Looking back: the page shows the moment at once, and the server follows.
  let wanted = null;
  function scrub(seconds) {
    if (now.playing) studio.change("playing", false);
    held = Math.min(seconds, record.steps * record.dt);
    if (wanted === null) requestAnimationFrame(() => { studio.act({ moment: wanted }); wanted = null; });
    wanted = held;
    schedule();
  }
  let letting = 0;
  function release(at) {
    clearTimeout(letting);
    letting = setTimeout(() => { held = null; schedule(); }, 400); // unless a frame from there comes earlier
    arriving = at;
  }
  let arriving = null, scrubbing = false;
  time.canvas.addEventListener("pointerdown", (event) => {
    if (!record) return;
    scrubbing = true;
    time.canvas.setPointerCapture(event.pointerId);
    scrub(strips.momentAt(record, time.width, time.height, place(time.canvas, event)));
  });
  time.canvas.addEventListener("pointermove", (event) => { if (scrubbing) scrub(strips.momentAt(record, time.width, time.height, place(time.canvas, event))); });
  for (const kind of ["pointerup", "pointercancel"]) time.canvas.addEventListener(kind, () => { if (scrubbing) { scrubbing = false; release(held); } });
  slot("moment").addEventListener("input", (event) => { if (record) { scrub(Number(event.target.value) * record.dt); release(held); } });

  button("play").addEventListener("click", () => { if (now) studio.change("playing", now.over ? true : !now.playing); });
  button("next").addEventListener("click", () => studio.change({ flight: (studio.settings().flight + 1) % 1000, playing: true }));
  button("forget").addEventListener("click", () => studio.act({ forget: true }));
  button("push").addEventListener("click", () => {
    const { push_speed: speed, push_angle: angle } = studio.settings();
    push(speed * Math.cos((angle * Math.PI) / 180), speed * Math.sin((angle * Math.PI) / 180));
  });

  return {
    frame(one) {
      if (now && one.tick < now.tick && one.part === "moment") return; // overtaken by the record
      if (one.part === "compiling") return; // the panels say it
      const was = now;
      now = one;
      if (one.part === "flight") {
        if (!record || record.edition !== one.edition) reached = Math.min(reached, one.moment);
        if (record && record.flight !== one.flight) reached = 0;
        record = one;
        recolour();
        board();
        toldAt = 0;
      }
      if (held !== null && arriving !== null && Math.abs(one.moment - arriving) < 0.12) { held = arriving = null; clearTimeout(letting); }
      if (one.over && !(was?.over && was.edition === one.edition)) goOn();
      schedule();
    },
    recolour() { recolour(); if (record) { board(); toldAt = 0; show(); } },
    canvases: () => [air.canvas, time.canvas],
    data: () => ({ moment: now, record }),
    free() { freed = true; delete root.dataset.moment; delete root.dataset.made; clearTimeout(waiting); clearTimeout(letting); air.free(); time.free(); },
  };
}
