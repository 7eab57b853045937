// JSON without losing digits: whole numbers beyond 2^53 are kept as BigInt, and written as they came.

const exact = (_, value, context) =>
	typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;

/** The value of a text. */
export const parse = (text) => (/\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text));

/** The text of a value, in one line. */
export function line(value) {
	if (typeof value === "bigint") return value.toString();
	if (Array.isArray(value)) return `[${value.map(line).join(", ")}]`;
	if (value !== null && typeof value === "object") {
		return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${line(one)}`).join(", ")}}`;
	}
	return JSON.stringify(value) ?? "null";
}

/** A text of JSON in one line, with every digit. */
export function exactly(text) {
	const tidy = line(parse(text)), [a, b] = [tidy, text].map((one) => one.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1"));
	return a === b ? tidy : text.replace(/\s*\n\s*/g, " ");
}

/** The text of a value, with a line for each member where it is long. */
export function pretty(value, indent = "") {
	const short = line(value);
	if (short.length + indent.length <= 72 || value === null || typeof value !== "object") return short;
	const deeper = `${indent}  `;
	if (Array.isArray(value)) return `[\n${value.map((one) => deeper + pretty(one, deeper)).join(",\n")}\n${indent}]`;
	const members = Object.entries(value).map(([key, one]) => `${deeper}${JSON.stringify(key)}: ${pretty(one, deeper)}`);
	return `{\n${members.join(",\n")}\n${indent}}`;
}

/** Whether a value is an object with members. */
export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** The bytes that a base64 text stands for. */
export const bytesOf = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
