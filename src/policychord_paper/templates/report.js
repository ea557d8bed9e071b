(function () {
  "use strict";
  var root = document.documentElement;
  function all(selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); }
  function one(selector, within) { return (within || document).querySelector(selector); }

  // light and dark
  var toggle = one(".theme"), system = window.matchMedia("(prefers-color-scheme: dark)");
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  function say() { toggle.setAttribute("aria-pressed", String(dark())); }
  toggle.hidden = false;
  toggle.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("policychord-theme", root.dataset.theme); } catch (error) { /* a page from a file may not */ }
    say();
  });
  if (system.addEventListener) system.addEventListener("change", say);
  say();

  // the table of verdicts
  var form = one(".controls"), body = one("#ledger > tbody"), rows = all("#ledger > tbody > tr");
  var heads = all("#ledger > thead th[data-sort]"), worst = ["not reproduced", "partly", "reproduced"];
  var sorted = { by: "order", down: false };
  function key(row, by) {
    if (by === "order") return Number(row.dataset.order);
    if (by === "verdict") return worst.indexOf(row.dataset.verdict);
    return one(".c-claim", row).textContent.trim().toLowerCase();
  }
  function compare(a, b) {
    var x = key(a, sorted.by), y = key(b, sorted.by);
    var apart = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
    return (sorted.down ? -apart : apart) || a.dataset.order - b.dataset.order;
  }
  function sort(by, down) {
    sorted = { by: by, down: down };
    rows.slice().sort(compare).forEach(function (row) { body.appendChild(row); });
    heads.forEach(function (head) {
      if (head.dataset.sort === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }
  function chosen(name) { return all("input[name=" + name + "]:checked", form).map(function (box) { return box.value; }); }
  function filter() {
    var words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var verdicts = chosen("verdict"), studies = chosen("study"), left = 0;
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      var fits = (!verdicts.length || verdicts.indexOf(row.dataset.verdict) >= 0) &&
        (!studies.length || studies.indexOf(row.dataset.study) >= 0) &&
        words.every(function (word) { return text.indexOf(word) >= 0; });
      row.hidden = !fits;
      left += fits ? 1 : 0;
    });
    var some = words.length || verdicts.length || studies.length;
    one(".shown", form).textContent = some ? left + " of " + rows.length + " shown" : rows.length + " claims";
    one(".clear", form).hidden = !some;
    one(".nothing").hidden = left > 0;
  }
  heads.forEach(function (head) {
    var button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", "Sort by " + head.textContent.trim().toLowerCase());
    head.appendChild(button);
    button.addEventListener("click", function () {
      sort(head.dataset.sort, sorted.by === head.dataset.sort && !sorted.down);
    });
  });
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(function () { sort("order", false); filter(); }); });
  all("[data-pick]").forEach(function (link) {
    link.addEventListener("click", function () {
      all("input[name=verdict]", form).forEach(function (box) { box.checked = box.value === link.dataset.pick; });
      filter();
    });
  });
  filter();

  // a link to a place that is folded away unfolds it
  function reveal() {
    var place = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!place) return;
    for (var fold = place; fold; fold = fold.parentElement) if (fold.tagName === "DETAILS") fold.open = true;
    place.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  all('a[href^="#"]').forEach(function (link) {
    link.addEventListener("click", function () { if (link.hash === location.hash) reveal(); });
  });
  reveal();

  // where the reader is
  var links = all(".contents li a"), places = links.map(function (link) { return one(link.getAttribute("href")); });
  function mark() {
    var here = 0;
    places.forEach(function (place, k) { if (place.getBoundingClientRect().top < window.innerHeight / 3) here = k; });
    if (window.innerHeight + window.scrollY >= root.scrollHeight - 2) here = links.length - 1;
    links.forEach(function (link, k) {
      if (k === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
    var list = links[here].closest("ol");  // on a phone it is a strip that follows the reader
    list.scrollLeft = links[here].offsetLeft - (list.clientWidth - links[here].offsetWidth) / 2;
  }
  var waiting = false;
  window.addEventListener("scroll", function () {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(function () { waiting = false; mark(); });
  }, { passive: true });
  mark();

  // figures, enlarged
  var zoom = one("#zoom");
  if (zoom.showModal) {
    all(".sheet img").forEach(function (image) {
      function open() {
        var large = one("img", zoom);
        large.src = image.src;
        large.alt = image.alt;
        zoom.showModal();
      }
      image.tabIndex = 0;
      image.setAttribute("role", "button");
      image.setAttribute("aria-label", image.alt + ", enlarge");
      image.addEventListener("click", open);
      image.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
      });
    });
    zoom.addEventListener("click", function (event) { if (event.target.tagName !== "IMG") zoom.close(); });
  }

  // commands, copied
  if (navigator.clipboard) all(".copy").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(one("code", button.parentNode).textContent).then(function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      });
    });
  });

  // on paper the appendix is left out, unless it is asked for; then nothing of it is folded away
  var whole = one(".whole"), closed = [];
  whole.hidden = false;
  whole.addEventListener("click", function () {
    root.classList.add("all");
    closed = all("#appendix details:not([open])");
    closed.forEach(function (fold) { fold.open = true; });
    window.print();
  });
  window.addEventListener("afterprint", function () {
    root.classList.remove("all");
    closed.forEach(function (fold) { fold.open = false; });
    closed = [];
  });
})();
