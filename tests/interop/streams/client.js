// Streams by fetch and by node:http2: node client.js NAME URL [NOTES]; prints what it saw as one line of JSON.
// NOTES is the file in which the function tells of each number that it has read.
"use strict";

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const fs = require("node:fs");
const [name, url, notes] = process.argv.slice(2);
const NDJSON = { "content-type": "application/x-ndjson", accept: "application/x-ndjson" };

// A request body that is written while the answer is read.
function body() {
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  return { readable, say: (text) => writer.write(encoder.encode(text)), end: () => writer.close(), break: (error) => writer.abort(error) };
}

// Whole lines of a response, one at a time.
async function* lines(response) {
  let rest = "";
  for await (const chunk of response.body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield "cut: " + rest;
}

// The function has read both numbers.
async function added() {
  while (!fs.existsSync(notes) || fs.readFileSync(notes, "utf8") !== "1\n2\n") await new Promise((done) => setTimeout(done, 10));
}

async function failure(work) {
  try { await work(); return "no error"; } catch (error) { return error.name; }
}

const commands = {
  // Each line is sent only when the answer to the one before it is here.
  async duplex() {
    const sent = body(), saw = [];
    const answered = fetch(url, { method: "POST", headers: NDJSON, body: sent.readable, duplex: "half" });
    sent.say('"one"\n');
    const response = await answered;
    for await (const line of lines(response)) {
      saw.push(line);
      if (saw.length === 3) sent.end(); else sent.say(`"line ${saw.length}"\n`);
    }
    return { status: response.status, type: response.headers.get("content-type"), saw };
  },

  async abort() {
    const stop = new AbortController(), saw = [];
    const response = await fetch(url, { method: "POST", headers: { accept: "application/x-ndjson" }, signal: stop.signal });
    const error = await failure(async () => {
      for await (const line of lines(response)) {
        saw.push(line);
        if (saw.length === 3) stop.abort();
      }
    });
    return { saw: saw.slice(0, 3), error };
  },

  // A body that fails in the middle: undici cuts the chunked request.
  async broken() {
    const sent = body();
    const answered = failure(() => fetch(url, { method: "POST", headers: NDJSON, body: sent.readable, duplex: "half" }).then((one) => one.text()));
    await sent.say("1\n2\n");
    await added();
    await failure(() => sent.break(new Error("the disk is gone")));
    return { error: await answered };
  },

  async events() {
    const response = await fetch(url, { method: "POST", headers: { accept: "text/event-stream" } });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  },

  async http2() {
    const connection = require("node:http2").connect(new URL(url).origin);
    const request = connection.request({ ":method": "POST", ":path": new URL(url).pathname, ...NDJSON });
    const saw = [];
    let rest = "", status = 0;
    request.on("response", (headers) => { status = headers[":status"]; });
    request.setEncoding("utf8");
    request.write('"one"\n');
    await new Promise((done, fail) => {
      request.on("data", (text) => {
        const parts = (rest + text).split("\n");
        rest = parts.pop();
        for (const line of parts) {
          saw.push(line);
          if (saw.length === 3) request.end(); else request.write(`"line ${saw.length}"\n`);
        }
      });
      request.on("end", done);
      request.on("error", fail);
    });
    connection.close();
    return { status, saw };
  },

  // A request that is reset, or whose connection is destroyed, in the middle of its body.
  async reset() { return http2Left((request) => request.close(8)); },
  async destroy() { return http2Left((_, connection) => connection.destroy()); },
};

async function http2Left(leave) {
  const connection = require("node:http2").connect(new URL(url).origin);
  connection.on("error", () => {});
  const request = connection.request({ ":method": "POST", ":path": new URL(url).pathname, ...NDJSON });
  request.on("error", () => {});
  request.write("1\n2\n");
  await added();
  leave(request, connection);
  await new Promise((done) => request.on("close", done));
  connection.destroy();
  return {};
}

commands[name]().then((found) => { console.log(JSON.stringify(found)); process.exit(0); });
