// A field for each JSON Schema. What a field reads is JSON text, so that no digit of a long number is lost.
//
// A field has: `element`; `read()`, which gives a text of JSON, or null where nothing was entered, and throws `Invalid`;
// `write(value)`; `reset()`; `focus()`.

import {button, choice, fresh, h} from "./dom.js";
import {exactly, isObject, line, parse, pretty} from "./json.js";

const DEEP = 5;
const INTEGER = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const BOUNDS = [["minimum", "≥", (a, b) => a >= b], ["exclusiveMinimum", ">", (a, b) => a > b], ["maximum", "≤", (a, b) => a <= b], ["exclusiveMaximum", "<", (a, b) => a < b]];
const DATES = {date: "date", time: "time"};

/** Something was entered that cannot be sent. */
export class Invalid extends Error {}

let isQuiet = false;

/** Do something without telling the reader what is wrong with the fields. */
export function quietly(does) {
	isQuiet = true;
	try {
		return does();
	} finally {
		isQuiet = false;
	}
}

/** A schema, without what it refers to elsewhere in the same document. */
export function resolved(schema, root, steps = 8) {
	if (!isObject(schema)) return {};
	const {$ref, ...more} = schema;
	if (typeof $ref !== "string" || !$ref.startsWith("#") || steps === 0) return schema;
	let found = root;
	for (const step of $ref.slice(1).split("/").filter(Boolean)) {
		const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
		found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
	}
	return resolved({...(isObject(found) ? found : {}), ...more}, root, steps - 1);
}

/** In a word, what a schema takes. */
export function kindOf(schema) {
	if (schema.enum) return "one of";
	const variants = schema.anyOf ?? schema.oneOf;
	if (variants) return variants.map(kindOf).join(" or ");
	if (schema.title && schema.type === "object") return schema.title;
	return [schema.type ?? "any"].flat().join(" or ");
}

/** Make the field of a schema. `label` names it where no visible label does. */
export function field(schema, root, {label = "", depth = 0, isOpen = false} = {}) {
	const at = resolved(schema, root);
	const about = {label, depth, root, isOpen};
	if ("const" in at) return chosen([at.const], at, about);
	if (Array.isArray(at.enum)) return chosen(at.enum, at, about);
	const variants = variantsOf(at, root);
	if (depth >= DEEP) return written(at, about);
	if (variants.length > 1) return either(variants, at, about);
	const only = variants[0] ?? at;
	switch (only.type) {
		case "boolean": return chosen([true, false], only, about);
		case "integer": case "number": return numeric(only, about);
		case "string": return textual(only, about);
		case "object": return isObject(only.properties) && Object.keys(only.properties).length ? withJson(members, only, about) : written(only, about);
		case "array": return isList(only, root) ? withJson(listed, only, about) : written(only, about);
		case "null": return chosen([null], only, about);
		default: return written(only, about);
	}
}

function variantsOf(schema, root) {
	const given = schema.anyOf ?? schema.oneOf;
	if (Array.isArray(given)) return given.map((one) => resolved(one, root));
	if (Array.isArray(schema.type)) return schema.type.map((type) => ({...schema, type}));
	return [];
}

/** A list is filled item by item, unless its items are lists themselves, or anything. */
function isList(schema, root) {
	const items = resolved(schema.items, root);
	return isObject(schema.items) && !Array.isArray(schema.prefixItems) && (items.enum || ["string", "integer", "number", "boolean", "object"].includes(items.type));
}

function guarded(input, parts, read, about, toText = line) {
	const error = h("p.wrong", {id: fresh("wrong"), role: "alert"});
	const element = h("div", parts, error);
	if (about.label) input.setAttribute("aria-label", about.label);
	const wrong = (text) => {
		if (isQuiet) return;
		error.textContent = text;
		for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", error.id]]) if (text) input.setAttribute(name, value); else input.removeAttribute(name);
	};
	input.addEventListener("input", () => wrong(""));
	return {
		element, wrong,
		write(value) { input.value = toText(value); wrong(""); },
		reset() { input.value = ""; wrong(""); },
		focus: () => input.focus(),
		read() {
			try {
				const found = read();
				wrong("");
				return found;
			} catch (problem) {
				if (!(problem instanceof Invalid)) throw problem;
				wrong(problem.message);
				throw problem;
			}
		},
	};
}

