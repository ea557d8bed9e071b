// Every panel has one state: loading, current, computing, stale or failed. A result is current if it was computed from
// the settings that the page shows, which its frame names in `of`; otherwise it is dimmed, and its numbers are hidden.

export function watch(root) {
  const frames = {}, due = new Map(); // the latest frame of each part, and parts of which the server is computing another
  const panels = [...root.querySelectorAll("[data-panel]")].map((panel) => {
    const words = Object.assign(document.createElement("p"), { className: "state" });
    panel.append(words);
    return { panel, words, parts: panel.dataset.panel.split(" "), asked: "asked" in panel.dataset };
  });
  let settings = {}, offline = false, stopped = false, failure = "";

  const other = (frame) => Object.keys(frame.of ?? {}).find((name) => name in settings && settings[name] !== frame.of[name]);
  const fresh = (frame) => Boolean(frame) && other(frame) === undefined && !due.has(frame.part);

  function stateOf({ parts, asked }) { // asked: computed only when a button is pressed
    const late = parts.find((part) => !fresh(frames[part]));
    if (late === undefined) {
      const fault = parts.map((part) => frames[part].fault).find(Boolean);
      return fault ? ["failed", fault] : ["current", ""];
    }
    if (asked && !due.has(late)) return frames[late] ? ["stale", "Of other settings or another table: ask again."] : ["current", ""];
    if (failure) return ["failed", failure];
    if (offline) return ["stale", "Not connected: this is the last result."];
    if (stopped) return ["stale", "Stopped: this is the result before the last change."];
    if (!frames[late]) return ["loading", due.get(late) ?? ""];
    const name = other(frames[late]);
    const label = root.querySelector(`label[for="control-${name}"]`)?.textContent ?? name;
    return ["computing", name === undefined ? due.get(late) : `Computing: ${label} ${settings[name]}`];
  }

  function show() {
    for (const one of panels) {
      const { panel, words } = one, [state, text] = stateOf(one);
      if (panel.dataset.state !== state) panel.dataset.state = state;
      panel.setAttribute("aria-busy", String(state === "loading" || state === "computing"));
      if (text && words.textContent !== text) words.textContent = text; // the last words fade out
      for (const button of panel.querySelectorAll("[data-ask]")) button.disabled = state === "computing" || state === "loading";
    }
  }
  show();

  return {
    fresh,
    settings(now) { settings = now; failure = ""; show(); },
    frame(one) {
      for (const part of [one.part, ...(one.cancelled ?? [])]) due.delete(part);
      for (const part of one.computing ?? []) due.set(part, one.words ?? "Computing");
      if (one.computing || one.stopped !== undefined) stopped = Boolean(one.stopped);
      frames[one.part] = one;
      show();
    },
    fail(text) { failure = text; show(); },
    connected(on) { offline = !on; show(); },
  };
}
