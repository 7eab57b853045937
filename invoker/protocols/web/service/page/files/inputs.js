// One input of a function: its field, what was sent to it, and whether it is still open.

import {button, fresh, h, many, say, size} from "./dom.js";
import {field, Invalid, quietly, resolved} from "./fields.js";

const BINARY = new Set(["bytes", "bytearray", "memoryview"]);
const JSONISH = /json|^text\/|^\*\/\*|msgpack|form/;
const KEPT = 50;

/** Whether an input takes bytes, so that a file fills it best. */
export function takesFiles({type = "", schema = {}, mediaTypes = []}) {
	const at = resolved(schema, schema);
	if (BINARY.has(type) || at.contentEncoding === "base64" || at.format === "binary") return true;
	return mediaTypes.some((one) => /^(image|audio|video)\//.test(one)) || (mediaTypes.length > 0 && !mediaTypes.some((one) => JSONISH.test(one)));
}

export class Input {
	constructor(spec, acts) {
		this.spec = spec;
		this.isStream = Boolean(spec.isStream);
		this.isRequired = spec.isRequired !== false;
		this.isFile = takesFiles(spec);
		const schema = "default" in spec && spec.default !== undefined ? {default: spec.default, ...spec.schema} : spec.schema ?? {};
		const label = spec.name;
		this.field = this.isFile ? fileField(spec, label) : field(schema, schema, {label, isOpen: this.isStream || !this.isRequired});
		this.count = h("span.count");
		this.mark = h("span.mark");
		const title = fresh("input");
		const tags = [this.isStream ? "stream" : null, this.isRequired ? null : "optional"].filter(Boolean).map((one) => h("span.tag", one));
		this.sendButton = button("Send", () => acts.send(this), {"aria-label": `Send an item to ${spec.name}`, title: "Enter"});
		this.endButton = button("End", () => acts.end(this), {class: "quiet", "aria-label": `End ${spec.name}`, disabled: true});
		this.box = h("fieldset", this.field.element);
		this.element = h("section.input", {role: "group", "aria-labelledby": title},
			h("header", h("h3", {id: title}, h("bdi", spec.name)), spec.type ? h("code.type", spec.type) : null, tags, this.mark, h("span.space"), this.count),
			spec.doc ? h("p.doc", spec.doc) : null,
			h("div.row", this.box, this.isStream ? h("div.acts", this.sendButton, this.endButton) : null));
		if (this.isStream) this.box.addEventListener("keydown", (event) => {
			const isPlain = event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.isComposing;
			if (!isPlain || !event.target.matches("input, textarea:not(.json)") || this.sendButton.disabled) return;
			event.preventDefault();
			acts.send(this);
		});
		this.reset();
	}

	/** Begin anew: nothing was sent. */
	reset() {
		this.sent = [];
		this.frames = this.bytes = 0;
		this.isEnded = false;
		this.box.disabled = false;
		this.sendButton.disabled = false;
		this.endButton.disabled = true;
		say(this.count, "");
		say(this.mark, "");
	}

	/** What the field holds: `{json}`, `{bytes, contentType, name}`, or null; throws `Invalid`. */
	read({isNeeded = this.isRequired && !this.isStream} = {}) {
		const found = this.field.read();
		if (found === null && isNeeded) {
			if (!this.isFile && resolved(this.spec.schema, this.spec.schema).type === "string") return {json: '""'};
			this.field.wrong?.("This is needed.");
			throw new Invalid(`${this.spec.name} is needed`);
		}
		return found === null ? null : typeof found === "string" ? {json: found} : found;
	}

	/** Note that an item left. */
	noted(item) {
		this.frames += 1;
		this.bytes += item.bytes?.size ?? item.bytes?.length ?? item.json.length;
		this.sent.push(item);
		if (this.sent.length > KEPT) this.sent.shift();
		say(this.count, `${many(this.frames, "item")} · ${size(this.bytes)}`);
		if (!this.isStream) this.box.disabled = true;
		this.endButton.disabled = this.isEnded;
	}

	opened() {
		this.isLive = true;
		if (this.isStream) { say(this.mark, "open"); this.endButton.disabled = false; } else this.box.disabled = true;
	}

	ended() {
		this.isEnded = true;
		if (this.isStream) say(this.mark, "ended");
		this.box.disabled = this.sendButton.disabled = this.endButton.disabled = true;
	}

	/** The run is over: the next one may begin. */
	closed() {
		this.isLive = this.isEnded = false;
		this.box.disabled = this.sendButton.disabled = false;
		this.endButton.disabled = true;
		say(this.mark, "");
	}

	wrong(text) {
		this.field.wrong?.(text);
	}

	write(value) {
		if (!this.isFile) this.field.write(value);
	}

	/** The items that the code to copy sends: what is in the field, behind what this run has sent, or what the last one has. `left` tells what they lack. */
	items() {
		const {name} = this.spec, sent = this.isStream ? this.sent : [], before = this.frames - sent.length;
		this.left = this.isStream && before > 0 ? `${many(before, "item")} that ${name} got before are left out.` : "";
		try {
			const found = quietly(() => this.field.read());
			if (found !== null) return [...(this.isLive ? sent : []), typeof found === "string" ? {json: found} : found, ...(this.field.others?.() ?? [])];
			if (this.isRequired && !this.isStream) this.left = `${name} is needed.`;
		} catch (problem) {
			if (!(problem instanceof Invalid)) throw problem;
			this.left = `${name} is left out: ${problem.message}`;
		}
		return sent;
	}
}

/** Files that are dropped or chosen, or a text as bytes. */
function fileField(spec, label) {
	let files = [];
	const text = h("textarea", {rows: "1", spellcheck: "false", placeholder: "or a text", "aria-label": `${label} as a text`});
	const error = h("p.wrong", {role: "alert"});
	const list = h("ul.files");
	const accept = (spec.mediaTypes ?? []).filter((one) => /^(image|audio|video)\//.test(one)).join(",");
	const chooser = h("input.hidden", {type: "file", multiple: spec.isStream, accept: accept || null, "aria-label": `Choose a file for ${label}`, on: {change: () => take(chooser.files)}});
	const zone = h("div.drop", h("p", "Drop a file here, or ", h("label.link", "choose one", chooser)), list);
	const undo = [];
	const take = (given) => {
		files = spec.isStream ? [...given] : [...given].slice(0, 1);
		error.textContent = "";
		undo.splice(0).forEach((does) => does());
		list.replaceChildren(...files.map((one) => h("li", preview(one, undo), h("bdi", one.name), h("span.dim", ` ${size(one.size)}`))));
	};
	const over = (isOver) => (event) => { event.preventDefault(); zone.classList.toggle("over", isOver); };
	for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, over(true));
	zone.addEventListener("dragleave", over(false));
	zone.addEventListener("drop", (event) => { over(false)(event); if (!chooser.disabled && event.dataTransfer.files.length) { take(event.dataTransfer.files); zone.dispatchEvent(new Event("input", {bubbles: true})); } });
	const asItem = (file) => ({bytes: file, contentType: file.type || "application/octet-stream", name: file.name});
	return {
		element: h("div", zone, text, error),
		read: () => (files.length ? asItem(files[0]) : text.value ? {bytes: new Blob([text.value]), contentType: "application/octet-stream", text: text.value} : null),
		/** Further files of an input that takes several, each an item. */
		others: () => files.slice(1).map(asItem),
		write: (value) => { text.value = typeof value === "string" ? value : ""; },
		reset: () => { take([]); chooser.value = ""; text.value = ""; },
		focus: () => chooser.focus(),
		wrong: (message) => { error.textContent = message; },
	};
}

function preview(file, undo) {
	if (!file.type.startsWith("image/")) return null;
	const url = URL.createObjectURL(file);
	undo.push(() => URL.revokeObjectURL(url));
	return h("img", {src: url, alt: ""});
}

