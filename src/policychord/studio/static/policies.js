// The page Policies: a table goes in; weights, a contest and a diagnosis come out.
import { offer, send } from "./upload.js";

const CLASSES = ["one", "two", "three", "four", "five"];
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

export const closed = [];
export const restart = "Example"; // what the button says

export function mount(root, studio) {
  const slot = (name) => root.querySelector(`[data-slot="${name}"]`);
  const frames = {};
  let known = null;

  function blame(text) { slot("blamed").hidden = !text; slot("blame").textContent = text; }
  async function take(file) {
    try { studio.act({ file: await send(file) }); } catch (error) { blame(error.message); }
  }
  offer(slot("file"), slot("drop"), take);
  slot("use").addEventListener("click", () => take(new File([slot("text").value], "table.csv")));

  function fill(table, head, rows) {
    const line = (cells) => { const row = document.createElement("tr"); row.append(...cells); return row; };
    const first = (cell) => { const head = make("th", "", { scope: "row" }); head.append(cell); return head; };
    table.replaceChildren(line(head.map((name) => make("th", name, { scope: "col" }))),
      ...rows.map(([name, ...cells]) => line([first(name), ...cells.map((text) => make("td", text))])));
  }

  function describeData(one) {
    blame(one.blame);
    if (one.blame || one.text === known) return; // what somebody edits stays
    known = one.text;
    slot("name").textContent = one.file;
    slot("text").value = one.text;
    slot("facts").replaceChildren(...one.facts.flatMap(([name, text]) => [make("dt", name), make("dd", text)]));
  }

  const row = (i) => { const { values, shape } = frames.weights.arrays.weights; return [...values.subarray(i * shape[1], (i + 1) * shape[1])]; };
  function describe() {
    const one = frames.weights;
    if (!one) return;
    const { names, states } = one, at = Math.min(studio.settings().state, states.length) - 1;
    slot("where").textContent = states[at] ? `In the state ${states[at]}` : "";
    slot("bars").replaceChildren(...names.map((name, k) => {
      const bar = make("div", "", { className: `bar ${CLASSES[k]}` }), box = make("div", ""), share = make("i", "");
      share.style.width = `${100 * row(at)[k]}%`;
      box.append(share);
      bar.append(make("b", name), box, make("output", row(at)[k].toFixed(4)));
      return bar;
    }));
    slot("proof").replaceChildren(make("b", "Proved"), ` in every state within ${one.gap.toExponential(0)} of the least energy; no weight is off by more than ${one.distance.toExponential(0)}.`);
    fill(slot("table"), ["state", ...names], states.map((state, i) => {
      const pick = make("button", state || "the one state", { type: "button", className: "reset" });
      pick.setAttribute("aria-pressed", String(i === at));
      pick.addEventListener("click", () => { studio.change("state", i + 1); describe(); });
      return [pick, ...row(i).map((weight) => weight.toFixed(4))];
    }));
    fill(slot("contest"), ["agent", "cost", "composed gains", "cheaper in", "dearer in"], one.contest.map((agent) =>
      [agent.agent, (-agent.mean).toFixed(3), ...(agent.gain === null ? ["", "", ""] : [agent.gain.toFixed(3), agent.won, agent.lost])]));
    slot("warnings").replaceChildren(...one.warnings.map((text) => make("p", text, { className: "note" })));
  }

  return {
    frame(one) {
      frames[one.part] = one;
      if (one.part === "data") describeData(one);
      if (one.part === "weights") describe();
    },
    settings: describe,
    recolour() {},
    data: () => frames,
    free() {},
  };
}
