"use strict";
// Moves the threshold of the page through the stops of #setpoint-stops, of everyone or of one
// group; they hold every text that is shown. Only costs, which a reader may type in, are worked
// out here.
(() => {
  const data = JSON.parse(document.getElementById("setpoint-stops").textContent);
  const box = document.getElementById("explorer");
  const all = (selector) => [...box.querySelectorAll(selector)];
  const slider = box.querySelector("input[type=range]");
  const group = box.querySelector("select");
  const prices = all("input[type=number]");
  const badge = box.querySelector(".badge");
  const threshold = box.querySelector("[data-threshold]");
  const frames = all(".scores");
  const pictures = frames.map((frame) => frame.querySelector("svg"));
  const width = pictures[0].viewBox.baseVal.width;
  const view = () => data.views[group ? group.value : 0];
  const picture = () => pictures[group ? group.value : 0];

  const money = (value) => {
    const digits = Math.abs(value) >= 100 ? 0 : 2;
    const shape = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return value.toLocaleString("en-US", shape).replace("-", "\u2212");
  };

  const cost = (stop) => {
    const [miss, alarm] = prices.map((input) => parseFloat(input.value));
    if (!(miss >= 0 && alarm >= 0)) return null;
    const { per, cases } = view();
    const [misses, alarms, m0, m1, a0, a1] = stop.errors;
    const worth = (m, a) => per * (miss * m + alarm * a);
    return [worth(misses / cases, alarms / cases), worth(m0, a0), worth(m1, a1)];
  };

  const show = () => {
    const { stops, start, certified } = view();
    const stop = stops[slider.value];
    const now = cost(stop);
    const before = certified ? cost(stops[start]) : null;
    let text = stop.text;
    if (now && before && +slider.value !== start) {
      const more = now[0] - before[0];
      text += ` Costs ${more < 0 ? "" : "+"}${money(more)} ${data.unit}.`;
    }
    badge.className = `badge ${stop.state}`;
    badge.textContent = text;
    slider.setAttribute("aria-valuetext", `threshold ${stop.threshold}. ${text}`);
    threshold.textContent = stop.threshold;
    all("[data-figure]").forEach((cell, i) => {
      [...cell.children].forEach((part, j) => { part.textContent = stop.rows[i][j]; });
    });
    const paid = box.querySelector("[data-cost]").children;
    paid[0].textContent = now ? money(now[0]) : "\u2013";
    paid[1].textContent = now ? `${money(now[1])} to ${money(now[2])}` : "type in both costs";
    const line = picture().querySelector("line.threshold");
    line.setAttribute("x1", stop.x);
    line.setAttribute("x2", stop.x);
    const right = stop.x < width / 2;
    const label = picture().querySelector("text.t-threshold");
    label.setAttribute("x", stop.x + (right ? 5 : -5));
    label.setAttribute("text-anchor", right ? "start" : "end");
  };

  const drag = (event) => {
    const place = picture().getBoundingClientRect();
    const x = ((event.clientX - place.left) * width) / place.width;
    const far = view().stops.map((stop) => Math.abs(stop.x - x));
    slider.value = far.indexOf(Math.min(...far));
    show();
  };

  const begin = () => {
    const { stops, start, counts, threshold: label } = view();
    slider.max = stops.length - 1;
    slider.value = start;
    threshold.previousElementSibling.textContent = label;
    all("[data-count]").forEach((part, i) => { part.textContent = counts[i]; });
    show();
  };

  slider.addEventListener("input", show);
  prices.forEach((input) => input.addEventListener("input", show));
  box.querySelector("button").addEventListener("click", begin);
  if (group) {
    group.value = 0;
    group.addEventListener("change", () => {
      frames.forEach((frame, i) => { frame.hidden = i !== +group.value; });
      begin();
    });
  }
  pictures.forEach((each) => {
    each.addEventListener("pointerdown", (event) => {
      each.setPointerCapture(event.pointerId);
      drag(event);
    });
    each.addEventListener("pointermove", (event) => {
      if (each.hasPointerCapture(event.pointerId)) drag(event);
    });
  });
  all(".controls[hidden], .figures [hidden]").forEach((part) => { part.hidden = false; });
  box.classList.add("moves");
  begin();
})();
