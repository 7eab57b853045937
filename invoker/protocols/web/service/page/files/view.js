// One function: what it is, its inputs, its outputs, and a run of it.

import {button, fresh, h, many, say, span} from "./dom.js";
import {Code, MORE, named} from "./code.js";
import {Invalid} from "./fields.js";
import {Input} from "./inputs.js";
import {isObject, line, pretty} from "./json.js";
import {Lane} from "./lane.js";
import {tree} from "./show.js";
import {Talk} from "./talk.js";

export class View {
	constructor(spec) {
		this.spec = spec;
		this.talk = null;
		this.inputs = (spec.inputs ?? []).map((one) => this.#input(one));
		if (spec.openNames) this.inputs.push(this.#input({name: MORE, doc: "By their names.", schema: {type: "object"}, isRequired: false}));
		this.outputNames = h("input", {type: "text", placeholder: "out, errors", "aria-label": "Names of outputs, with commas between"});
		const outputs = spec.outputs ?? [];
		this.isSink = outputs.length === 0;
		this.lanes = outputs.map((one) => new Lane(one, outputs.length === 1 && !one.isStream));
		this.hasStreams = this.inputs.some((one) => one.isStream);
		this.runButton = button("Run", () => this.#run(), {class: "main", title: "Ctrl+Enter"});
		this.endButton = button("End inputs", () => this.#end(), {disabled: true});
		this.cancelButton = button("Cancel", () => this.talk?.cancel(), {disabled: true, title: "Escape"});
		this.state = h("p.state", {role: "status"});
		this.error = h("div.errors");
		this.code = new Code(spec, this.inputs);
		this.element = this.#build();
		this.element.addEventListener("keydown", (event) => {
			if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (!this.runButton.disabled) this.#run(); }
			if (event.key === "Escape" && this.talk) this.talk.cancel();
		});
		for (const name of ["input", "change", "click"]) this.form.addEventListener(name, () => this.code.later());
		this.code.later();
	}

	#build() {
		const {spec} = this, title = fresh("function");
		const examples = (spec.examples ?? []).slice(0, 12);
		this.form = h("section.pane", {"aria-label": "Inputs"},
			h("h2", "Inputs"),
			examples.length ? h("p.examples", "Examples ", examples.map((one, index) => button(`${index + 1}`, () => this.#fill(one), {class: "quiet", title: pretty(one), "aria-label": `Fill in example ${index + 1}`}))) : null,
			this.list = h("div", this.inputs.map((one) => one.element)),
			spec.openInputs ? button("Add an input", () => this.#more(), {class: "quiet"}) : null,
			spec.openOutputs ? h("section.input", h("p.doc", "It names its outputs itself. Those to take:"), this.outputNames) : null,
			this.inputs.length ? null : h("p.empty", "It takes no input: it is a source."),
			this.hasStreams ? h("p.dim.hint", "Send keeps the inputs open for more. Run sends what is in the form and ends them.") : null);
		const control = h("div.control", h("div.bar", this.runButton, this.hasStreams ? this.endButton : null, this.cancelButton, h("span.space"), button("Clear", () => this.#clear(), {class: "quiet"})), this.state);
		this.results = h("section.pane", {"aria-label": "Outputs"}, h("h2", "Outputs"), this.error, this.lanes.map((one) => one.element), this.isSink ? h("p.empty", spec.openOutputs ? "Only outputs that you name are shown." : "It gives no output: it is a sink.") : null);
		const doc = (spec.doc ?? "").trim(), [head, ...rest] = doc.split(/\n\s*\n/);
		return h("article", {"aria-labelledby": title},
			h("header.title", h("h1", {id: title}, h("bdi", spec.name)), h("span.tag", spec.style ?? ""), spec.isSafe ? h("span.tag", {title: "It may also be called by GET"}, "safe") : null, spec.isolation ? h("span.tag", "in a process of its own") : null),
			h("p.signature", signature(spec)),
			head ? h("p.about", head) : null,
			rest.length ? h("details.more", h("summary", "More"), h("pre.text", rest.join("\n\n"))) : null,
			h("div.panes", this.form, h("div.side", control, this.results), this.code.element));
	}

	#input(spec) {
		return new Input(spec, {send: (input) => this.#send(input), end: (input) => this.#end(input)});
	}

	/** One input more, of a function that takes any number. */
	#more() {
		const last = this.spec.inputs.at(-1), made = this.#input({...last, name: `${last.name}${this.inputs.length - this.spec.inputs.length + 1}`});
		this.inputs.push(made);
		this.list.append(made.element);
		made.field.focus();
	}

	/** What the address says besides options: the names of inputs and outputs that the function leaves open. */
	#names() {
		const names = [], given = this.outputNames.value.split(",").map((one) => one.trim()).filter(Boolean).join(",");
		if (this.inputs.length > this.spec.inputs.length && this.spec.openInputs) names.push(["inputs", this.inputs.filter((one) => one.isRequired).map((one) => one.spec.name).join(",")]);
		if (given) names.push(["outputs", given]);
		return names.map(([name, text]) => [name, JSON.stringify(text)]);
	}

	#fill(example) {
		const [only] = this.inputs;
		const isByName = isObject(example) && Object.keys(example).length > 0 && Object.keys(example).every((key) => this.inputs.some((one) => one.spec.name === key));
		if (isByName) for (const one of this.inputs) if (Object.hasOwn(example, one.spec.name)) one.write(example[one.spec.name]);
		if (!isByName && only) only.write(example);
		this.code.later();
	}

	#clear() {
		if (this.talk) this.talk.cancel();
		for (const one of this.inputs) { one.field.reset(); one.reset(); }
		for (const one of this.lanes) one.reset();
		this.error.replaceChildren();
		this.#tell("");
		this.code.later();
	}

	// A run.

	#tell(text, ending = "") {
		say(this.state, text);
		this.state.dataset.ending = ending;
	}

	/** Open an invocation with the values that are no streams; null if one of them is missing or wrong. */
	#open() {
		const values = [], options = []; // what is optional goes with the address, and the rest as frames
		try {
			for (const one of this.inputs) {
				const item = one.isStream ? null : one.read();
				if (item) (one.isRequired || item.bytes ? values : options).push([one, item]);
			}
		} catch (problem) {
			return this.#refuse(problem);
		}
		for (const one of [...this.inputs, ...this.lanes]) one.reset();
		this.error.replaceChildren();
		this.began = performance.now();
		this.ticking = setInterval(() => this.#tick(), 250);
		this.talk = new Talk(this.spec.socket ?? `${this.spec.path}/ws`, [...named(options.map(([one, item]) => ({name: one.spec.name, item}))), ...this.#names()], {
			opened: () => { this.began = performance.now(); this.#tick(); },
			output: (name, item) => this.#gave(name, item),
			ended: (name) => this.lanes.find((one, index) => this.spec.outputs[index].name === name)?.end(),
			closed: (problem) => this.#closed(problem),
		});
		const focused = document.activeElement;
		this.#tell("Running…");
		this.element.classList.add("running");
		this.runButton.disabled = true;
		this.cancelButton.disabled = this.endButton.disabled = false;
		for (const one of this.inputs) one.opened();
		this.#keepFocus(focused, this.cancelButton);
		for (const [one, item] of options) one.noted(item);
		for (const [one, item] of values) this.#put(one, item);
		return this.talk;
	}

	#refuse(problem) {
		if (!(problem instanceof Invalid)) throw problem;
		this.#tell(`Not sent: ${problem.message}`, "failed");
		this.form.querySelector("[aria-invalid]")?.focus();
		return null;
	}

	#run() {
		const items = [];
		try {
			for (const one of this.inputs) if (one.isStream) items.push([one, one.read()]);
		} catch (problem) {
			this.#refuse(problem);
			return;
		}
		if (!this.#open()) return;
		for (const [one, item] of items) if (item) for (const each of [item, ...(one.field.others?.() ?? [])]) this.#put(one, each);
		this.#end();
	}

	#send(input) {
		let item;
		try {
			item = input.read({isNeeded: true});
		} catch (problem) {
			this.#refuse(problem);
			return;
		}
		const others = input.field.others?.() ?? [];
		if (!this.talk && !this.#open()) return;
		for (const one of [item, ...others]) this.#put(input, one);
		input.field.reset();
		input.field.focus();
		this.code.later();
	}

	#put(input, item) {
		this.talk.send(input.spec.name, item);
		input.noted(item);
	}

	#end(input) {
		if (!this.talk) return;
		const focused = document.activeElement;
		this.talk.end(input?.spec.name);
		for (const one of input ? [input] : this.inputs) one.ended();
		if (this.inputs.every((one) => !one.isStream || one.isEnded)) this.endButton.disabled = true;
		this.#keepFocus(focused, this.cancelButton);
	}

	/** The focus does not get lost because what had it can be used no more. */
	#keepFocus(focused, next) {
		if (focused?.matches(":disabled") && this.element.contains(focused)) next.focus();
	}

	#gave(name, item) {
		const at = Math.max(0, (this.spec.outputs ?? []).findIndex((one) => one.name === name));
		this.#lane(name, at).add(item);
	}

	/** The lane of an output; of one that nobody announced, made now. */
	#lane(name, at) {
		const known = this.lanes[at];
		if (known && (!name || this.spec.outputs[at]?.name === name || !this.spec.openOutputs)) return known;
		this.further ??= new Map();
		if (!this.further.has(name)) {
			const lane = new Lane({name, isStream: true}, false);
			this.further.set(name, lane);
			this.lanes.push(lane);
			this.results.append(lane.element);
		}
		return this.further.get(name);
	}

	#tick() {
		if (!this.talk) return;
		const out = this.lanes.reduce((sum, one) => sum + one.total, 0), inn = this.inputs.reduce((sum, one) => sum + one.frames, 0);
		this.state.dataset.clock = `${span((performance.now() - this.began) / 1000)} · ${inn} in · ${out} out`;
	}

