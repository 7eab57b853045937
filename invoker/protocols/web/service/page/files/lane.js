// What one output gives, as it comes.

import {choice, fresh, h, many, rate, say, size, whole} from "./dom.js";
import {isRow, show, sizeOf, table} from "./show.js";

const MOST_ITEMS = 400;
const MOST_HEAVY = 40; // of pictures, arrays and long values
const HEAVY_BYTES = 4000;
const MOST_BYTES = 32_000_000; // that are kept to be shown another way
const MOST_CHARACTERS = 400_000;
const NAMES = {text: "text", items: "items", table: "table"};

export class Lane {
	constructor({name, type = "", isStream = true}, isOnly) {
		this.isStream = isStream;
		this.count = h("span.count");
		this.mark = h("span.mark");
		this.pick = choice("Show as", NAMES, "items", (mode) => this.#turn(mode));
		this.pick.element.hidden = true;
		this.body = h("div.lane-body", {tabindex: "0", role: "group", "aria-label": `What ${name} has given`});
		const title = fresh("lane");
		this.element = h("section.lane", {"aria-labelledby": title}, h("header", h("h3", {id: title}, h("bdi", name)), type ? h("code.type", type) : null, isStream && !isOnly ? h("span.tag", "stream") : null, this.mark, h("span.space"), this.pick.element, this.count), this.body);
		this.reset();
	}

	reset() {
		this.#forget();
		this.items = [];
		this.joined = "";
		this.lost = this.told = 0; // characters that are kept no more, and those that are shown or were
		this.total = this.bytes = this.kept = 0;
		this.most = MOST_ITEMS;
		this.first = this.last = 0;
		this.mode = "items";
		this.isPicked = this.isOver = false;
		this.fresh = [];
		this.pick.element.hidden = true;
		say(this.mark, "");
		this.mark.dataset.ending = "";
		say(this.count, "");
		this.#clear();
		this.body.replaceChildren(h("p.empty", "Nothing yet."));
	}

	/** Take one item; it is shown with the next picture of the screen. */
	add(item) {
		this.last = performance.now();
		if (!this.total) this.first = this.last;
		this.total += 1;
		const bytes = sizeOf(item);
		this.bytes += bytes;
		this.kept += bytes;
		if (bytes > HEAVY_BYTES) this.most = MOST_HEAVY;
		this.items.push(item);
		while (this.items.length > this.most || (this.kept > MOST_BYTES && this.items.length > 1)) this.kept -= sizeOf(this.items.shift());
		this.fresh.push(item);
		if (this.fresh.length > this.items.length) this.fresh.shift();
		if (typeof item.value === "string") this.joined += item.value;
		if (this.joined.length > MOST_CHARACTERS * 2) {
			this.lost += this.joined.length - MOST_CHARACTERS;
			this.joined = this.joined.slice(-MOST_CHARACTERS);
		}
		if (!this.frame) this.frame = requestAnimationFrame(() => this.flush());
	}

	/** It has ended. */
	end(text = "ended") {
		this.isOver = true;
		this.flush();
		say(this.mark, text);
		this.mark.dataset.ending = text;
		if (!this.total) this.body.replaceChildren(h("p.empty", "It gave nothing."));
	}

	flush() {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const news = this.fresh.splice(0);
		if (!news.length) return;
		if (!this.isPicked) this.#guess();
		const isAtEnd = this.body.scrollTop + this.body.clientHeight >= this.body.scrollHeight - 24;
		if (!this.place) this.#build(this.items); else this.#append(news);
		if (isAtEnd) this.body.scrollTop = this.body.scrollHeight;
		const seconds = (this.last - this.first) / 1000;
		say(this.count, `${many(this.total, "item")} · ${size(this.bytes)}${seconds > 0.2 && this.total > 2 ? ` · ${rate((this.total - 1) / seconds)}` : ""}`);
	}

	/** What is shown best, until somebody chooses: pieces of a text in one, rows in a table, else item by item. */
	#guess() {
		const values = this.items.slice(0, 8).map((item) => item.value);
		const can = {items: true, text: this.isStream && values.every((one) => typeof one === "string"), table: values.every(isRow)};
		const isPieces = can.text && values.length > 1 && values.some((one, index) => /^\s/.test(one) && index > 0 || /\s$/.test(one) || one === "");
		const mode = isPieces ? "text" : can.table && values.length > 1 ? "table" : this.mode === "text" && can.text ? "text" : "items";
		for (const one of this.pick.element.children) one.hidden = !can[one.dataset.key];
		this.pick.element.hidden = values.length < 2 || !(can.text || can.table);
		if (mode === this.mode) return;
		this.mode = mode;
		this.pick.mark(mode);
		this.#clear();
	}

	#turn(mode) {
		this.isPicked = true;
		this.mode = mode;
		this.#clear();
		this.#build(this.items);
	}

	#clear() {
		this.place = this.text = this.table = null;
	}

	#build(items) {
		this.#forget();
		this.told = 0;
		if (this.mode === "text") this.place = h("pre.text.joined", this.text = document.createTextNode(""));
		else if (this.mode === "table") { this.table = table(); this.place = this.table.element; }
		else this.place = h("ol.stream");
		this.note = h("p.dim.note");
		this.body.replaceChildren(this.note, this.place);
		this.pick.mark(this.mode);
		this.#append(items);
	}

	#append(items) {
		if (this.mode === "text") {
			this.text.appendData(this.joined.slice(Math.max(0, this.told - this.lost)));
			this.told = this.lost + this.joined.length;
			if (this.text.length > MOST_CHARACTERS) { this.text.deleteData(0, this.text.length - MOST_CHARACTERS); say(this.note, "The beginning is not shown any more."); }
			return;
		}
		const from = this.total - items.length;
		items.forEach((item, index) => {
			if (this.mode === "table" && isRow(item.value)) this.table.add(item.value);
			else if (this.mode === "items") this.place.append(this.#entry(item, from + index + 1));
		});
		if (this.mode !== "items") return;
		while (this.place.childElementCount > this.most) {
			this.#forget(this.place.firstElementChild);
			this.place.firstElementChild.remove();
		}
		const left = this.total - this.place.childElementCount;
		if (left > 0) say(this.note, `${whole(left)} earlier items are not shown.`);
	}

	#entry(item, number) {
		const undo = [], shown = show(item, undo);
		const entry = h("li", this.isStream ? h("span.index", {"aria-hidden": "true"}, whole(number)) : null, h("div.value", shown));
		if (undo.length) this.undo.set(entry, undo);
		return entry;
	}

	/** Give back what an entry holds besides its elements, or what all do. */
	#forget(entry) {
		this.undo ??= new Map();
		for (const [one, undo] of entry ? [[entry, this.undo.get(entry) ?? []]] : [...this.undo]) {
			undo.forEach((does) => does());
			this.undo.delete(one);
		}
	}
}
