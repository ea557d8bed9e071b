// The drones in space: an orthographic view of a vertical plane for each of them, apart, together or one behind another.

const SPAN = 0.34, LEAST = 26, MOST = 46; // m and px; drawn larger than the drone is (0.08 m), so that its pitch can be read
const REACH = 0.34, BELOW = 0.06, ABOVE = 0.36; // m around the path that stay in view
const LANE = 0.75; // m between drones that fly one behind another
const GRIP = 30; // px around a drone in which it can be taken hold of
export const PIXELS_FOR_SPEED = 60; // of pull, for a push of 1 m/s

const radians = (degrees) => (degrees * Math.PI) / 180;

// What is to be in view: the whole path, and the floor under it.
function bounds({ arrays: { path }, round }) {
  let [left, right, top] = [Infinity, -Infinity, -Infinity];
  for (let k = 0; k < Math.min(path.shape[0], round); k++) {
    const [x, z] = [path.values[2 * k], path.values[2 * k + 1]];
    left = Math.min(left, x); right = Math.max(right, x); top = Math.max(top, z);
  }
  return { left: left - REACH, right: right + REACH, bottom: -BELOW, top: top + ABOVE };
}

// Cells of the picture, each {x, y, width, height}; as many columns as let the path be largest.
function cells(count, width, height, box) {
  let best = null;
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns), [w, h] = [width / columns, height / rows];
    const unit = Math.min(w / (box.right - box.left), h / (box.top - box.bottom));
    if (!best || unit > best.unit) best = { unit, columns, w, h };
  }
  return Array.from({ length: count }, (_, i) => ({
    x: (i % best.columns) * best.w, y: Math.floor(i / best.columns) * best.h, width: best.w, height: best.h,
  }));
}

// For each drone a cell and a projection of (x, y, z) to pixels.
export function stages(record, look, width, height) {
  const box = bounds(record), count = record.drones.length;
  const [turn, tilt] = [radians(look.turn), radians(look.tilt)];
  const [ct, st, ce, se] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
  const lane = (i) => (look.layout === "in depth" ? ((count - 1) / 2 - i) * LANE : 0);
  const places = look.layout === "apart" ? cells(count, width, height, box) : Array(count).fill({ x: 0, y: 0, width, height });
  const centre = [(box.left + box.right) / 2, (box.bottom + box.top) / 2];
  const deep = look.layout === "in depth" ? ((count - 1) / 2) * LANE : 0;
  // the box as it is seen, with what its turn and its depth add
  const wide = (box.right - box.left) * Math.abs(ct) + 2 * deep * Math.abs(st);
  const high = (box.top - box.bottom) * ce + 2 * (deep + 0.1) * se + 0.5 * (box.right - box.left) * Math.abs(st) * se;
  return places.map((cell, i) => {
    const unit = Math.min(cell.width / wide, cell.height / high);
    const middle = [cell.x + cell.width / 2, cell.y + cell.height / 2];
    const at = (x, y, z) => {
      const [dx, dy] = [x - centre[0], y + lane(i)];
      return [middle[0] + unit * (dx * ct + dy * st), middle[1] - unit * ((z - centre[1]) * ce + (dy * ct - dx * st) * se)];
    };
    return { cell, unit, at, box, alone: look.layout === "apart" };
  });
}

// A drone's state between two decisions; the pitch may be folded, so it is taken as it is.
export function stateAt(record, drone, moment) {
  const { values, shape } = record.arrays.states, place = Math.min(moment / record.dt, shape[1] - 1);
  const low = Math.floor(place), share = place - low, high = Math.min(low + 1, shape[1] - 1);
  const read = (k, field) => values[(drone * shape[1] + k) * 6 + field];
  const between = (field) => read(low, field) + share * (read(high, field) - read(low, field));
  return { x: between(0), vx: between(1), z: between(2), vz: between(3), pitch: between(4) };
}

function line(c, points) {
  c.beginPath();
  points.forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.stroke();
}

function floor(c, { at, box }, colours) {
  const half = 0.2, [l, r] = [box.left + 0.1, box.right - 0.1];
  c.fillStyle = colours.faint;
  c.beginPath();
  [[l, -half], [r, -half], [r, half], [l, half]].forEach(([x, y], k) => (k ? c.lineTo(...at(x, y, 0)) : c.moveTo(...at(x, y, 0))));
  c.closePath();
  c.fill();
  c.strokeStyle = colours.line;
  c.lineWidth = 1;
  line(c, [at(l, 0, 0), at(r, 0, 0)]);
}

function course(c, { at, unit }, record, colours) {
  const { values, shape } = record.arrays.path;
  c.strokeStyle = colours.line;
  c.lineWidth = Math.max(2.5, Math.min(6, unit * 0.03));
  c.lineJoin = c.lineCap = "round";
  line(c, Array.from({ length: Math.min(shape[0], record.round) }, (_, k) => at(values[2 * k], 0, values[2 * k + 1])));
}

