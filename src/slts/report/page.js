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
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const picture = (width, height, label, ...children) =>
    s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...children);

  // ---- numbers ----
  const number = (value) => {
    const size = Math.abs(value);
    const text = size === 0 ? "0" : size >= 100 ? size.toFixed(0) : size >= 10 ? size.toFixed(1)
      : size >= 0.01 ? size.toFixed(size >= 1 ? 2 : 3) : size.toExponential(1);
    return (value < 0 ? "−" : "") + text;
  };
  /** Decimals so that rows of a sum have three digits at the largest value. */
  const decimalsFor = (size) => (size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4);
  /** A few digits, with an exponent if that is shorter than six characters or more: 0.21, 1000, 2.9e6. */
  const brief = (value, digits = 2) => {
    const near = Number(Math.abs(value).toPrecision(digits));
    const [plain, power] = [String(near), near.toExponential().replace("+", "")];
    return (value < 0 ? "−" : "") + (plain.length > 5 && power.length < plain.length ? power : plain);
  };
  const fixed = (value, decimals) => {
    const text = value.toFixed(Math.min(100, Math.max(0, decimals)));
    return text.replace("-", /[1-9]/.test(text) ? "−" : "");
  };
  /** Two digits of the span, both ends in one notation: 950 to 1000, 1.0e7 to 3.5e7, 101325 + 0.20 to 0.90. */
  const range = (low, high) => {
    const [size, span] = [Math.max(Math.abs(low), Math.abs(high)), high - low];
    if (span <= 1e-10 * size) return brief(low, 6);
    const [power, last] = [Math.floor(Math.log10(size)), Math.floor(Math.log10(span)) - 1];
    const plain = [low, high].map((value) => fixed(value, -last));
    const scaled = [low, high].map((value) => fixed(value / 10 ** power, power - last))
      .map((text) => (/[1-9]/.test(text) ? `${text}e${power}` : "0"));
    const length = (texts) => Math.max(...texts.map((text) => text.length));
    if (span < size / 1000 && length(plain) > 8) {
      const unit = 10 ** (last + 2);
      const level = Math.floor(low / unit) * unit;
      return `${fixed(level, -last - 2)} + ${range(low - level, high - level)}`;
    }
    return (length(plain) > 5 && length(scaled) < length(plain) ? scaled : plain).join(" to ");
  };
  const plus = (value) => (value > 0 ? "+" : "") + number(value);
  const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
  const signedPercent = (share) => (share < 0 ? "−" : "+") + percent(Math.abs(share));
  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  // Shorten in the middle: channel names often differ at the end.
  const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 4)}…${text.slice(-3)}` : text);
  // A label in a sentence: "class 3" for a number or letter, other labels unchanged.
  const classed = (label) => (label.length === 1 || /^[-+.\d]+$/.test(label) ? `class ${label}` : label);
  // Words of this page at the beginning of a sentence; labels and identifiers stay as the user writes them.
  const capital = (text) => (/^(all|class|series|steps?|time|training) /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text);
  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

  // Packed arrays are one typed array. An array is scaled when it is read.
  const opened = (packed) => {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    const flat = new { 8: Int8Array, 16: Int16Array, 32: Int32Array }[packed.bits](bytes.buffer);
    const starts = [0];
    packed.sizes.forEach((size) => starts.push(starts[starts.length - 1] + size));
    return (k) => Float32Array.from(flat.subarray(starts[k], starts[k + 1]), (v) => v * packed.scales[k]);
  };
  /** Opens pictures of several rows, which are packed one by one: `counts` has the number of rows of each picture. */
  const openedRows = (packed, counts) => {
    const row = opened(packed);
    const starts = [0];
    counts.forEach((count) => starts.push(starts[starts.length - 1] + count));
    return (k) => Array.from({ length: counts[k] }, (_, r) => row(starts[k] + r));
  };
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const pathOf = (text) => {
    const path = [[0, 0]];
    let [i, j] = [0, 0];
    for (const letter of text) {
      const code = ALPHABET.indexOf(letter);
      for (const move of [code >> 4, (code >> 2) & 3, code & 3]) {
        if (move === 0) continue;
        i += move >> 1;
        j += move & 1;
        path.push([i, j]);
      }
    }
    return path;
  };
  const referenceRows = references && opened(references.rows);
  const entryRows = explorer && opened(explorer.rows);
  const entryContributions = explorer && opened(explorer.contributions);
  const entryTimes = explorer && explorer.times && opened(explorer.times);
  const entrySteps = explorer && opened(explorer.by_step);
  const snippetRows = snippets && openedRows(snippets.values, snippets.channels.map((own) => own.length));
  const occurring = explorer && explorer.occurring && {
    strongest: opened(explorer.occurring.strongest),
    values: opened(explorer.occurring.values),
    totals: opened(explorer.occurring.totals),
    counts: opened(explorer.occurring.counts),
  };

  const drawn = drawing.channels;
  const channelName = (k) => (k < drawn.length ? model.channels[drawn[k]] : "all others");
  // "walk, recording 17".
  const nameOfReference = (j) => {
    const c = references.class[j];
    return c === null ? references.name[j] : `${classed(model.classes[c])}, ${references.name[j]}`;
  };
  // Two classes share one decision value.
  const twoClasses = model.decision_classes.length === 1;
  const decisionOf = (c) => (twoClasses ? 0 : c);
  const nameOfDecision = (decision) => (twoClasses ? `${model.classes[1]} against ${model.classes[0]}`
    : classed(model.classes[model.decision_classes[decision]]));

  /** The three most important drawn channels of a class, or of all classes (null). They are coloured. */
  const leading = (c) => {
    if (!importance.channels) return drawn.map((_, k) => k).slice(0, 3);
    const row = c === null
      ? importance.channels[0].map((_, u) => importance.channels.reduce((sum, r) => sum + r[u], 0))
      : importance.channels[decisionOf(c)];
    return drawn.map((_, k) => k).sort((a, b) => row[drawn[b]] - row[drawn[a]]).slice(0, 3);
  };

  // ---- tooltip ----
  const tip = byId("tip");
  /** Show the tooltip beside a point of the window. With a frame, it stays inside, as far as it fits. */
  const showTip = (event, children, frame = null) => {
    tip.replaceChildren(...children);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const box = frame ? frame.getBoundingClientRect() : { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    const room = { left: Math.max(box.left, 0), top: Math.max(box.top, 0), right: Math.min(box.right, innerWidth), bottom: Math.min(box.bottom, innerHeight) };
    const x = event.clientX + 14 + width > room.right - 8 ? event.clientX - width - 14 : event.clientX + 14;
    const y = event.clientY + 18 + height > room.bottom - 8 ? event.clientY - height - 12 : event.clientY + 18;
    tip.style.left = `${Math.max(room.left + 8, Math.min(x, room.right - width - 8))}px`;
    tip.style.top = `${Math.max(room.top + 8, y)}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  addEventListener("scroll", hideTip, { passive: true });

  // ---- parts of pictures ----
  const spanOf = (...arrays) => {
    let [low, high] = [Infinity, -Infinity];
    arrays.forEach((array) => array.forEach((value) => {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }));
    return high > low ? [low, high] : [low - 1, high + 1];
  };

  // With more steps than this, lines of all channels would hide each other.
  const MANY_STEPS = 80;
  /** Channels as lines in a box. The channels in `lead` are coloured and drawn last. */
  const traces = (rows, steps, box, [low, high], lead) => {
    const wide = drawn.length;
    const x = (i) => box.x + (steps > 1 ? (i * box.width) / (steps - 1) : box.width / 2);
    const y = (value) => box.y + box.height * (1 - (value - low) / (high - low));
    const line = (k) => {
      let d = "";
      for (let i = 0; i < steps; i += 1) d += `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(rows[i * wide + k]).toFixed(1)}`;
      return steps > 1 ? d : `${d}h.01`;
    };
    const others = steps > MANY_STEPS ? [] : drawn.map((_, k) => k).filter((k) => !lead.includes(k));
    const quiet = others.length ? [s("path", { class: "trace", d: others.map(line).join("") })] : [];
    const thin = steps > MANY_STEPS ? " thin" : "";
    const loud = lead.map((k, place) => s("path", { class: `trace c${place}${thin}`, d: line(k) }));
    return { nodes: [...quiet, ...loud.reverse()], x, y };
  };

  /** A signed matrix as cells. Larger values are darker. */
  const cells = (values, rows, columns, box, peak) => {
    const nodes = [];
    const [wide, tall] = [box.width / columns, box.height / rows];
    for (let r = 0; r < rows; r += 1) {
      for (let c = 0; c < columns; c += 1) {
        const share = peak > 0 ? Math.abs(values(r, c)) / peak : 0;
        if (share < 0.02) continue;
        const [left, top] = [box.x + c * wide, box.y + r * tall];
        nodes.push(s("rect", {
          class: `cell ${values(r, c) > 0 ? "for" : "against"}`, "fill-opacity": (share ** 0.8).toFixed(2),
          x: left.toFixed(2), y: top.toFixed(2), width: wide.toFixed(2), height: tall.toFixed(2),
        }));
      }
    }
    return nodes;
  };

  const onGrid = (svg, rows, columns, box, say) => {
    svg.addEventListener("pointermove", (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const c = Math.floor(((point.x - box.x) / box.width) * columns);
      const r = Math.floor(((point.y - box.y) / box.height) * rows);
      if (r < 0 || c < 0 || r >= rows || c >= columns) hideTip();
      else showTip(event, say(r, c));
    });
    svg.addEventListener("pointerleave", hideTip);
  };

  /** Call `act` with the step that a key stands for. */
  const onKeys = (node, steps, act) => node.addEventListener("keydown", (event) => {
    if (!steps[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    act(steps[event.key]);
  });
  const SIDEWAYS = { ArrowRight: 1, ArrowLeft: -1 };

  /** Signed values as bars above and below a line, one for each step of a box. */
  const barsOfSteps = (values, box, middle, size) => {
    const [peak, wide] = [largest(values) || 1, box.width / values.length];
    return [...Array.from(values, (v, i) => {
      const tall = (Math.abs(v) / peak) * size;
      return s("rect", { class: v > 0 ? "for" : "against", x: (box.x + i * wide + 0.5).toFixed(1), y: (v > 0 ? middle - tall : middle).toFixed(1), width: Math.max(0.5, wide - 1).toFixed(1), height: tall.toFixed(1) });
    }), s("line", { class: "axis", x1: box.x, x2: box.x + box.width, y1: middle, y2: middle })];
  };
  const keyOfColours = (name) => [h("span", { class: "key for" }), `for ${name}, `, h("span", { class: "key against" }), "against it. "];

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
    const name = (u) => importance.metric_channels[u];
    const peak = importance.metrics.reduce((most, metric) => Math.max(most, ...metric.values.map(largest)), 0);
    const letters = Math.min(12, Math.max(...importance.metric_channels.map((text) => text.length)));
    const figureOf = (metric, title) => {
      const d = metric.values.length;
      // Names need 12 pixels each. Those of a large matrix are left out at regular distances.
      const cell = Math.max(180 / d, d <= 24 ? 12 : 7);
      const every = Math.ceil(12 / cell);
      const margin = 8 + 6.2 * letters;
      const box = { x: margin, y: 0, width: cell * d, height: cell * d };
      const named = importance.metric_channels.map((_, u) => u).filter((u) => u % every === 0);
      const axes = named.flatMap((u) => {
        const middle = (u + 0.5) * cell;
        return [s("text", { class: "small", x: margin - 5, y: middle + 4, "text-anchor": "end" }, clip(name(u), letters)),
          s("text", { class: "small", "text-anchor": "end", transform: `translate(${margin + middle + 4} ${box.height + 6}) rotate(-90)` }, clip(name(u), letters))];
      });
      const value = (r, c) => metric.values[r][c];
      const pairs = metric.values.flatMap((row, r) => row.map((v, c) => [v, r, c]));
      const most = pairs.reduce((best, pair) => (pair[0] > best[0] ? pair : best));
      const least = pairs.reduce((best, pair) => (pair[0] < best[0] ? pair : best));
      const pairName = (pair) => (pair[1] === pair[2] ? name(pair[1]) : `${name(pair[1])} with ${name(pair[2])}`);
      const svg = picture(margin + box.width + 1, box.height + margin,
        `Metric, ${title}: ${d} by ${d} channels, largest ${pairName(most)} ${number(most[0])}, smallest ${pairName(least)} ${number(least[0])}`,
        s("rect", { class: "frame", ...box }), cells(value, d, d, box, peak), axes);
      onGrid(svg, d, d, box, (r, c) => [h("strong", null, plus(value(r, c))), ` ${name(r)} with ${name(c)}`]);
      return h("figure", null, svg, h("figcaption", null, h("strong", null, title),
        h("span", { class: "key for" }), pairName(most), h("br"), h("span", { class: "key against" }), pairName(least)));
    };
    const scale = h("div", { class: "scale" }, number(-peak), h("i"), number(peak));
    scale.setAttribute("aria-label", `Scale of all matrices: from ${number(-peak)} to ${number(peak)}`);
    scale.setAttribute("role", "img");
    place.append(scale);
    const label = (metric) => (metric.decision === null ? "all classes" : nameOfDecision(metric.decision));
    const parts = importance.metrics.some((metric) => metric.part !== null);
    if (!parts) {
      const grid = h("div", { class: "matrices" });
      place.append(grid);
      inPortions(grid, importance.metrics.map((metric) => () => figureOf(metric, label(metric))), 12, "matrices");
      return;
    }
    // Several metrics per class: one row of matrices per class.
    const decisions = [...new Set(importance.metrics.map((metric) => metric.decision))];
    const rows = h("div");
    place.append(rows);
    inPortions(rows, decisions.map((decision) => () => {
      const phases = importance.metrics.filter((metric) => metric.decision === decision);
      return h("div", { class: "gallery" }, h("h3", null, capital(label(phases[0]))),
        h("div", { class: "row" }, phases.map((metric) => figureOf(metric, metric.part === null ? label(metric) : metric.part))));
    }), 12, "classes");
  };

  // ---- landmarks ----
  const drawGallery = () => {
    const place = byId("gallery");
    if (!place) return;
    const textOf = references.weighted ? signedPercent : brief;
    // Weights of a class sum to 1. Effects are compared between classes.
    const peakOfAll = largest(references.gallery.flatMap((row) => row.effect)) || 1;
    const classes = references.gallery.map((row) => () => {
      const c = row.class;
      const lead = leading(c);
      const peak = references.weighted ? largest(row.effect) || 1 : peakOfAll;
      const cards = row.shown.map((j, place) => {
        const steps = Math.min(references.length[j], drawing.most_steps);
        const rows = referenceRows(j);
        const effect = row.effect[place];
        const name = references.weighted ? nameOfReference(j) : references.name[j];
        const svg = picture(210, 80, `${capital(nameOfReference(j))}, ${references.length[j]} steps, ${references.weighted ? "weight" : "effect"} ${textOf(effect)}`,
          traces(rows, steps, { x: 2, y: 3, width: 206, height: 74 }, spanOf(rows), lead).nodes.filter((node) => node.getAttribute("class") !== "trace"));
        svg.setAttribute("width", "100%");
        svg.removeAttribute("height");
        const bar = h("i", { class: effect > 0 ? "for" : "against" });
        bar.style.width = `${(60 * Math.abs(effect)) / peak}%`;
        return h("figure", null, svg, h("figcaption", null, h("div", { class: "share" }, bar, textOf(effect)), name));
      });
      const title = twoClasses && references.weighted ? nameOfDecision(0) : capital(classed(model.classes[c]));
      return h("div", { class: "gallery" },
        h("div", null, h("h3", null, title), h("p", { class: "note" },
          plural(row.used, "landmark", "landmarks"), row.used > row.shown.length ? `, ${row.shown.length} shown` : "",
          h("br"), ...lead.flatMap((k, place) => [place ? ", " : "", h("span", { class: `ink-${place}` }, clip(channelName(k), 24))]))),
        h("div", { class: "row" }, cards));
    });
    inPortions(place, classes, 12, "classes");
  };

  // ---- snippets ----
  /** Rows of equal height as lines, each with its own scale, stretched to the width of the place. */
  const ROW_HEIGHT = 36;
  const stacked = (label, rows, steps, spans, nodes) => {
    const height = ROW_HEIGHT * spans.length;
    const x = (i) => (100 * (i + 0.5)) / steps;
    const lines = spans.map(([low, high], r) => {
      const y = (value) => ROW_HEIGHT * (r + 1) - 4 - ((ROW_HEIGHT - 8) * (value - low)) / (high - low);
      return (from, to) => {
        let d = "";
        for (let i = from; i <= to; i += 1) d += `${i > from ? "L" : "M"}${x(i).toFixed(2)} ${y(rows[r][i]).toFixed(1)}`;
        return to > from ? d : `${d}h.01`;
      };
    });
    const rules = spans.slice(1).map((_, r) => s("line", { class: "rule", x1: 0, x2: 100, y1: ROW_HEIGHT * (r + 1), y2: ROW_HEIGHT * (r + 1) }));
    const svg = picture(100, height, label, s("rect", { class: "frame", width: 100, height }), ...nodes(lines, x, height), rules);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("width", "100%");
    svg.setAttribute("class", "stacked");
    svg.style.height = `${height}px`;
    return svg;
  };
  const COMPARED = {
    "shape only": "Level, slope and amplitude do not matter.",
    "by strength": "Occurs where the series moves strongly in the same way, at any level.",
  };
  const tag = (text) => (COMPARED[text] ? h("span", { class: "tag", title: COMPARED[text] }, text) : null);

  /** A snippet with the names of its channels, and beside it the series of an example. */
  const snippetFigure = (j, side, heading, example = null) => {
    const channels = snippets.channels[j];
    const own = snippetRows(j);
    const names = h("div", { class: "rows" }, channels.map((u, r) => {
      const low = snippets.lowest[j][r];
      const name = h("span", { class: "row-name" }, clip(model.channels[u], 15), h("small", null, range(low, low + largest(own[r]))));
      name.style.height = `${ROW_HEIGHT}px`;
      return name;
    }));
    let spans = own.map((row) => spanOf(row));
    let beside = null;
    if (example) {
      // Levels may differ unless values are compared.
      const anyLevel = snippets.compared[j] in COMPARED;
      const wider = example.rows.map((row, r) => (anyLevel ? spanOf(row) : spanOf(row, own[r])));
      if (!anyLevel) spans = wider;
      const bin = (step) => Math.floor((Math.min(Math.max(step, 0), example.length - 1) * example.bins) / example.length);
      const reach = snippets.dilation[j] * Math.floor(snippets.n_steps / 2);
      const peak = largest(example.added) || 1;
      beside = stacked(`${capital(example.name)}: closest occurrence at step ${example.centre}`, example.rows, example.bins, wider, (lines, x, height) => [
        ...cells((_, i) => example.added[i], 1, example.bins, { x: 0, y: 0, width: 100, height }, 2.5 * peak),
        ...lines.map((line) => s("path", { class: "trace dim", d: line(0, example.bins - 1) })),
        ...lines.map((line) => s("path", { class: `trace ${side}`, d: line(bin(example.centre - reach), bin(example.centre + reach)) })),
      ]);
    }
    const drawing = stacked(`Snippet: ${snippets.text[j]}`, own, snippets.n_steps, spans, (lines) =>
      lines.map((line) => s("path", { class: `trace ${side}`, d: line(0, snippets.n_steps - 1) })));
    return h("figure", { class: `snippet${example ? " with-example" : ""}` },
      h("figcaption", null, heading, snippets.text[j], " ", tag(snippets.compared[j])),
      h("div", { class: "strips" }, names, drawing, beside),
      example ? h("figcaption", { class: "example" }, `${example.name}: contributes ${plus(example.adds)}`) : null);
  };

  const drawSnippets = () => {
    const place = byId("snippet-gallery");
    if (!place) return;
    const items = snippets.gallery.flatMap((sides) => [...sides.for, ...sides.against]);
    const rows = openedRows(snippets.example_rows, items.map((item) => snippets.channels[item.snippet].length));
    const added = opened(snippets.example_added);
    let count = 0;
    const classes = snippets.gallery.map((sides, decision) => {
      const peak = largest([...sides.for, ...sides.against].map((item) => item.weight)) || 1;
      const name = classed(model.classes[model.decision_classes[decision]]);
      const makers = ["for", "against"].map((side) => sides[side].map((item) => {
        const k = count;
        count += 1;
        return () => {
          const { example } = item;
          const whose = example.truth === null ? "" : ` (${classed(labels[example.truth])})`;
          const bar = h("i", { class: side });
          bar.style.width = `${(40 * Math.abs(item.weight)) / peak}%`;
          return snippetFigure(item.snippet, side === "for" ? "pro" : "con", h("div", { class: "share" }, bar, plus(item.weight)), {
            ...example, rows: rows(k), added: added(k),
            name: `${clip(example.id, 24)}${whose}`,
          });
        };
      }));
      return () => h("div", { class: "snippets" }, h("h3", null, twoClasses ? nameOfDecision(0) : capital(name)),
        h("div", { class: "sides" }, makers.map((side, k) => h("div", null,
          h("h4", null, h("span", { class: `key ${k ? "against" : "for"}` }), k === 0 ? `for ${name}` : twoClasses ? `for ${classed(model.classes[0])}` : `against ${name}`),
          side.length ? side.map((make) => make()) : h("p", { class: "note" }, "none")))));
    });
    inPortions(place, classes, 3, "classes");
  };

  // ---- similarity space ----
  const SHAPES = [
    (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    (r) => `M${-r * 0.9} ${-r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
    (r) => `M0 ${-1.2 * r}L${1.1 * r} ${0.8 * r}H${-1.1 * r}z`,
    (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0z`,
    (r) => `M0 ${1.2 * r}L${1.1 * r} ${-0.8 * r}H${-1.1 * r}z`,
  ];
  let ringPicked = () => {};
  const drawSpace = () => {
    const place = byId("scatter");
    if (!place) return;
    const width = Math.max(280, place.clientWidth);
    const height = Math.round(Math.min(560, Math.max(320, width * 0.58)));
    const pad = 26;
    const all = space.points.concat(space.landmarks || []);
    const [x0, x1] = spanOf(all.map((p) => p[0]));
    const [y0, y1] = spanOf(all.map((p) => p[1]));
    const at = (p) => [pad + ((p[0] - x0) / (x1 - x0)) * (width - 2 * pad), pad + ((y1 - p[1]) / (y1 - y0)) * (height - 2 * pad)];
    const kept = explorer.entries.length;
    const colour = (c) => `var(--class-${c % 8})`;
    const points = space.points.map(at);
    const wrong = space.label.map((label, k) => explorer.labelled && label !== space.predicted[k]);
    const order = points.map((_, k) => k).sort((a, b) => wrong[a] - wrong[b]);
    const dots = order.map((k) => s("path", {
      class: `dot${wrong[k] ? " wrong" : ""}${k < kept ? "" : " faint"}`, "data-entry": k < kept ? k : null,
      d: SHAPES[space.label[k] % SHAPES.length]((wrong[k] ? 5 : 4) * (width < 500 ? 0.75 : 1)),
      transform: `translate(${points[k][0].toFixed(1)} ${points[k][1].toFixed(1)})`, fill: colour(space.label[k]),
    }));
    const rings = (space.landmarks || []).map(at).map(([x, y], k) => s("circle", {
      class: "ring", cx: x.toFixed(1), cy: y.toFixed(1), r: 6,
      style: space.landmark_labels[k] === null ? null : `stroke:${colour(space.landmark_labels[k])}`,
    }));
    // Names are at the median of their class. Overlapping names are moved apart.
    const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
    const captions = [];
    labels.forEach((name, c) => {
      const own = points.filter((_, k) => space.label[k] === c);
      if (own.length) captions.push({ c, name: clip(name, 18), x: median(own.map((p) => p[0])), y: median(own.map((p) => p[1])) });
    });
    captions.sort((a, b) => a.y - b.y);
    for (let round = 0; round < 40; round += 1) {
      for (let a = 0; a < captions.length; a += 1) {
        for (let b = a + 1; b < captions.length; b += 1) {
          const gap = 17 - Math.abs(captions[b].y - captions[a].y);
          const near = Math.abs(captions[b].x - captions[a].x) < 4.2 * (captions[a].name.length + captions[b].name.length) + 6;
          if (near && gap > 0) {
            const way = captions[b].y >= captions[a].y ? 1 : -1;
            captions[a].y -= (way * gap) / 2;
            captions[b].y += (way * gap) / 2;
          }
        }
      }
    }
    const few = labels.length <= 24;
    const texts = few ? captions.map((caption) => s("text", {
      class: "halo", x: caption.x.toFixed(1), y: (caption.y + 5).toFixed(1), "text-anchor": "middle",
      style: `fill:${colour(caption.c)}`,
    }, caption.name)) : [];
    const mark = s("circle", { class: "picked", r: 10, visibility: "hidden" });
    const svg = s("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "group",
      "aria-label": `Scatter plot of ${points.length} series in similarity space. The left and right arrow keys go through all points and select their series in the explorer.`,
    }, s("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1 }), rings, dots, texts, mark);
    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const [x, y] = [((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * height) / box.height];
      let [best, distance] = [-1, 18 ** 2];
      points.forEach((p, k) => {
        const d = (p[0] - x) ** 2 + (p[1] - y) ** 2;
        if (d < distance) [best, distance] = [k, d];
      });
      return best;
    };
    const describe = (k, event) => {
      const lines = [h("strong", null, capital(space.ids[k])), h("br"), verdictOf(space.label[k], space.predicted[k])];
      if (k < kept) lines.push(thumbnail(k));
      else lines.push(h("br"), "not in the explorer");
      showTip(event, lines, svg);
    };
    svg.addEventListener("pointermove", (event) => {
      const k = nearest(event);
      if (k < 0) hideTip();
      else describe(k, event);
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("blur", hideTip);
    svg.addEventListener("click", (event) => {
      const k = nearest(event);
      if (k >= 0 && k < kept) select(k);
    });
    // All points from left to right, also those that the explorer does not have.
    const sweep = points.map((_, k) => k).sort((a, b) => points[a][0] - points[b][0]);
    let reached = -1;
    const ring = (k) => {
      reached = k;
      mark.setAttribute("cx", points[k][0]);
      mark.setAttribute("cy", points[k][1]);
      mark.setAttribute("visibility", "visible");
    };
    onKeys(svg, SIDEWAYS, (step) => {
      const k = sweep[Math.min(sweep.length - 1, Math.max(0, sweep.indexOf(reached) + step))];
      if (k < kept) select(k);
      ring(k);
      const box = svg.getBoundingClientRect();
      describe(k, {
        clientX: box.left + (points[k][0] * box.width) / width, clientY: box.top + (points[k][1] * box.height) / height,
      });
    });
    ringPicked = () => { if (current >= 0) ring(current); };
    place.replaceChildren(svg);
    ringPicked();
  };
  const verdictOf = (truth, predicted) => {
    const answer = `predicted ${model.classes[predicted]}`;
    if (!explorer.labelled) return answer;
    return truth === predicted ? classed(labels[truth]) : `${classed(labels[truth])}, ${answer}`;
  };
  const thumbnail = (k) => {
    const rows = entryRows(k);
    return s("svg", { viewBox: "0 0 180 70", width: 180, height: 70 },
      traces(rows, explorer.entries[k].bins, { x: 2, y: 4, width: 176, height: 62 }, spanOf(rows), leading(null)).nodes);
  };

  // ---- explorer ----
  let current = -1;
  let chosenClass = 0;
  let chosenReference = 0;
  let chosenStep = -1;
  const entryOf = (k) => explorer.entries[k];
  const isWrong = (entry) => explorer.labelled && entry.truth !== entry.predicted;

  const drawList = () => {
    const list = byId("list");
    const wanted = byId("search").value.trim().toLowerCase();
    const shown = explorer.entries.map((entry, k) => k).filter((k) => {
      const entry = entryOf(k);
      const words = [entry.id, model.classes[entry.predicted], entry.truth === null ? "" : labels[entry.truth]];
      return words.some((word) => word.toLowerCase().includes(wanted));
    });
    const option = (k) => {
      const entry = entryOf(k);
      const sure = entry.p ? ` (${percent(entry.p[entry.predicted])})` : "";
      const node = h("li", { role: "option", id: `entry-${k}`, "data-entry": k, "aria-selected": k === current },
        entry.id, h("span", { class: isWrong(entry) ? "miss" : null }, verdictOf(entry.truth, entry.predicted) + sure));
      return node;
    };
    const parts = explorer.labelled
      ? [["Misclassified", shown.filter((k) => isWrong(entryOf(k)))], ["Correct", shown.filter((k) => !isWrong(entryOf(k)))]]
      : [["Series", shown]];
    list.replaceChildren(...parts.filter(([, members]) => members.length).flatMap(([name, members]) =>
      [h("li", { class: "head", role: "presentation" }, `${name} (${members.length})`), ...members.map(option)]));
    if (!shown.length) list.append(h("li", { class: "head", role: "presentation" }, "No series has this name or class."));
    list.dataset.order = shown.join(" ");
    if (shown.includes(current)) list.setAttribute("aria-activedescendant", `entry-${current}`);
    else list.removeAttribute("aria-activedescendant");
  };
  const listed = () => byId("list").dataset.order.split(" ").filter(Boolean).map(Number);

  const select = (k, scroll = true) => {
    const list = byId("list");
    current = k;
    list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    const option = byId(`entry-${k}`);
    if (option) {
      option.setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", option.id);
      if (scroll) {
        const [top, bottom] = [option.offsetTop - list.offsetTop - 36, option.offsetTop - list.offsetTop + option.offsetHeight];
        if (top < list.scrollTop) list.scrollTop = top;
        else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
      }
    }
    const entry = entryOf(k);
    chosenClass = entry.predicted;
    chosenReference = 0;
    chosenStep = -1;
    drawDetail();
    ringPicked();
    const picked = byId("picked");
    if (picked) {
      picked.replaceChildren(h("strong", null, capital(entry.id)), `: ${verdictOf(entry.truth, entry.predicted)}. `,
        h("a", { href: "#explorer" }, "Explain"));
    }
  };
  const move = (step) => {
    const order = listed();
    if (!order.length) return;
    const place = order.indexOf(current);
    select(order[place < 0 ? 0 : Math.min(order.length - 1, Math.max(0, place + step))]);
  };

  const setWords = (entry) => {
    if (!entry.set) return "";
    const names = entry.set.classes.map((c) => model.classes[c]).join(", ");
    return ` Set at ${entry.set.confidence} confidence: ${names || "no class, because every class is unusual for this series"}.`;
  };

  const drawDetail = () => {
    const entry = entryOf(current);
    byId("which").textContent = capital(entry.id);
    const sure = entry.p ? ` with probability ${percent(entry.p[entry.predicted])}` : "";
    const lasts = entry.clock ? `, ${timeAt(entry.clock, 0)} to ${timeAt(entry.clock, entry.clock.span)}` : "";
    const answer = `${plural(entry.length, "step", "steps")}${lasts}. Predicted: ${classed(model.classes[entry.predicted])}${sure}`;
    byId("verdict").textContent = !explorer.labelled ? `${answer}.`
      : isWrong(entry) ? `${answer}. True: ${classed(labels[entry.truth])}.`
        : `${answer}, which is correct.`;
    byId("verdict").append(setWords(entry));
    drawScores(entry);
    drawMap(entry);
    drawLedger(entry);
    drawOccurring(entry);
    drawAlignment(entry);
    drawAlone(entry);
  };

  const radio = (group, items, chosen, choose) => {
    const had = group.contains(document.activeElement);
    const buttons = items.map(({ value, nodes, name }) => {
      const button = h("button", { type: "button", role: "radio", "aria-checked": value === chosen, "aria-label": name, tabindex: value === chosen ? 0 : -1, "data-value": value }, ...nodes);
      button.addEventListener("click", () => choose(value));
      return button;
    });
    group.onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const place = items.findIndex((item) => item.value === chosen);
      choose(items[(place + step + items.length) % items.length].value);
    };
    group.replaceChildren(...buttons);
    if (!buttons.some((button) => button.tabIndex === 0) && buttons.length) buttons[0].tabIndex = 0;
    if (had) group.querySelector('[aria-checked="true"]')?.focus();
  };

  const drawScores = (entry) => {
    const values = entry.p || entry.scores;
    const group = byId("scores");
    if (!values) { group.replaceChildren(h("p", { class: "note" }, "This model has no decision values.")); return; }
    let classes = entry.classes && entry.classes.length ? entry.classes : model.classes.map((_, c) => c);
    if (classes.length < model.classes.length) classes = [...classes].sort((a, b) => values[b] - values[a]);
    const low = entry.p ? 0 : Math.min(0, ...values);
    const high = entry.p ? 1 : Math.max(0, ...values);
    const reach = high - low || 1;
    const items = classes.map((c) => {
      const value = values[c];
      const bar = h("i", { class: c === entry.predicted ? "top" : null });
      bar.style.left = `${(100 * (Math.min(0, value) - low)) / reach}%`;
      bar.style.width = `${(100 * Math.abs(value)) / reach}%`;
      const zero = h("b");
      zero.style.left = `${(-100 * low) / reach}%`;
      const remark = explorer.labelled && c === entry.truth ? " (true)" : "";
      const score = entry.p ? percent(value) : plus(value);
      return {
        value: c, name: `${model.classes[c]}${remark ? ", the true class" : ""}: ${score}`,
        nodes: [h("span", { class: "name" }, model.classes[c], h("em", null, remark)),
          h("span", { class: "pole" }, bar, zero), h("span", { class: "value" }, score)],
      };
    });
    group.style.setProperty("--name", `${Math.min(18, Math.max(...classes.map((c) => model.classes[c].length)) + 7)}ch`);
    radio(group, items, chosenClass, (c) => {
      chosenClass = c;
      chosenReference = 0;
      drawScores(entry);
      drawMap(entry);
      drawLedger(entry);
      drawOccurring(entry);
      drawAlignment(entry);
    });
    if (classes.length < model.classes.length) {
      group.append(h("p", { class: "note" }, `and ${model.classes.length - classes.length} other classes`));
    }
  };

  const firstStep = (entry, i) => Math.ceil((i * entry.length) / entry.bins);
  /** The time of an axis at some seconds, or units of the user, after its start. */
  const timeAt = (clock, since) => {
    if (typeof clock.start === "number") return (clock.start + since).toFixed(decimalsOf(clock.span));
    // Dates have no time zone: show them as they are stored.
    const moment = (after) => new Date(Date.parse(`${clock.start}Z`) + Math.round(1000 * after)).toISOString();
    const sameDay = moment(0).slice(0, 10) === moment(clock.span).slice(0, 10);
    if (sameDay) return moment(since).slice(11, clock.span < 60 ? 23 : 19);
    return moment(since).slice(0, clock.span < 3 * 86400 ? 16 : 10).replace("T", " ");
  };
  const decimalsOf = (span) => (span === 0 || span >= 1000 ? 0 : span >= 100 ? 1 : span >= 1 ? 2 : 4);
  const stepNames = (entry) => {
    const [firsts, lasts] = [(i) => firstStep(entry, i), (i) => firstStep(entry, i + 1) - 1];
    const steps = (i) => (lasts(i) > firsts(i) ? `steps ${firsts(i)} to ${lasts(i)}` : `step ${firsts(i)}`);
    if (!entry.clock) return steps;
    const times = entryTimes(explorer.entries.indexOf(entry));
    return (i) => `time ${timeAt(entry.clock, times[i])} (${steps(i)})`;
  };
  /** Labels at the ends of an axis: times of the user, or steps. */
  const ends = (clock, length) => (clock ? [`time ${timeAt(clock, 0)}`, timeAt(clock, clock.span)] : ["step 0", String(length - 1)]);

  const endLabels = (entry, box, y) => {
    const [first, last] = ends(entry.clock, entry.length);
    return [s("text", { x: box.x, y }, first), s("text", { x: box.x + box.width, y, "text-anchor": "end" }, last)];
  };

  const drawMap = (entry) => {
    const place = byId("map");
    if (!place || entry.contributions === undefined) return;
    const slot = entry.classes.indexOf(chosenClass);
    const values = entryContributions(entry.contributions + slot);
    const steps = entry.bins;
    const rows = values.length / steps;
    const name = classed(model.classes[chosenClass]);
    byId("h-map").textContent = `Contributions of steps and channels to ${name}`;
    const width = Math.max(280, place.clientWidth);
    const longest = Math.max(...Array.from({ length: rows }, (_, r) => channelName(r).length));
    const letters = Math.min(width < 500 ? 11 : 18, longest);
    const left = 8 + 6.6 * letters;
    const right = width < 500 ? 46 : 84;
    const tall = rows > 16 ? 15 : 19;
    const head = 44;
    const box = { x: left, y: head, width: width - left - right - 8, height: rows * tall };
    const height = head + box.height + 24;
    const value = (r, i) => values[r * steps + i];
    const bySteps = Array.from({ length: steps }, (_, i) => {
      let sum = 0;
      for (let r = 0; r < rows; r += 1) sum += value(r, i);
      return sum;
    });
    const byChannels = Array.from({ length: rows }, (_, r) => {
      let sum = 0;
      for (let i = 0; i < steps; i += 1) sum += value(r, i);
      return sum;
    });
    const channelPeak = largest(byChannels) || 1;
    const middle = head / 2 - 2;
    const mid = box.x + box.width + 8 + (right - 8) / 2;
    const channelBars = byChannels.map((v, r) => {
      const size = (Math.abs(v) / channelPeak) * ((right - 12) / 2);
      return s("rect", { class: v > 0 ? "for" : "against", x: (v > 0 ? mid : mid - size).toFixed(1), y: box.y + r * tall + 3, width: size.toFixed(1), height: tall - 6 });
    });
    const names = Array.from({ length: rows }, (_, r) => s("text", { x: left - 6, y: box.y + r * tall + tall / 2 + 4, "text-anchor": "end" }, clip(channelName(r), letters)));
    const stepName = stepNames(entry);
    const best = byChannels.map((v, r) => [v, r]).sort((a, b) => b[0] - a[0]);
    const bestStep = bySteps.indexOf(Math.max(...bySteps));
    const summary = `Contributions for ${name}, ${steps} steps by ${rows} channels; strongest channel ${channelName(best[0][1])} ${plus(best[0][0])}, strongest ${stepName(bestStep)} ${plus(bySteps[bestStep])}`;
    const svg = picture(width, height, summary,
      barsOfSteps(bySteps, box, middle, middle - 2),
      s("rect", { class: "frame", x: box.x, y: box.y, width: box.width, height: box.height }),
      cells(value, rows, steps, box, largest(values)), names, channelBars,
      s("line", { class: "axis", x1: mid, x2: mid, y1: box.y, y2: box.y + box.height }),
      endLabels(entry, box, height - 6),
      s("text", { x: mid, y: height - 6, "text-anchor": "middle" }, "sum"));
    onGrid(svg, rows, steps, box, (r, i) => {
      showStep(i);
      return [h("strong", null, plus(value(r, i))), ` ${channelName(r)}, ${stepName(i)}`];
    });
    place.replaceChildren(svg);
    const words = byId("map-words");
    words.replaceChildren(...keyOfColours(name),
      best[0][0] > 0 ? `Largest contributions: ${best.filter(([v]) => v > 0).slice(0, 2).map(([v, r]) => `${channelName(r)} (${plus(v)})`).join(", ")}, ${stepName(bestStep)} (${plus(bySteps[bestStep])}).` : "All channels count against it.");
  };

  /** Two sums that give the decision value: by steps and channels, and by landmarks and snippets. */
  const drawLedger = (entry) => {
    const place = byId("ledger");
    if (!place || entry.contributions === undefined) return;
    const slot = entry.classes.indexOf(chosenClass);
    const name = classed(model.classes[chosenClass]);
    byId("h-ledger").textContent = `How the decision value of ${name} adds up`;
    const score = entry.scores[chosenClass];
    const strongest = entry.strongest[slot];
    const [cellsSum, offset, intercept] = [score - entry.offset[slot], entry.offset[slot], entry.intercept[slot]];
    const listed = strongest.map(([j, value]) => [nameOfReference(j), value]);
    const sums = [
      ["By step and channel", [["all steps and channels", cellsSum], ["offset", offset]]],
      [entry.snippets ? "By landmark and snippet" : "By landmark", [...listed, ["all other landmarks", entry.rest[slot]],
        ...(entry.snippets ? [["all snippets", entry.snippets[slot]]] : []), ["intercept", intercept]]],
    ];
    const digits = decimalsFor(largest([score, ...sums.flatMap(([, rows]) => rows.map(([, value]) => value))]));
    const round = (value) => Number(value.toFixed(digits));
    const shown = (value) => (value < 0 ? "−" : value > 0 ? "+" : "") + Math.abs(value).toFixed(digits);
    place.replaceChildren(...sums.map(([title, rows]) => {
      const rounded = rows.map(([, value]) => round(value));
      // What rounding loses goes to the largest row, so that the shown numbers give the shown sum.
      const lost = round(round(score) - rounded.reduce((sum, value) => sum + value, 0));
      const most = rounded.reduce((best, value, k) => (Math.abs(value) > Math.abs(rounded[best]) ? k : best), 0);
      rounded[most] = round(rounded[most] + lost);
      const line = (text, value, total) => h("tr", total ? { class: "sum" } : null, h("th", { scope: "row" }, text), h("td", { class: "n" }, shown(value)));
      return h("table", { class: "plain short" }, h("caption", null, title),
        h("tbody", null, rows.map(([text], k) => line(text, rounded[k], false)), line("decision value", round(score), true)));
    }));
    byId("ledger-words").textContent = "Both sums give the same decision value. The offset belongs to no step or channel: it is the intercept"
      + (importance.metric_channels.includes("constant") || entry.snippets || Math.abs(offset - intercept) > 1e-9
        ? ", plus the contribution of landmarks that does not depend on the values (the constant channel)." : ".")
      + (entry.snippets ? " The intercept includes the contribution of snippets in a mean training series." : "");
  };

  /** Shows the snippets at a step; set when a series is drawn. */
  let showStep = () => {};
  const drawOccurring = (entry) => {
    const place = byId("occurring");
    if (!place || !occurring || !entry.snippets) return;
    const slot = entry.classes.indexOf(chosenClass);
    const name = classed(model.classes[chosenClass]);
    const steps = entry.bins;
    const most = explorer.occurring.at_step;
    const [strongest, values, counts] = [occurring.strongest(current), occurring.values(current), occurring.counts(current)];
    const totals = occurring.totals(current).subarray(slot * steps, (slot + 1) * steps);
    const stepName = stepNames(entry);
    byId("h-occurring").textContent = `Snippets that occur, and their contributions to ${name}`;
    const width = Math.max(280, place.clientWidth);
    const box = { x: 2, y: 4, width: width - 4, height: 84 };
    const wide = box.width / steps;
    const [bracket, bars] = [box.y + box.height + 8, box.y + box.height + 8 + 8 * most + 6];
    const height = bars + 56 + 18;
    const rows = entryRows(current);
    const lines = traces(rows, steps, { ...box, x: box.x + wide / 2, width: box.width - wide }, spanOf(rows), leading(chosenClass)).nodes;
    const cursor = s("rect", { class: "cursor", y: 0, width: wide.toFixed(1), height: bars + 56 });
    const marks = s("g", null);
    const svg = s("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "group",
      "aria-label": `${capital(entry.id)} above, and the sum of the contributions of snippets at each step below. The left and right arrow keys select a step.`,
    }, cursor, lines, marks, barsOfSteps(totals, box, bars + 28, 26), endLabels(entry, box, height - 4));
    showStep = (i) => {
      chosenStep = i;
      cursor.setAttribute("x", (box.x + i * wide).toFixed(1));
      const first = (slot * steps + i) * most;
      const found = Array.from({ length: most }, (_, k) => [strongest[first + k], values[first + k]]).filter(([, value]) => value !== 0);
      // A window, centred on the step, in the steps of the picture.
      const centre = (firstStep(entry, i) + firstStep(entry, i + 1) - 1) / 2;
      const at = (step) => box.x + (Math.min(Math.max(step, 0), entry.length) * box.width) / entry.length;
      marks.replaceChildren(...found.map(([j, value], k) => {
        const reach = snippets.dilation[j] * Math.floor(snippets.n_steps / 2);
        const [x0, x1, y] = [at(centre - reach), at(centre + reach + 1), bracket + 8 * k];
        return s("path", { class: `window ${value > 0 ? "pro" : "con"}`, d: `M${x0.toFixed(1)} ${y}H${x1.toFixed(1)}` });
      }));
      byId("at-step").replaceChildren(...found.map(([j, value]) => snippetFigure(j, value > 0 ? "pro" : "con",
        h("strong", { class: value > 0 ? "pro-text" : "con-text" }, plus(value)))));
      byId("occurring-words").replaceChildren(h("strong", null, capital(stepName(i))),
        `: ${plural(counts[i], "snippet occurs", "snippets occur")}. `,
        counts[i] > found.length ? `The ${found.length} strongest are below, and lines above show the steps that they cover. ` : "",
        `All snippets, including those that do not occur here, contribute ${plus(totals[i])} to ${name} at this step and ${plus(entry.snippets[slot])} in the whole series.`);
    };
    const move = (step) => showStep(Math.min(steps - 1, Math.max(0, step)));
    svg.addEventListener("pointermove", (event) => {
      const left = svg.getBoundingClientRect().left;
      move(Math.floor((event.clientX - left - box.x) / wide));
    });
    onKeys(svg, SIDEWAYS, (way) => move(chosenStep + way));
    place.replaceChildren(svg);
    showStep(chosenStep >= 0 && chosenStep < steps ? chosenStep : totals.indexOf(Math.max(...totals)));
  };

  const drawAlignment = (entry) => {
    const place = byId("alignment");
    if (!place || !entry.strongest) return;
    const slot = entry.classes.indexOf(chosenClass);
    const strongest = entry.strongest[slot];
    const name = classed(model.classes[chosenClass]);
    const neighbours = references.kind === "neighbours";
    byId("h-alignment").textContent = neighbours ? `Nearest training series of ${name}`
      : `Landmarks with the largest contributions to ${name}`;
    const items = strongest.map(([j, value], k) => ({
      value: k, name: `${capital(nameOfReference(j))}, ${plus(value)}`,
      nodes: [`${clip(nameOfReference(j), 40)}: ${neighbours ? number(value) : plus(value)}`],
    }));
    radio(byId("chips"), items, chosenReference, (k) => { chosenReference = k; drawAlignment(entry); });
    if (!strongest.length) {
      place.replaceChildren();
      byId("alignment-words").textContent = `No landmark has a weight for ${name}.`;
      return;
    }
    const [j, value] = strongest[chosenReference];
    const rows = entryRows(current);
    const others = referenceRows(j);
    const steps = entry.bins;
    const otherSteps = Math.min(references.length[j], drawing.most_steps);
    const path = pathOf(entry.paths[j]);
    const width = Math.max(280, place.clientWidth);
    const lead = leading(chosenClass);
    const letters = Math.min(width < 500 ? 10 : 16, Math.max(...lead.map((k) => channelName(k).length)));
    const room = 14 + 6.8 * letters;
    const [band, gap, top] = [104, 76, 22];
    const full = width - room - 4;
    const longest = Math.max(steps, otherSteps);
    const reach = (n) => (longest > 1 ? (full * (n - 1)) / (longest - 1) : full);
    const span = spanOf(rows, others);
    const upper = { x: 2, y: top, width: reach(steps), height: band };
    const lower = { x: 2, y: top + band + gap, width: reach(otherSteps), height: band };
    const height = lower.y + band + 24;
    const one = traces(rows, steps, upper, span, lead);
    const two = traces(others, otherSteps, lower, span, lead);
    // A line has the contribution of its step.
    let terms = null;
    if (entrySteps && explorer.by_step.sizes.length) {
      const flat = entrySteps(current);
      const before = entry.strongest.slice(0, slot).reduce((sum, row) => sum + row.length, 0) + chosenReference;
      terms = flat.subarray(before * steps, (before + 1) * steps);
    }
    const peak = terms ? largest(terms) || 1 : 1;
    const every = Math.ceil(path.length / 140);
    const ties = path.filter((_, k) => k % every === 0 || k === path.length - 1).map(([a, b]) => {
      const share = terms ? Math.abs(terms[a]) / peak : 0.4;
      const kind = terms ? (terms[a] > 0 ? "pro" : "con") : "flat";
      const [xa, xb] = [one.x(a).toFixed(1), two.x(b).toFixed(1)];
      const [ya, yb] = [upper.y + band + 4, lower.y - 4];
      return s("path", {
        class: `tie ${kind}`, "stroke-width": (0.8 + 1.8 * share).toFixed(1), "stroke-opacity": (0.25 + 0.75 * share).toFixed(2),
        d: `M${xa} ${ya}C${xa} ${ya + gap / 2} ${xb} ${yb - gap / 2} ${xb} ${yb}`,
      });
    });
    const channelLabels = (lines, values, n, x) => {
      const marks = lead.map((k, place) => ({ k, place, y: lines.y(values[(n - 1) * drawn.length + k]) })).sort((a, b) => a.y - b.y);
      marks.forEach((mark, i) => { if (i) mark.y = Math.max(mark.y, marks[i - 1].y + 13); });
      return marks.map((mark) => s("text", { class: `c${mark.place}`, x: x + 7, y: (mark.y + 4).toFixed(1) }, clip(channelName(mark.k), letters)));
    };
    const whose = nameOfReference(j);
    const lengthOf = (clock, length) => `${plural(length, "step", "steps")}${clock ? `, ${ends(clock, length).join(" to ")}` : ""}`;
    const base = (box) => s("line", { class: "axis", x1: box.x, x2: box.x + box.width, y1: box.y + band + 0.5, y2: box.y + band + 0.5 });
    const svg = picture(width, height,
      `${capital(entry.id)} above, ${whose} below, ${path.length} aligned pairs of steps`,
      base(upper), ties, one.nodes, two.nodes,
      s("line", { class: "axis", x1: lower.x, x2: lower.x + lower.width, y1: lower.y + 0.5, y2: lower.y + 0.5 }),
      s("text", { class: "strong halo", x: 2, y: 13 }, `${capital(clip(entry.id, 30))}: ${lengthOf(entry.clock, entry.length)}`),
      s("text", { class: "strong halo", x: 2, y: height - 6 }, `${capital(clip(whose, 36))}: ${lengthOf(references.clock[j], references.length[j])}`),
      channelLabels(one, rows, steps, upper.x + upper.width), channelLabels(two, others, otherSteps, lower.x + lower.width));
    place.replaceChildren(svg);
    const words = byId("alignment-words");
    if (neighbours) {
      words.textContent = `${capital(whose)}: nearness ${number(value)}. Lines connect aligned steps.`;
    } else {
      const where = importance.feature_maps
        ? `steps aligned in the feature map “${importance.feature_maps[0][0]}” and show its contributions` : "aligned steps";
      words.replaceChildren(`Lines connect ${where}: `, ...keyOfColours(name), "Thicker lines have larger contributions. ",
        `${capital(whose)} contributes ${plus(value)}.`);
    }
  };

  const drawAlone = (entry) => {
    if (references) return;
    const place = byId("alone");
    const width = Math.max(280, place.clientWidth);
    const rows = entryRows(current);
    place.replaceChildren(picture(width, 150, `${capital(entry.id)}, ${entry.length} steps`,
      traces(rows, entry.bins, { x: 2, y: 6, width: width - 4, height: 138 }, spanOf(rows), leading(null)).nodes));
  };

  const startExplorer = () => {
    drawList();
    const list = byId("list");
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[data-entry]");
      if (option) select(Number(option.dataset.entry), false);
    });
    list.addEventListener("keydown", (event) => {
      const order = listed();
      const action = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => select(order[0]), End: () => select(order[order.length - 1]) }[event.key];
      if (!action || !order.length) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
    byId("search").addEventListener("input", drawList);
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    // Single keys work only while the explorer has the focus. Elsewhere the browser or a screen reader may use them.
    byId("explorer").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
      const step = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      move(step);
    });
    select(0, false);
  };

  // ---- theme, navigation, size ----
  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver((changes) => {
    changes.forEach((change) => seen[change.isIntersecting ? "add" : "delete"](change.target.id));
    const first = [...links.keys()].find((id) => seen.has(id));
    links.forEach((link, id) => (id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  }, { rootMargin: "-10% 0px -60% 0px" });
  document.querySelectorAll("main section").forEach((section) => watch.observe(section));

  // Tables that are wider or taller than their place fade out where they go on, and a line says so.
  document.querySelectorAll(".wide").forEach((place) => {
    const cue = h("p", { class: "note cue", hidden: "" });
    place.after(cue);
    const update = () => {
      const [wide, tall] = [place.scrollWidth - place.clientWidth > 1, place.scrollHeight - place.clientHeight > 1];
      cue.hidden = !(wide || tall);
      cue.textContent = wide ? "Scroll sideways to see all columns." : `Scroll to see all ${place.querySelectorAll("tbody tr").length} rows.`;
      place.classList.toggle("cut-right", wide && place.scrollLeft + place.clientWidth < place.scrollWidth - 1);
      place.classList.toggle("cut-below", tall && place.scrollTop + place.clientHeight < place.scrollHeight - 1);
    };
    place.addEventListener("scroll", update, { passive: true });
    new ResizeObserver(update).observe(place);
    update();
  });

  drawMetrics();
  drawGallery();
  drawSnippets();
  if (explorer) startExplorer();
  if (space) drawSpace();
  let width = innerWidth;
  let waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (space) drawSpace();
      if (explorer) drawDetail();
    }, 120);
  });
  // Print all items of long lists.
  addEventListener("beforeprint", () => document.querySelectorAll(".more-button").forEach((button) => button.click()));
})();