	#closed(problem) {
		const focused = document.activeElement, took = span(((this.talk.endedAt ?? performance.now()) - this.began) / 1000);
		clearInterval(this.ticking);
		this.talk = null;
		this.element.classList.remove("running");
		for (const one of this.lanes) one.end(problem ? (problem.isOwn ? "cancelled" : "failed") : "ended");
		for (const one of this.inputs) one.closed();
		this.runButton.disabled = false;
		this.cancelButton.disabled = this.endButton.disabled = true;
		this.#keepFocus(focused, this.runButton);
		const given = many(this.lanes.reduce((sum, one) => sum + one.total, 0), "item");
		delete this.state.dataset.clock;
		this.#tell(`${problem?.isOwn ? "Cancelled after" : problem ? "Failed after" : "Ended normally in"} ${took}, with ${given}.`, problem?.isOwn ? "cancelled" : problem ? "failed" : "ok");
		if (problem && !problem.isOwn) this.#fail(problem);
		this.code.later();
	}

	#fail(problem) {
		const {title, status, code, detail, ...more} = problem;
		const all = {title, status, code, detail, ...more};
		for (const key of Object.keys(all)) if (all[key] === undefined) delete all[key];
		this.error.replaceChildren(h("section.problem", {role: "alert"},
			h("h3", `${status ? `${status} ` : ""}${title ?? "Error"}`, code ? h("code.tag", String(code)) : null),
			h("p.detail", String(detail ?? "").replace(/^Invoker: [\w ]+: /, "")),
			h("details", h("summary", "The problem as an object"), tree(all))));
		const named = /(?:input \d+|parameter|input) '([^']+)'/.exec(String(detail ?? ""))?.[1];
		this.inputs.find((one) => one.spec.name === named)?.wrong(String(detail));
	}
}

/** What it takes and gives, in a line. */
function signature({inputs = [], outputs = [], openOutputs}) {
	const part = ({name, type, isStream, isRequired, ...more}) => [h("b", h("bdi", name)), type ? `: ${type}` : "", isStream ? h("i", {title: "a stream"}, "…") : "", isRequired === false && "default" in more ? ` = ${line(more.default)}` : ""];
	const joined = (parts) => parts.flatMap((one, index) => (index ? [", ", ...part(one)] : part(one)));
	return h("code", inputs.length ? joined(inputs) : "()", h("span.arrow", {"aria-label": " gives "}, " → "), outputs.length ? joined(outputs) : openOutputs ? "…" : "nothing");
}
