"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const { model, labels, drawing, importance, references, snippets, space, explorer } = content;
  const byId = (id) => document.getElementById(id);
  document.documentElement.classList.add("has-js");

  // ---- elements: text is inserted as text, never as markup ----
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => ![null, undefined, false].includes(child)));
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const picture = (width, height, label, ...children) =>
    s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...children);

  // ---- numbers ----
  /** A few digits, with an exponent if that is shorter. */
  const number = (value, digits = 3) => {
    const near = Number(Math.abs(value).toPrecision(digits));
    const [plain, power] = [String(near), near.toExponential().replace("+", "")];
    const long = plain.length > Math.max(5, digits + 2) && power.length < plain.length;
    return (value < 0 ? "−" : "") + (long ? power : plain);
  };
  /** Both ends of a range, with two digits of their difference. */
  const range = (low, high) => {
    const size = Math.max(Math.abs(low), Math.abs(high));
    if (high - low <= 1e-10 * size) return number(low, 6);
    const digits = Math.floor(Math.log10(size)) - Math.floor(Math.log10(high - low)) + 2;
    return `${number(low, digits)} to ${number(high, digits)}`;
  };
  const plus = (value) => (value > 0 ? "+" : "") + number(value);
  const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const indices = (count) => Array.from({ length: count }, (_, k) => k);

  // ---- words ----
  // Shorten in the middle: channel names often differ at the end.
  const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 4)}…${text.slice(-3)}` : text);
  // A label in a sentence: "class 3" for a number or letter, other labels unchanged.
  const classed = (label) => (label.length === 1 || /^[-+.\d]+$/.test(label) ? `class ${label}` : label);
  // Words of this page at the beginning of a sentence; labels and identifiers stay as the user writes them.
  const capital = (text) =>
    (/^(all|class|series|steps?|time|training) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text);
  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

  // ---- packed content ----
  const unpack = (packed) => {
    const [bits, scale, data] = packed.split(" ");
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const integers = new { 8: Int8Array, 16: Int16Array }[bits](bytes.buffer);
    // The least integer stands for a missing value.
    const missing = -(2 ** (bits - 1));
    return Float32Array.from(integers, (value) => (value === missing ? NaN : value * scale));
  };
  const pathOf = (moves) => {
    const path = [[0, 0]];
    for (const move of moves) {
      const [i, j] = path[path.length - 1];
      path.push([i + (move >> 1), j + (move & 1)]);
    }
    return path;
  };

  const drawn = drawing.channels;
  // A channel has the same colour, and the same dashes if colours repeat, in all drawings and in `slts.plots`.
  const inkOf = (k) => `var(--channel-${drawn[k] % 5})`;
  const dashesOf = (k) => [null, "5 3", "6 3 1 3", "1 3"][Math.floor(drawn[k] / 5) % 4];
  const channelName = (k) => (k < drawn.length ? model.channels[drawn[k]] : "all others");
  const nameOfReference = (j) => {
    const { name, class: c } = references.items[j];
    return c === null ? name : `${classed(model.classes[c])}, ${name}`;
  };
  // Two classes share one decision value.
  const twoClasses = model.decision_classes.length === 1;
  const nameOfDecision = (decision) => (twoClasses ? `${model.classes[1]} against ${model.classes[0]}`
    : classed(model.classes[model.decision_classes[decision]]));
  /** The three most important drawn channels of a class, or of all classes (null). They are coloured. */
  const leading = (c) => {
    const places = indices(drawn.length);
    if (!importance) return places.slice(0, 3);
    const rows = c === null ? importance.channels : [importance.channels[twoClasses ? 0 : c]];
    const weight = (k) => sum(rows.map((row) => row[drawn[k]]));
    return places.sort((a, b) => weight(b) - weight(a)).slice(0, 3);
  };

  // ---- tooltip ----
  const tip = byId("tip");
  /** Show the tooltip beside a point of the window, inside the window. */
  const showTip = ({ clientX, clientY }, children) => {
    tip.replaceChildren(...children);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const x = clientX + 22 + width > innerWidth ? clientX - width - 14 : clientX + 14;
    const y = clientY + 26 + height > innerHeight ? clientY - height - 12 : clientY + 18;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, y)}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  addEventListener("scroll", hideTip, { passive: true });

  // ---- parts of pictures ----
  const spanOf = (...arrays) => {
    let [low, high] = [Infinity, -Infinity];
    // No comparison with a missing value is true.
    arrays.forEach((array) => array.forEach((value) => {
      if (value < low) low = value;
      if (value > high) high = value;
    }));
    return high > low ? [low, high] : [low - 1, high + 1];
  };
  /** A line through some points. Missing values interrupt it; a single point is drawn as a dot. */
  const lineThrough = (points) => {
    const runs = [[]];
    points.forEach(([x, y]) => {
      if (Number.isNaN(y)) runs.push([]);
      else runs[runs.length - 1].push(`${x.toFixed(1)} ${y.toFixed(1)}`);
    });
    return runs.filter((run) => run.length).map((run) => `M${run.join("L")}${run.length > 1 ? "" : "h.01"}`).join("");
  };
  const rule = (x1, x2, y1, y2, kind = "axis") => s("line", { class: kind, x1, x2, y1, y2 });
  const rect = (kind, x, y, width, height, more = {}) => s("rect", {
    class: kind, x: x.toFixed(2), y: y.toFixed(2), width: width.toFixed(2), height: height.toFixed(2), ...more,
  });
  const frameOf = ({ x, y, width, height }) => rect("frame", x, y, width, height);
  const text = (x, y, words, attributes = {}) => s("text", { x, y, ...attributes }, words);
  const END = { "text-anchor": "end" };

  // With more steps than this, lines of all channels would hide each other.
  const MANY_STEPS = 80;
  /** Channels as lines in a box. The channels in `lead` are coloured and drawn last. */
  const traces = (rows, steps, box, [low, high], lead) => {
    const x = (i) => box.x + (steps > 1 ? (i * box.width) / (steps - 1) : box.width / 2);
    const y = (value) => box.y + box.height * (1 - (value - low) / (high - low));
    const line = (k) => lineThrough(indices(steps).map((i) => [x(i), y(rows[i * drawn.length + k])]));
    const many = steps > MANY_STEPS;
    const others = many ? [] : indices(drawn.length).filter((k) => !lead.includes(k));
    const quiet = others.length ? [s("path", { class: "trace", d: others.map(line).join("") })] : [];
    const loud = lead.map((k) => s("path", {
      class: `trace lead${many ? " thin" : ""}`, style: `stroke:${inkOf(k)}`, "stroke-dasharray": dashesOf(k), d: line(k),
    }));
    return { nodes: [...quiet, ...loud.reverse()], x, y };
  };

  /** A signed matrix as cells. Larger values are darker. */
  const cells = (value, rows, columns, box, peak) => {
    const nodes = [];
    const [width, height] = [box.width / columns, box.height / rows];
    for (let r = 0; r < rows; r += 1) {
      for (let c = 0; c < columns; c += 1) {
        const share = peak > 0 ? Math.abs(value(r, c)) / peak : 0;
        if (share < 0.02) continue;
        const shade = { "fill-opacity": (share ** 0.8).toFixed(2) };
        const side = value(r, c) > 0 ? "for" : "against";
        nodes.push(rect(`cell ${side}`, box.x + c * width, box.y + r * height, width, height, shade));
      }
    }
    return nodes;
  };
  /** Show a tooltip for the point of a picture that the pointer is at; `say` returns it, or null. */
  const onPoint = (svg, say) => {
    svg.addEventListener("pointermove", (event) => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const words = say(x, y);
      if (words) showTip(event, words);
      else hideTip();
    });
    svg.addEventListener("pointerleave", hideTip);
  };
  const onGrid = (svg, rows, columns, box, say) => onPoint(svg, (x, y) => {
    const c = Math.floor(((x - box.x) / box.width) * columns);
    const r = Math.floor(((y - box.y) / box.height) * rows);
    return r < 0 || c < 0 || r >= rows || c >= columns ? null : say(r, c);
  });

  /** Call `act` with the step that a key stands for. */
  const onKeys = (node, steps, act) => node.addEventListener("keydown", (event) => {
    if (!steps[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    act(steps[event.key]);
  });
  const SIDEWAYS = { ArrowRight: 1, ArrowLeft: -1 };
  const BOTH_WAYS = { ArrowDown: 1, ArrowUp: -1, ...SIDEWAYS };

  /** Signed values as bars above and below a line, one for each step of a box. */
  const barsOfSteps = (values, box, middle, size) => {
    const [peak, width] = [largest(values) || 1, box.width / values.length];
    const bars = Array.from(values, (value, i) => {
      const height = (Math.abs(value) / peak) * size;
      const [side, top] = value > 0 ? ["for", middle - height] : ["against", middle];
      return rect(side, box.x + i * width + 0.5, top, Math.max(0.5, width - 1), height);
    });
    return [...bars, rule(box.x, box.x + box.width, middle, middle)];
  };
  const key = (side) => h("span", { class: `key ${side}` });
  const keyOfColours = (name) => [key("for"), `for ${name}, `, key("against"), "against it. "];
  /** A signed bar and its value as text; the peak has a length in percent. */
  const share = (value, peak, length, words) => {
    const bar = h("i", { class: value > 0 ? "for" : "against" });
    bar.style.width = `${(length * Math.abs(value)) / (peak || 1)}%`;
    return h("div", { class: "share" }, bar, words);
  };

  /** Show the first items of a list, and a button for the others. */
  const inPortions = (place, items, first, what) => {
    place.append(...items.slice(0, first).map((make) => make()));
    if (items.length <= first) return;
    const more = h("button", { type: "button", class: "more-button" }, `Show all ${items.length} ${what}`);
    more.addEventListener("click", () => {
      more.remove();
      place.append(...items.slice(first).map((make) => make()));
    });
    place.after(more);
  };

  // ---- metrics ----
  const drawMetrics = () => {
    const place = byId("metrics");
    if (!place) return;
    const names = importance.metric_channels;
    const peak = largest(importance.metrics.map((metric) => largest(metric.values.flat())));
    const letters = Math.min(12, Math.max(...names.map((name) => name.length)));
    const figureOf = (metric) => {
      const d = metric.values.length;
      const whose = nameOfDecision(metric.decision);
      const title = metric.part ? `${whose}, ${metric.part}` : whose;
      // Names need 12 pixels each. Those of a large matrix are left out at regular distances.
      const cell = Math.max(180 / d, d <= 24 ? 12 : 7);
      const margin = 8 + 6.2 * letters;
      const box = { x: margin, y: 0, width: cell * d, height: cell * d };
      const named = indices(d).filter((u) => u % Math.ceil(12 / cell) === 0);
      const axes = named.flatMap((u) => {
        const [name, middle] = [clip(names[u], letters), (u + 0.5) * cell + 4];
        const turned = `translate(${margin + middle} ${box.height + 6}) rotate(-90)`;
        return [text(margin - 5, middle, name, { class: "small", ...END }),
          s("text", { class: "small", transform: turned, ...END }, name)];
      });
      const pairs = metric.values.flatMap((row, r) => row.map((value, c) => ({ value, r, c })));
      pairs.sort((a, b) => b.value - a.value);
      const nameOf = ({ r, c }) => (r === c ? names[r] : `${names[r]} with ${names[c]}`);
      const [most, least] = [pairs[0], pairs[pairs.length - 1]];
      const svg = picture(margin + box.width + 1, box.height + margin, `Metric of ${title}: ${d} by ${d} channels`,
        frameOf(box), cells((r, c) => metric.values[r][c], d, d, box, peak), axes);
      onGrid(svg, d, d, box, (r, c) => [h("strong", null, plus(metric.values[r][c])), ` ${names[r]} with ${names[c]}`]);
      return h("figure", null, svg, h("figcaption", null, h("strong", null, capital(title)),
        key("for"), nameOf(most), h("br"), key("against"), nameOf(least)));
    };
    const scale = { class: "scale", role: "img", "aria-label": `Scale of all matrices: ${range(-peak, peak)}` };
    const grid = h("div", { class: "matrices" });
    place.append(h("div", scale, number(-peak), h("i"), number(peak)), grid);
    inPortions(grid, importance.metrics.map((metric) => () => figureOf(metric)), 12, "matrices");
  };

  // ---- landmarks ----
  const drawGallery = () => {
    const place = byId("gallery");
    if (!place) return;
    const { weighted, gallery } = references;
    // Weights of a class sum to 1. Effects are compared between classes.
    const peakOfAll = largest(gallery.flatMap((row) => row.effect));
    const figureOf = (j, effect, peak, lead) => {
      const item = references.items[j];
      const [rows, steps] = [unpack(item.rows), Math.min(item.length, drawing.most_steps)];
      const words = weighted ? `${effect < 0 ? "−" : "+"}${percent(Math.abs(effect))}` : number(effect, 2);
      const box = { x: 2, y: 3, width: 206, height: 74 };
      const lines = traces(rows, steps, box, spanOf(rows), lead).nodes;
      const svg = picture(210, 80,
        `${capital(nameOfReference(j))}, ${item.length} steps, ${weighted ? "weight" : "effect"} ${words}`,
        lines.slice(-lead.length));
      svg.setAttribute("width", "100%");
      svg.removeAttribute("height");
      return h("figure", null, svg, h("figcaption", null, share(effect, peak, 60, words),
        weighted ? nameOfReference(j) : item.name));
    };
    const classes = gallery.map((row) => () => {
      const lead = leading(row.class);
      const peak = weighted ? largest(row.effect) : peakOfAll;
      const title = twoClasses && weighted ? nameOfDecision(0) : capital(classed(model.classes[row.class]));
      const some = row.used > row.shown.length ? `, ${row.shown.length} shown` : "";
      const channels = lead.flatMap((k, place) =>
        [place ? ", " : "", h("span", { class: "ink", style: `color:${inkOf(k)}` }, clip(channelName(k), 24))]);
      return h("div", { class: "gallery" },
        h("div", null, h("h3", null, title), h("p", { class: "note" },
          plural(row.used, "landmark", "landmarks"), some, h("br"), channels)),
        h("div", { class: "row" }, row.shown.map((j, k) => figureOf(j, row.effect[k], peak, lead))));
    });
    inPortions(place, classes, 12, "classes");
  };

  // ---- snippets ----
  /** Rows of equal height as lines, each with its own scale, stretched to the width of the place. */
  const ROW_HEIGHT = 36;
  const stacked = (label, rows, steps, spans, nodes) => {
    const height = ROW_HEIGHT * spans.length;
    const x = (i) => (100 * (i + 0.5)) / steps;
    const lines = spans.map(([low, high], r) => (from, to) => {
      const y = (value) => ROW_HEIGHT * (r + 1) - 4 - ((ROW_HEIGHT - 8) * (value - low)) / (high - low);
      return lineThrough(indices(to - from + 1).map((k) => [x(from + k), y(rows[r][from + k])]));
    });
    const rules = indices(spans.length).slice(1).map((r) => rule(0, 100, ROW_HEIGHT * r, ROW_HEIGHT * r, "rule"));
    const box = { x: 0, y: 0, width: 100, height };
    const svg = picture(100, height, label, frameOf(box), nodes(lines, box), rules);
    fill(svg, { preserveAspectRatio: "none", width: "100%", class: "stacked" }, []);
    svg.style.height = `${height}px`;
    return svg;
  };
  /** The series of an example: the closest occurrence of a snippet, and shades of what the snippet adds. */
  const exampleFigure = (item, side, example, spans) => {
    const bin = (step) =>
      Math.floor((Math.min(Math.max(step, 0), example.length - 1) * example.bins) / example.length);
    const [first, last] = item.reach;
    const label = `${capital(example.name)}: closest occurrence at step ${example.centre}`;
    return stacked(label, example.rows, example.bins, spans, (lines, box) => [
      cells((_, i) => example.added[i], 1, example.bins, box, 2.5 * largest(example.added)),
      lines.map((line) => s("path", { class: "trace dim", d: line(0, example.bins - 1) })),
      lines.map((line) => s("path", {
        class: `trace ${side}`, d: line(bin(example.centre + first), bin(example.centre + last)),
      })),
    ].flat());
  };
  /** A snippet with the names of its channels, and beside it the series of an example. */
  const snippetFigure = (j, side, heading, example = null) => {
    const item = snippets.items[j];
    const rows = item.rows.map(unpack);
    const names = item.channels.map((u, r) => {
      const ends = range(item.lowest[r], item.lowest[r] + largest(rows[r]));
      const name = h("span", { class: "row-name" }, clip(model.channels[u], 15), h("small", null, ends));
      name.style.height = `${ROW_HEIGHT}px`;
      return name;
    });
    // Levels may differ unless values are compared.
    const anyLevel = item.compared !== "values";
    const spans = rows.map((row, r) => (example && !anyLevel ? spanOf(row, example.rows[r]) : spanOf(row)));
    const wider = example && anyLevel ? example.rows.map((row) => spanOf(row)) : spans;
    const drawing = stacked(`Snippet: ${item.text}`, rows, snippets.n_steps, spans, (lines) =>
      lines.map((line) => s("path", { class: `trace ${side}`, d: line(0, snippets.n_steps - 1) })));
    return h("figure", { class: `snippet${example ? " with-example" : ""}` },
      h("figcaption", null, heading, item.text, " ", anyLevel && h("span", { class: "tag" }, item.compared)),
      h("div", { class: "strips" }, h("div", { class: "rows" }, names), drawing,
        example && exampleFigure(item, side, example, wider)),
      example && h("figcaption", { class: "example" }, `${example.name}: contributes ${plus(example.adds)}`));
  };

  const drawSnippets = () => {
    const place = byId("snippet-gallery");
    if (!place) return;
    const figureOf = ({ snippet, weight, example }, peak) => {
      const whose = example.truth === null ? "" : ` (${classed(labels[example.truth])})`;
      return snippetFigure(snippet, weight > 0 ? "pro" : "con", share(weight, peak, 40, plus(weight)), {
        ...example, name: clip(example.id, 24) + whose, rows: example.rows.map(unpack), added: unpack(example.added),
      });
    };
    const classes = snippets.gallery.map((sides, decision) => () => {
      const name = classed(model.classes[model.decision_classes[decision]]);
      const other = twoClasses ? `for ${classed(model.classes[0])}` : `against ${name}`;
      const peak = largest([...sides.for, ...sides.against].map((item) => item.weight));
      const column = (side, title) => h("div", null, h("h4", null, key(side), title),
        sides[side].length ? sides[side].map((item) => figureOf(item, peak)) : h("p", { class: "note" }, "none"));
      return h("div", { class: "snippets" }, h("h3", null, capital(nameOfDecision(decision))),
        h("div", { class: "sides" }, column("for", `for ${name}`), column("against", other)));
    });
    inPortions(place, classes, 3, "classes");
  };

  // ---- similarity space ----
  // As many as have no divisor in common with the eight colours.
  const SHAPES = [
    (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    (r) => `M${-r * 0.9} ${-r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
    (r) => `M0 ${-1.2 * r}L${1.1 * r} ${0.8 * r}H${-1.1 * r}z`,
    (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0z`,
    (r) => `M0 ${1.2 * r}L${1.1 * r} ${-0.8 * r}H${-1.1 * r}z`,
  ];
  const colour = (c) => `var(--class-${c % 8})`;
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  /** Names of the classes at the median of their points. Names that would overlap are moved down. */
  const classNames = (points) => {
    const names = labels.map((label, c) => {
      const members = points.filter((_, k) => space.label[k] === c);
      return { c, label: clip(label, 18), x: median(members.map(([x]) => x)), y: median(members.map(([, y]) => y)) };
    }).filter(({ x }) => x !== undefined).sort((a, b) => a.y - b.y);
    names.forEach((name, k) => names.slice(0, k).forEach((other) => {
      const near = Math.abs(name.x - other.x) < 4.2 * (name.label.length + other.label.length) + 6;
      if (near) name.y = Math.max(name.y, other.y + 17);
    }));
    return names.map(({ c, label, x, y }) =>
      text(x.toFixed(1), (y + 5).toFixed(1), label, { class: "halo", style: `fill:${colour(c)}` }));
  };
  const verdictOf = (truth, predicted) => {
    const answer = `predicted ${model.classes[predicted]}`;
    if (!explorer.labelled) return answer;
    return truth === predicted ? classed(labels[truth]) : `${classed(labels[truth])}, ${answer}`;
  };
  const thumbnail = (entry) => {
    const [rows, box] = [unpack(entry.rows), { x: 2, y: 4, width: 176, height: 62 }];
    return picture(180, 70, entry.id, traces(rows, entry.bins, box, spanOf(rows), leading(null)).nodes);
  };
  /** Marks the point of the selected series; set when the points are drawn. */
  let markPoint = () => {};
  const drawSpace = () => {
    const place = byId("scatter");
    const width = Math.max(280, place.clientWidth);
    const height = Math.round(Math.min(560, Math.max(320, width * 0.58)));
    const pad = 26;
    const all = space.points.concat(space.landmarks);
    const [x0, x1] = spanOf(all.map(([x]) => x));
    const [y0, y1] = spanOf(all.map(([, y]) => y));
    const at = ([x, y]) =>
      [pad + ((x - x0) / (x1 - x0)) * (width - 2 * pad), pad + ((y1 - y) / (y1 - y0)) * (height - 2 * pad)];
    const points = space.points.map(at);
    const kept = explorer.entries.length;
    const wrong = space.label.map((label, k) => label !== space.predicted[k]);
    const order = indices(points.length).sort((a, b) => wrong[a] - wrong[b]);
    const dots = order.map((k) => s("path", {
      class: `dot${wrong[k] ? " wrong" : ""}${k < kept ? "" : " faint"}`, "data-entry": k < kept ? k : null,
      d: SHAPES[space.label[k] % SHAPES.length]((wrong[k] ? 5 : 4) * (width < 500 ? 0.75 : 1)),
      transform: `translate(${points[k][0].toFixed(1)} ${points[k][1].toFixed(1)})`, fill: colour(space.label[k]),
    }));
    const rings = space.landmarks.map(at).map(([x, y], k) => s("circle", {
      class: "ring", cx: x.toFixed(1), cy: y.toFixed(1), r: 6,
      style: space.landmark_labels[k] === null ? null : `stroke:${colour(space.landmark_labels[k])}`,
    }));
    const mark = s("circle", { class: "picked", r: 10, visibility: "hidden" });
    const svg = picture(width, height, `Scatter plot of ${points.length} series in similarity space`,
      frameOf({ x: 0.5, y: 0.5, width: width - 1, height: height - 1 }), rings, dots,
      labels.length <= 24 ? classNames(points) : [], mark);
    const nearest = (x, y) => {
      const distances = points.map((point) => Math.hypot(point[0] - x, point[1] - y));
      const least = Math.min(...distances);
      return least < 18 ? distances.indexOf(least) : -1;
    };
    let pointed = -1;
    onPoint(svg, (x, y) => {
      pointed = nearest(x, y);
      if (pointed < 0) return null;
      const words = verdictOf(space.label[pointed], space.predicted[pointed]);
      const more = pointed < kept ? [thumbnail(explorer.entries[pointed])] : [h("br"), "not in the explorer"];
      return [h("strong", null, capital(space.ids[pointed])), h("br"), words, ...more];
    });
    svg.addEventListener("click", () => { if (pointed >= 0 && pointed < kept) select(pointed); });
    markPoint = (k) => fill(mark, { cx: points[k][0], cy: points[k][1], visibility: "visible" }, []);
    place.replaceChildren(svg);
    markPoint(current);
  };

  // ---- explorer: the list ----
  let [current, chosenClass, chosenReference] = [0, 0, 0];
  const isWrong = (entry) => explorer.labelled && entry.truth !== entry.predicted;
  const sureOf = (entry) => (entry.p ? percent(entry.p[entry.predicted]) : "");
  const setOf = (entry) => entry.set.map((c) => model.classes[c]).join(", ");

  const drawList = () => {
    const list = byId("list");
    const wanted = byId("search").value.trim().toLowerCase();
    const shown = indices(explorer.entries.length).filter((k) => {
      const { id, predicted, truth } = explorer.entries[k];
      const words = [id, model.classes[predicted], truth === null ? "" : labels[truth]];
      return words.some((word) => word.toLowerCase().includes(wanted));
    });
    const head = (words) => h("li", { class: "head", role: "presentation" }, words);
    const option = (k) => {
      const entry = explorer.entries[k];
      const verdict = verdictOf(entry.truth, entry.predicted) + (entry.p ? ` (${sureOf(entry)})` : "");
      const several = entry.set && entry.set.length > 1;
      return h("li", { role: "option", id: `entry-${k}`, "data-entry": k, "aria-selected": k === current },
        entry.id, h("span", { class: isWrong(entry) ? "miss" : null }, verdict),
        several ? h("span", null, `set: ${setOf(entry)}`) : null);
    };
    const part = (name, members) => (members.length ? [head(`${name} (${members.length})`), ...members.map(option)] : []);
    const [misses, others] = [true, false].map((is) => shown.filter((k) => isWrong(explorer.entries[k]) === is));
    list.replaceChildren(...part("Misclassified", misses), ...part(explorer.labelled ? "Correct" : "Series", others));
    if (!shown.length) list.append(head("No series has this name or class."));
    if (shown.includes(current)) list.setAttribute("aria-activedescendant", `entry-${current}`);
    else list.removeAttribute("aria-activedescendant");
  };
  const listed = () => [...byId("list").querySelectorAll("[data-entry]")].map((option) => Number(option.dataset.entry));

  const select = (k, scroll = true) => {
    const list = byId("list");
    list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    current = k;
    const option = byId(`entry-${k}`);
    if (option) {
      option.setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", option.id);
      // Scroll the list only, not the page; its heading stays visible.
      const top = option.offsetTop - list.offsetTop;
      const least = top + option.offsetHeight - list.clientHeight;
      if (scroll) list.scrollTop = Math.max(least, Math.min(list.scrollTop, top - 36));
    }
    const entry = explorer.entries[k];
    [chosenClass, chosenReference] = [entry.predicted, 0];
    drawDetail();
    markPoint(k);
    byId("picked")?.replaceChildren(h("strong", null, capital(entry.id)), `: ${verdictOf(entry.truth, entry.predicted)}. `,
      h("a", { href: "#explorer" }, "Explain"));
  };
  const move = (step) => {
    const order = listed();
    const place = order.indexOf(current);
    if (order.length) select(order[place < 0 ? 0 : Math.min(order.length - 1, Math.max(0, place + step))]);
  };

  // ---- explorer: one series ----
  const drawDetail = () => {
    const entry = explorer.entries[current];
    byId("which").textContent = capital(entry.id);
    const sure = entry.p ? ` with probability ${sureOf(entry)}` : "";
    const lasts = entry.clock ? `, ${ends(entry).join(" to ").replace("time ", "")}` : "";
    const right = !explorer.labelled ? "." : isWrong(entry) ? `. True: ${classed(labels[entry.truth])}.` : ", which is correct.";
    const set = entry.set ? ` Set at ${percent(1 - content.sets.alpha)} confidence: ${setOf(entry)}.` : "";
    byId("verdict").textContent = `${plural(entry.length, "step", "steps")}${lasts}. `
      + `Predicted: ${classed(model.classes[entry.predicted])}${sure}${right}${set}`;
    drawClass(entry);
  };
  /** Everything about the chosen class. */
  const drawClass = (entry) => {
    const part = entry.parts.find((one) => one.class === chosenClass);
    const name = classed(model.classes[chosenClass]);
    drawScores(entry);
    if (part.contributions) {
      drawMap(entry, part, name);
      drawLedger(entry, part, name);
    }
    if (snippets) drawOccurring(part, name);
    drawAlignment(entry, part, name);
  };

  const radio = (group, items, chosen, choose) => {
    const focused = group.contains(document.activeElement);
    group.replaceChildren(...items.map(({ nodes, name }, k) => {
      const state = { "aria-checked": k === chosen, tabindex: k === chosen ? 0 : -1, "data-value": k };
      const button = h("button", { type: "button", role: "radio", "aria-label": name, ...state }, ...nodes);
      button.addEventListener("click", () => choose(k));
      onKeys(button, BOTH_WAYS, (step) => choose((k + step + items.length) % items.length));
      return button;
    }));
    if (focused) group.querySelector('[aria-checked="true"]')?.focus();
  };

  const drawScores = (entry) => {
    const values = entry.p || entry.scores;
    const group = byId("scores");
    const classes = entry.parts.map((part) => part.class);
    const others = model.classes.length - classes.length;
    if (others) classes.sort((a, b) => values[b] - values[a]);
    const low = entry.p ? 0 : Math.min(0, ...values);
    const reach = (entry.p ? 1 : Math.max(0, ...values)) - low || 1;
    const items = classes.map((c) => {
      const bar = h("i", { class: c === entry.predicted ? "top" : null });
      bar.style.left = `${(100 * (Math.min(0, values[c]) - low)) / reach}%`;
      bar.style.width = `${(100 * Math.abs(values[c])) / reach}%`;
      const zero = h("b");
      zero.style.left = `${(-100 * low) / reach}%`;
      const isTrue = explorer.labelled && c === entry.truth;
      const score = entry.p ? percent(values[c]) : plus(values[c]);
      return {
        name: `${model.classes[c]}${isTrue ? ", the true class" : ""}: ${score}`,
        nodes: [h("span", { class: "name" }, model.classes[c], h("em", null, isTrue ? " (true)" : "")),
          h("span", { class: "pole" }, bar, zero), h("span", { class: "value" }, score)],
      };
    });
    group.style.setProperty("--name", `${Math.min(18, Math.max(...classes.map((c) => model.classes[c].length)) + 7)}ch`);
    radio(group, items, classes.indexOf(chosenClass), (k) => {
      [chosenClass, chosenReference] = [classes[k], 0];
      drawClass(entry);
    });
    if (others) group.append(h("p", { class: "note" }, `and ${others} other classes`));
  };

  // ---- steps and times ----
  const firstStep = (entry, i) => Math.ceil((i * entry.length) / entry.bins);
  /** The time of an axis at some seconds, or units of the user, after its start. */
  const timeAt = (clock, since) => {
    const { start, span } = clock;
    if (typeof start === "number") {
      return (start + since).toFixed(span === 0 || span >= 1000 ? 0 : span >= 100 ? 1 : span >= 1 ? 2 : 4);
    }
    // Dates have no time zone: show them as they are stored.
    const moment = (after) => new Date(Date.parse(`${start}Z`) + Math.round(1000 * after)).toISOString();
    const sameDay = moment(0).slice(0, 10) === moment(span).slice(0, 10);
    if (sameDay) return moment(since).slice(11, span < 60 ? 23 : 19);
    return moment(since).slice(0, span < 3 * 86400 ? 16 : 10).replace("T", " ");
  };
  const stepNames = (entry) => {
    const passed = entry.clock && unpack(entry.clock.passed);
    return (i) => {
      const [first, last] = [firstStep(entry, i), firstStep(entry, i + 1) - 1];
      const steps = last > first ? `steps ${first} to ${last}` : `step ${first}`;
      return passed ? `time ${timeAt(entry.clock, passed[i])} (${steps})` : steps;
    };
  };
  /** Labels at the ends of an axis: times of the user, or steps. */
  const ends = ({ clock, length }) =>
    (clock ? [`time ${timeAt(clock, 0)}`, timeAt(clock, clock.span)] : ["step 0", String(length - 1)]);
  // Round numbers of seconds that are no decimal ones: up to a minute, an hour, a day, and days.
  const ROUND_SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => 86400 * days)];
  /** Ticks and labels at round times of the user, or steps, below a box with a cell for each bin. */
  const ticks = (entry, box, y) => {
    const { clock, length, bins } = entry;
    const dated = clock && typeof clock.start !== "number";
    const start = !clock ? 0 : dated ? Date.parse(`${clock.start}Z`) / 1000 : clock.start;
    const [span, letters] = clock ? [clock.span, timeAt(clock, 0).length] : [length - 1, String(length).length];
    const least = (span * (7 * letters + 30)) / box.width;
    const unit = 10 ** Math.floor(Math.log10(least));
    let size = [1, 2, 5, 10].map((k) => k * unit).find((one) => one >= least * 0.999);
    if (dated && least > 1) size = ROUND_SECONDS.find((one) => one >= least) || size;
    if (!clock) size = Math.max(1, size);
    if (!(span > 0)) size = 1;
    const steps = [...indices(bins).map((i) => firstStep(entry, i)), length - 1];
    const passed = clock ? unpack(clock.passed) : steps;
    const stepAt = (since) => {
      const k = Math.max(1, passed.findIndex((one) => one >= since));
      const share = (since - passed[k - 1]) / (passed[k] - passed[k - 1] || 1);
      return steps[k - 1] + Math.min(1, Math.max(0, share)) * (steps[k] - steps[k - 1]);
    };
    const first = Math.ceil(start / size - 1e-9);
    const digits = Math.max(0, -Math.floor(Math.log10(size) + 1e-9));
    return indices(Math.floor((start + span) / size + 1e-9) - first + 1).flatMap((k) => {
      const value = (first + k) * size;
      const x = box.x + ((stepAt(value - start) + 0.5) * box.width) / length;
      return [rule(x, x, y - 16, y - 12), text(x.toFixed(1), y, dated ? timeAt(clock, value - start) : value.toFixed(digits),
        { class: "middle tick" })];
    });
  };

  // ---- contributions ----
  const drawMap = (entry, part, name) => {
    const place = byId("map");
    byId("h-map").textContent = `Contributions of steps and channels to ${name}`;
    const values = unpack(part.contributions);
    const steps = entry.bins;
    const rows = indices(values.length / steps);
    const width = Math.max(280, place.clientWidth);
    const narrow = width < 500;
    const letters = Math.min(narrow ? 11 : 18, Math.max(...rows.map((r) => channelName(r).length)));
    const [left, right, head] = [8 + 6.6 * letters, narrow ? 46 : 84, 44];
    const tall = rows.length > 16 ? 15 : 19;
    const box = { x: left, y: head, width: width - left - right - 8, height: rows.length * tall };
    const height = head + box.height + 24;
    const value = (r, i) => values[r * steps + i];
    const bySteps = indices(steps).map((i) => sum(rows.map((r) => value(r, i))));
    const byChannels = rows.map((r) => sum(values.subarray(r * steps, (r + 1) * steps)));
    const mid = box.x + box.width + 8 + (right - 8) / 2;
    const channelRows = rows.flatMap((r) => {
      const [y, sums] = [box.y + r * tall, byChannels[r]];
      const size = (Math.abs(sums) / (largest(byChannels) || 1)) * ((right - 12) / 2);
      const bar = rect(sums > 0 ? "for" : "against", sums > 0 ? mid : mid - size, y + 3, size, tall - 6);
      return [bar, text(left - 6, y + tall / 2 + 4, clip(channelName(r), letters), END)];
    });
    const stepName = stepNames(entry);
    const best = [...rows].sort((a, b) => byChannels[b] - byChannels[a]);
    const bestStep = bySteps.indexOf(Math.max(...bySteps));
    const said = (r) => `${channelName(r)} (${plus(byChannels[r])})`;
    const leaders = best.filter((r) => byChannels[r] > 0).slice(0, 2).map(said).join(", ");
    const summary = leaders ? `Largest contributions: ${leaders}, ${stepName(bestStep)} (${plus(bySteps[bestStep])}).`
      : "All channels count against it.";
    const svg = picture(width, height, `Contributions of ${steps} steps and ${rows.length} channels. ${summary}`,
      barsOfSteps(bySteps, box, head / 2 - 2, head / 2 - 4), frameOf(box),
      cells(value, rows.length, steps, box, largest(values)), channelRows,
      rule(mid, mid, box.y, box.y + box.height), ticks(entry, box, height - 6),
      text(left - 6, height - 6, entry.clock ? "time" : "step", END), text(mid, height - 6, "sum", { class: "middle" }));
    onGrid(svg, rows.length, steps, box, (r, i) =>
      [h("strong", null, plus(value(r, i))), ` ${channelName(r)}, ${stepName(i)}`]);
    place.replaceChildren(svg);
    const stretchOf = ([first, last, adds, share, u]) => `${first} to ${last} (${plus(adds)}, ${percent(share)}; `
      + `most in ${model.channels[u]})`;
    const stretches = part.stretches.map(stretchOf).join(", ");
    const shares = stretches && ` Steps that support it most: ${stretches}; in percent of all steps that support it.`;
    byId("map-words").replaceChildren(...keyOfColours(name), summary + shares);
  };

  /** Rows of a sum with fixed decimals. What rounding loses goes to the largest row: the shown numbers add up. */
  const sumTable = (title, rows, total, decimals) => {
    const round = (value) => Number(value.toFixed(decimals));
    const rounded = rows.map(([, value]) => round(value));
    const sizes = rounded.map(Math.abs);
    rounded[sizes.indexOf(Math.max(...sizes))] += round(total) - sum(rounded);
    const line = (words, value, kind = null) => h("tr", { class: kind }, h("th", { scope: "row" }, words),
      h("td", { class: "n" }, (round(value) < 0 ? "−" : "+") + Math.abs(value).toFixed(decimals)));
    return h("table", { class: "plain short" }, h("caption", null, title),
      h("tbody", null, rows.map(([words], k) => line(words, rounded[k])), line("decision value", total, "sum")));
  };
  /** Two sums that give the decision value: by steps and channels, and by landmarks and snippets. */
  const drawLedger = (entry, part, name) => {
    byId("h-ledger").textContent = `How the decision value of ${name} adds up`;
    const { offset, intercept, rest } = part;
    const score = entry.scores[chosenClass];
    const cellRows = [["all steps and channels", score - offset], ["offset", offset]];
    const partRows = part.strongest.map(([j, value]) => [nameOfReference(j), value]);
    partRows.push(["all other landmarks", rest]);
    if (snippets) partRows.push(["all snippets", part.all_snippets]);
    partRows.push(["intercept", intercept]);
    const size = largest([score, ...[...cellRows, ...partRows].map(([, value]) => value)]) || 1;
    const decimals = Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(size))));
    byId("ledger").replaceChildren(sumTable("By step and channel", cellRows, score, decimals),
      sumTable(snippets ? "By landmark and snippet" : "By landmark", partRows, score, decimals));
  };

  const drawOccurring = (part, name) => {
    byId("h-occurring").textContent = `Snippets with the largest contributions to ${name}`;
    const all = `All snippets contribute ${plus(part.all_snippets)}.`;
    byId("occurring-words").textContent = `${all} Numbers are compared with a mean training series.`;
    byId("occurring").replaceChildren(...part.snippets.map(([j, value, step]) =>
      snippetFigure(j, value > 0 ? "pro" : "con", h("strong", null, `${plus(value)}, closest at step ${step}`))));
  };

  // ---- alignments ----
  const drawAlignment = (entry, part, name) => {
    const place = byId("alignment");
    const words = byId("alignment-words");
    const neighbours = references.kind === "neighbours";
    byId("h-alignment").textContent = neighbours ? `Nearest training series of ${name}`
      : `Landmarks with the largest contributions to ${name}`;
    const sized = neighbours ? number : plus;
    const items = part.strongest.map(([j, value]) => ({
      name: `${capital(nameOfReference(j))}, ${sized(value)}`,
      nodes: [`${clip(nameOfReference(j), 40)}: ${sized(value)}`],
    }));
    radio(byId("chips"), items, chosenReference, (k) => {
      chosenReference = k;
      drawAlignment(entry, part, name);
    });
    if (!items.length) {
      place.replaceChildren();
      words.textContent = `No landmark has a weight for ${name}.`;
      return;
    }
    const [j, value] = part.strongest[chosenReference];
    // A line has the contribution of its step.
    const terms = part.by_step
      && unpack(part.by_step).subarray(chosenReference * entry.bins, (chosenReference + 1) * entry.bins);
    place.replaceChildren(alignmentPicture(entry, j, terms, Math.max(280, place.clientWidth)));
    if (neighbours) {
      words.textContent = `${capital(nameOfReference(j))}: nearness ${number(value)}. Lines connect aligned steps.`;
      return;
    }
    const where = importance.feature_maps.length
      ? `steps aligned in the feature map “${importance.feature_maps[0][0]}” and show its contributions` : "aligned steps";
    words.replaceChildren(`Lines connect ${where}: `, ...keyOfColours(name), "Thicker lines have larger contributions. ",
      `${capital(nameOfReference(j))} contributes ${plus(value)}.`);
  };
  const alignmentPicture = (entry, j, terms, width) => {
    const item = references.items[j];
    const [rows, others, path] = [unpack(entry.rows), unpack(item.rows), pathOf(entry.paths[j])];
    const [steps, otherSteps] = [entry.bins, Math.min(item.length, drawing.most_steps)];
    const lead = leading(chosenClass);
    const letters = Math.min(width < 500 ? 10 : 16, Math.max(...lead.map((k) => channelName(k).length)));
    const [band, gap, top] = [104, 76, 22];
    const full = width - 18 - 6.8 * letters;
    const longest = Math.max(steps, otherSteps);
    const reach = (n) => (longest > 1 ? (full * (n - 1)) / (longest - 1) : full);
    const upper = { x: 2, y: top, width: reach(steps), height: band };
    const lower = { x: 2, y: top + band + gap, width: reach(otherSteps), height: band };
    const height = lower.y + band + 24;
    const span = spanOf(rows, others);
    const [one, two] = [traces(rows, steps, upper, span, lead), traces(others, otherSteps, lower, span, lead)];
    const peak = terms ? largest(terms) || 1 : 1;
    const every = Math.ceil(path.length / 140);
    const ties = path.filter((_, k) => k % every === 0 || k === path.length - 1).map(([a, b]) => {
      const size = terms ? Math.abs(terms[a]) / peak : 0.4;
      const [xa, xb, ya, yb] = [one.x(a).toFixed(1), two.x(b).toFixed(1), upper.y + band + 4, lower.y - 4];
      return s("path", {
        class: `tie ${terms ? (terms[a] > 0 ? "pro" : "con") : "flat"}`,
        "stroke-width": (0.8 + 1.8 * size).toFixed(1), "stroke-opacity": (0.25 + 0.75 * size).toFixed(2),
        d: `M${xa} ${ya}C${xa} ${ya + gap / 2} ${xb} ${yb - gap / 2} ${xb} ${yb}`,
      });
    });
    const channelLabels = (lines, values, n, box) => {
      // Beside the last value that is not missing.
      const last = (k) => indices(n).map((i) => values[i * drawn.length + k]).findLast((value) => !Number.isNaN(value));
      const marks = lead.filter((k) => last(k) !== undefined).map((k) => ({ k, y: lines.y(last(k)) }));
      marks.sort((a, b) => a.y - b.y).forEach((mark, i) => { if (i) mark.y = Math.max(mark.y, marks[i - 1].y + 13); });
      return marks.map(({ k, y }) =>
        text(box.x + box.width + 7, (y + 4).toFixed(1), clip(channelName(k), letters), { style: `fill:${inkOf(k)}` }));
    };
    const title = (name, series, most, y) => {
      const axis = series.clock ? `, ${ends(series).join(" to ")}` : "";
      const words = `${capital(clip(name, most))}: ${plural(series.length, "step", "steps")}${axis}`;
      return text(2, y, words, { class: "strong halo" });
    };
    return picture(width, height,
      `${capital(entry.id)} above, ${nameOfReference(j)} below, ${path.length} aligned pairs of steps`,
      rule(2, 2 + upper.width, top + band, top + band), ties, one.nodes, two.nodes,
      rule(2, 2 + lower.width, lower.y, lower.y),
      title(entry.id, entry, 30, 13), title(nameOfReference(j), item, 36, height - 6),
      channelLabels(one, rows, steps, upper), channelLabels(two, others, otherSteps, lower));
  };

  const startExplorer = () => {
    const list = byId("list");
    drawList();
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[data-entry]");
      if (option) select(Number(option.dataset.entry), false);
    });
    onKeys(list, { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }, move);
    byId("search").addEventListener("input", drawList);
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    // Single keys work only while the explorer has the focus. Elsewhere the browser or a screen reader may use them.
    byId("explorer").addEventListener("keydown", (event) => {
      const step = { j: 1, k: -1, ...SIDEWAYS }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
      event.preventDefault();
      move(step);
    });
    select(0, false);
  };

  // ---- the page ----
  // A line says so where a table is cut off.
  document.querySelectorAll(".wide").forEach((place) => {
    const cue = h("p", { class: "note cue" });
    place.after(cue);
    new ResizeObserver(() => {
      const [wide, tall] = [place.scrollWidth - place.clientWidth > 1, place.scrollHeight - place.clientHeight > 1];
      cue.hidden = !(wide || tall);
      cue.textContent = wide ? "Scroll sideways to see all columns." : "Scroll to see all rows.";
    }).observe(place);
  });
  drawMetrics();
  drawGallery();
  drawSnippets();
  if (explorer) startExplorer();
  if (space) drawSpace();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    if (space) drawSpace();
    if (explorer) drawDetail();
  });
  // Print all items of long lists.
  addEventListener("beforeprint", () => document.querySelectorAll(".more-button").forEach((button) => button.click()));
})();
