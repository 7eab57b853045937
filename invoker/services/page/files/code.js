// The same call as code to copy: for curl, Python and JavaScript, with exactly what is in the form.

import {button, copy, fresh, h, say} from "./dom.js";
import {line, parse, pretty} from "./json.js";
import {asked} from "./talk.js";

const LINES = "application/x-ndjson";
const LANGUAGES = {curl: "curl", python: "Python", javascript: "JavaScript"};

/** The name of the field whose members are parameters themselves. */
export const MORE = "further parameters";

/** Pairs of names and texts of JSON, with those of further parameters. */
export function named(filled) {
  return filled.flatMap(({name, item}) => (name === MORE ? Object.entries(parse(item.json)).map(([key, value]) => [key, line(value)]) : [[name, item.json]]));
}

/** What a call sends: `url`, `headers`, and one of `items` (lines), `value`, `file`, `parts`, or nothing. */
export function planOf(spec, inputs) {
  const hasStreams = inputs.some((one) => one.isStream), outputs = spec.outputs ?? [];
  const isAsked = (one) => hasStreams && !one.isRequired && !one.isFile; // beside streams, options go with the address
  const filled = (which) => which.flatMap((one) => one.items().map((item) => ({name: one.spec.name, item})));
  const isMany = inputs.filter((one) => !hasStreams || one.isRequired).length > 1;
  const answers = hasStreams || outputs.length > 1 || spec.openOutputs || outputs.some((one) => one.isStream) ? "lines" : isJson(outputs[0]) ? "value" : "bytes";
  const headers = answers === "bytes" ? {} : {Accept: answers === "lines" ? LINES : "application/json"};
  if (!spec.path) headers["Invoker-Function"] = spec.name; // its path belongs to something else
  const url = asked(spec.path ?? "/", named(filled(inputs.filter(isAsked)))).href;
  const plan = {url, headers, answers}, all = filled(inputs.filter((one) => !isAsked(one)));
  if (!all.length) return plan;
  if (all.some(({item}) => item.bytes) || (spec.openInputs && isMany && !hasStreams)) {
    if (!isMany && all.length === 1) return {...plan, headers: {"Content-Type": all[0].item.contentType, ...headers}, file: all[0].item};
    return {...plan, parts: all};
  }
  const values = named(all).map(([name, json]) => [name, parse(json)]);
  if (hasStreams) return {...plan, headers: {"Content-Type": LINES, ...headers}, items: values.map(([name, value]) => (isMany ? {[name]: value} : value))};
  return {...plan, headers: {"Content-Type": "application/json", ...headers}, value: isMany ? Object.fromEntries(values) : values[0][1]};
}

function isJson(output) {
  return !output?.mediaTypes?.length || output.mediaTypes.some((one) => /json|\*\/\*/.test(one));
}

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A command for a shell. */
export function curl(plan) {
  const words = [`curl${plan.answers === "lines" ? " -N" : ""}`, shell(plan.url)];
  if (plan.items === undefined && plan.value === undefined && !plan.file && !plan.parts) words[0] += " -X POST";
  const more = Object.entries(plan.headers).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`);
  if (plan.value !== undefined) more.push(`--data-raw ${shell(line(plan.value))}`);
  if (plan.items) more.push(`--data-raw ${shell(plan.items.map(line).join("\n"))}`);
  if (plan.file) more.push(plan.file.text === undefined ? `--data-binary ${shell(`@${plan.file.name}`)}` : `--data-raw ${shell(plan.file.text)}`);
  for (const {name, item} of plan.parts ?? []) more.push(`-F ${shell(`${name}=${formPart(item)}`)}`);
  if (plan.answers === "bytes") more.push("-o output");
  return [words.join(" "), ...more].join(" \\\n  ");
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
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(", ")}}`;
  return line(value);
}

/** A program for Python's own library. */
export function python(plan) {
  if (plan.parts) return pythonForm(plan);
  const imports = plan.answers === "bytes" && plan.items === undefined && plan.value === undefined ? [] : ["import json"];
  const data = plan.value !== undefined ? `json.dumps(${literal(plan.value)}).encode()`
    : plan.items ? '"\\n".join(json.dumps(one) for one in items).encode()'
    : plan.file ? (plan.file.text === undefined ? `open(${JSON.stringify(plan.file.name)}, "rb").read()` : `${JSON.stringify(plan.file.text)}.encode()`)
    : null;
  const items = plan.items ? ["items = [", ...plan.items.map((one) => `    ${literal(one)},`), "]"] : [];
  return [...imports, "from urllib.request import Request, urlopen", "", ...items,
    "request = Request(", `    ${JSON.stringify(plan.url)},`, ...(data ? [`    data=${data},`] : []), `    headers=${literal(plan.headers)},`, '    method="POST",', ")",
    "with urlopen(request) as answer:", ...pythonReading(plan, "answer")].join("\n");
}

