// A riff caller on @grpc/grpc-js: reads one JSON plan on stdin, prints one JSON account on stdout.
//
// plan: {address, proto, metadata: {k: v or [v, ...]}, deadlineMs, signals: [InputSignal with base64 payloads], halfClose: true,
//        cancelAfter: n frames, waitFor: n frames before the half-close}
// account: {frames: [...], code, details, events: ["metadata", "frame", "frame", "status"]}
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const plan = JSON.parse(require("fs").readFileSync(0, "utf8"));
const definition = loader.loadSync(plan.proto, { keepCase: true, defaults: true, oneofs: true });
const { Riff } = grpc.loadPackageDefinition(definition).streaming;

const metadata = new grpc.Metadata();
for (const [name, values] of Object.entries(plan.metadata || {})) [values].flat().forEach((one) => metadata.add(name, one));
const options = plan.deadlineMs ? { deadline: Date.now() + plan.deadlineMs } : {};

const client = new Riff(plan.address, grpc.credentials.createInsecure());
const call = client.Invoke(metadata, options);
const account = { frames: [], events: [] };

function decoded(signal) {
  if (!signal.data) return signal;
  return { data: { ...signal.data, payload: Buffer.from(signal.data.payload || "", "base64") } };
}

call.on("metadata", () => account.events.push("metadata"));
call.on("data", (signal) => {
  account.events.push("frame");
  account.frames.push({ ...signal.data, payload: signal.data.payload.toString("base64") });
  if (account.frames.length === plan.cancelAfter) call.cancel();
  if (account.frames.length === plan.waitFor) call.end();
});
call.on("error", () => {}); // the status event has it all
call.on("status", (status) => {
  account.events.push("status");
  process.stdout.write(JSON.stringify({ ...account, code: status.code, details: status.details }));
  client.close();
});

for (const signal of plan.signals) call.write(decoded(signal));
if (plan.halfClose !== false && !plan.waitFor) call.end();
