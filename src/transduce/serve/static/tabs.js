// Tabs as the keyboard expects them: arrow keys go from one to the next, Tab goes into the view.

/** Wire a tablist; `opened(name)` is called with "text", "file" and so on, for the remembered one at once. */
export function setUpTabs(list, remembered, opened) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const nameOf = (tab) => tab.id.replace("tab-", "");
  const open = (tab, focus = true) => {
    for (const each of tabs) {
      const chosen = each === tab;
      each.setAttribute("aria-selected", String(chosen));
      each.tabIndex = chosen ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    opened(nameOf(tab));
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) open(tab);
  });
  list.addEventListener("keydown", (event) => {
    const here = tabs.indexOf(document.activeElement);
    const places = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: tabs.length - 1 };
    if (here < 0 || !(event.key in places)) return;
    event.preventDefault();
    open(tabs.at(places[event.key] % tabs.length));
  });
  open(tabs.find((tab) => nameOf(tab) === remembered) ?? tabs[0], false);
}
