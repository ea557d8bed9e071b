// The page Policies: a table goes in, weights come out; a contest and a diagnosis on demand.
import { tokens } from "./canvas.js";
import { offer, send } from "./upload.js";

const CLASSES = ["one", "two", "three", "four", "five"];
const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

export const closed = [];
export const restart = "Example"; // what the button says

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`);
  const frames = {}, sheet = document.createElement("canvas");
  let known = null;

  function blame(text) { slot("blamed").hidden = !text; slot("blame").textContent = text; }
  async function take(file) {
    try { studio.act({ file: await send(file) }); } catch (error) { blame(error.message); }
  }
  offer(slot("file"), slot("drop"), take);
  slot("use").addEventListener("click", () => take(new File([slot("text").value], "table.csv")));
  for (const button of root.querySelectorAll("[data-ask]")) button.addEventListener("click", () => studio.act({ ask: button.dataset.ask }));
  slot("cancel").addEventListener("click", () => { slot("cancel").hidden = true; studio.act({ cancel: true }); });

  function describeData(one) {
    const [states, actions, policies] = one.size;
    blame(one.blame);
    if (one.blame || one.text === known) return;
    known = one.text;
    for (const name of ["contest", "diagnosis"]) slot(name).hidden = true; // of another table
    slot("name").textContent = one.file;
    slot("size").textContent = `${policies} policies, ${actions} actions, ${states} state${states > 1 ? "s" : ""}`;
    slot("text").value = one.text;
  }

  const row = (i) => { const { values, shape } = frames.weights.arrays.weights; return [...values.subarray(i * shape[1], (i + 1) * shape[1])]; };
  function describe() {
    const one = frames.weights;
    if (!one) return;
    const { names, states } = one, at = Math.min(studio.settings().state, states.length) - 1;
    slot("where").textContent = states[at] ? `In the state ${states[at]}` : "";
    slot("bars").replaceChildren(...names.map((name, k) => {
      const bar = document.createElement("div"), box = document.createElement("div"), fill = document.createElement("i");
      bar.className = `bar ${CLASSES[k]}`;
      fill.style.width = `${100 * row(at)[k]}%`;
      box.append(fill);
      bar.append(make("b", name), box, make("output", row(at)[k].toFixed(4)));
      return bar;
    }));
    slot("proof").replaceChildren(make("b", "Proved"), ` in every state within ${one.gap.toExponential(0)} of the least energy; no weight is off by more than ${one.distance.toExponential(0)}.`);
    const head = document.createElement("tr");
    head.append(...["state", ...names].map((name) => Object.assign(make("th", name), { scope: "col" })));
    slot("table").replaceChildren(head, ...states.map((state, i) => {
      const line = document.createElement("tr"), pick = Object.assign(make("button", state || "the one state"), { type: "button", className: "reset" });
      pick.setAttribute("aria-pressed", String(i === at));
      pick.addEventListener("click", () => { studio.change("state", i + 1); describe(); });
      const first = Object.assign(document.createElement("th"), { scope: "row" });
      first.append(pick);
      line.append(first, ...row(i).map((weight) => make("td", weight.toFixed(4))));
      return line;
    }));
  }

  function paint() { // the bars as a picture to save
    const colours = tokens(), c = sheet.getContext("2d"), { names, states } = frames.weights, style = getComputedStyle(document.documentElement);
    [sheet.width, sheet.height] = [900, 60 + 36 * states.length];
    c.font = `14px ${colours.sans}`;
    names.forEach((name, k) => { c.fillStyle = style.getPropertyValue(`--${CLASSES[k]}`); c.fillText(name, 160 + 140 * k, 24); });
    states.forEach((state, i) => {
      let x = 160;
      c.fillStyle = colours.ink;
      c.fillText(state, 8, 62 + 36 * i);
      row(i).forEach((weight, k) => { c.fillStyle = style.getPropertyValue(`--${CLASSES[k]}`); c.fillRect(x, 46 + 36 * i, 720 * weight, 24); x += 720 * weight; });
    });
    return sheet;
  }

  return {
    frame(one) {
      if (one.part === "asked") slot("cancel").hidden = one.computing[0] !== "contest";
      if (one.part === "asked") return;
      frames[one.part] = one;
      if (one.part === "data") describeData(one);
      if (one.part === "weights") describe();
      if (!one.lines) return;
      slot("cancel").hidden = true;
      slot(one.part).hidden = false;
      slot(one.part).textContent = one.lines.join("\n");
    },
    settings() { describe(); },
    recolour() {},
    canvases: () => [paint()],
    data: () => frames,
    free() {},
  };
}
