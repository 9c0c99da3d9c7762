// A small DOM layer. h describes an element, and paint makes the page equal to a description, with as few changes as possible: what has the
// focus, a selection or a scroll position keeps it. Texts become text nodes, and no attribute can have a script, so that no name that a
// client sends becomes HTML.

const SVG = "http://www.w3.org/2000/svg";
const svgTags = new Set(["svg", "g", "path", "rect", "line", "text", "defs", "pattern", "title", "circle"]);
const asProperties = new Set(["value", "checked", "disabled", "open", "selected"]);
// What an operator changes in the page itself is set again at each paint.
const always = new Set(["value", "checked"]);

/** Describes an element. Children are descriptions, texts, numbers, lists of them, or nothing (null, undefined, false). */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== "") };
}

/** Makes the children of parent equal to the descriptions. */
export function paint(parent, ...descriptions) {
  const active = document.activeElement;
  paintChildren(parent, h("div", null, ...descriptions).children);
  // A row that moves to another place loses the focus.
  if (active && active !== document.activeElement && active.isConnected && active !== document.body) {
    active.focus({ preventScroll: true });
  }
}

function paintChildren(parent, wanted) {
  const keyed = new Map();
  for (const node of parent.childNodes) {
    if (node.described?.props.key !== undefined) keyed.set(node.described.props.key, node);
  }
  const keys = new Set(wanted.map((c) => c.props?.key));
  let next = parent.firstChild;
  for (const child of wanted) {
    // What goes away makes room first: the others need not move then.
    while (next?.described?.props.key !== undefined && !keys.has(next.described.props.key)) next = drop(next);
    const node = reuse(parent, child, next, keyed);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next) next = drop(next);
}

function drop(node) {
  const following = node.nextSibling;
  node.described?.props.gone?.(node);
  node.remove();
  return following;
}

// reuse finds the node for a description, or makes it.
function reuse(parent, child, next, keyed) {
  if (typeof child !== "object") {
    const text = String(child);
    if (next?.nodeType === Node.TEXT_NODE) {
      if (next.data !== text) next.data = text;
      return next;
    }
    return document.createTextNode(text);
  }
  const key = child.props.key;
  let node = key !== undefined ? keyed.get(key) : next?.described?.props.key === undefined ? next : null;
  if (node?.described?.tag !== child.tag) node = create(parent, child);
  apply(node, child);
  return node;
}

function create(parent, { tag }) {
  const svg = tag === "svg" || (svgTags.has(tag) && parent.namespaceURI === SVG);
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  node.described = { tag, props: {}, children: [] };
  return node;
}

function apply(node, child) {
  const before = node.described;
  const fresh = before.children.length === 0 && !node.isConnected;
  node.described = child;
  for (const name of Object.keys(before.props)) {
    if (!(name in child.props)) set(node, name, undefined, before.props[name]);
  }
  if (!child.props.foreign) paintChildren(node, child.children);
  for (const [name, value] of Object.entries(child.props)) {
    if (before.props[name] !== value || always.has(name)) set(node, name, value, before.props[name]);
  }
  if (fresh && child.props.made) queueMicrotask(() => child.props.made(node));
}

function set(node, name, value, before) {
  if (name === "key" || name === "made" || name === "gone" || name === "foreign") return;
  if (name.startsWith("on")) {
    if (!node.listening?.[name]) listen(node, name.slice(2));
    return;
  }
  if (name === "style") {
    for (const property of Object.keys(before ?? {})) if (!(property in (value ?? {}))) node.style.removeProperty(property);
    for (const [property, text] of Object.entries(value ?? {})) node.style.setProperty(property, text);
    return;
  }
  if (name === "href" && value !== undefined && !String(value).startsWith("#")) value = undefined;
  if (asProperties.has(name)) {
    if (node[name] !== value) node[name] = value ?? "";
    return;
  }
  if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

// listen calls the handler that the latest description has.
function listen(node, event) {
  node.listening ??= {};
  node.listening["on" + event] = true;
  node.addEventListener(event, (e) => node.described.props["on" + event]?.(e));
}
