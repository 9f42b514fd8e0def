// The cabinet and the icons, as SVG.
const svg = (tag, attributes, ...children) => {
  const e = document.createElementNS("http:" + "//www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};

const heights = { XS: 1, S: 1.2, M: 1.8, L: 2.8, XL: 4, XXL: 5 };
const unit = 34, width = 96, gap = 6;

// columns gives the doors in the layout's order to columns of about one height.
function columns(doors) {
  const tall = (d) => (heights[(d.size || "M").toUpperCase()] ?? heights.M) * unit;
  const total = doors.reduce((sum, d) => sum + tall(d) + gap, 0);
  const count = Math.max(1, Math.min(12, Math.round(Math.sqrt(total / width / .8))));
  const list = [[]];
  let filled = 0;
  for (const d of doors) {
    if (filled >= total / count - unit / 2 && list.length < count) list.push([]), filled = 0;
    list.at(-1).push({ ...d, tall: tall(d) });
    filled += tall(d) + gap;
  }
  return list;
}

// cabinet draws all doors; lit maps door numbers to classes. A cabinet without doors has no drawing.
export function cabinet(doors, lit = new Map()) {
  if (doors.length === 0) return null;
  const list = columns(doors), sum = (column) => column.reduce((s, d) => s + d.tall + gap, gap);
  const high = Math.max(...list.map(sum)), wide = list.length * (width + gap) + gap;
  const parts = [svg("rect", { class: "body", width: wide + 8, height: high + 8, rx: 10 })];
  list.forEach((column, i) => {
    const stretch = (high - gap * (column.length + 1)) / column.reduce((s, d) => s + d.tall, 0);
    let y = gap + 4;
    for (const d of column) {
      const h = d.tall * stretch, x = 4 + gap + i * (width + gap);
      parts.push(svg("rect", { class: "leaf " + (lit.get(d.door) ?? ""), x, y, width, height: h, rx: 5 }));
      const name = svg("text", { class: lit.has(d.door) ? "on" : "", x: x + width / 2, y: y + h / 2 });
      name.textContent = d.label;
      parts.push(name);
      y += h + gap;
    }
  });
  return svg("svg", { class: "cabinet", viewBox: `-2 -2 ${wide + 12} ${high + 12}`, "aria-hidden": "true" }, ...parts);
}

const paths = {
  pickup: "M4 8l8-4 8 4v9l-8 4-8-4zM4 8l8 4 8-4M12 12v9", dropoff: "M4 13v7h16v-7M12 3v11M8 10l4 4 4-4", help: "M12 21a9 9 0 100-18 9 9 0 000 18zM9.5 9.5a2.5 2.5 0 114 2c-1 .7-1.5 1.200-1.500 2.200M12 17v.1",
  home: "M4 11l8-7 8 7v9h-6v-6h-4v6H4z", language: "M12 21a9 9 0 100-18 9 9 0 000 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18", size: "M3 19L8.500 5 14 19M5 14.500h7M15 19l3-8 3 8M16 16.500h4",
  contrast: "M12 21a9 9 0 100-18 9 9 0 000 18zM12 3v18M15 5v14M18 7.500v9", sound: "M4 9v6h4l5 4V5L8 9zM16.500 9a4 4 0 010 6M19 6.500a8 8 0 010 11", silent: "M4 9v6h4l5 4V5L8 9zM17 9l5 6M22 9l-5 6",
  voice: "M4 5h16v11h-9l-4 4v-4H4zM8 9h8M8 12h5", staff: "M12 11a4 4 0 100-8 4 4 0 000 8zM4 21c0-5 3-7 8-7s8 2 8 7", show: "M2 12c4-7 16-7 20 0-4 7-16 7-20 0zM12 15a3 3 0 100-6 3 3 0 000 6z", back: "M20 12H4M10 6l-6 6 6 6",
  send: "M4 13v7h16v-7M12 15V3M8 7l4-4 4 4", check: "M4 12l6 6L20 6", again: "M20 12a8 8 0 11-2.500-5.800M20 3v5h-5", door: "M6 21V3h12v18zM15 12v.1", phone: "M5 3h4l2 5-3 2a12 12 0 006 6l2-3 5 2v4a2 2 0 01-2 2A16 16 0 013 5a2 2 0 012-2z", mail: "M3 6h18v12H3zM3 7l9 6 9-6",
};

export const icon = (name) => svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: paths[name] }));

// symbol draws a QR symbol with its margin, dark on light whatever the page's colours are.
export function symbol(rows, name) {
  const margin = 4, side = rows.length + 2 * margin;
  const d = rows.flatMap((row, y) => [...row].map((c, x) => (c === "1" ? `M${x + margin} ${y + margin}h1v1h-1z` : ""))).join("");
  return svg("svg", { class: "symbol", viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": name, "shape-rendering": "crispEdges" },
    svg("rect", { width: side, height: side, fill: "#fff" }), svg("path", { d, fill: "#000" }));
}