/** How a default is told. */
const preset = (schema) => ("default" in schema ? `default: ${line(schema.default)}` : null);

function numeric(schema, about) {
	const isWhole = schema.type === "integer";
	const input = h("input.number", {type: "text", inputmode: isWhole ? "numeric" : "decimal", autocomplete: "off", spellcheck: "false", placeholder: preset(schema)});
	return guarded(input, [input, rangeOf(schema)], () => {
		const text = input.value.trim();
		if (!text) return null;
		if (!(isWhole ? INTEGER : NUMBER).test(text)) throw new Invalid(isWhole ? "This is not a whole number." : "This is not a number.");
		const value = Number(text);
		for (const [key, sign, holds] of BOUNDS) if (schema[key] !== undefined && !holds(value, schema[key])) throw new Invalid(`This is not ${sign} ${schema[key]}.`);
		return isWhole ? BigInt(text.replace("+", "")).toString() : /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? text : String(value);
	}, about);
}

function rangeOf(schema) {
	const parts = BOUNDS.filter(([key]) => schema[key] !== undefined).map(([key, sign]) => `${sign} ${schema[key]}`);
	return parts.length ? h("span.range", parts.join(", ")) : null;
}

function textual(schema, about) {
	const type = DATES[schema.format];

	const input = type
		? h("input", {type})
		: h("textarea", {rows: "1", spellcheck: "false", placeholder: preset(schema) ?? schema.format, maxlength: schema.maxLength});
	return guarded(input, [input], () => {
		if (!input.value && about.isOpen) return null;
		if (schema.minLength !== undefined && [...input.value].length < schema.minLength) throw new Invalid(`At least ${schema.minLength} characters are expected.`);
		if (schema.pattern && !matches(schema.pattern, input.value)) throw new Invalid(`This does not match ${schema.pattern}.`);
		return JSON.stringify(input.value);
	}, about, (value) => (typeof value === "string" ? value : line(value)));
}

function matches(pattern, text) {
	try {
		return new RegExp(pattern, "u").test(text);
	} catch {
		return true; // the server's own dialect; it will say
	}
}

function chosen(values, schema, about) {
	const texts = values.map((one) => (typeof one === "string" ? one : line(one)));
	const empty = about.isOpen || "default" in schema ? h("option", {value: ""}, preset(schema) ?? "—") : null;
	const input = h("select", empty, values.map((one, index) => h("option", {value: String(index + 1)}, texts[index])));
	const base = guarded(input, [input], () => (input.value ? line(values[Number(input.value) - 1]) : null), about, (value) => String(1 + values.findIndex((one) => line(one) === line(value))));
	return {...base, reset: () => { input.selectedIndex = 0; base.wrong(""); }};
}

/** A text of JSON, for what no other field is for. */
function written(schema, about) {
	const input = h("textarea.json", {rows: "3", spellcheck: "false", placeholder: preset(schema) ?? exampleOf(schema)});
	return guarded(input, [input], () => {
		const text = input.value.trim();
		if (!text) return null;
		try {
			return exactly(text);
		} catch (error) {
			throw new Invalid(`This is not JSON: ${error.message}`);
		}
	}, about, pretty);
}

function exampleOf(schema) {
	const kind = schema.type ?? "any";
	return {array: "[1, 2, 3]", object: '{"key": "value"}'}[kind] ?? "JSON";
}

function either(variants, schema, about) {
	const names = Object.fromEntries(variants.map((one, index) => [String(index), one.title ?? kindOf(one)]));
	const fields = variants.map((one) => field("default" in schema ? {...one, default: schema.default} : one, about.root, {...about, depth: about.depth + 1}));
	let at = 0;
	const place = h("div", fields[0].element);
	const show = (key) => { at = Number(key); place.replaceChildren(fields[at].element); };
	const pick = choice(`Kind of ${about.label || "value"}`, names, "0", show);
	const go = (index) => { pick.mark(String(index)); show(index); };
	return {
		element: h("div", pick.element, place),
		read: () => fields[at].read(),
		write(value) { const found = variants.findIndex((one) => fits(one, value)); go(Math.max(found, 0)); fields[at].write(value); },
		reset: () => { fields.forEach((one) => one.reset()); go(0); },
		focus: () => fields[at].focus(),
		wrong: (text) => fields[at].wrong?.(text),
	};
}

