// One value as something to look at: text, a tree, a table, a heat map, a picture, sound.

import {button, choice, fresh, h, many, size, whole} from "./dom.js";
import {heat, shapeOf} from "./heat.js";
import {isObject, line} from "./json.js";

const LONG = 20_000;
const MOST_ROWS = 500;
const MOST_COLUMNS = 24;
const TEXTS = /^(text\/|application\/(json|xml|yaml|.*\+(json|xml)))/;
const FENCED = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml|x-icon)$/;

/** An item as an element; `undo` gets what has to be done when it is shown no more. */
export function show(item, undo = []) {
	if (item.bytes === undefined) return shown(item.value);
	const type = item.contentType.split(";")[0].trim().toLowerCase();
	if (FENCED.test(type)) return media("img", item, type, undo);
	if (type.startsWith("audio/")) return media("audio", item, type, undo);
	if (type.startsWith("video/")) return media("video", item, type, undo);
	if (TEXTS.test(type)) return captioned(long(decoded(item.bytes)), item, type, undo);
	return captioned(dump(item.bytes), item, type, undo);
}

/** What an item is, in short, for a place where it cannot be seen. */
export const sizeOf = (item) => item.bytes?.length ?? item.size ?? 0;

/** Whether a value is a member of a table: an object of plain values. */
export const isRow = (value) => isObject(value) && Object.keys(value).length > 0 && Object.values(value).every((one) => one === null || typeof one !== "object" || line(one).length < 80);

function shown(value) {
	if (typeof value === "string") return long(value);
	if (value === null || typeof value !== "object") return h("code", {class: `plain ${typeof value}`}, line(value));
	if (Array.isArray(value)) {
		const shape = shapeOf(value);
		if (shape && (shape.length > 1 ? shape.at(-1) > 1 || shape.at(-2) > 1 : shape[0] >= 12)) return switched({heat: "heat map", tree: "numbers"}, (key) => key === "heat" ? heat(value.flat(Infinity).map(Number), shape) : tree(value));
		if (value.length > 0 && value.every(isRow)) return switched({table: "table", tree: "tree"}, (key) => key === "table" ? table(value).element : tree(value));
	}
	return tree(value);
}

function switched(names, make) {
	const first = Object.keys(names)[0], place = h("div", make(first));
	return h("div", choice("Show as", names, first, (key) => place.replaceChildren(make(key))).element, place);
}

/** A text, cut where it is very long until somebody asks for all of it. */
export function long(text) {
	const body = h("pre.text", text.length > LONG ? text.slice(0, LONG) : text || "(an empty text)");
	if (!text) body.classList.add("dim");
	if (text.length <= LONG) return body;
	const more = button(`Show all ${whole(text.length)} characters`, () => { body.textContent = text; more.remove(); }, {class: "quiet"});
	return h("div", body, more);
}

/** JSON as a tree that opens and closes; what is closed is not made yet. */
export function tree(value, depth = 0) {
	if (value === null || typeof value !== "object") return h("span", {class: `leaf ${value === null ? "null" : typeof value}`}, typeof value === "string" ? JSON.stringify(value) : line(value));
	const entries = Array.isArray(value) ? value.map((one, index) => [index, one]) : Object.entries(value);
	const [open, close] = Array.isArray(value) ? "[]" : "{}";
	const text = line(value);
	if (!entries.length || (depth > 0 && text.length < 60)) return h("span.leaf", text);
	const details = h("details.tree", {open: depth < 2 && entries.length <= 50}, h("summary", `${open}${Array.isArray(value) ? many(entries.length, "item") : many(entries.length, "member")}${close}`));
	const make = () => {
		if (!details.open || details.childElementCount > 1) return;
		const list = h("ul");
		details.append(list);
		more(list, entries, 0, depth);
	};
	details.addEventListener("toggle", make);
	make();
	return details;
}

function more(list, entries, from, depth) {
	for (const [key, one] of entries.slice(from, from + 100)) list.append(h("li", h("span.key", `${key}: `), tree(one, depth + 1)));
	const left = entries.length - from - 100;
	if (left <= 0) return;
	const rest = h("li", button(`Show ${whole(Math.min(left, 100))} of ${whole(left)} more`, () => { rest.remove(); more(list, entries, from + 100, depth); }, {class: "quiet"}));
	list.append(rest);
}

/** Objects as rows; `add` appends one more. */
export function table(values = []) {
	const head = h("tr"), body = h("tbody"), columns = new Map(), note = h("caption.dim");
	const element = h("div.wide", {tabindex: "0", role: "region", "aria-label": "Table"}, h("table.rows", note, h("thead", head), body));
	let dropped = 0;
	const add = (value) => {
		for (const key of Object.keys(value)) if (!columns.has(key) && columns.size < MOST_COLUMNS) {
			columns.set(key, columns.size);
			head.append(h("th", {scope: "col", class: typeof value[key] === "number" ? "number" : null}, h("bdi", key)));
		}
		const cells = [...columns.keys()].map((key) => {
			const one = Object.hasOwn(value, key) ? value[key] : undefined;
			return h("td", {class: typeof one === "number" || typeof one === "bigint" ? "number" : null}, one === undefined ? "" : typeof one === "string" ? one : line(one));
		});
		body.append(h("tr", cells));
		if (body.childElementCount > MOST_ROWS) { body.firstElementChild.remove(); dropped += 1; note.textContent = `${whole(dropped)} earlier rows are not shown`; }
	};
	values.slice(0, MOST_ROWS).forEach(add);
	if (values.length > MOST_ROWS) note.textContent = `The first ${MOST_ROWS} of ${whole(values.length)} rows`;
	return {element, add};
}

function media(tag, item, type, undo) {
	const url = URL.createObjectURL(new Blob([item.bytes], {type}));
	undo.push(() => URL.revokeObjectURL(url));
	const caption = h("figcaption.dim", `${type}, ${size(item.bytes.length)}`);
	const element = tag === "img"
		? h("img", {src: url, alt: `An image of type ${type}`, on: {load: () => { caption.prepend(`${element.naturalWidth} × ${element.naturalHeight}, `); }}})
		: h(tag, {src: url, controls: true, preload: "metadata", "aria-label": `${tag} of type ${type}`});
	caption.append(" ", save(item, type, undo, url));
	return h("figure.media", element, caption);
}

function captioned(body, item, type, undo) {
	return h("figure.media", body, h("figcaption.dim", `${type}, ${size(item.bytes.length)} `, save(item, type, undo)));
}

function save(item, type, undo, known) {
	const url = known ?? URL.createObjectURL(new Blob([item.bytes], {type: "application/octet-stream"}));
	if (!known) undo.push(() => URL.revokeObjectURL(url));
	return h("a", {href: url, download: `output.${/^[a-z0-9]+$/.exec(type.split("/")[1])?.[0] ?? "bin"}`, id: fresh("save")}, "save");
}

function decoded(bytes) {
	return new TextDecoder().decode(bytes);
}

function dump(bytes) {
	const lines = [];
	for (let at = 0; at < Math.min(bytes.length, 256); at += 16) {
		const part = bytes.subarray(at, Math.min(at + 16, 256));
		const hex = Array.from(part, (one) => one.toString(16).padStart(2, "0")).join(" ");
		const text = Array.from(part, (one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : "·")).join("");
		lines.push(`${at.toString(16).padStart(4, "0")}  ${hex.padEnd(47)}  ${text}`);
	}
	if (bytes.length > 256) lines.push(`… ${whole(bytes.length - 256)} more`);
	return h("pre.text.dump", lines.join("\n") || "(no bytes)");
}
