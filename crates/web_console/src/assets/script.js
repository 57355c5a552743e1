// The console's only script: parts of pages that renew themselves, and the prompt's help, keys and history. Pages work without it.
// The server has escaped everything that comes as HTML.
"use strict";

const part = async (address) => {
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
  if (answer.status === 401) location.reload();
  return answer.ok ? answer.text() : null;
};

for (const live of document.querySelectorAll("[data-live]")) {
  const renew = async () => {
    if (document.visibilityState === "visible") {
      try {
        const text = await part(live.dataset.live);
        if (text !== null) live.innerHTML = text;
      } catch {
        // The server is away. What is shown stays until it is back.
      }
    }
    setTimeout(renew, Number(live.dataset.every) * 1000);
  };
  setTimeout(renew, Number(live.dataset.every) * 1000);
}

const prompt = document.querySelector("textarea[data-help]");
if (prompt) {
  const KEPT = "holdfast-prompt";
  const KEPT_MAX = 50;
  const SECRET =
    /^\s*["']?(config["']?\s+["']?set|acl|auth|hello|migrate|session\.|replicaof|slaveof)\b|auth|passw|pass\b|secret|token|credential|-key|setuser/im;
  const help = document.getElementById("help");
  const kept = () => {
    try {
      return JSON.parse(sessionStorage.getItem(KEPT)) ?? [];
    } catch {
      return [];
    }
  };
  let place = -1;
  let asked = "";

  // The line in which the cursor is.
  const line = () => {
    const begin = prompt.value.lastIndexOf("\n", prompt.selectionStart - 1) + 1;
    return { begin, text: prompt.value.slice(begin, prompt.selectionStart) };
  };
  const complete = (name) => {
    const { begin } = line();
    const after = prompt.value.slice(prompt.selectionStart);
    prompt.value = `${prompt.value.slice(0, begin)}${name} ${after}`;
    prompt.focus();
    prompt.selectionStart = prompt.selectionEnd = begin + name.length + 1;
    suggest();
  };
  const suggest = async () => {
    const typed = line().text.slice(0, 200);
    if (typed === asked) return;
    asked = typed;
    const text = await part(`${prompt.dataset.help}?part=1&typed=${encodeURIComponent(typed)}`).catch(() => null);
    if (text !== null && asked === typed) help.innerHTML = text;
  };
  let waiting;
  prompt.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(suggest, 120);
  });
  help.addEventListener("click", (event) => {
    const name = event.target.closest("[data-complete]")?.dataset.complete;
    if (name) complete(name);
  });
  prompt.addEventListener("keydown", (event) => {
    const first = help.querySelector("[data-complete]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      prompt.form.requestSubmit();
    } else if (event.key === "Tab" && !event.shiftKey && first && /\S$/.test(line().text)) {
      // Only while a name is typed: otherwise Tab leads on, so that the keyboard is not caught here.
      event.preventDefault();
      complete(first.dataset.complete);
    } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const all = kept();
      place = Math.max(-1, Math.min(all.length - 1, place + (event.key === "ArrowUp" ? 1 : -1)));
      prompt.value = place < 0 ? "" : all[place];
      event.preventDefault();
    }
  });
  prompt.form.addEventListener("submit", () => {
    const all = [prompt.value, ...kept().filter((one) => one !== prompt.value)].slice(0, KEPT_MAX);
    try {
      // Until this tab is closed, in this tab alone. What may have a password or a key in it is not for keeping.
      if (!SECRET.test(prompt.value)) sessionStorage.setItem(KEPT, JSON.stringify(all));
    } catch {
      // No room: the history is short then.
    }
  });
}
