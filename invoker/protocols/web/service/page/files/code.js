// The same call as code to copy, with exactly what is in the form. A value stays the text of JSON that the form has,
// unless a literal gives the same text again.

import {button, fresh, h, say} from "./dom.js";
import {line, parse, pretty} from "./json.js";
import {asked} from "./talk.js";

const LINES = "application/x-ndjson";

/** The name of the field whose members are parameters themselves. */
export const MORE = "further parameters";

/** Pairs of names and texts of JSON, with those of further parameters. */
export function named(filled) {
	return filled.flatMap(({name, item}) => (name === MORE ? Object.entries(parse(item.json)).map(([key, value]) => [key, line(value)]) : [[name, item.json]]));
}

/** What a call sends: `url`, `headers`, and one of `items` (lines), `value`, `file`, `parts`, or nothing; not `left`. */
export function planOf(spec, inputs) {
	const hasStreams = inputs.some((one) => one.isStream), outputs = spec.outputs ?? [];
	const isAsked = (one) => hasStreams && !one.isRequired && !one.isFile; // beside streams, options go with the address
	const filled = (which) => which.flatMap((one) => one.items().map((item) => ({name: one.spec.name, item})));
	const isMany = inputs.filter((one) => !hasStreams || one.isRequired).length > 1;
	const answers = hasStreams || outputs.length > 1 || spec.openOutputs || outputs.some((one) => one.isStream) ? "lines" : isJson(outputs[0]) ? "value" : "bytes";
	const headers = answers === "bytes" ? {} : {Accept: answers === "lines" ? LINES : "application/json"};
	if (!spec.path) headers["Invoker-Function"] = spec.name; // its path belongs to something else
	const url = asked(spec.path ?? "/", named(filled(inputs.filter(isAsked)))).href;
	const all = filled(inputs.filter((one) => !isAsked(one)));
	const plan = {url, headers, answers, left: inputs.map((one) => one.left).filter(Boolean)};
	if (!all.length) return plan;
	if (all.some(({item}) => item.bytes) || (spec.openInputs && isMany && !hasStreams)) {
		if (!isMany && all.length === 1) return {...plan, headers: {"Content-Type": all[0].item.contentType, ...headers}, file: all[0].item};
		return {...plan, parts: all};
	}
	const texts = named(all).map(([name, json]) => (isMany ? `${quote(name)}: ${json}` : json)), whole = (text) => (isMany ? `{${text}}` : text);
	if (hasStreams) return {...plan, headers: {"Content-Type": LINES, ...headers}, items: texts.map(whole)};
	return {...plan, headers: {"Content-Type": "application/json", ...headers}, value: whole(texts.join(", "))};
}

function isJson(output) {
	return !output?.mediaTypes?.length || output.mediaTypes.some((one) => /json|\*\/\*/.test(one));
}

const comments = (plan, mark) => plan.left.map((one) => `${mark} ${one.replace(/\s+/g, " ")}`);

