"use strict";
// Zoom and reading for the static pictures: every graph of a transfer shows the same span
// of time, and is redrawn from the points in the page with at most a few for each pixel.
(() => {
  const svgNS = "http://www.w3.org/2000/svg";
  const left = 70, right = 12, top = 8, bottom = 20, width = 960;
  document.body.classList.add("zooms");

  const unpack = (list, size) => {
    const columns = Array.from({ length: size }, () => new Float64Array(list.length / size));
    let t = 0, v = 0;
    for (let i = 0, n = 0; i < list.length; i += size, n++) {
      t += list[i]; v += list[i + 1];
      columns[0][n] = t; columns[1][n] = v;
      if (size === 3) columns[2][n] = v + list[i + 2];
    }
    return columns;
  };

  // firstAfter is the index of the first time above t.
  const firstAfter = (times, t) => {
    let a = 0, b = times.length;
    while (a < b) { const m = (a + b) >> 1; if (times[m] <= t) a = m + 1; else b = m; }
    return a;
  };

  const round = v => String(+v.toPrecision(4));
  const quantity = (v, unit) => {
    if (unit === "s") return v === 0 ? "0" : Math.abs(v) < 0.0995 ? round(v * 1e3) + " ms" : round(v) + " s";
    const prefixes = ["", "k", "M", "G", "T"];
    let i = 0;
    while (Math.abs(v) >= 999.5 && i < 4) { v /= 1000; i++; }
    return round(v) + " " + prefixes[i] + (unit === "bps" ? "bit/s" : "B");
  };

  const ticks = (low, high, n) => {
    const span = high - low;
    if (!(span > 0)) return [];
    let step = 10 ** Math.floor(Math.log10(span / n));
    step *= [1, 2, 5, 10].find(f => span / (step * f) <= n) || 10;
    const all = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) all.push(v);
    return all;
  };

  const element = (name, attributes, parent) => {
    const e = document.createElementNS(svgNS, name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    parent.append(e);
    return e;
  };

  for (const direction of document.querySelectorAll(".direction")) {
    const doc = JSON.parse(direction.querySelector("script").textContent);
    const lines = {}, marks = {};
    for (const k in doc.lines) lines[k] = unpack(doc.lines[k], 2);
    for (const k in doc.marks) marks[k] = unpack(doc.marks[k], 3);
    const charts = [...direction.querySelectorAll("svg.chart")];
    const output = direction.querySelector("output");
    let from = 0, to = doc.duration, pending = false;

    const scale = svg => {
      const height = svg.viewBox.baseVal.height - top - bottom;
      let low = Infinity, high = -Infinity;
      for (const path of svg.querySelectorAll("path[data-line]")) {
        const [times, values] = lines[path.dataset.line];
        if (path.dataset.line === "edge" || path.dataset.line === "window") continue;
        for (let i = Math.max(firstAfter(times, from) - 1, 0); i < times.length && times[i] <= to; i++) {
          if (values[i] < low) low = values[i];
          if (values[i] > high) high = values[i];
        }
      }
      if (!svg.querySelector('[data-line="data"]')) low = 0;
      if (svg.querySelector('[data-line="window"]')) {
        const [times, values] = lines.window;
        let most = 0;
        for (let i = Math.max(firstAfter(times, from) - 1, 0); i < times.length && times[i] <= to; i++) most = Math.max(most, values[i]);
        if (most < 3 * high) high = Math.max(high, most);
      }
      if (!(high > low)) { low = Math.min(low, 0) || 0; high = low + 1; }
      const room = (high - low) * 0.05;
      high += room;
      if (low > 0) low -= room;
      return { low, high, height, x: t => (t - from) / (to - from) * (width - left - right), y: v => Math.max(height - (v - low) / (high - low) * height, -height) };
    };

    const linePath = ([times, values], s, step) => {
      let d = "", lastY = null;
      const end = times.length;
      for (let i = Math.max(firstAfter(times, from) - 1, 0); i < end; ) {
        const column = Math.floor(s.x(times[i]));
        const first = values[i];
        let least = first, most = first, final = first;
        for (; i < end && Math.floor(s.x(times[i])) === column; i++) {
          final = values[i];
          if (final < least) least = final;
          if (final > most) most = final;
        }
        if (step && lastY !== null) d += "L" + column + " " + lastY;
        d += (d ? "L" : "M") + column + " " + s.y(first).toFixed(1);
        if (least !== most) d += "V" + s.y(least).toFixed(1) + "V" + s.y(most).toFixed(1) + "V" + s.y(final).toFixed(1);
        lastY = s.y(final).toFixed(1);
        if (column > width) break;
      }
      return d;
    };

    const markPath = ([times, starts, ends], s) => {
      let d = "", lastX = -1, lastY = -1;
      for (let i = firstAfter(times, from - 1); i < times.length && times[i] <= to; i++) {
        const x = Math.round(s.x(times[i])), y = Math.round(s.y(starts[i]));
        if (x === lastX && Math.abs(y - lastY) < 2) continue;
        d += "M" + x + " " + y + "V" + Math.min(s.y(ends[i]), y - 3).toFixed(1);
        lastX = x; lastY = y;
      }
      return d;
    };

    const draw = () => {
      pending = false;
      for (const svg of charts) {
        const s = scale(svg), unit = svg.dataset.unit, per = +svg.dataset.per;
        for (const path of svg.querySelectorAll("path[data-line]")) {
          const name = path.dataset.line;
          path.setAttribute("d", linePath(lines[name], s, name !== "data" && name !== "rtt"));
        }
        for (const path of svg.querySelectorAll("path[data-marks]")) path.setAttribute("d", markPath(marks[path.dataset.marks], s));
        const bands = svg.querySelectorAll("rect.band");
        doc.bands.forEach((band, i) => {
          if (!bands[i]) return;
          const x = s.x(band[0]);
          bands[i].setAttribute("x", x.toFixed(1));
          bands[i].setAttribute("width", Math.max(s.x(band[1]) - x, 0.5).toFixed(1));
        });
        const axes = svg.querySelector(".axes");
        axes.replaceChildren();
        for (const v of ticks(s.low * per, s.high * per, 5)) {
          const y = top + s.y(v / per);
          element("path", { class: "grid", d: `M${left} ${y.toFixed(1)}H${width - right}` }, axes);
          element("text", { class: "left", x: left - 5, y: (y + 4).toFixed(1) }, axes).textContent = quantity(v, unit);
        }
        for (const v of ticks(from / 1e6, to / 1e6, 8)) {
          const x = left + s.x(v * 1e6);
          element("path", { class: "grid", d: `M${x.toFixed(1)} ${top}V${top + s.height}` }, axes);
          element("text", { class: "below", x: x.toFixed(1), y: top + s.height + 14 }, axes).textContent = quantity(v, "s");
        }
      }
    };
    const redraw = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };

    const valueAt = (name, t) => {
      const [times, values] = lines[name];
      const i = firstAfter(times, t) - 1;
      return i < 0 ? null : values[i];
    };
    const read = t => {
      const parts = [quantity(t / 1e6, "s")];
      const tell = (label, name, unit, per) => { const v = valueAt(name, t); if (v !== null) parts.push(label + " " + quantity(v * per, unit)); };
      tell("sent", "data", "bytes", 1);
      tell("outstanding", "outstanding", "bytes", 1);
      tell("window", "window", "bytes", 1);
      tell("at", "rate", "bps", 1);
      tell("round trip", "rtt", "s", 1e-9);
      const band = doc.bands.find(b => t >= b[0] && t < b[1]);
      if (band) parts.push(band[2]);
      output.textContent = parts.join(" · ");
    };

    for (const svg of charts) {
      const plot = svg.querySelector("svg.plot");
      const height = svg.viewBox.baseVal.height;
      let start = null, box = null;
      const cursor = element("path", { class: "cursor" }, svg);
      const place = event => {
        const r = svg.getBoundingClientRect();
        const x = (event.clientX - r.left) / r.width * width - left;
        return Math.min(Math.max(x, 0), width - left - right);
      };
      const timeAt = x => from + x / (width - left - right) * (to - from);
      svg.addEventListener("pointerdown", event => {
        start = place(event);
        svg.setPointerCapture(event.pointerId);
        box = element("rect", { class: "select", y: 0, height, x: start, width: 0 }, plot);
      });
      svg.addEventListener("pointermove", event => {
        const x = place(event);
        cursor.setAttribute("d", `M${left + x} ${top}V${height - bottom}`);
        read(timeAt(x));
        if (box) {
          box.setAttribute("x", Math.min(start, x));
          box.setAttribute("width", Math.abs(x - start));
        }
      });
      svg.addEventListener("pointerup", event => {
        if (!box) return;
        box.remove();
        box = null;
        const a = timeAt(Math.min(start, place(event))), b = timeAt(Math.max(start, place(event)));
        if (Math.abs(place(event) - start) > 4 && b - a >= 10) {
          from = a; to = b;
          redraw();
        }
      });
      svg.addEventListener("pointercancel", () => { box?.remove(); box = null; }); // a touch scrolls the page
      svg.addEventListener("pointerleave", () => { cursor.removeAttribute("d"); output.textContent = ""; });
      svg.addEventListener("dblclick", () => { from = 0; to = doc.duration; redraw(); });
    }
  }
})();
