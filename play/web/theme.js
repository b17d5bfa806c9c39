// The theme that was chosen here, or the system's: set before anything is drawn, and changed by its button.
{
  const dark = matchMedia("(prefers-color-scheme: dark)"), page = document.documentElement.dataset;
  const chosen = () => { try { return localStorage.getItem("reversi.theme"); } catch { return null; } };
  const apply = () => { page.theme = chosen() ?? (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", apply);
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("#theme")) return;
    page.theme = page.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("reversi.theme", page.theme); } catch { /* private windows may not keep anything */ }
  });
  apply();
}
