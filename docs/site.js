// Search reads its index from a server. Opened as a file, the page says so instead of hanging.
if (location.protocol === "file:") {
  const note = document.createElement("p");
  note.className = "opened-as-file";
  note.textContent = "Search needs a server: python -m http.server -d build/site, then open http://localhost:8000";
  document.querySelector(".md-content__inner").prepend(note);
  document.querySelectorAll(".md-search, [for=__search]").forEach((part) => part.remove());
}

// A table or picture that is wider than the page scrolls by the keyboard too, and says which it is.
const named = new ResizeObserver((boxes) =>
  boxes.forEach(({ target: box }) => {
    const wide = box.scrollWidth > box.clientWidth;
    wide ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
  }),
);
function prepare() {
  let heading = "";
  const picture = 'p:has(> :is(svg.picture, img:not([src*="badge"])))';
  const parts = `.md-typeset :is(h1, h2, h3, h4), .md-typeset__scrollwrap, .md-typeset ${picture}`;
  document.querySelectorAll(parts).forEach((part) => {
    if (part.matches("h1, h2, h3, h4")) heading = part.firstChild.textContent.trim();
    else if (!part.role) {
      part.role = "group";
      part.ariaLabel = `${part.matches("p") ? "Picture" : "Table"}: ${heading}`;
      named.observe(part);
    }
  });
  document.querySelectorAll(".md-code__nav").forEach((part, i) => (part.ariaLabel = `Code ${i + 1}`));
}
new MutationObserver(prepare).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
prepare();