function fits(schema, value) {
	if (schema.enum) return schema.enum.some((one) => line(one) === line(value));
	const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
	return schema.type === type || (type === "number" && schema.type === "integer" && Number.isInteger(value)) || (type === "bigint" && ["integer", "number"].includes(schema.type)) || schema.type === undefined;
}

/** A field of several parts that can be written as JSON instead. */
function withJson(make, schema, about) {
	const parts = make(schema, about), text = written(schema, about);
	let isText = false;
	const place = h("div", parts.element);
	const pick = choice(`Fill ${about.label || "value"} by`, {form: "form", json: "JSON"}, "form", (key) => {
		const [from, to] = key === "json" ? [parts, text] : [text, parts];
		try {
			const found = from.read();
			if (found !== null) to.write(parse(found));
		} catch (problem) {
			if (!(problem instanceof Invalid)) throw problem;
			to.reset();
		}
		isText = key === "json";
		place.replaceChildren(to.element);
	});
	const now = () => (isText ? text : parts);
	return {
		element: h("div", pick.element, place),
		read: () => now().read(), write: (value) => now().write(value), focus: () => now().focus(),
		reset: () => { parts.reset(); text.reset(); },
		wrong: (message) => text.wrong(message),
	};
}

function members(schema, {root, depth, isOpen}) {
	const needed = new Set(schema.required ?? []);
	const rows = Object.entries(schema.properties).map(([name, one]) => {
		const is = resolved(one, root), made = field(one, root, {label: name, depth: depth + 1, isOpen: !needed.has(name) || isOpen});
		return {name, made, row: h("div.member", h("div.name", h("bdi", name), needed.has(name) ? null : h("span.tag", "optional")), h("div", made.element, is.description ? h("p.doc", is.description) : null))};
	});
	return {
		element: h("div.members", rows.map((one) => one.row)),
		read() {
			const found = rows.map(({name, made}) => [name, made.read()]).filter(([, text]) => text !== null);
			if (!found.length) return isOpen || needed.size ? missing(rows, needed, isOpen) : "{}";
			const absent = rows.find(({name}) => needed.has(name) && !found.some(([key]) => key === name));
			if (absent) { absent.made.wrong?.("This is needed."); throw new Invalid(`${absent.name} is needed`); }
			return `{${found.map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
		},
		write(value) { for (const {name, made} of rows) if (isObject(value) && Object.hasOwn(value, name)) made.write(value[name]); else made.reset(); },
		reset: () => rows.forEach(({made}) => made.reset()),
		focus: () => rows[0]?.made.focus(),
	};
}

function missing(rows, needed, isOpen) {
	if (isOpen) return null;
	const first = rows.find(({name}) => needed.has(name));
	first.made.wrong?.("This is needed.");
	throw new Invalid(`${first.name} is needed`);
}

function listed(schema, {root, depth, label}) {
	const rows = [], list = h("ol.items");
	const add = (value, isFocused = false) => {
		const made = field(schema.items, root, {label: `${label || "item"}, item ${rows.length + 1}`, depth: depth + 1});
		const entry = {made, row: h("li", made.element, button("×", () => { rows.splice(rows.indexOf(entry), 1); entry.row.remove(); more.focus(); }, {class: "quiet", "aria-label": `Remove item of ${label || "list"}`}))};
		rows.push(entry);
		list.append(entry.row);
		if (value !== undefined) made.write(value);
		if (isFocused) made.focus();
	};
	const more = button("Add an item", () => add(undefined, true), {class: "quiet"});
	const clear = () => { rows.splice(0); list.replaceChildren(); };
	return {
		element: h("div", list, more),
		read() {
			const texts = rows.map(({made}) => made.read()).filter((text) => text !== null);
			return rows.length ? `[${texts.join(", ")}]` : null;
		},
		write(value) { clear(); for (const one of Array.isArray(value) ? value : []) add(one); },
		reset: clear,
		focus: () => (rows[0]?.made ?? more).focus(),
	};
}
