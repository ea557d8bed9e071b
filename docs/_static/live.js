// The first page's figure: three policies over four actions, solved again at every change of a cost or the temperature.
"use strict";

const ACTIONS = ["left", "ahead", "wait", "right"];
const POLICIES = ["keep left", "press on", "keep right"];
const COLOURS = ["#0072b2", "#d55e00", "#009e73"];
const PI = [[0.7, 0.1, 0.1], [0.1, 0.7, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.7]]; // a row for each action
const WIDTH = 560, HEIGHT = 250, SIDE = 230, SCALE = 160;

const mixture = (pi, w) => pi.map(row => row.reduce((sum, p, a) => sum + p * w[a], 0));

// h = Pi^T (ln Pi w + s): the gradient of the complexity, less one
function primitiveCost(pi, cost, w) {
  const inside = mixture(pi, w).map((m, i) => Math.log(m) + cost[i]);
  return w.map((_, a) => pi.reduce((sum, row, i) => sum + row[a] * inside[i], 0));
}

function softmax(x) {
  const top = Math.max(...x), e = x.map(v => Math.exp(v - top)), sum = e.reduce((a, b) => a + b);
  return e.map(v => v / sum);
}

const kl = (p, q) => p.reduce((sum, v, a) => sum + v * Math.log(v / q[a]), 0);

// V(w) with an even prior
function energy(pi, cost, eps, w) {
  const complexity = mixture(pi, w).reduce((sum, m, i) => sum + m * (Math.log(m) + cost[i]), 0);
  return complexity + eps * kl(w, w.map(() => 1 / w.length));
}

// Mirror descent with the step 1/(1 + eps), which lowers V at every step; it stops on the bound V(w) - V* <= eps KL(w, S(w)).
function solve(pi, cost, eps, start = pi[0].map(() => 1 / pi[0].length), tol = 1e-10) {
  let w = start, gap = Infinity;
  const path = [w];
  for (let step = 0; step < 100000; step++) {
    const h = primitiveCost(pi, cost, w);
    gap = eps * kl(w, softmax(h.map(v => -v / eps)));
    if (gap <= tol) break;
    w = softmax(w.map((v, a) => (Math.log(v) - h[a]) / (1 + eps)));
    if (path.length < 400) path.push(w);
  }
  return { weights: w, gap, path };
}

const corners = [[10, HEIGHT - 28], [10 + SIDE / 2, HEIGHT - 28 - SIDE * 0.866], [10 + SIDE, HEIGHT - 28]];
const place = w => [0, 1].map(k => w.reduce((sum, v, a) => sum + v * corners[a][k], 0));

const text = (x, y, words, more = "") => `<text x="${x}" y="${y}" ${more}>${words}</text>`;

// The energy of all mixtures as triangles, pale where it is low.
function landscape(cost, eps, n = 28) {
  const cells = [];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n - i; j++)
      for (const up of j < n - i - 1 ? [1, 0] : [1]) {
        const grid = up ? [[i, j], [i + 1, j], [i, j + 1]] : [[i + 1, j], [i, j + 1], [i + 1, j + 1]];
        const points = grid.map(([a, b]) => [a / n, b / n, 1 - (a + b) / n]);
        const middle = [0, 1, 2].map(a => points.reduce((sum, w) => sum + w[a] / 3, 0));
        cells.push([points.map(w => place(w).map(v => v.toFixed(1)).join(",")).join(" "), energy(PI, cost, eps, middle)]);
      }
  const low = Math.min(...cells.map(c => c[1])), high = Math.max(...cells.map(c => c[1]));
  return cells.map(([points, v]) => {
    const grey = 235 - Math.round(130 * Math.sqrt((v - low) / (high - low || 1)));
    return `<polygon points="${points}" fill="rgb(${grey},${grey},${grey + 15})" shape-rendering="crispEdges"/>`;
  }).join("");
}

function draw(cost, eps, start) {
  const { weights, gap } = solve(PI, cost, eps);
  const path = start ? solve(PI, cost, eps, start).path.map(w => place(w).join(",")).join(" ") : "";
  const [x, y] = place(weights), target = softmax(cost.map(c => -c)), mixed = mixture(PI, weights);
  const names = [text(0, HEIGHT - 8, POLICIES[0]), text(10 + SIDE / 2, 16, POLICIES[1], 'text-anchor="middle"'),
                 text(SIDE + 20, HEIGHT - 8, POLICIES[2], 'text-anchor="end"')];
  const bars = POLICIES.map((name, a) => text(280, 40 + 22 * a, name) + text(352 + SCALE * weights[a], 40 + 22 * a,
    weights[a].toFixed(4)) + `<rect x="346" y="${29 + 22 * a}" width="${SCALE * weights[a]}" height="13" fill="${COLOURS[a]}"/>`);
  const chances = ACTIONS.map((name, i) => text(280, 140 + 22 * i, name)
    + `<rect x="346" y="${129 + 22 * i}" width="${SCALE * mixed[i]}" height="13" fill="#777"/>`
    + `<path d="M${346 + SCALE * target[i]},${126 + 22 * i}v19" stroke="currentColor" stroke-width="2"/>`);
  return `${landscape(cost, eps)}<polyline points="${path}" fill="none" stroke="#333" stroke-width="1.5"/>
    <circle cx="${x}" cy="${y}" r="6" fill="#d00" stroke="white" stroke-width="2"/>${names.join("")}
    ${text(280, 16, "weights", 'font-weight="bold"')}${bars.join("")}
    ${text(280, 116, "actions: mixture (bar), target (line)", 'font-weight="bold"')}${chances.join("")}
    ${text(280, HEIGHT - 14, `proved within ${gap.toExponential(0)} of the minimum`)}`;
}

function build(root) {
  const controls = [...ACTIONS.map((name, i) => [`cost of ${name}`, 0, 3, [1.0, 0.2, 0.5, 0.8][i]]),
                    ["temperature", -2, 1, -1]];
  root.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Energy of all mixtures of three policies,
    weights of the best one, and probabilities of four actions" font-size="12" fill="currentColor"></svg><div class="live-controls">`
    + controls.map(([name, low, high, value]) => `<label>${name} <output>${value}</output><input type="range" min="${low}"
      max="${high}" step="0.05" value="${value}"></label>`).join("") + `</div><p>Move a slider. Each corner of the triangle is one
    policy alone; energy is low where it is pale; the dot is the optimum. Click in the triangle to see a descent from there.</p>`;
  const svg = root.querySelector("svg"), inputs = [...root.querySelectorAll("input")];
  let start = null;
  const renew = () => {
    const values = inputs.map((input, i) => i < 4 ? Number(input.value) : 10 ** input.value);
    inputs.forEach((input, i) => { input.previousElementSibling.value = values[i].toPrecision(2); });
    svg.innerHTML = draw(values.slice(0, 4), values[4], start);
  };
  inputs.forEach(input => input.addEventListener("input", renew));
  svg.addEventListener("click", event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * WIDTH / box.width;
    const y = (event.clientY - box.top) * HEIGHT / box.height, top = (corners[0][1] - y) / (SIDE * 0.866);
    const right = (x - 10 - top * SIDE / 2) / SIDE, w = [1 - top - right, top, right];
    start = Math.min(...w) > 0 ? w : null;
    renew();
  });
  renew();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("#live").forEach(build));
