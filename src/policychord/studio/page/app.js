// The page: which room is open, its controls, the address that reproduces the view, and what can be taken away.
import { picture } from "./canvas.js";
import { build } from "./controls.js";
import { connect } from "./wire.js";

const ROOMS = {}; // by name, as the server has them
const find = (id) => document.getElementById(id);
let open = null;

// ------------------------------------------------------------------ the address: #flock?boids=200&eps=0.3

function address() {
  const [name, query] = location.hash.slice(1).split("?");
  const settings = {};
  for (const [key, text] of new URLSearchParams(query ?? "")) {
    try { settings[key] = JSON.parse(text); } catch (error) { settings[key] = text; }
  }
  return { name: name in ROOMS ? name : "gate", settings };
}

function remember(name, settings, defaults) {
  const changed = Object.entries(settings).filter(([key, value]) => value !== defaults[key] || key === "scenario");
  const query = new URLSearchParams(changed.sort()).toString();
  const wanted = `#${name}${query ? `?${query}` : ""}`;
  if (location.hash !== wanted) history.replaceState(null, "", wanted);
}

// ------------------------------------------------------------------ words to the user

let fading = 0;
function complain(words) {
  find("alert").textContent = words;
  find("alert").hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { find("alert").hidden = true; }, 8000);
}

function status(words) {
  find("status").textContent = words;
  find("status").hidden = !words;
}

// ------------------------------------------------------------------ a room

function enter({ name, settings: wanted }) {
  open?.leave();
  for (const link of document.querySelectorAll("#rooms a")) {
    if (link.dataset.room === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const main = find("main");
  main.replaceChildren(find(name).content.cloneNode(true));
  const form = document.createElement("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  main.querySelector(".side").append(form);

  let told = null, controls = null, waiting = {}, posted = false, asked = false;
  function tell(change, value) {
    waiting = { ...waiting, ...(typeof change === "string" ? { [change]: value } : change) };
    for (const [key, one] of Object.entries(waiting)) controls?.set(key, one);
    if (posted) return;
    posted = true; // one message for each picture, however fast a hand moves
    requestAnimationFrame(() => { posted = false; link.send({ set: waiting }); waiting = {}; });
  }
  const room = ROOMS[name].mount(main, { tell, act: (what) => link.send({ act: what }), settings: () => ({ ...told.settings, ...waiting }) });

  const link = connect(name, {
    open() { status(""); link.send({ set: wanted }); },
    gone() { status("The studio does not answer. Is it still running in the terminal? Trying again."); },
    words(message) {
      if (message.kind === "error") { complain(message.message); controls?.release(); return; }
      told = message;
      if (message.kind === "hello" && !controls) controls = build(form, message.controls, ROOMS[name].closed, tell);
      if (message.kind === "hello" && !form.querySelector(".actions")) form.prepend(buttons());
      controls.show(message.settings, message.defaults);
      if (message.kind === "settings") {
        wanted = Object.fromEntries(Object.entries(message.settings).filter(([k, v]) => v !== message.defaults[k] || k === "scenario"));
        remember(name, message.settings, message.defaults);
        if (asked) { asked = false; showSnippet(message.snippet); }
      }
    },
    frame(one) { room.frame(one); main.dataset.frames = Number(main.dataset.frames ?? 0) + 1; },
  });

  function buttons() {
    const row = document.createElement("div");
    row.className = "actions";
    const labels = { restart: ROOMS[name].restart, figure: "Figure", data: "Data", snippet: "Python" };
    const titles = { restart: "", figure: "Save the picture as PNG", data: "Save what is shown as JSON", snippet: "The same in Python" };
    const acts = {
      restart: () => link.send({ do: "restart" }),
      figure: () => picture(room.canvases()).toBlob((blob) => save(blob, `policychord-${name}.png`)),
      data: () => save(new Blob([packed({ room: name, settings: told.settings, shown: room.data() })], { type: "application/json" }), `policychord-${name}.json`),
      snippet: () => { asked = true; link.send({ set: {} }); }, // the flight goes on: the answer is as new as it can be
    };
    for (const [key, label] of Object.entries(labels)) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "plain", textContent: label, title: titles[key] });
      button.dataset.act = key;
      button.addEventListener("click", acts[key]);
      row.append(button);
    }
    return row;
  }

  const look = () => link.send({ do: document.hidden ? "rest" : "wake" });
  document.addEventListener("visibilitychange", look);
  open = { name, room, leave() { document.removeEventListener("visibilitychange", look); link.close(); room.free(); delete main.dataset.frames; delete main.dataset.fps; } };
}

function packed(value) {
  return JSON.stringify(value, (key, one) => (one instanceof Float32Array ? [...one] : one));
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function showSnippet(text) {
  const dialog = find("snippet"), said = dialog.querySelector("[role=status]");
  said.textContent = "";
  dialog.querySelector("code").textContent = text;
  dialog.querySelector("[data-copy]").onclick = async () => {
    try { await navigator.clipboard.writeText(dialog.querySelector("code").textContent); said.textContent = "Copied."; }
    catch (error) { said.textContent = "The browser does not allow it: select the text instead."; }
  };
  dialog.showModal();
}

// ------------------------------------------------------------------ begin

find("snippet").querySelector("[data-close]").addEventListener("click", () => find("snippet").close());
find("skip").addEventListener("click", (event) => { event.preventDefault(); find("main").focus(); });

const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
function coloured() { find("theme").setAttribute("aria-pressed", String(dark())); open?.room.recolour(); }
find("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("policychord-theme", root.dataset.theme); } catch (error) { /* storage may be off */ }
  coloured();
});
system.addEventListener("change", coloured);

const rooms = await (await fetch("/rooms")).json();
await Promise.all(rooms.map(async ({ name }) => { ROOMS[name] = await import(`./${name}.js`); }));
find("rooms").append(...rooms.map(({ name, title }) => {
  const item = document.createElement("li"), link = document.createElement("a");
  Object.assign(link, { href: `#${name}`, textContent: title });
  link.dataset.room = name;
  item.append(link);
  return item;
}));
addEventListener("hashchange", () => enter(address()));
coloured();
enter(address());
