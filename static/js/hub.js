// Keys: "/" search, "j" and "k" rows, Enter opens, "?" help; parts that ask again; ages that go on.
// Pages work without this file.
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

// An address names only the filters that were given.
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.detail.elt.matches("form.filters")) return;
  const given = event.detail.formData;
  for (const name of [...given.keys()]) if (given.get(name) === "") given.delete(name);
});

// An answer from another address is a page of its own, such as the sign-in of an expired session: go there.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { finalRequestPath, responsePath } = event.detail.pathInfo;
  if (!responsePath || new URL(finalRequestPath, location.href).pathname === responsePath.split("?")[0]) return;
  event.detail.shouldSwap = false;
  location.assign(event.detail.xhr.responseURL);
});

// A live part rests while nobody sees its tab; its hx-trigger asks again as soon as somebody does.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.matches("[hx-trigger^=every]")) event.preventDefault();
});

// A live part that was swapped keeps the reader's place: the focused row or link, and what was unfolded.
let place = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  if (part !== event.detail.requestConfig.elt) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  place = {
    id: part.id,
    row: Boolean(focused?.matches("tr, li")),
    href: (focused?.matches("a") ? focused : focused?.querySelector("a"))?.getAttribute("href"),
    open: [...part.querySelectorAll("details")].map((details) => details.open),
  };
});
document.addEventListener("htmx:afterSettle", () => {
  const part = place && document.getElementById(place.id);
  if (part) {
    [...part.querySelectorAll("details")].forEach((details, index) => { details.open = Boolean(place.open[index]); });
    const link = place.href && part.querySelector(`a[href="${CSS.escape(place.href)}"]`);
    const target = link && place.row ? link.closest("tr, li") : link;
    if (target && place.row) target.tabIndex = -1;
    target?.focus({ preventScroll: true });
  }
  place = null;
  goOn();
});

// Ages go on between answers: data-age is how old a time was, in seconds, when its markup arrived.
const arrived = new WeakMap();
function coarse(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400).toLocaleString("en")} d`;
}
function goOn() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    if (!arrived.has(time)) arrived.set(time, Date.now());
    const age = Number(time.dataset.age) + (Date.now() - arrived.get(time)) / 1000;
    const text = coarse(age) + (time.textContent.endsWith(" ago") ? " ago" : "");
    if (text !== time.textContent) time.textContent = text;
  }
}
goOn();
setInterval(goOn, 5000);