// Where it should be now, and a thread from there to the drone.
function target(c, { at }, record, moment, state, colours) {
  const { values, shape } = record.arrays.path, k = Math.min(Math.round(moment / record.dt), shape[0] - 1);
  const spot = at(values[2 * k], 0, values[2 * k + 1]);
  c.strokeStyle = colours.soft;
  c.lineWidth = 1;
  c.setLineDash([2, 3]);
  line(c, [spot, at(state.x, 0, state.z)]);
  c.setLineDash([]);
  c.lineWidth = 1.5;
  c.fillStyle = colours.paper;
  c.beginPath();
  c.arc(...spot, 4, 0, 2 * Math.PI);
  c.fill();
  c.stroke();
}

function trail(c, { at }, record, drone, moment, colour) {
  const { values, shape } = record.arrays.states, last = Math.min(Math.floor(moment / record.dt), shape[1] - 1);
  const point = (k) => at(values[(drone * shape[1] + k) * 6], 0, values[(drone * shape[1] + k) * 6 + 2]);
  c.strokeStyle = colour;
  c.lineJoin = c.lineCap = "round";
  const lately = Math.max(0, last - Math.round(1.5 / record.dt));
  for (const [from, to, alpha, width] of [[Math.max(0, last - Math.round(6 / record.dt)), lately, 0.28, 1.3], [lately, last, 0.85, 2]]) {
    if (to <= from) continue;
    c.globalAlpha = alpha;
    c.lineWidth = width;
    line(c, Array.from({ length: to - from + 1 }, (_, k) => point(from + k)));
  }
  c.globalAlpha = 1;
}

function vehicle(c, stage, state, colour, colours) {
  const { at, unit } = stage, size = Math.min(Math.max(SPAN, LEAST / unit), MOST / unit) / 2;
  const [cos, sin] = [Math.cos(state.pitch), Math.sin(state.pitch)];
  // from the body, with the thrust along its third axis: a positive pitch leans to the right
  const body = (a, b, up) => at(state.x + size * (a * cos + up * sin), size * b, state.z + size * (-a * sin + up * cos));
  c.fillStyle = colours.soft;
  c.globalAlpha = 0.25;
  c.beginPath();
  c.ellipse(...at(state.x, 0, 0), unit * size * 0.9, Math.max(1.5, unit * size * 0.25), 0, 0, 2 * Math.PI);
  c.fill();
  c.globalAlpha = 1;
  c.lineCap = "round";
  const corners = [[-0.8, -0.7], [0.8, -0.7], [0.8, 0.7], [-0.8, 0.7]];
  for (const [tone, extra] of [[colours.paper, 3.5], [colour, 0]]) { // a rim first, so that trails do not run into it
    c.strokeStyle = tone;
    c.lineWidth = 3 + extra;
    line(c, [body(...corners[0], 0), body(...corners[2], 0)]);
    line(c, [body(...corners[1], 0), body(...corners[3], 0)]);
    c.lineWidth = 1.8 + extra;
    for (const [a, b] of corners) {
      line(c, [body(a, b, 0), body(a, b, 0.3)]);
      c.beginPath();
      for (let s = 0; s <= 16; s++) {
        const turn = (s / 16) * 2 * Math.PI, point = body(a + 0.48 * Math.cos(turn), b + 0.48 * Math.sin(turn), 0.3);
        if (s) c.lineTo(...point); else c.moveTo(...point);
      }
      c.stroke();
    }
  }
}

export function arrow(c, [x, y], [dx, dy], colour, width = 2.5) {
  const far = Math.hypot(dx, dy), head = Math.min(9, far * 0.5), turn = Math.atan2(dy, dx);
  if (far < 1) return;
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = width;
  c.lineCap = "round";
  line(c, [[x, y], [x + dx - head * 0.7 * Math.cos(turn), y + dy - head * 0.7 * Math.sin(turn)]]);
  c.beginPath();
  c.moveTo(x + dx, y + dy);
  for (const side of [-0.45, 0.45]) c.lineTo(x + dx - head * Math.cos(turn + side), y + dy - head * Math.sin(turn + side));
  c.closePath();
  c.fill();
}

// A drone that has left the picture is pointed at from the edge.
function drawOutside(c, stage, state, colour, colours) {
  const { cell, at } = stage, [x, y] = at(state.x, 0, state.z), edge = 16;
  if (x > cell.x && x < cell.x + cell.width && y > cell.y && y < cell.y + cell.height) return;
  const spot = [Math.min(Math.max(x, cell.x + edge + 8), cell.x + cell.width - edge - 8), Math.min(Math.max(y, cell.y + edge + 8), cell.y + cell.height - edge - 8)];
  const far = Math.hypot(x - spot[0], y - spot[1]) || 1;
  arrow(c, spot, [((x - spot[0]) / far) * edge, ((y - spot[1]) / far) * edge], colour, 3);
  c.fillStyle = colours.ink;
  c.font = `12px ${colours.sans}`;
  c.textAlign = spot[0] > cell.x + cell.width / 2 ? "right" : "left";
  c.fillText("out of view", spot[0] + (c.textAlign === "right" ? -8 : 8), Math.max(spot[1] + 4, cell.y + 44)); // below the name
}

