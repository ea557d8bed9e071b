// A canvas that is sharp on every screen, and the page's colours for drawing on it.

export function tokens() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["paper", "ground", "ink", "soft", "line", "faint", "link", "good", "bad", "low", "high", "sans"];
  const found = Object.fromEntries(names.map((name) => [name, read(name)]));
  found.primitives = ["one", "two", "three"].map(read);
  found.orders = ["order-one", "order-two"].map(read); // of a group, so none of a force's
  return found;
}

export function rgb(hex) {
  const full = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join("") : hex.slice(1);
  return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16));
}

export function blend(from, to, share) {
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * share)).join(" ")})`;
}

// {context, width, height} in CSS pixels; draw() is called again whenever the size changes.
export function surface(canvas, draw) {
  const context = canvas.getContext("2d");
  const it = { canvas, context, width: 0, height: 0, ratio: 1 };
  function fit() {
    it.ratio = window.devicePixelRatio || 1;
    it.width = canvas.clientWidth;
    it.height = canvas.clientHeight;
    canvas.width = Math.round(it.width * it.ratio);
    canvas.height = Math.round(it.height * it.ratio);
    draw();
  }
  const watch = new ResizeObserver(fit);
  watch.observe(canvas);
  it.begin = () => {
    context.setTransform(it.ratio, 0, 0, it.ratio, 0, 0);
    context.clearRect(0, 0, it.width, it.height);
  };
  it.free = () => watch.disconnect();
  it.ready = () => it.width > 0;
  requestAnimationFrame(fit);
  return it;
}

// Where on the canvas a pointer is.
export function place(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// The canvases side by side as one picture, on the page's ground.
export function picture(canvases) {
  const gap = 24, height = Math.max(...canvases.map((c) => c.height));
  const sheet = document.createElement("canvas");
  sheet.width = canvases.reduce((sum, c) => sum + c.width + gap, gap);
  sheet.height = height + 2 * gap;
  const context = sheet.getContext("2d");
  context.fillStyle = tokens().paper;
  context.fillRect(0, 0, sheet.width, sheet.height);
  let x = gap;
  for (const one of canvases) {
    context.drawImage(one, x, gap + (height - one.height) / 2);
    x += one.width + gap;
  }
  return sheet;
}
