// The theme: the chosen one, or the system's. A classic script, since modules run after the first paint, which would flash.
{
  const KEY = "reversi.theme";
  const system = matchMedia("(prefers-color-scheme: dark)"), page = document.documentElement.dataset;

  function read() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function write(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch { /* private windows may not keep anything */ }
  }

  const apply = () => { page.theme = read() ?? (system.matches ? "dark" : "light"); };
  system.addEventListener("change", apply);
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("#theme")) return;
    page.theme = page.theme === "dark" ? "light" : "dark";
    write(page.theme);
  });
  apply();
}
