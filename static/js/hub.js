// Keys: "/" search, "j" and "k" rows, Enter opens, "?" help. Pages work without this file.
"use strict";

const keys = document.getElementById("keys");
const opener = document.getElementById("keys-open");
const unreachable = document.getElementById("unreachable");

opener.hidden = false;
opener.querySelector("button").addEventListener("click", () => keys.showModal());

function isTyping(target) {
  return target.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName);
}

function moveRow(step) {
  const rows = [...document.querySelectorAll("main tbody tr, main .list > li, main .timeline > li")]
    .filter((row) => row.getClientRects().length > 0);
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step;
  const row = rows[next];
  if (!row) return;
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isTyping(event.target) || keys.open) return;
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && search) {
    search.focus();
    search.select();
  } else if (event.key === "j" || event.key === "k") {
    moveRow(event.key === "j" ? 1 : -1);
  } else if (event.key === "?") {
    keys.showModal();
  } else if (event.key === "Enter" && event.target.matches("tr, li")) {
    event.target.querySelector("a[href]")?.click();
  } else {
    return;
  }
  event.preventDefault();
});

// A request of htmx that got no usable answer must not leave old figures looking fresh.
for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, () => { unreachable.hidden = false; });
}
document.addEventListener("htmx:afterOnLoad", (event) => {
  if (event.detail.successful) unreachable.hidden = true;
});
