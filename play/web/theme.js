// Before anything is drawn: the theme that was chosen here, or the system's.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem("reversi.theme"); } catch { return null; } };
  const apply = () => { document.documentElement.dataset.theme = chosen() ?? (dark.matches ? "dark" : "light"); };
  dark.addEventListener("change", apply);
  apply();
}
