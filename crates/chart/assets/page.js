"use strict";
(function () {
  const charts = new Map(JSON.parse(document.getElementById("charts").textContent).map((chart) => [chart.id, chart]));
  const dashes = [[], [7, 3], [2, 2.5], [9, 3, 2, 3], [13, 3], [5, 2, 1.5, 2], [1.5, 4], [6, 2, 2, 2, 2, 2], [18, 2, 3, 2]];
  const prefixes = {
    count: [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]],
    latency: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    elapsed: [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]],
    bytes: [[1073741824, "GiB"], [1048576, "MiB"], [1024, "KiB"], [1, "B"]],
    rate: [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"]],
    percent: [[1, "%"]],
  };

  function digits(value) {
    return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 7 : 4 });
  }

  function prefix(axis, value) {
    const table = prefixes[axis.unit];
    return table.find(([factor]) => Math.abs(value) >= factor * 0.999999) || table[table.length - 1];
  }

  // One value with the prefix that suits it.
  function one(axis, value) {
    if (value == null) return "–";
    if (axis.names.length) return axis.names[Math.round(value)] || "";
    if (value === 0) return axis.unit === "count" ? "0" : "0 " + prefix(axis, 0)[1];
    const [factor, name] = axis.unit === "count" && Math.abs(value) < 2e6 ? [1, ""] : prefix(axis, value);
    const unit = name + (axis.unit === "count" ? (name && axis.name ? " " : "") + axis.name : "");
    return digits(value / factor) + (unit ? "\u00a0" + unit : "");
  }

  // Labels of ticks: on a linear axis the unit stands with the first one only if all share it.
  function labels(axis) {
    return (chart, ticks) => {
      if (axis.names.length) {
        const longest = Math.max(...axis.names.map((name) => name.length));
        const every = Math.max(1, Math.ceil((ticks.length * (longest * 7 + 10) * devicePixelRatio) / chart.bbox.width));
        return ticks.map((tick, at) => (Number.isInteger(tick) && at % every === 0 ? axis.names[tick] || "" : ""));
      }
      const most = Math.max(...ticks.filter((tick) => tick != null).map(Math.abs));
      if (axis.scale !== 1) {
        return ticks.map((tick) => (tick == null ? "" : axis.unit === "count" ? digits(tick) : one(axis, tick)));
      }
      const [factor, name] = axis.unit === "count" && most < 2e6 ? [1, ""] : prefix(axis, most);
      return ticks.map((tick) => (tick == null ? "" : digits(tick / factor) + (name ? "\u00a0" + name : "")));
    };
  }

  // Minutes and hours are counted in sixtieths.
  const elapsed = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];

  // Lines at powers only: those between would make a carpet.
  function powers(axis) {
    return (u, ticks) => ticks.map((tick) => {
      const power = tick > 0 ? Math.log(tick) / Math.log(axis.scale) : NaN;
      return Math.abs(power - Math.round(power)) < 1e-6 ? tick : null;
    });
  }

  function colour(element, name) {
    return getComputedStyle(element).getPropertyValue("--" + name).trim();
  }

  function scale(axis) {
    if (axis.names.length) return { time: false, range: [-0.5, axis.names.length - 0.5] };
    if (axis.scale !== 1) return { time: false, distr: 3, log: axis.scale };
    const fixed = axis.bounds;
    return {
      time: false,
      range: (u, low, high) => {
        if (u.zoomed || low == null) return [low, high];
        if (fixed) return fixed;
        return [axis.zero ? Math.min(0, low) : low, high];
      },
    };
  }

  // The plot in the place of the drawing, as large as it, with its colours.
  function zoomable(figure, chart) {
    const box = figure.querySelector(".drawing");
    const svg = [...box.querySelectorAll("svg")].find((it) => it.getBoundingClientRect().width > 0);
    if (!svg) return null;
    const size = svg.getBoundingClientRect();
    const { x, y, series } = chart.plot;
    const width = Math.floor(size.width);
    const columns = [chart.places || chart.columns[0].values];
    const drawn = [{ label: x.label || "x", value: (u, value) => one(x, value) }];
    const bands = [];
    const add = (column, options) => {
      columns.push(chart.columns[column].values);
      drawn.push(Object.assign({ value: (u, value) => one(y, value) }, options));
      return columns.length - 1;
    };
    for (const it of series) {
      const stroke = colour(figure, "c" + it.hue);
      if (it.band) {
        const edge = { stroke: "transparent", width: 0, points: { show: false } };
        const low = add(it.band[0], Object.assign({ label: it.bandName + ", low" }, edge));
        const high = add(it.band[1], Object.assign({ label: it.bandName + ", high" }, edge));
        bands.push({ series: [high, low], fill: stroke + "33" });
      }
      const dots = it.mark === "dots" || it.mark === "points" || it.mark === "published";
      add(it.column, {
        label: it.name || (series.length === 1 ? y.label : ""),
        class: it.name || series.length === 1 ? undefined : "quiet",
        spanGaps: it.sparse,
        stroke,
        width: dots ? 0 : it.mark === "dashed" ? 1.3 : 1.7,
        dash: it.mark === "dashed" ? [5, 4] : dashes[it.hue],
        paths: dots ? () => null : undefined,
        points: {
          show: dots || it.mark === "marked",
          size: it.mark === "dots" ? 4 : it.mark === "published" ? 12 : 8,
          fill: it.mark === "published" ? colour(figure, "bg") : stroke,
          width: it.mark === "published" ? 2.2 : 0,
        },
      });
    }
    const muted = colour(figure, "muted");
    const ruler = (axis, more) => {
      const grid = { stroke: colour(figure, "grid"), width: 1 };
      const all = { stroke: muted, grid, ticks: { show: false }, font: "12px system-ui, sans-serif", values: labels(axis), label: axis.label, labelSize: 18, labelFont: "bold 12px system-ui, sans-serif", labelGap: 2 };
      if (axis.scale !== 1) all.filter = grid.filter = powers(axis);
      if (axis.unit === "elapsed") all.incrs = elapsed;
      return Object.assign(all, more);
    };
    const places = (u, axis, low, high) => x.names.map((name, at) => at).filter((at) => at >= low && at <= high);
    const x0 = ruler(x, { size: 30, splits: x.names.length ? places : undefined });
    const y0 = ruler(y, { size: 70 });
    const plot = new uPlot({
      width,
      height: Math.max(260, Math.floor(size.height)),
      scales: { x: scale(x), y: scale(y) },
      series: drawn,
      bands,
      axes: [x0, y0],
      legend: { live: true },
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      hooks: { setSelect: [(u) => { u.zoomed = u.select.width > 0; }] },
    }, columns, box);
    box.classList.add("live");
    return plot;
  }

  function save(name, type, content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function csv(chart) {
    const field = (value) => {
      const text = value == null ? "" : String(value);
      return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    };
    const rows = [chart.columns.map((column) => field(column.name)).join(",")];
    const count = Math.max(0, ...chart.columns.map((column) => column.values.length));
    for (let row = 0; row < count; row++) rows.push(chart.columns.map((column) => field(column.values[row])).join(","));
    return rows.join("\n") + "\n";
  }

  // The drawing with its heading, and with the colours of the page as it is now.
  function drawing(figure) {
    const svg = (figure.querySelector("svg.w") || figure.querySelector("svg.m")).cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const above = Number(svg.dataset.above);
    const margin = 12;
    const view = [-margin, -above - margin, width + 2 * margin, height + above + 2 * margin];
    svg.setAttribute("xmlns", svg.namespaceURI);
    svg.setAttribute("viewBox", view.join(" "));
    svg.setAttribute("width", view[2]);
    svg.setAttribute("height", view[3]);
    const style = document.createElementNS(svg.namespaceURI, "style");
    style.textContent = document.getElementById("chart-style").textContent.replace(/var\(--(\w+)\)/g, (all, name) => colour(figure, name));
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    [["class", "frame"], ["x", view[0]], ["y", view[1]], ["width", view[2]], ["height", view[3]]].forEach(([name, value]) => ground.setAttribute(name, value));
    svg.querySelector("desc").after(style, ground);
    return { text: new XMLSerializer().serializeToString(svg), width: view[2], height: view[3] };
  }

  function png(figure, name) {
    const { text, width, height } = drawing(figure);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * 2;
      canvas.height = height * 2;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && save(name + ".png", "image/png", blob), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }

  const live = new Map();

  function toggle(figure, chart, button) {
    const plot = live.get(figure);
    if (plot) {
      plot.destroy();
      live.delete(figure);
      figure.querySelector(".drawing").classList.remove("live");
    } else {
      const made = zoomable(figure, chart);
      if (made) live.set(figure, made);
    }
    button.setAttribute("aria-pressed", String(live.has(figure)));
    button.textContent = live.has(figure) ? "Drawing" : "Zoom";
  }

  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const chart = charts.get(figure.dataset.chart);
    if (!chart) continue;
    const tools = figure.querySelector(".tools");
    const zoom = tools.querySelector("[data-do=zoom]");
    tools.hidden = false;
    zoom.hidden = !chart.plot;
    zoom.setAttribute("aria-pressed", "false");
    tools.addEventListener("click", (event) => {
      const kind = event.target.dataset.do;
      if (kind === "zoom") toggle(figure, chart, zoom);
      if (kind === "csv") save(chart.id + ".csv", "text/csv", csv(chart));
      if (kind === "json") save(chart.id + ".json", "application/json", JSON.stringify(chart, null, 1));
      if (kind === "svg") save(chart.id + ".svg", "image/svg+xml", drawing(figure).text);
      if (kind === "png") png(figure, chart.id);
    });
    // Whoever points at a line chart wants to know a value.
    if (chart.plot && matchMedia("(hover: hover)").matches) {
      figure.querySelector(".drawing").addEventListener("pointerenter", () => { if (!live.has(figure)) toggle(figure, chart, zoom); }, { once: true });
    }
  }

  // Sizes and colours follow the window; on paper the drawings stand.
  function again() {
    for (const [figure, plot] of [...live]) {
      plot.destroy();
      figure.querySelector(".drawing").classList.remove("live");
      live.delete(figure);
      const made = zoomable(figure, charts.get(figure.dataset.chart));
      if (made) live.set(figure, made);
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let pending;
  addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(again, 200); });
  const contents = document.querySelector("nav details");
  if (matchMedia("(max-width: 1080px)").matches) contents.open = false;
  addEventListener("beforeprint", () => { contents.open = true; });
})();
