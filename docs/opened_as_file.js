// Search reads its index from a server. Opened as a file, the page says so instead of hanging.
if (location.protocol === "file:") {
  const note = document.createElement("p");
  note.className = "opened-as-file";
  note.textContent = "Search needs a server: python -m http.server -d build/site, then open http://localhost:8000";
  document.querySelector(".md-content__inner").prepend(note);
  document.querySelectorAll(".md-search, [for=__search]").forEach((part) => part.remove());
}
