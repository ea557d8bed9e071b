// Weights, distances and costs in time, in three strips, with the moment that is shown.

const LEFT = 42, RIGHT = 14, TOP = 30, BOTTOM = 26;

function nice(top) {
  const power = 10 ** Math.floor(Math.log10(top || 1));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= top * 0.999) ?? 10 * power;
}

// A scale that most drones fit into: one that crashes leaves through the top instead of flattening the others.
function ceiling(record, name, last, least) {
  const { values, shape } = record.arrays[name], tops = [];
  for (let i = 0; i < shape[0]; i++) {
    let top = 0;
    for (let k = 0; k <= Math.min(last, shape[1] - 1); k++) top = Math.max(top, values[i * shape[1] + k]);
    tops.push(top);
  }
  tops.sort((a, b) => a - b);
  return nice(Math.max(least, Math.min(tops[tops.length - 1], 1.6 * tops[Math.floor(tops.length / 2)])));
}

// Panels beside each other where they fit, else above each other.
function panels(width, height, count) {
  const beside = width > 620, w = beside ? width / count : width, h = beside ? height : height / count;
  return Array.from({ length: count }, (_, i) => {
    const [x, y] = beside ? [i * w, 0] : [0, i * h];
    return { left: x + LEFT, right: x + w - RIGHT, top: y + TOP, low: y + h - BOTTOM };
  });
}

// The moment under a pointer.
export function momentAt(record, width, height, [x, y]) {
  const all = panels(width, height, 3), distance = ({ left, right, top, low }) => Math.max(left - x, x - right, 0) + Math.max(top - y, y - low, 0);
  const { left, right } = all.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  return Math.min(Math.max((x - left) / (right - left), 0), 1) * record.steps * record.dt;
}

// A line through all values; where many share a pixel, the first and last, the lowest and highest will do.
function outline(c, value, from, to, x, y) {
  c.beginPath();
  for (let k = from; k <= to;) {
    const column = Math.floor(x(k));
    let [low, high, end] = [value(k), value(k), k + 1];
    while (end <= to && Math.floor(x(end)) === column) { low = Math.min(low, value(end)); high = Math.max(high, value(end)); end++; }
    c.lineTo(x(k), y(value(k)));
    if (end > k + 2) { c.lineTo(column, y(low)); c.lineTo(column, y(high)); }
    if (end > k + 1) c.lineTo(x(end - 1), y(value(end - 1)));
    k = end;
  }
  c.stroke();
}

export function draw(c, width, height, record, moment, reached, tones, colours) {
  const last = Math.floor(Math.max(moment, reached) / record.dt + 1e-6), now = Math.floor(moment / record.dt + 1e-6);
  const strips = [
    { name: "weight", title: "weight of stabilise", top: 1, of: (drone) => drone.gate || drone.role === "fixed 50/50" },
    { name: "distance", title: "distance from the path, m", top: ceiling(record, "distance", last, 0.5), of: () => true },
    { name: "cost", title: "cost so far", top: ceiling(record, "cost", last, 20), of: () => true },
  ];
  const places = panels(width, height, strips.length);
  strips.forEach((strip, row) => {
    const { left, right, top, low } = places[row], tall = low - top;
    const x = (k) => left + ((right - left) * k) / record.steps, y = (value) => low - (tall * value) / strip.top;
    c.font = `12px ${colours.sans}`;
    c.fillStyle = colours.soft;
    c.textAlign = "left";
    c.fillText(strip.title, left, top - 11);
    c.textAlign = "right";
    c.strokeStyle = colours.faint;
    c.lineWidth = 1;
    for (const value of [0, strip.top / 2, strip.top]) {
      c.beginPath(); c.moveTo(left, y(value)); c.lineTo(right, y(value)); c.stroke();
      c.fillText(String(Number(value.toPrecision(3))), left - 7, y(value) + 4);
    }
    c.save();
    c.beginPath();
    c.rect(left, top - 1, right - left, tall + 2);
    c.clip();
    const { values, shape } = record.arrays[strip.name];
    record.drones.map((drone, i) => [drone, i]).filter(([drone]) => strip.of(drone)).reverse().forEach(([drone, i]) => {
      const swings = strip.name === "weight" && drone.gate === "one-step"; // at every decision, so that its line fills the strip
      c.strokeStyle = tones[i];
      c.lineWidth = swings ? 0.6 : 1.6;
      c.lineJoin = "round";
      for (const [from, to, alpha] of [[0, now, swings ? 0.5 : 1], [now, last, 0.2]]) {
        c.globalAlpha = alpha;
        outline(c, (k) => values[i * shape[1] + k], from, Math.min(to, shape[1] - 1), x, (value) => y(Math.min(value, 2 * strip.top)));
      }
    });
    c.restore();
    for (const [k, mark] of [...record.pushes.map(([when]) => [when, colours.bad]), ...(record.impulse === null ? [] : [[record.impulse, colours.soft]])]) {
      if (k > last) continue;
      c.strokeStyle = mark;
      c.setLineDash([3, 3]);
      c.beginPath(); c.moveTo(x(k), top); c.lineTo(x(k), low); c.stroke();
      c.setLineDash([]);
    }
    c.strokeStyle = colours.ink;
    c.beginPath(); c.moveTo(x(moment / record.dt), top); c.lineTo(x(moment / record.dt), low); c.stroke();
    axis(c, low, record, x, colours);
  });
}

function axis(c, low, record, x, colours) {
  const whole = record.steps * record.dt, step = nice(whole / 4) || 1;
  c.fillStyle = colours.soft;
  c.textAlign = "center";
  for (let t = 0; t <= whole + 1e-6; t += step) {
    const text = `${Number(t.toFixed(2))}${t + step > whole + 1e-6 ? " s" : ""}`;
    c.fillText(text, x(t / record.dt), low + 17);
  }
}