function pythonReading({answers}, name) {
  if (answers === "lines") return [`    for line in ${name}:`, "        print(json.loads(line))"];
  return answers === "value" ? [`    print(json.load(${name}))`] : ['    open("output", "wb").write(answer.read())'];
}

function pythonForm({url, headers, parts, answers}) {
  const rows = parts.map(({name, item}) => `    (${JSON.stringify(name)}, ${item.json !== undefined ? `(None, ${JSON.stringify(item.json)}, "application/json")` : item.text !== undefined ? `(None, ${JSON.stringify(item.text)}, ${JSON.stringify(item.contentType)})` : `(${JSON.stringify(item.name)}, open(${JSON.stringify(item.name)}, "rb"), ${JSON.stringify(item.contentType)})`}),`);
  const reading = answers === "lines" ? ["for line in answer.iter_lines():", "    print(json.loads(line))"] : answers === "value" ? ["print(answer.json())"] : ['open("output", "wb").write(answer.content)'];
  return [...(answers === "lines" ? ["import json", ""] : []), "import requests  # pip install requests", "", "parts = [", ...rows, "]",
    `answer = requests.post(${JSON.stringify(url)}, files=parts, headers=${literal(headers)}, stream=True)`, "answer.raise_for_status()", ...reading].join("\n");
}

/** A program for a browser, Node or Deno. */
export function javascript(plan) {
  const before = [];
  let body = null;
  if (plan.value !== undefined) body = `JSON.stringify(${pretty(plan.value, "  ")})`;
  if (plan.items) { before.push(`const items = ${pretty(plan.items)};`); body = 'items.map((one) => JSON.stringify(one)).join("\\n")'; }
  if (plan.file) body = plan.file.text === undefined ? "file" : JSON.stringify(plan.file.text);
  if (plan.file && plan.file.text === undefined) before.push(`// \`file\` is a File or a Blob, as of <input type="file">: ${JSON.stringify(plan.file.name)}`);
  if (plan.parts) {
    before.push("const form = new FormData();", ...plan.parts.map(({name, item}) => `form.append(${JSON.stringify(name)}, ${item.json === undefined ? (item.text === undefined ? `file /* ${JSON.stringify(item.name).replaceAll("*/", "* /")} */` : JSON.stringify(item.text)) : `new Blob([${JSON.stringify(item.json)}], {type: "application/json"})`});`));
    body = "form";
  }
  return [...before, `const answer = await fetch(${JSON.stringify(plan.url)}, {`, '  method: "POST",', `  headers: ${line(plan.headers)},`, ...(body === null ? [] : [`  body: ${body},`]), "});",
    "if (!answer.ok) throw new Error(await answer.text());",
    ...(plan.answers === "value" ? ["console.log(await answer.json());"] : plan.answers === "bytes" ? ["console.log(await answer.blob());"] : [
      'let rest = "";', "for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {", '  const lines = (rest + piece).split("\\n");', "  rest = lines.pop();", "  for (const line of lines.filter(Boolean)) console.log(JSON.parse(line));", "}"])].join("\n");
}

const WRITERS = {curl, python, javascript};

/** The tabs below a function. */
export class Code {
  constructor(spec, inputs) {
    this.spec = spec;
    this.inputs = inputs;
    this.language = "curl";
    const panel = fresh("panel"), title = fresh("code");
    this.tabs = Object.entries(LANGUAGES).map(([key, name]) => h("button", {type: "button", role: "tab", id: fresh("tab"), "aria-controls": panel, "data-key": key, on: {click: () => this.#turn(key)}}, name));
    this.text = h("code", {});
    this.panel = h("pre", {id: panel, role: "tabpanel", tabindex: "0", class: "text code"}, this.text);
    const said = h("span", {role: "status", class: "dim"});
    const copying = button("Copy", async () => { this.write(); say(said, (await copy(this.text.textContent)) ? "Copied." : "The browser does not let this page copy; mark the text instead."); setTimeout(() => say(said, ""), 2000); }, {class: "quiet", "aria-label": "Copy the code"});
    const list = h("div", {role: "tablist", "aria-labelledby": title, class: "tabs", on: {keydown: (event) => this.#key(event)}}, this.tabs);
    this.element = h("section", {class: "pane codes", "aria-labelledby": title}, h("header", {}, h("h2", {id: title}, "As code"), list, h("span", {class: "space"}), said, copying), this.panel);
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
    say(this.text, WRITERS[this.language](planOf(this.spec, this.inputs)));
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
