// The clients of node for benchmarks/callers.py: @grpc/grpc-js and fetch. Reads a plan on stdin, prints JSON on stdout.
"use strict";

const plan = JSON.parse(require("fs").readFileSync(0, "utf8"));
const sent = plan.sent.map((one) => Buffer.from(one, "base64"));
const reply = Buffer.from(plan.reply, "base64");
const took = [];

function wrong(text) {
  console.error(text);
  process.exit(1);
}

function clock() {
  return Number(process.hrtime.bigint()) / 1e9;
}

function callOnce(client, grpc) {
  return new Promise((done) => {
    const same = (data) => data;
    const call = client.makeBidiStreamRequest(plan.method, same, same, new grpc.Metadata(), {});
    const got = [];
    call.on("data", (data) => got.push(data));
    call.on("error", () => {}); // the status event has it all
    call.on("status", (status) => {
      if (status.code !== 0 || got.length !== 1 || !reply.equals(got[0])) wrong(`status ${status.code} ${status.details}, ${got.length} replies`);
      done();
    });
    for (const message of sent) call.write(message);
    call.end();
  });
}

async function fetchOnce() {
  const response = await fetch(`http://${plan.address}${plan.path}`, { method: "POST", body: sent[0], headers: plan.headers });
  const got = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200 || !reply.equals(got)) wrong(`status ${response.status}, the reply is ${got}`);
}

async function oneAfterAnother(count, once) {
  for (let done = 0; done < count; done++) {
    const began = clock();
    await once();
    took.push(clock() - began);
  }
}

async function main() {
  let once = fetchOnce;
  if (plan.driver === "grpc-js") {
    const grpc = require("@grpc/grpc-js");
    const client = new grpc.Client(plan.address, grpc.credentials.createInsecure());
    once = () => callOnce(client, grpc);
  }
  const share = Math.floor(plan.calls / plan.streams);
  const began = clock();
  await Promise.all(Array.from({ length: plan.streams }, () => oneAfterAnother(share, once)));
  const seconds = clock() - began;
  process.stdout.write(JSON.stringify({ took, seconds }), () => process.exit(0)); // a pipe may not take all at once
}

main();
