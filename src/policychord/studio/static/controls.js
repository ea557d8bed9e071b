// Controls from the server's description of the settings: every one shows its unit, the value to go back to, and what it means.

const QUIET = 500; // ms after which the server's value replaces that of an input that is being moved

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function format(value, whole) {
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value !== "number") return String(value);
  return whole ? String(value) : String(Number(value.toPrecision(4)));
}

// Sliders have whole positions: 0 to 1000 for a logarithmic one, else the number of its steps.
function positions(control) {
  const { low, high, step, scale } = control;
  if (scale === "log") {
    return {
      most: 1000,
      to: (value) => Math.round((1000 * Math.log(value / low)) / Math.log(high / low)),
      from: (place) => Number((low * (high / low) ** (place / 1000)).toPrecision(3)),
    };
  }
  return {
    most: Math.round((high - low) / step),
    to: (value) => Math.round((value - low) / step),
    from: (place) => Number((low + place * step).toFixed(6)),
  };
}

function rangeInput(control, id, change) {
  const map = positions(control);
  const number = make("input", { type: "number", id, step: "any", min: control.low, max: control.high, title: control.description });
  const slider = make("input", { type: "range", min: 0, max: map.most, step: 1, "aria-label": control.label, title: control.description });
  const announce = (value) => slider.setAttribute("aria-valuetext", `${format(value, control.whole)} ${control.unit}`.trim());
  slider.addEventListener("input", () => {
    const value = map.from(Number(slider.value));
    number.value = format(value, control.whole);
    announce(value);
    change(value);
  });
  number.addEventListener("change", () => { if (number.value !== "") change(Number(number.value)); });
  return {
    rows: [
      [make("label", { htmlFor: id, textContent: control.label, title: control.description }), number,
       ...(control.unit ? [make("span", { className: "unit", textContent: control.unit })] : [])],
      [slider],
    ],
    set(value) {
      number.value = format(value, control.whole);
      slider.value = map.to(value);
      announce(value);
    },
  };
}

function choiceInput(control, id, change) {
  const select = make("select", { id, title: control.description },
    ...control.choices.map((choice) => make("option", { value: choice, textContent: choice })));
  select.addEventListener("change", () => change(select.value));
  const label = make("label", { htmlFor: id, textContent: control.label, title: control.description });
  return { rows: [[label], [select]], set: (value) => { select.value = value; } };
}

function switchInput(control, id, change) {
  const box = make("input", { type: "checkbox", id, title: control.description });
  box.addEventListener("change", () => change(box.checked));
  const label = make("label", { htmlFor: id, textContent: control.label, title: control.description });
  return { rows: [[label, box]], set: (value) => { box.checked = value; } };
}

const KINDS = { range: rangeInput, choice: choiceInput, switch: switchInput };

// change(name, value) is called for every change; the result shows settings that the server confirms.
export function build(form, description, closed, change) {
  const groups = new Map(), built = new Map();
  for (const control of description) {
    if (control.kind === "text") continue; // the page has a place of its own for it
    if (!groups.has(control.group)) {
      const group = make("details", { open: !closed.includes(control.group) }, make("summary", { textContent: control.group }));
      groups.set(control.group, group);
      form.append(group);
    }
    const entry = { touched: -Infinity, fallback: undefined };
    const record = (value) => { entry.touched = performance.now(); change(control.name, value); };
    const view = KINDS[control.kind](control, `control-${control.name}`, record);
    const reset = make("button", { type: "button", className: "reset" });
    reset.addEventListener("click", () => { change(control.name, entry.fallback); });
    const lines = view.rows.map((row, k) => make("div", { className: k ? "slide" : "line" }, ...row));
    if (control.name !== "scenario") lines[lines.length - 1].append(reset);
    const box = make("div", { className: "control", "data-control": control.name }, ...lines);
    groups.get(control.group).append(box);
    built.set(control.name, { control, entry, view, reset, box });
  }
  return {
    show(settings, defaults, idle) { // idle: why an input does nothing now, by name
      for (const [name, { control, entry, view, reset, box }] of built) {
        entry.fallback = defaults[name];
        box.toggleAttribute("data-idle", name in idle);
        box.title = idle[name] ?? "";
        for (const part of box.querySelectorAll("input, select")) part.disabled = name in idle;
        const source = control.source;
        const same = settings[name] === defaults[name], word = format(defaults[name], control.whole);
        reset.disabled = same || name in idle;
        reset.textContent = `${source} ${word}`;
        reset.setAttribute("aria-label", same ? `${control.label} has its ${source} value` : `Reset ${control.label} to its ${source} value ${word}`);
        if (performance.now() - entry.touched > QUIET) view.set(settings[name]);
      }
    },
    set(name, value) { const one = built.get(name); if (one) { one.entry.touched = performance.now(); one.view.set(value); } },
    release() { for (const { entry } of built.values()) entry.touched = -Infinity; },
  };
}
