// Numbers in rows and columns as a picture, with the number below the pointer or the arrow keys.

import {choice, h, say, whole} from "./dom.js";

const COLOURS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const MOST = 4_000_000;

/** The shape of nested lists of numbers, or null if they are none, or not all of equal length. */
export function shapeOf(value) {
	const shape = [];
	for (let at = value; Array.isArray(at); at = at[0]) shape.push(at.length);
	if (!shape.length || shape.includes(0) || shape.reduce((a, b) => a * b) > MOST) return null;
	const isFit = (at, depth) => depth === shape.length
		? typeof at === "number" || typeof at === "boolean"
		: Array.isArray(at) && at.length === shape[depth] && at.every((one) => isFit(one, depth + 1));
	return isFit(value, 0) ? shape : null;
}

/** A picture of numbers: `data`, row by row, and the sizes of their lists. */
export function heat(data, shape) {
	const [rows, columns] = shape.length === 1 ? [1, shape[0]] : shape.slice(-2), plane = rows * columns;
	const planes = Math.max(1, Math.round(data.length / plane));
	let low = Infinity, high = -Infinity, sum = 0, known = 0;
	for (const one of data) {
		const value = Number(one);
		if (!Number.isFinite(value)) continue;
		low = Math.min(low, value); high = Math.max(high, value); sum += value; known += 1;
	}
	const canvas = h("canvas", {width: columns, height: rows, tabindex: "0", role: "img", "aria-label": `Heat map of ${shape.join(" × ")} numbers from ${brief(low)} to ${brief(high)}; the arrow keys read them`});
	const scale = Math.max(1, Math.min(24, Math.floor(480 / columns), Math.floor(360 / rows) || 1));
	canvas.style.width = `${columns * scale}px`;
	if (scale > 3) canvas.classList.add("sharp");
	const here = h("output.here");
	let at = 0, row = 0, column = 0;

	const draw = () => {
		const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
		for (let index = 0; index < rows * columns; index += 1) {
			image.data.set(colour((Number(data[at * plane + index]) - low) / (high - low || 1)), index * 4);
		}
		context.putImageData(image, 0, 0);
	};
	const tell = () => {
		const value = brief(Number(data[at * plane + row * columns + column]));
		say(here, `[${[...(planes > 1 ? [at] : []), ...(shape.length > 1 ? [row] : []), column].join(", ")}] = ${value}`);
	};
	canvas.addEventListener("pointermove", (event) => {
		const box = canvas.getBoundingClientRect();
		column = Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * columns)));
		row = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
		tell();
	});
	canvas.addEventListener("keydown", (event) => {
		const [down, right] = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]}[event.key] ?? [0, 0];
		if (!down && !right) return;
		event.preventDefault();
		row = Math.min(rows - 1, Math.max(0, row + down));
		column = Math.min(columns - 1, Math.max(0, column + right));
		tell();
	});
	draw();
	here.textContent = shape.join(" × ");
	const slices = planes > 1 ? choice("Slice", Object.fromEntries(Array.from({length: Math.min(planes, 16)}, (_, index) => [String(index), String(index)])), "0", (key) => { at = Number(key); draw(); tell(); }).element : null;
	const mean = known ? sum / known : NaN;
	return h("figure.heat", slices, canvas, h("figcaption", here, h("span.scale", h("span", brief(low)), legend(), h("span", brief(high)), h("span.dim", `mean ${brief(mean)}, ${whole(data.length)} numbers`))));
}

function legend() {
	const canvas = h("canvas.legend", {width: 64, height: 1, "aria-hidden": "true"}), context = canvas.getContext("2d");
	const image = context.createImageData(64, 1);
	for (let index = 0; index < 64; index += 1) image.data.set(colour(index / 63), index * 4);
	context.putImageData(image, 0, 0);
	return canvas;
}

function colour(part) {
	if (!Number.isFinite(part)) return [128, 128, 128, 90];
	const place = Math.min(Math.max(part, 0), 1) * (COLOURS.length - 1), from = Math.min(Math.floor(place), COLOURS.length - 2);
	return [0, 1, 2].map((index) => COLOURS[from][index] + (COLOURS[from + 1][index] - COLOURS[from][index]) * (place - from)).concat(255);
}

function brief(number) {
	return Number.isFinite(number) ? String(Number(number.toPrecision(5))) : "not a number";
}
