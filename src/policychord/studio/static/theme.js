// Before anything is drawn: the colours that were chosen last time. The report's pages share this choice.
(function (root) {
  let theme = null;
  try { theme = localStorage.getItem("policychord-theme"); } catch (error) { /* storage may be off */ }
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
})(document.documentElement);