// Gusts of the last fifth of a second, thin, and their mean.
export function wind(c, x, y, record, moment, colours) {
  const { values, shape } = record.arrays.gusts, last = Math.min(Math.floor(moment / record.dt), shape[0] - 1);
  const radius = 21, recent = [];
  for (let k = Math.max(0, last - 9); k <= last; k++) recent.push([values[2 * k], values[2 * k + 1]]);
  c.strokeStyle = colours.line;
  c.lineWidth = 1;
  c.fillStyle = colours.paper;
  c.beginPath();
  c.arc(x, y, radius, 0, 2 * Math.PI);
  c.fill();
  c.stroke();
  c.fillStyle = colours.soft;
  c.font = `12px ${colours.sans}`;
  c.textAlign = "right";
  c.fillText("gusts", x - radius - 7, y + 4);
  if (!recent.length) return;
  const scale = radius / Math.max(0.05, 2.2 * record.force_sd);
  const inside = ([fx, fz], gain) => { const far = Math.hypot(fx, fz) * scale * gain, cut = far > radius ? radius / far : 1; return [fx * scale * gain * cut, -fz * scale * gain * cut]; };
  recent.forEach((force, i) => {
    const [dx, dy] = inside(force, 1);
    c.globalAlpha = 0.12 + 0.3 * ((i + 1) / recent.length);
    c.strokeStyle = colours.soft;
    line(c, [[x, y], [x + dx, y + dy]]);
  });
  c.globalAlpha = 1;
  const mean = [0, 1].map((axis) => recent.reduce((sum, force) => sum + force[axis], 0) / recent.length);
  arrow(c, [x, y], inside(mean, 2), colours.ink, 2);
}

// pull: {drone, dx, dy} in pixels while a drone is dragged; flash: [x, z] of a push that has just come.
export function draw(c, width, height, record, look, moment, tones, colours, pull, flash) {
  const all = stages(record, look, width, height);
  const nearest = look.layout === "in depth" ? all.map((_, i) => i).reverse() : all.map((_, i) => i);
  if (!all[0].alone) {
    for (const i of look.layout === "in depth" ? nearest : [0]) { floor(c, all[i], colours); course(c, all[i], record, colours); }
  }
  for (const i of nearest) {
    const stage = all[i], { cell } = stage, state = stateAt(record, i, moment);
    c.save();
    c.beginPath();
    c.rect(cell.x, cell.y, cell.width, cell.height);
    c.clip();
    if (stage.alone) { floor(c, stage, colours); course(c, stage, record, colours); }
    trail(c, stage, record, i, moment, tones[i]);
    target(c, stage, record, moment, state, colours);
    vehicle(c, stage, state, tones[i], colours);
    c.restore();
    drawOutside(c, stage, state, tones[i], colours);
    const spot = stage.at(state.x, 0, state.z), push = pull ? [pull.dx, pull.dy] : flash ? [flash[0] * PIXELS_FOR_SPEED, -flash[1] * PIXELS_FOR_SPEED] : null;
    if (push) { c.globalAlpha = pull && pull.drone !== i ? 0.45 : 1; arrow(c, spot, push, colours.bad, 3); c.globalAlpha = 1; }
    label(c, stage, i, record, tones[i], colours, look.layout);
  }
  if (all[0].alone) borders(c, all, width, height, colours);
}

// Apart, a name stands in its cell; together, names are listed; in depth, each stands at the end of its lane.
function label(c, stage, i, record, tone, colours, layout) {
  c.font = `600 13px ${colours.sans}`;
  c.fillStyle = tone;
  c.textAlign = "left";
  const [x, y] = layout === "in depth" ? stage.at(stage.box.right - 0.05, 0, 0) : [stage.cell.x + 12, stage.cell.y + 22 + (stage.alone ? 0 : 18 * i)];
  const { label: name } = record.drones[i];
  c.fillText(name, Math.min(x, stage.cell.x + stage.cell.width - c.measureText(name).width - 8), y);
}

function borders(c, all, width, height, colours) {
  c.strokeStyle = colours.line;
  c.lineWidth = 1;
  for (const x of new Set(all.map(({ cell }) => cell.x))) if (x) line(c, [[x, 0], [x, height]]);
  for (const y of new Set(all.map(({ cell }) => cell.y))) if (y) line(c, [[0, y], [width, y]]);
}

// The drone under a pointer, or null.
export function droneAt(record, look, moment, width, height, [x, y]) {
  let best = null, least = GRIP;
  stages(record, look, width, height).forEach(({ at }, i) => {
    const state = stateAt(record, i, moment), [px, py] = at(state.x, 0, state.z), far = Math.hypot(px - x, py - y);
    if (far < least) [best, least] = [i, far];
  });
  return best;
}
