// The triangle of all mixtures of three: corner 1 on top, 2 left, 3 right.
import { blend, rgb } from "./canvas.js";

export function frame(width, height) {
  const side = Math.min(width - 64, (height - 64) / 0.866);
  const left = (width - side) / 2, top = (height - 0.866 * side) / 2 + 4;
  return { left, top, side, corners: [[left + side / 2, top], [left, top + 0.866 * side], [left + side, top + 0.866 * side]] };
}

export function at(box, w1, w2, w3) {
  const [a, b, c] = box.corners;
  return [w1 * a[0] + w2 * b[0] + w3 * c[0], w1 * a[1] + w2 * b[1] + w3 * c[1]];
}

// The weights at a place, moved to the border if it lies outside.
export function weightsAt(box, x, y) {
  const w1 = 1 - (y - box.top) / (0.866 * box.side);
  const w3 = (x - box.left) / box.side - w1 / 2;
  const inside = [w1, 1 - w1 - w3, w3].map((w) => Math.max(w, 0));
  const sum = inside[0] + inside[1] + inside[2];
  return inside.map((w) => w / sum);
}

// Energy over the grid of studio/pages/gate.py: shades, and lines of equal height. Heights are shown by their root, so
// that the floor of the valley has lines too.
export function landscape(context, box, rows, values, colours) {
  const heights = Float64Array.from(values, (v) => Math.sqrt(Math.max(v, 0)));
  const top = Math.max(...heights) || 1;
  const low = rgb(colours.low), high = rgb(colours.high);
  const index = (i, j) => (i * (i + 1)) / 2 + j;
  const point = (i, j) => at(box, (rows - i) / rows, (i - j) / rows, j / rows);
  const levels = Array.from({ length: 11 }, (_, k) => ((k + 1) / 12) * top);
  const lines = [];
  function cell(spots) {
    const h = spots.map(([i, j]) => heights[index(i, j)]), p = spots.map(([i, j]) => point(i, j));
    context.fillStyle = context.strokeStyle = blend(low, high, ((h[0] + h[1] + h[2]) / 3 / top) ** 0.8);
    context.beginPath();
    p.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.fill();
    context.stroke(); // closes the hair between neighbours
    for (const level of levels) {
      const cut = [];
      for (let k = 0; k < 3; k++) {
        const n = (k + 1) % 3;
        if ((h[k] < level) !== (h[n] < level)) {
          const share = (level - h[k]) / (h[n] - h[k]);
          cut.push([p[k][0] + share * (p[n][0] - p[k][0]), p[k][1] + share * (p[n][1] - p[k][1])]);
        }
      }
      if (cut.length === 2) lines.push(cut);
    }
  }
  context.lineWidth = 0.7;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j <= i; j++) {
      cell([[i, j], [i + 1, j], [i + 1, j + 1]]);
      if (j < i) cell([[i, j], [i, j + 1], [i + 1, j + 1]]);
    }
  }
  context.strokeStyle = colours.paper;
  context.globalAlpha = 0.55;
  context.lineWidth = 0.8;
  context.beginPath();
  for (const [from, to] of lines) { context.moveTo(...from); context.lineTo(...to); }
  context.stroke();
  context.globalAlpha = 1;
}

export function border(context, box, colours, names) {
  context.strokeStyle = colours.soft;
  context.lineWidth = 1.2;
  context.beginPath();
  box.corners.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.stroke();
  context.font = `600 13px ${colours.sans}`;
  const shift = [[0, -9, "center"], [-2, 20, "center"], [2, 20, "center"]];
  names.forEach((name, k) => {
    const [dx, dy, align] = shift[k];
    context.fillStyle = colours.primitives[k];
    context.textAlign = align;
    const half = context.measureText(name).width / 2;
    const x = Math.min(Math.max(box.corners[k][0] + dx, half + 4), context.canvas.clientWidth - half - 4);
    context.fillText(name, x, box.corners[k][1] + dy);
  });
}

export function trail(context, points, style) {
  if (points.length < 2) return;
  context.lineJoin = context.lineCap = "round";
  for (const [colour, width] of style) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }
}

export function dot(context, [x, y], radius, fill, edge, width = 2) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) { context.fillStyle = fill; context.fill(); }
  if (edge) { context.strokeStyle = edge; context.lineWidth = width; context.stroke(); }
}
