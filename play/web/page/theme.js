// The theme: the chosen one, or the system's. A classic script, since modules run after the first paint, which would flash.
{
  const KEY = "reversi.theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const page = document.documentElement.dataset;

  function apply() {
    let chosen = null;
    try {
      chosen = localStorage.getItem(KEY);
    } catch { /* private windows may not keep anything */ }
    page.theme = chosen ?? (system.matches ? "dark" : "light");
  }

  system.addEventListener("change", apply);
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("#theme")) return;
    page.theme = page.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, page.theme);
    } catch { /* nothing is kept */ }
  });

  apply();
}
