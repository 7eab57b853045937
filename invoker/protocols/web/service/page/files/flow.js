// The frames that flow now: numbers of the invocations of this process, never what is in them.

import {h, many, rate, s, say, size, span, whole} from "./dom.js";
import {address} from "./talk.js";

const KEPT = 60; // snapshots of a curve
const WIDTH = 96, HEIGHT = 18;

export class Flow {
	constructor(element) {
		this.element = element;
		this.rows = new Map();
		this.state = h("span.dim", {role: "status"});
		this.totals = h("span.count");
		this.failed = h("span.count.bad");
		this.toggle = h("button.quiet", {type: "button", "aria-pressed": "false", on: {click: () => { this.isPaused = !this.isPaused; this.#listen(); }}}, "Pause");
		this.table = h("table.live", h("thead", h("tr", ["stream", "flow", "frames", "size", "rate", "queue", "state"].map((one, index) => h("th", {scope: "col", class: index > 1 && index < 6 ? "number" : null}, one)))));
		this.empty = h("p.empty", "Nothing runs. Calls over any protocol appear here while they run, and for ten seconds more.");
		element.replaceChildren(
			h("header", h("h2", {id: "flow-title"}, "Frames"), this.totals, this.failed, h("span.space"), this.state, this.toggle),
			h("div.wide", {tabindex: "0", role: "region", "aria-label": "Running invocations"}, this.table), this.empty);
		document.addEventListener("visibilitychange", () => this.#listen());
		this.#listen();
	}

	/** Listen only while somebody can look. */
	#listen() {
		const isWanted = !this.isPaused && document.visibilityState === "visible";
		say(this.toggle, this.isPaused ? "Resume" : "Pause");
		this.toggle.setAttribute("aria-pressed", String(Boolean(this.isPaused)));
		if (isWanted === Boolean(this.source)) return;
		if (!isWanted) {
			this.source.close();
			this.source = null;
			say(this.state, this.isPaused ? "paused" : "");
			return;
		}
		this.source = new EventSource(address("invocations"));
		this.source.onopen = () => say(this.state, "");
		this.source.onmessage = ({data}) => this.show(JSON.parse(data));
		this.source.onerror = () => {
			say(this.state, this.source.readyState === EventSource.CLOSED ? "not available" : "reconnecting…");
			if (this.source.readyState !== EventSource.CLOSED) return;
			this.source = null;
			setTimeout(() => this.#listen(), 5000);
		};
	}

	show({invocations = [], left = 0, worker, workers, counts = {}, atS = performance.now() / 1000}) {
		const {opened = 0, refused = 0, finished = {}} = counts;
		const failed = Object.entries(finished).filter(([status]) => status !== "OK").reduce((sum, [, one]) => sum + one, 0);
		const running = counts.running ?? invocations.filter((one) => one.status === "running").length;
		say(this.totals, `${whole(running)} running · ${whole(opened)} opened · ${whole(refused)} refused`);
		say(this.failed, failed ? `${whole(failed)} failed` : "");
		const seen = new Set();
		for (const one of invocations.toReversed()) { // the newest comes first, and on top
			seen.add(one.id);
			if (!this.rows.has(one.id)) this.rows.set(one.id, new Run(one, this.table));
			this.rows.get(one.id).update(one, atS);
		}
		for (const [id, row] of this.rows) if (!seen.has(id)) { row.body.remove(); this.rows.delete(id); }
		this.empty.hidden = invocations.length > 0;
		this.table.hidden = invocations.length === 0;
		if (workers) say(this.state, `worker ${worker} of ${workers}; calls of the others are not shown`);
		if (left) say(this.state, `${many(left, "further invocation")} not shown`);
	}
}

/** One invocation: a row that names it, and one for each stream. */
class Run {
	constructor({id, function: name, inputs, outputs}, table) {
		this.status = h("span.status");
		this.time = h("span.count");
		this.sums = h("span.count");
		this.streams = [...inputs.map((one, index) => new Stream("in", one, index)), ...outputs.map((one, index) => new Stream("out", one, index))];
		this.body = h("tbody", h("tr.run", h("th", {scope: "rowgroup", colspan: "7"}, this.status, h("bdi", name), " ", h("span.dim", id), " ", this.time, this.sums)), this.streams.map((one) => one.row));
		table.tHead.after(this.body);
	}

	update({status, sinceS, inputs, outputs, heldFrames, heldBytes}, atS) {
		say(this.status, status);
		this.status.dataset.ending = status === "running" ? status : status === "OK" ? "ok" : "failed";
		say(this.time, span(sinceS));
		const isOver = status !== "running"; // then one line is enough
		this.body.classList.toggle("over", isOver);
		say(this.sums, isOver ? ` · in ${summed(inputs)} · out ${summed(outputs)}` : heldFrames ? ` · held ${many(heldFrames, "frame")}, ${size(heldBytes)}` : "");
		[...inputs, ...outputs].forEach((one, index) => this.streams[index]?.update(one, atS, sinceS, !isOver));
	}
}

function summed(streams) {
	const [frames, bytes] = ["frames", "bytes"].map((key) => streams.reduce((sum, one) => sum + one[key], 0));
	return `${many(frames, "frame")}, ${size(bytes)}`;
}

class Stream {
	constructor(way, {name}) {
		this.way = way;
		this.points = [];
		this.curve = s("polyline", {fill: "none"});
		this.flow = h("td.pipe", {"aria-hidden": "true"}, s("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, preserveAspectRatio: "none"}, this.curve), h("span.dash"));
		[this.frames, this.size, this.rate, this.state] = ["number", "number", "number", ""].map((one) => h("td", {class: one}));
		this.fill = h("span.fill");
		this.queued = h("span");
		this.frames.title = "frames";
		this.queue = h("td.number.queue", {title: way === "in" ? "queued" : null}, way === "in" ? h("span.gauge", {"aria-hidden": "true"}, this.fill) : null, this.queued);
		this.row = h("tr", {class: way}, h("th", {scope: "row"}, h("span.way", way), h("bdi", name)), this.flow, this.frames, this.size, this.rate, this.queue, this.state);
	}

	update({frames, bytes, queuedFrames = 0, queuedBytes = 0, highFrames = 256, isPaused, isBlocked, isEnded, isAwaited}, atS, sinceS, isRunning) {
		const before = this.points.at(-1) ?? {atS: atS - sinceS, frames: 0};
		if (atS > before.atS) this.points.push({atS, frames, a: Math.max(0, (frames - before.frames) / (atS - before.atS))});
		if (this.points.length > KEPT) this.points.shift();
		const recent = this.points.slice(-4), speed = recent.reduce((sum, one) => sum + one.a, 0) / (recent.length || 1);
		say(this.frames, whole(frames));
		say(this.size, size(bytes));
		say(this.rate, isRunning || speed ? rate(speed) : "");
		say(this.queued, this.way === "in" ? (queuedFrames ? `${whole(queuedFrames)} · ${size(queuedBytes)}` : "0") : "");
		this.fill.style.width = `${Math.min(100, (queuedFrames / highFrames) * 100)}%`;
		say(this.state, isEnded ? "ended" : isPaused ? "paused: the function is slow" : isBlocked ? "waits: the caller is slow" : isAwaited ? "the function waits" : isRunning ? "open" : "");
		this.row.classList.toggle("paused", Boolean((isPaused || isBlocked) && !isEnded));
		this.row.classList.toggle("moves", isRunning && speed > 0);
		this.flow.style.setProperty("--pace", `${Math.max(0.15, Math.min(2, 4 / Math.max(speed, 1)))}s`);
		const most = Math.max(1, ...this.points.map((one) => one.a)), step = WIDTH / (KEPT - 1), left = WIDTH - (this.points.length - 1) * step;
		this.curve.setAttribute("points", this.points.map((one, index) => `${(left + index * step).toFixed(1)},${(HEIGHT - 1 - (one.a / most) * (HEIGHT - 3)).toFixed(1)}`).join(" "));
	}
}
