// The page: which functions there are, and the one that is looked at.

import {button, h, many, say} from "./dom.js";
import {Flow} from "./flow.js";
import {address} from "./talk.js";
import {View} from "./view.js";

const THEMES = ["auto", "light", "dark"];
const place = (id) => document.getElementById(id);
const views = new Map();
const KINDS = {"→": "one value", "⇶": "a stream", "↗": "in a process of its own"};
const kindsOf = ({style, isolation}) => [style === "streaming" ? "⇶" : "→", ...(isolation ? ["↗"] : [])];

async function start() {
	theme(localStorage.getItem("invoker-theme") ?? "auto");
	place("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % THEMES.length]));
	let told;
	try {
		const answer = await fetch(address("functions"), {headers: {Accept: "application/json"}});
		if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
		told = await answer.json();
	} catch (error) {
		place("view").replaceChildren(h("section.problem", {role: "alert"}, h("h3", "The functions are not known"), h("p", `${error.message}. The server tells them unless it is started with --no-reflection.`), button("Try again", () => location.reload())));
		return;
	}
	say(place("version"), told.version ?? "");
	const functions = told.functions ?? [];
	list(functions, told.protocols ?? []);
	const turn = () => open(functions);
	addEventListener("hashchange", () => { turn(); place("main").focus({preventScroll: true}); });
	turn();
	new Flow(place("flow"));
}

/** A file dropped beside its place does not take the page away. */
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });

/** Show the function that the address names, or the first. */
function open(functions) {
	let wanted = "";
	try {
		wanted = decodeURIComponent(location.hash.replace(/^#\/?/, ""));
	} catch { /* an address that somebody made up */ }
	const spec = functions.find((one) => one.name === wanted) ?? functions[0];
	if (!spec) {
		place("view").replaceChildren(h("p.empty", "No function is served here."));
		return;
	}
	if (!views.has(spec.name)) views.set(spec.name, new View(spec));
	place("view").replaceChildren(views.get(spec.name).element);
	document.title = `${spec.name} · invoker`;
	for (const link of place("nav").querySelectorAll("a[data-name]")) {
		if (link.dataset.name !== spec.name) link.removeAttribute("aria-current");
		else {
			link.setAttribute("aria-current", "page");
			const row = link.closest("ul"); // on a narrow screen it is one
			row.scrollLeft = link.offsetLeft - row.offsetLeft - 40;
		}
	}
}

function list(functions, protocols) {
	const links = functions.map((one) => h("li", h("a", {href: `#/${encodeURIComponent(one.name)}`, "data-name": one.name, title: (one.doc ?? "").split("\n")[0]}, h("bdi", one.name), h("span.kind", {role: "img", "aria-label": kindsOf(one).map((key) => KINDS[key]).join(", ")}, kindsOf(one).join("")))));
	const kinds = Object.entries(KINDS).filter(([key]) => functions.some((one) => kindsOf(one).includes(key))).map(([key, text]) => h("span", `${key} ${text}`));
	const nothing = h("p.dim", {role: "status"});
	const search = functions.length > 8 ? h("input", {type: "search", placeholder: `Find one of ${many(functions.length, "function")}`, "aria-label": "Find a function", on: {input: () => {
		const wanted = search.value.trim().toLowerCase();
		functions.forEach((one, index) => { links[index].hidden = !`${one.name} ${one.doc ?? ""}`.toLowerCase().includes(wanted); });
		say(nothing, links.every((one) => one.hidden) ? "There is none." : "");
	}}}) : null;
	const spoken = new Map();
	for (const {name, address: at = ""} of protocols) spoken.set(at, [...(spoken.get(at) ?? []), name]);
	place("nav").replaceChildren(...[search, h("ul", links), nothing, h("p.kinds", {"aria-hidden": "true"}, kinds), h("dl.protocols", [...spoken].map(([at, names]) => h("div", h("dt", at), h("dd", names.join(", ")))))].filter(Boolean));
}

function theme(name) {
	const chosen = THEMES.includes(name) ? name : "auto";
	document.documentElement.dataset.theme = chosen;
	localStorage.setItem("invoker-theme", chosen);
	say(place("theme"), `Theme: ${chosen}`);
}

start();
