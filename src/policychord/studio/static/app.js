// The document: which page is open, its controls, the address that reproduces the view, and what can be taken away.
import { picture } from "./canvas.js";
import { build } from "./controls.js";
import { watch } from "./panels.js";
import { connect } from "./wire.js";

const PAGES = new Map(); // modules by name, as the server has them
const FIRST = "gate"; // the page of an address that names none
const find = (id) => document.getElementById(id);
const wide = matchMedia("(min-width: 64rem)");
wide.addEventListener("change", () => { for (const sheet of document.querySelectorAll(".sheet")) sheet.open = wide.matches; });
let open = null;

// ------------------------------------------------------------------ the address: #flock?boids=200&eps=0.3

function address() {
  const [name, query] = location.hash.slice(1).split("?");
  const settings = {};
  if (name && !PAGES.has(name)) {
    showError(`There is no page ${name.slice(0, 60)}. The pages are ${[...PAGES.keys()].join(", ")}.`);
    return { name: FIRST, settings };
  }
  for (const [key, text] of new URLSearchParams(query ?? "")) {
    try { settings[key] = JSON.parse(text); } catch (error) { settings[key] = text; }
  }
  return { name: name || FIRST, settings };
}

function writeAddress(name, settings, defaults) {
  const changed = Object.entries(settings).filter(([key, value]) => value !== defaults[key] || key === "scenario");
  const query = new URLSearchParams(changed.sort()).toString();
  const wanted = `#${name}${query ? `?${query}` : ""}`;
  if (location.hash !== wanted) history.replaceState(null, "", wanted);
}

// ------------------------------------------------------------------ messages to the user

let hiding = 0;
function showError(text) {
  find("alert").textContent = text;
  find("alert").hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { find("alert").hidden = true; }, 8000);
}

function showStatus(text) {
  find("status").textContent = text;
  find("status").hidden = !text;
}

// ------------------------------------------------------------------ a page

function enter({ name, settings: wanted }) {
  open?.leave();
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const main = find("main");
  main.replaceChildren(find(name).content.cloneNode(true));
  const form = document.createElement("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  const sheet = document.createElement("details"); // on a narrow screen it opens below what the inputs change
  Object.assign(sheet, { className: "sheet", open: wide.matches });
  sheet.append(Object.assign(document.createElement("summary"), { textContent: "Controls" }), form);
  main.querySelector(".side").append(sheet);

  // `waiting` is not sent yet, `pending` is not answered yet: both are what the inputs show and results must be of.
  let latest = { settings: {} }, controls = null, waiting = {}, pending = { ...wanted }, number = 0, scheduled = false, snippetWanted = false;
  const settings = () => ({ ...latest.settings, ...pending });
  const states = watch(main);
  const send = (message) => link.send({ ...message, number: ++number });
  function change(names, value) { // one setting and its value, or several as an object
    const changed = typeof names === "string" ? { [names]: value } : names;
    Object.assign(waiting, changed);
    Object.assign(pending, changed);
    for (const [key, one] of Object.entries(changed)) controls?.set(key, one);
    states.settings(settings());
    if (scheduled) return;
    scheduled = true; // one message for each picture, however fast a hand moves
    requestAnimationFrame(() => { scheduled = false; send({ set: waiting }); waiting = {}; });
  }
  const page = PAGES.get(name).mount(main, { change, act: (what) => send({ act: what }), settings, fresh: states.fresh });

  const link = connect(name, {
    open() { showStatus(""); states.connected(true); pending = { ...wanted, ...pending }; send({ set: pending }); },
    closed() { states.connected(false); showStatus("The studio does not answer. Is it still running in the terminal? Trying again."); },
    text(message) {
      if (message.kind === "error") {
        showError(message.message);
        if (message.failed) states.fail(message.message); else controls?.release();
        return;
      }
      latest = message;
      if (message.kind === "hello" && !controls) controls = build(form, message.inputs, PAGES.get(name).closed, change);
      if (message.kind === "hello" && !form.querySelector(".actions")) form.prepend(buttons());
      if (message.number === number && !scheduled) pending = {};
      controls.show(settings(), message.defaults, message.idle ?? {});
      states.settings(settings());
      page.settings?.();
      if (message.kind === "settings") {
        wanted = Object.fromEntries(Object.entries(message.settings).filter(([k, v]) => v !== message.defaults[k] || k === "scenario"));
        writeAddress(name, message.settings, message.defaults);
        if (snippetWanted) { snippetWanted = false; showSnippet(message.snippet); }
      }
    },
    frame(one) { states.frame(one); page.frame(one); main.dataset.frames = Number(main.dataset.frames ?? 0) + 1; },
  });

  function buttons() {
    const row = document.createElement("div");
    row.className = "actions";
    const labels = { restart: PAGES.get(name).restart, figure: "Figure", data: "Data", snippet: "Python" };
    const titles = { restart: "", figure: "Save the picture as PNG", data: "Save what is shown as JSON", snippet: "The same in Python" };
    const actions = {
      restart: () => send({ do: "restart" }),
      figure: () => picture(page.canvases()).toBlob((blob) => save(blob, `policychord-${name}.png`)),
      data: () => save(new Blob([asJson({ page: name, settings: latest.settings, shown: page.data() })], { type: "application/json" }), `policychord-${name}.json`),
      snippet: () => { snippetWanted = true; send({ set: {} }); }, // the flight goes on: the answer is as new as it can be
    };
    for (const [key, label] of Object.entries(labels)) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "plain", textContent: label, title: titles[key] });
      button.dataset.act = key;
      button.addEventListener("click", actions[key]);
      row.append(button);
    }
    return row;
  }

  const reportVisibility = () => send({ do: document.hidden ? "rest" : "wake" });
  document.addEventListener("visibilitychange", reportVisibility);
  open = { name, page, leave() { document.removeEventListener("visibilitychange", reportVisibility); link.close(); page.free(); delete main.dataset.frames; delete main.dataset.fps; } };
}

function asJson(value) {
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
  const dialog = find("snippet"), copied = dialog.querySelector("[role=status]");
  copied.textContent = "";
  dialog.querySelector("code").textContent = text;
  dialog.querySelector("[data-copy]").onclick = async () => {
    try { await navigator.clipboard.writeText(dialog.querySelector("code").textContent); copied.textContent = "Copied."; }
    catch (error) { copied.textContent = "The browser does not allow it: select the text instead."; }
  };
  dialog.showModal();
}

// ------------------------------------------------------------------ begin

find("snippet").querySelector("[data-close]").addEventListener("click", () => find("snippet").close());
find("skip").addEventListener("click", (event) => { event.preventDefault(); find("main").focus(); });

const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
function recolour() { find("theme").setAttribute("aria-pressed", String(dark())); open?.page.recolour(); }
find("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("policychord-theme", root.dataset.theme); } catch (error) { /* storage may be off */ }
  recolour();
});
system.addEventListener("change", recolour);

const pages = await (await fetch("/pages")).json();
const modules = await Promise.all(pages.map(({ name }) => import(`./${name}.js`)));
pages.forEach(({ name }, k) => PAGES.set(name, modules[k]));
find("pages").append(...pages.map(({ name, title }) => {
  const item = document.createElement("li"), link = document.createElement("a");
  Object.assign(link, { href: `#${name}`, textContent: title });
  link.dataset.page = name;
  item.append(link);
  return item;
}));
if (location.search) history.replaceState(null, "", `/${location.hash}`); // the cookie has the token from here on
addEventListener("hashchange", () => enter(address()));
recolour();
enter(address());
