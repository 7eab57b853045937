// A caller on the package `graphpipe` of npm: reads a JSON list of questions on stdin, prints the list of answers.
//
// question: {url, inputs: [VALUE], inputNames, outputNames, config, isKept}, or {url, metadata: true};
//           isKept: on the one connection of all that have it
// answer: {status, outputs: [VALUE], port}, or {status, metadata}, or {message, status, code, outputs} of a failure
// VALUE: {dtype, shape, data}: that of numpy, and base64, as in values.py
"use strict";

const http = require("http");
const graphpipe = require("graphpipe");
const ndarray = require("ndarray");

const KINDS = {
  "|u1": Uint8Array, "|i1": Int8Array, "<u2": Uint16Array, "<i2": Int16Array, "<u4": Uint32Array, "<i4": Int32Array,
  "<f4": Float32Array, "<f8": Float64Array, "<i8": BigInt64Array,
};
const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });

function unpacked({ dtype, shape, data }) {
  const raw = Buffer.from(data, "base64");
  return ndarray(new KINDS[dtype](raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length)), shape);
}

function packed({ data, shape }) {
  const dtype = Object.keys(KINDS).find((name) => data instanceof KINDS[name]);
  return { dtype, shape: shape || [], data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
}

function asked({ url, inputs, inputNames, outputNames, config, isKept }) {
  const arrays = inputs.map(unpacked);
  const params = isKept ? { httpAgent: kept } : {};
  // The client takes several arrays only where the names of outputs are a list.
  if (arrays.length === 1) return graphpipe.remote(url, arrays[0], inputNames, outputNames, config, params);
  return graphpipe.remote(url, arrays, inputNames, outputNames || [], config, params);
}

async function answered(question) {
  try {
    if (question.metadata) {
      const { status, data } = await graphpipe.metadata(question.url);
      return { status, metadata: data };
    }
    const { status, data, request } = await asked(question);
    return { status, outputs: data.map(packed), port: request.socket.localPort };
  } catch (error) {
    const { status, headers, data } = error.response || {};
    return { message: error.message || error, status, code: headers && headers["x-graphpipe-error"], outputs: data };
  }
}

(async () => {
  const answers = [];
  const parts = []; // a synchronous read fails where the pipe is empty for a moment
  for await (const part of process.stdin) parts.push(part);
  for (const question of JSON.parse(Buffer.concat(parts).toString())) answers.push(await answered(question));
  kept.destroy();
  process.stdout.write(JSON.stringify(answers));
})();
