// A conversation with a function by its WebSocket: what the page sends and hears.

import {bytesOf, parse} from "./json.js";


const WRAPPED = '{"output":"","data":}'.length;

/** Where a path of this server is, seen from the page. */
export const address = (path) => new URL(String(path).replace(/^\/+/, ""), document.baseURI.replace(/[#?].*$/, ""));

/** The same with values of parameters in the query: pairs of a name and a text of JSON. */
export function asked(path, options) {
	const url = address(path);
	for (const [name, json] of options) {
		const value = parse(json);
		url.searchParams.append(name, typeof value === "string" ? value : json);
	}
	return url;
}

/** One run of a function. `heard` has the methods `opened`, `output(name, item)`, `ended(name)` and `closed(problem)`. */
export class Talk {
	constructor(path, options, heard) {
		const url = asked(path, options);
		url.protocol = url.protocol.replace("http", "ws");
		this.heard = heard;
		this.waiting = [];
		this.next = null; // what announces the binary frame that comes
		this.isOver = this.isCancelled = false;
		this.problem = null;
		this.isEnded = false;
		this.socket = new WebSocket(url);
		this.socket.binaryType = "arraybuffer";
		this.socket.onopen = () => { heard.opened(); for (const one of this.waiting.splice(0)) this.socket.send(one); };
		this.socket.onmessage = ({data}) => this.#came(data);
		this.socket.onclose = (event) => this.#left(event);
	}

	/** Send an item to an input: `{json}` or `{bytes, contentType}`. */
	send(input, item) {
		if (item.json !== undefined) return this.#put(`{"input": ${JSON.stringify(input)}, "data": ${item.json}}`);
		this.#put(JSON.stringify({input, contentType: item.contentType}));
		this.#put(item.bytes);
	}

	/** No more comes for an input, or for any. */
	end(input) {
		this.#put(JSON.stringify({end: input ?? true}));
	}

	/** End the run at once. */
	cancel() {
		this.isCancelled = true;
		this.socket.close(1000, "cancelled");
		this.#over({title: "Cancelled", detail: "You have cancelled this run.", isOwn: true});
	}

	#put(frame) {
		if (this.isOver) return;
		if (this.socket.readyState === WebSocket.CONNECTING) this.waiting.push(frame);
		else this.socket.send(frame);
	}

	#came(data) {
		if (this.isOver) return;
		if (typeof data !== "string") {
			const {output = "", contentType = "application/octet-stream"} = this.next ?? {};
			this.next = null;
			this.heard.output(output, {contentType, bytes: new Uint8Array(data)});
			return;
		}
		const frame = parse(data);
		if (frame.error || frame.end) this.endedAt = performance.now();
		if (frame.error) this.problem = frame.error;
		else if (frame.ended !== undefined) this.heard.ended(frame.ended);
		else if (frame.end) this.isEnded = true;
		else if ("data" in frame) this.heard.output(frame.output ?? "", itemOf(frame.data, data.length - WRAPPED - (frame.output ?? "").length));
		else if (frame.contentType) this.next = frame;
	}

	#left(event) {
		if (this.problem) return this.#over(this.problem);
		if (this.isEnded || event.code === 1000) return this.#over(null);
		if (event.code === 1006) return this.#over({title: "The server does not answer", detail: "It was stopped, is out of reach, or refuses the connection."});
		this.#over({title: "The connection ended", code: String(event.code), detail: event.reason || "Nobody said why."});
	}

	#over(problem) {
		if (this.isOver) return;
		this.isOver = true;
		this.heard.closed(problem);
	}
}

/** A value, or the bytes that it stands for. */
function itemOf(value, length) {
	const isBytes = value !== null && typeof value === "object" && typeof value.base64 === "string" && typeof value.contentType === "string" && Object.keys(value).length === 2;
	if (!isBytes) return {value, size: length};
	try {
		return {contentType: value.contentType, bytes: bytesOf(value.base64)};
	} catch {
		return {value, size: length};
	}
}
