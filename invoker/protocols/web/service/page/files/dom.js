// Elements made of text and attributes. Nothing here, or anywhere on this page, parses HTML: whatever a peer or a
// function says becomes the text of a node.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a tag with classes ("p.dim"), maybe attributes, in which `on` has listeners by event, and children. */
export function h(tag, ...parts) {
	const [name, ...classes] = tag.split("."), element = document.createElement(name);
	if (classes.length) element.className = classes.join(" ");
	return fill(element, parts);
}

/** The same in an SVG picture. */
export const s = (tag, ...parts) => fill(document.createElementNS(SVG, tag), parts);

function fill(element, parts) {
	for (const [name, value] of Object.entries(parts[0]?.constructor === Object ? parts.shift() : {})) {
		if (value === undefined || value === null || value === false) continue;
		if (name === "on") for (const [event, does] of Object.entries(value)) element.addEventListener(event, does);
		else element.setAttribute(name, value === true ? "" : String(value));
	}
	element.append(...parts.flat().filter((one) => one !== null && one !== undefined && one !== false));
	return element;
}

let count = 0;

/** An id that no other element has. */
export const fresh = (word) => `${word}-${++count}`;

/** Set the text of an element, if it is another one, so that a screen reader hears only what is new. */
export function say(element, text) {
	if (element.textContent !== text) element.textContent = text;
}

/** A button. */
export function button(text, does, props = {}) {
	return h("button", {type: "button", on: {click: does}, ...props}, text);
}

/** Buttons of which one is pressed: `names` by value; `chosen` hears the value. */
export function choice(label, names, value, chosen) {
	const buttons = Object.entries(names).map(([key, text]) => button(text, () => pick(key), {"data-key": key}));
	const element = h("div.choice", {role: "group", "aria-label": label}, buttons);
	const mark = (key) => buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.key === key)));
	const pick = (key) => { mark(key); chosen(key); };
	mark(value);
	return {element, mark};
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Bytes, as people read them. */
export function size(bytes) {
	let power = 0;
	while (bytes >= 999.5 && power < UNITS.length - 1) { bytes /= 1000; power += 1; }
	return `${power && bytes < 99.95 ? bytes.toFixed(1) : Math.round(bytes)} ${UNITS[power]}`;
}

/** A whole number, with groups of three. */
export const whole = (number) => number.toLocaleString("en");

/** A count with its noun. */
export const many = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Something a second. */
export const rate = (number) => `${number >= 9.95 ? whole(Math.round(number)) : number.toFixed(number ? 1 : 0)}/s`;

/** A time that something took. */
export function span(seconds) {
	if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
	if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
	const minutes = Math.floor(seconds / 60);
	return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