const quote = (value) => JSON.stringify(value);

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A command for a shell. */
export function curl(plan) {
	const words = [`curl${plan.answers === "lines" ? " -N" : ""}`, shell(plan.url)];
	if (plan.items === undefined && plan.value === undefined && !plan.file && !plan.parts) words[0] += " -X POST";
	const more = Object.entries(plan.headers).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`);
	if (plan.value !== undefined) more.push(`--data-raw ${shell(plan.value)}`);
	if (plan.items) more.push(`--data-raw ${shell(plan.items.join("\n"))}`);
	if (plan.file) more.push(plan.file.text === undefined ? `--data-binary ${shell(`@${plan.file.name}`)}` : `--data-raw ${shell(plan.file.text)}`);
	for (const {name, item} of plan.parts ?? []) more.push(`-F ${shell(`${name}=${formPart(item)}`)}`);
	if (plan.answers === "bytes") more.push("-o output");
	return [...comments(plan, "#"), [words.join(" "), ...more].join(" \\\n  ")].join("\n");
}

function formPart(item) {
	const quoted = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
	if (item.json !== undefined) return `${quoted(item.json)};type=application/json`;
	return item.text === undefined ? `@${quoted(item.name)};type=${item.contentType}` : `${quoted(item.text)};type=${item.contentType}`;
}

/** A value as Python writes it. */
export function literal(value) {
	if (value === null) return "None";
	if (typeof value === "boolean") return value ? "True" : "False";
	if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
	if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${quote(key)}: ${literal(one)}`).join(", ")}}`;
	return line(value);
}

/** A program for Python's own library. */
export function python(plan) {
	if (plan.parts) return pythonForm(plan);
	const texts = plan.items ?? (plan.value === undefined ? [] : [plan.value]), isLiteral = texts.every((one) => line(parse(one)) === one);
	const written = (text) => (isLiteral ? literal(parse(text)) : quote(text));
	const imports = plan.answers === "bytes" && !(texts.length && isLiteral) ? [] : ["import json"];
	const data = plan.value !== undefined ? `${isLiteral ? `json.dumps(${written(plan.value)})` : written(plan.value)}.encode()`
		: plan.items ? `"\\n".join(${isLiteral ? "json.dumps(one) for one in items" : "items"}).encode()`
		: plan.file ? (plan.file.text === undefined ? `open(${quote(plan.file.name)}, "rb").read()` : `${quote(plan.file.text)}.encode()`)
		: null;
	const items = plan.items ? ["items = [", ...plan.items.map((one) => `    ${written(one)},`), "]"] : [];
	const reading = plan.answers === "lines" ? ["for line in answer:", "    print(json.loads(line))"] : plan.answers === "value" ? ["print(json.load(answer))"] : ['open("output", "wb").write(answer.read())'];
	return [...comments(plan, "#"), ...imports, "from urllib.request import Request, urlopen", "", ...items,
		"request = Request(", `    ${quote(plan.url)},`, ...(data ? [`    data=${data},`] : []), `    headers=${literal(plan.headers)},`, '    method="POST",', ")",
		"with urlopen(request) as answer:", ...reading.map((one) => `    ${one}`)].join("\n");
}

function pythonForm(plan) {
	const {url, headers, parts, answers} = plan;
	const rows = parts.map(({name, item}) => `    (${quote(name)}, ${item.json !== undefined ? `(None, ${quote(item.json)}, "application/json")` : item.text !== undefined ? `(None, ${quote(item.text)}, ${quote(item.contentType)})` : `(${quote(item.name)}, open(${quote(item.name)}, "rb"), ${quote(item.contentType)})`}),`);
	const reading = answers === "lines" ? ["for line in answer.iter_lines():", "    print(json.loads(line))"] : answers === "value" ? ["print(answer.json())"] : ['open("output", "wb").write(answer.content)'];
	return [...comments(plan, "#"), ...(answers === "lines" ? ["import json", ""] : []), "import requests  # pip install requests", "", "parts = [", ...rows, "]",
		`answer = requests.post(${quote(url)}, files=parts, headers=${literal(headers)}, stream=True)`, "answer.raise_for_status()", ...reading].join("\n");
}

/** A program for a browser, Node or Deno. */
export function javascript(plan) {
	const before = comments(plan, "//"), isLiteral = (text) => line(JSON.parse(text)) === text && !text.includes("__proto__");
	let body = null;
	if (plan.value !== undefined) body = isLiteral(plan.value) ? `JSON.stringify(${pretty(JSON.parse(plan.value), "  ")})` : quote(plan.value);
	if (plan.items) {
		const isAll = plan.items.every(isLiteral);
		before.push(`const items = ${pretty(isAll ? plan.items.map((one) => JSON.parse(one)) : plan.items)};`);
		body = `items${isAll ? ".map((one) => JSON.stringify(one))" : ""}.join("\\n")`;
	}
	if (plan.file) body = plan.file.text === undefined ? "file" : quote(plan.file.text);
	if (plan.file && plan.file.text === undefined) before.push(`// \`file\` is a File or a Blob, as of <input type="file">: ${quote(plan.file.name)}`);
	if (plan.parts) {
		before.push("const form = new FormData();", ...plan.parts.map(({name, item}) => `form.append(${quote(name)}, ${item.json === undefined ? (item.text === undefined ? `file /* ${quote(item.name).replaceAll("*/", "* /")} */` : quote(item.text)) : `new Blob([${quote(item.json)}], {type: "application/json"})`});`));
		body = "form";
	}
	return [...before, `const answer = await fetch(${quote(plan.url)}, {`, '  method: "POST",', `  headers: ${line(plan.headers)},`, ...(body === null ? [] : [`  body: ${body},`]), "});",
		"if (!answer.ok) throw new Error(await answer.text());",
		...(plan.answers === "value" ? ["console.log(await answer.json());"] : plan.answers === "bytes" ? ["console.log(await answer.blob());"] : [
			'let rest = "";', "for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {", '  const lines = (rest + piece).split("\\n");', "  rest = lines.pop();", "  for (const line of lines.filter(Boolean)) console.log(JSON.parse(line));", "}"])].join("\n");
}

const LANGUAGES = {curl, Python: python, JavaScript: javascript};

/** The tabs below a function. */
export class Code {
	constructor(spec, inputs) {
		this.spec = spec;
		this.inputs = inputs;
		this.language = "curl";
		const panel = fresh("panel"), title = fresh("code");
		this.tabs = Object.keys(LANGUAGES).map((key) => h("button", {type: "button", role: "tab", id: fresh("tab"), "aria-controls": panel, "data-key": key, on: {click: () => this.#turn(key)}}, key));
		this.text = h("code");
		this.panel = h("pre.text.code", {id: panel, role: "tabpanel", tabindex: "0"}, this.text);
		const said = h("span.dim", {role: "status"});
		const copying = button("Copy", async () => { this.write(); say(said, await navigator.clipboard?.writeText(this.text.textContent).then(() => "Copied.", () => "") || "Mark the text: the browser does not let this page copy."); setTimeout(() => say(said, ""), 2000); }, {class: "quiet", "aria-label": "Copy the code"});
		const list = h("div.tabs", {role: "tablist", "aria-labelledby": title, on: {keydown: (event) => this.#key(event)}}, this.tabs);
		this.element = h("section.pane.codes", {"aria-labelledby": title}, h("header", h("h2", {id: title}, "As code"), list, h("span.space"), said, copying), this.panel);
		this.#turn("curl");
	}

	/** Write it anew, as soon as there is time. */
	later() {
		if (this.timer) return;
		this.timer = setTimeout(() => this.write(), 80);
	}

	write() {
		clearTimeout(this.timer);
		this.timer = 0;
		say(this.text, LANGUAGES[this.language](planOf(this.spec, this.inputs)));
	}

	#turn(key) {
		this.language = key;
		for (const one of this.tabs) {
			const isThis = one.dataset.key === key;
			one.setAttribute("aria-selected", String(isThis));
			one.tabIndex = isThis ? 0 : -1;
			if (isThis) this.panel.setAttribute("aria-labelledby", one.id);
		}
		this.write();
	}

	#key(event) {
		const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
		if (!step) return;
		event.preventDefault();
		const at = this.tabs.findIndex((one) => one.dataset.key === this.language);
		const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
		this.#turn(next.dataset.key);
		next.focus();
	}
}
