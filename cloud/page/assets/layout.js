// Draws the doors of a layout anew while it is typed, with the labels that they will
// have: pickup numbers count by shelf, column and row over the whole cabinet.
const form = document.getElementById("layout");
const doors = document.getElementById("doors");
const draw = document.getElementById("draw");

// cells lists the compartments in the order of their pickup numbers.
function cells() {
  const shelves = form.elements.shelves.value.split(",");
  const list = [...form.querySelectorAll("fieldset.grid")].map((box) => {
    const value = (name) => box.querySelector(`[name=${name}]`).value.trim();
    const shelf = value("shelf").toUpperCase();
    if (!shelves.includes(shelf)) shelves.push(shelf);
    return { box, shelf, place: shelves.indexOf(shelf), column: Number(value("column")) || 0, row: Number(value("row")) || 0, door: value("door"), size: value("size"), pickup: value("pickup") === "yes" };
  });
  list.sort((a, b) => a.place - b.place || a.column - b.column || a.row - b.row);
  let n = 0;
  for (const c of list) c.label = c.pickup ? `${c.shelf}-${++n}` : doors.dataset.staff;
  return list;
}

function element(name, className, text) {
  const e = document.createElement(name);
  e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function redraw() {
  const columns = [];
  let last = "";
  for (const c of cells()) {
    const at = `${c.place}/${c.column}`;
    if (at !== last) columns.push(element("ul", "column"));
    last = at;
    c.box.querySelector("[data-label]").textContent = c.label;
    const leaf = element("a", "leaf");
    leaf.href = `#${c.box.id}`;
    leaf.append(element("span", "name", c.label), element("span", "state", `${c.door} · ${c.size}`));
    const door = element("li", `door size-${c.size}`);
    door.append(leaf);
    columns.at(-1).append(door);
  }
  doors.replaceChildren(...columns);
}

if (form) {
  draw.hidden = true;
  form.addEventListener("input", redraw);
}
