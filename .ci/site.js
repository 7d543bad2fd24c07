// The scripts of the site that .ci/site.R builds, in place of pkgdown's, which loads libraries from
// other hosts: the contents of a page, buttons that copy code, and the search.
document.addEventListener("DOMContentLoaded", () => {
  const add = (parent, tag, properties, first) => {
    const node = Object.assign(document.createElement(tag), properties);
    if (first) parent.prepend(node); else parent.append(node);
    return node;
  };

  const toc = document.getElementById("toc");
  if (toc) {
    const list = add(toc, "ul", { className: "nav flex-column" });
    document.querySelectorAll("main h2, main h3").forEach((heading) => {
      const id = heading.id || (heading.closest("[id]") || {}).id;
      if (!id || id === "main" || "tocSkip" in heading.dataset) return;
      const text = heading.cloneNode(true);
      text.querySelectorAll(".anchor").forEach((anchor) => anchor.remove());
      add(add(list, "li", {}), "a", {
        className: "nav-link" + (heading.tagName === "H3" ? " ms-3" : ""),
        href: "#" + id, textContent: text.textContent.trim(),
      });
    });
  }

  // Browsers let pages copy that come by https, from this machine or from a file.
  if (navigator.clipboard) document.querySelectorAll("div.sourceCode").forEach((code) => {
    const text = code.textContent.replace(/\n#>[^\n]*/g, "");
    code.classList.add("hasCopyButton");
    add(code, "button", {
      type: "button", className: "btn btn-primary btn-copy-ex", textContent: "Copy",
      onclick: () => navigator.clipboard.writeText(text),
    }, true);
  });

  // The index is a script, since pages read from a file may not fetch others. All words have to
  // occur in an entry; those with the words in their titles come
  // first, and the page of this name before them.
  const input = document.getElementById("search-input");
  const root = input.dataset.searchIndex.replace("search.json", "");
  const found = add(input.parentNode, "div", { id: "search-results", className: "dropdown-menu" });
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    const score = (entry) => {
      const title = (entry.title + " " + entry.what).toLowerCase();
      const all = (title + " " + entry.text + " " + entry.code).toLowerCase();
      if (!words.every((word) => all.includes(word))) return 0;
      return 1 + words.filter((word) => title.includes(word)).length +
        entry.path.endsWith("/" + words[0] + ".html");
    };
    found.replaceChildren();
    found.classList.toggle("show", words.length > 0);
    if (!words.length) return;
    const entries = window.searchIndex.filter((entry) => entry.title)
      .map((entry) => [score(entry), entry]).filter((pair) => pair[0])
      .sort((a, b) => b[0] - a[0]).slice(0, 12);
    entries.forEach(([, entry]) => add(found, "a", {
      className: "dropdown-item text-wrap",
      href: root + entry.path.replace(/^\//, "") + (entry.id ? "#" + entry.id : ""),
      textContent: entry.title + (entry.what === entry.title ? "" : ": " + entry.what),
    }));
    if (!entries.length) found.textContent = "Nothing found";
  };
  input.addEventListener("focus", () => {
    add(document.head, "script", { src: root + "search.js", onload: search });
  }, { once: true });
  input.addEventListener("input", () => window.searchIndex && search());
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = found.querySelector("a");
    if (first) window.location = first.href;
  });
});
