"use strict";
(() => {
  const PAGE = 50;
  const PRINTED_MAX = 2000;
  const byId = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const root = document.documentElement;
  const make = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const number = new Intl.NumberFormat("en-US");

  // Light or dark: as the system has it, until somebody chooses.
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const theme = byId("theme");
  const remembered = () => { try { return localStorage.getItem("seawall-theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme ?? (prefers.matches ? "dark" : "light")) === "dark";
  const sayTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Show this page ${isDark() ? "light" : "dark"}`);
  };
  if (["light", "dark"].includes(remembered())) root.dataset.theme = remembered();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("seawall-theme", root.dataset.theme); } catch { /* not where files may not */ }
    sayTheme();
  });
  prefers.addEventListener("change", sayTheme);
  sayTheme();
  theme.hidden = false;

  // A page that nobody made anew must not look like today's.
  const asOf = Number(root.dataset.asOf);
  const age = Date.now() - asOf;
  if (age > Number(root.dataset.staleAfter)) {
    const hours = Math.floor(age / 3600000);
    const told = hours < 72 ? `${hours} hours` : `${number.format(Math.floor(hours / 24))} days`;
    byId("stale").textContent = `This page is ${told} old, and says nothing of what happened since.`;
    byId("stale").hidden = false;
  }

  // Commands can be copied.
  const copyable = (box) => {
    const button = make("button", "Copy");
    button.type = "button";
    const command = box.querySelector("code").textContent;
    button.setAttribute("aria-label", `Copy ${command}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(box.querySelector("code"));
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  };
  all(".command").forEach(copyable);

  // On paper everything is unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details.incident:not([open]), details.incident:not(.rest) .findings details:not([open]), details.fold:not([open])");
    folded.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));

  // The table of logs.
  const data = JSON.parse(byId("data").textContent);
  const rows = byId("rows");
  const finish = () => {
    root.dataset.ready = "true";
    root.dataset.readyMs = String(Math.round(performance.now()));
  };
  if (!rows) {
    finish();
    return;
  }
  const text = (at) => data.texts[at];
  const name = (at) => `${text(data.topic[at])}-${data.partition[at]}`;
  const why = (at) => {
    const told = data.rules[at].length ? data.rules[at] : data.missing[at].length ? data.missing[at] : data.suspect[at];
    return told.map(text);
  };
  const words = Array.from({ length: data.rows }, (_, at) =>
    [name(at), text(data.cluster[at]), ...data.rules[at].map(text), ...data.missing[at].map(text), ...data.suspect[at].map(text)].join("\n").toLowerCase());
  const order = new Intl.Collator("en", { numeric: true });
  const keys = {
    name: (one, other) => order.compare(text(data.topic[one]), text(data.topic[other])) || data.partition[one] - data.partition[other],
    verdict: (one, other) => one - other, // as they come: the worst first
    start: (one, other) => data.start[one] - data.start[other],
    end: (one, other) => data.end[one] - data.end[other],
    lost: (one, other) => data.lost[one] - data.lost[other],
  };
  let found = [];
  let at = 0;
  let sorted = { key: "verdict", down: false };

  const known = (value) => (value < 0 ? "not known" : number.format(value));
  const cell = (className, content, label) => {
    const made = make("td", undefined, className);
    if (label) made.dataset.name = label;
    made.append(content);
    return made;
  };
  const facts = (pairs) => {
    const list = make("dl", undefined, "small");
    for (const [term, value] of pairs) {
      if (!value) continue;
      const box = make("div");
      box.append(make("dt", term), make("dd", value));
      list.append(box);
    }
    return list;
  };
  const details = (log) => {
    const row = make("tr", undefined, "more");
    const box = cell("", facts([
      ["Offsets", `${known(data.start[log])} to ${known(data.end[log])}`],
      ["Open", data.rules[log].map(text).join("; ")],
      ["Missing", data.missing[log].map(text).join("; ")],
      ["In a grace", data.suspect[log].map(text).join("; ")],
      ["Suppressed", data.suppressed[log] ? number.format(data.suppressed[log]) : ""],
      ["Recoverable", data.recoverable[log] ? `${number.format(data.recoverable[log])} offsets` : ""],
      ["Kept", `${text(data.sort[log])}${data.tiered[log] ? `, ${number.format(data.tiered[log])} offsets in the tier` : ""}`],
      ["Replicas", text(data.replicas[log]) || "none is known"],
      ["Cluster", text(data.cluster[log])],
      ["Evidence", `${number.format(data.events[log])} events, since ${data.since[log] < 0 ? "no first sight" : new Date(data.since[log]).toISOString().slice(0, 16).replace("T", " ") + " UTC"}`],
      ["Statement", `${data.hash[log]}…`],
    ]));
    box.colSpan = 6;
    const command = make("div", undefined, "command");
    command.append(make("code", data.odd[log] || `seawall audit statement ${text(data.topic[log])}:${data.partition[log]}`));
    copyable(command);
    box.append(command);
    row.append(box);
    return row;
  };
  const line = (log, reasonsMax = 2) => {
    const row = make("tr");
    const verdict = data.verdicts[data.verdict[log]];
    const button = make("button", name(log));
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      if (isOpen) row.nextElementSibling.remove(); else row.after(details(log));
      button.setAttribute("aria-expanded", String(!isOpen));
    });
    const said = make("span", verdict[0] + verdict.slice(1).toLowerCase(), `word ${verdict.toLowerCase()}`);
    const verdictCell = cell("verdict", said);
    const before = data.before[log];
    if (data.has_before && before !== data.verdict[log]) {
      verdictCell.append(make("span", before < 0 ? "new" : `was ${data.verdicts[before].toLowerCase()}`, "was"));
    }
    const reasons = why(log);
    const left = reasons.length - reasonsMax;
    const shown = reasons.slice(0, reasonsMax).join("; ") + (left > 0 ? ` and ${left} more` : "");
    row.append(
      cell("name", button),
      verdictCell,
      cell("why", shown ? make("span", shown) : ""),
      cell("start amount", known(data.start[log]), "starts at"),
      cell("end amount", known(data.end[log]), "high watermark"),
      cell("lost amount", data.lost[log] ? make("span", number.format(data.lost[log]), "any") : "–", "no known copy"),
    );
    return row;
  };
  const show = () => {
    const part = document.createDocumentFragment();
    found.slice(at, at + PAGE).forEach((log) => part.append(line(log)));
    rows.replaceChildren(part);
    const end = Math.min(at + PAGE, found.length);
    byId("found").textContent = found.length === data.rows
      ? `${number.format(data.rows)} ${data.rows === 1 ? "log" : "logs"}`
      : `${number.format(found.length)} of ${number.format(data.rows)} logs`;
    byId("place").textContent = found.length ? `${number.format(at + 1)} to ${number.format(end)} of ${number.format(found.length)}` : "";
    byId("previous").disabled = at === 0;
    byId("next").disabled = end === found.length;
    document.querySelector(".pages").hidden = found.length <= PAGE;
  };
  const choose = () => {
    const wanted = byId("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(all(".filters input").filter((each) => each.checked).map((each) => Number(each.value)));
    found = [];
    for (let log = 0; log < data.rows; log += 1) {
      if (verdicts.has(data.verdict[log]) && wanted.every((word) => words[log].includes(word))) found.push(log);
    }
    const by = keys[sorted.key];
    if (sorted.key !== "verdict" || sorted.down) found.sort((one, other) => (sorted.down ? by(other, one) : by(one, other)) || one - other);
    at = 0;
    show();
  };
  const turn = (by) => {
    const next = at + by * PAGE;
    if (next < 0 || next >= found.length) return false;
    at = next;
    show();
    return true;
  };
  byId("search").addEventListener("input", choose);
  all(".filters input").forEach((each) => each.addEventListener("change", choose));
  all(".counts a").forEach((each) => each.addEventListener("click", () => {
    const verdict = data.verdicts.indexOf(each.dataset.verdict);
    all(".filters input").forEach((box) => { box.checked = Number(box.value) === verdict; });
    choose();
  }));
  const sayOrder = () => all("th[aria-sort]").forEach((each) => {
    const isIt = each.querySelector("button").dataset.sort === sorted.key;
    each.setAttribute("aria-sort", isIt ? (sorted.down ? "descending" : "ascending") : "none");
  });
  all("th button").forEach((each) => each.addEventListener("click", () => {
    const key = each.dataset.sort;
    const first = ["start", "end", "lost"].includes(key); // amounts: the largest first
    sorted = { key, down: sorted.key === key ? !sorted.down : first };
    sayOrder();
    choose();
  }));
  // On paper: every log that does not pass, whatever is searched for on the screen, with all its reasons.
  addEventListener("beforeprint", () => {
    const pass = data.verdicts.indexOf("PASS");
    const failing = Array.from({ length: data.rows }, (_, log) => log).filter((log) => data.verdict[log] !== pass);
    if (!failing.length) return;
    const part = document.createDocumentFragment();
    failing.slice(0, PRINTED_MAX).forEach((log) => part.append(line(log, Infinity)));
    rows.replaceChildren(part);
    const left = failing.length - PRINTED_MAX;
    byId("found").textContent = `${number.format(failing.length)} of ${number.format(data.rows)} logs do not pass`
      + (left > 0 ? `; ${number.format(left)} of them are not printed` : "; the others do");
  });
  addEventListener("afterprint", show);
  byId("next").addEventListener("click", () => turn(1));
  byId("previous").addEventListener("click", () => turn(-1));

  // Arrows go from log to log, and over a page's end to the next page; / goes to the search.
  const names = () => Array.from(rows.querySelectorAll("td.name button"));
  rows.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const buttons = names();
    const here = buttons.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -here, End: buttons.length - 1 - here }[event.key];
    if (here < 0 || step === undefined) return;
    event.preventDefault();
    const goal = here + step;
    if (buttons[goal]) buttons[goal].focus();
    else if (turn(Math.sign(step))) names().at(step > 0 ? 0 : -1).focus();
  });
  addEventListener("keydown", (event) => {
    const isTyping = document.activeElement && document.activeElement.matches("input");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      byId("search").focus();
    }
  });
  sayOrder();
  choose();
  finish();
})();
