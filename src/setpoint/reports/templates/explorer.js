"use strict";
// Moves the threshold of the page through the stops of #setpoint-stops; they hold every text that
// is shown. Only costs, which a reader may type in, are worked out here.
(() => {
  const data = JSON.parse(document.getElementById("setpoint-stops").textContent);
  const box = document.getElementById("explorer");
  const all = (selector) => [...box.querySelectorAll(selector)];
  const slider = box.querySelector("input[type=range]");
  const prices = all("input[type=number]");
  const badge = box.querySelector(".badge");
  const line = box.querySelector("line.threshold");
  const label = box.querySelector("text.t-threshold");
  const picture = box.querySelector("svg");
  const width = picture.viewBox.baseVal.width;

  const money = (value) => {
    const digits = Math.abs(value) >= 100 ? 0 : 2;
    const shape = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return value.toLocaleString("en-US", shape).replace("-", "\u2212");
  };

  const cost = (stop) => {
    const [miss, alarm] = prices.map((input) => parseFloat(input.value));
    if (!(miss >= 0 && alarm >= 0)) return null;
    const [misses, alarms, m0, m1, a0, a1] = stop.errors;
    const worth = (m, a) => data.per * (miss * m + alarm * a);
    return [worth(misses / data.cases, alarms / data.cases), worth(m0, a0), worth(m1, a1)];
  };

  const show = () => {
    const stop = data.stops[slider.value];
    const now = cost(stop);
    const before = data.certified ? cost(data.stops[data.start]) : null;
    let text = stop.text;
    if (now && before && stop.state !== "certified") {
      const more = now[0] - before[0];
      text += ` Costs ${more < 0 ? "" : "+"}${money(more)} ${data.unit}.`;
    }
    badge.className = `badge ${stop.state}`;
    badge.textContent = text;
    slider.setAttribute("aria-valuetext", `threshold ${stop.threshold}. ${text}`);
    box.querySelector("[data-threshold]").textContent = stop.threshold;
    all("[data-figure]").forEach((cell, i) => {
      [...cell.children].forEach((part, j) => { part.textContent = stop.rows[i][j]; });
    });
    const paid = box.querySelector("[data-cost]").children;
    paid[0].textContent = now ? money(now[0]) : "\u2013";
    paid[1].textContent = now ? `${money(now[1])} to ${money(now[2])}` : "type in both costs";
    line.setAttribute("x1", stop.x);
    line.setAttribute("x2", stop.x);
    const right = stop.x < width / 2;
    label.setAttribute("x", stop.x + (right ? 5 : -5));
    label.setAttribute("text-anchor", right ? "start" : "end");
  };

  const drag = (event) => {
    const place = picture.getBoundingClientRect();
    const x = ((event.clientX - place.left) * width) / place.width;
    const far = data.stops.map((stop) => Math.abs(stop.x - x));
    slider.value = far.indexOf(Math.min(...far));
    show();
  };

  slider.max = data.stops.length - 1;
  slider.value = data.start;
  slider.addEventListener("input", show);
  prices.forEach((input) => input.addEventListener("input", show));
  box.querySelector("button").addEventListener("click", () => {
    slider.value = data.start;
    show();
  });
  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    drag(event);
  });
  picture.addEventListener("pointermove", (event) => {
    if (picture.hasPointerCapture(event.pointerId)) drag(event);
  });
  all("[hidden]").forEach((part) => { part.hidden = false; });
  box.classList.add("moves");
  show();
})();
