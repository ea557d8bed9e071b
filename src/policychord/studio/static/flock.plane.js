// The plane in which a group moves: a camera that follows it, the ground with its scale, and individuals as arrows.
// NaN is the place of an individual that is not there.

// A camera some way towards the middle of a group and a width that holds nearly all of it.
export function aim(camera, position, least) {
  const p = position.values, seen = [];
  for (let i = 0; i < position.shape[0]; i++) if (Number.isFinite(p[2 * i])) seen.push(i);
  if (!seen.length) return camera;
  const mean = (k) => seen.reduce((sum, i) => sum + p[2 * i + k], 0) / seen.length;
  const [x, y] = [mean(0), mean(1)];
  const far = seen.map((i) => Math.hypot(p[2 * i] - x, p[2 * i + 1] - y)).sort((a, b) => a - b);
  const reach = Math.max(far[Math.floor(0.97 * (far.length - 1))] * 1.3, least);
  if (!camera) return { x, y, reach };
  return { x: camera.x + 0.2 * (x - camera.x), y: camera.y + 0.2 * (y - camera.y), reach: camera.reach + 0.06 * (reach - camera.reach) };
}

export function lens(plane, camera) {
  const unit = Math.min(plane.width, plane.height) / (2 * camera.reach);
  return { unit, x: (x) => plane.width / 2 + (x - camera.x) * unit, y: (y) => plane.height / 2 - (y - camera.y) * unit };
}

export function ground(plane, camera, v, colours, length) {
  const c = plane.context;
  let step = 10 ** Math.floor(Math.log10(55 / v.unit));
  for (const more of [2, 2.5, 2]) if (step * v.unit < 55) step *= more;
  c.strokeStyle = colours.faint;
  c.lineWidth = 1;
  c.beginPath();
  const half = [plane.width / v.unit / 2, plane.height / v.unit / 2];
  for (let x = Math.ceil((camera.x - half[0]) / step) * step; x < camera.x + half[0]; x += step) { c.moveTo(v.x(x), 0); c.lineTo(v.x(x), plane.height); }
  for (let y = Math.ceil((camera.y - half[1]) / step) * step; y < camera.y + half[1]; y += step) { c.moveTo(0, v.y(y)); c.lineTo(plane.width, v.y(y)); }
  c.stroke();
  c.fillStyle = colours.soft;
  c.strokeStyle = colours.soft;
  c.font = `12px ${colours.sans}`;
  c.textAlign = "right";
  c.lineWidth = 2;
  const [right, low] = [plane.width - 14, plane.height - 14];
  c.beginPath(); c.moveTo(right - step * v.unit, low); c.lineTo(right, low); c.stroke();
  c.fillText(`${Number(step.toPrecision(3))} ${length}`, right, low - 7);
}

export const sizeOf = (count) => Math.max(4.5, Math.min(9, 70 / Math.sqrt(count) + 2));

// A mixture of tones by the shares of one row of weights; shares are sharpened, or every boid would be the same brown.
export function mixture(weights, row, tones) {
  const n = tones.length;
  let sum = 0;
  const mixed = [0, 0, 0];
  for (let k = 0; k < n; k++) {
    const share = weights[n * row + k] ** 3;
    sum += share;
    for (let t = 0; t < 3; t++) mixed[t] += share * tones[k][t];
  }
  return `rgb(${mixed.map((t) => Math.round(t / sum)).join(" ")})`;
}

export function arrow(c, x, y, turn, size) {
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const corner = (a, b) => [x + size * (a * cos - b * sin), y + size * (a * sin + b * cos)];
  c.beginPath();
  c.moveTo(...corner(1.25, 0)); c.lineTo(...corner(-0.85, 0.7)); c.lineTo(...corner(-0.45, 0)); c.lineTo(...corner(-0.85, -0.7));
  c.closePath();
  c.fill();
}

export function nearest(v, position, x, y) {
  let best = 0, least = Infinity;
  const p = position.values;
  for (let i = 0; i < p.length / 2; i++) {
    const far = Math.hypot(v.x(p[2 * i]) - x, v.y(p[2 * i + 1]) - y);
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
