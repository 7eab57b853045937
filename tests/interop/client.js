// A riff caller on @grpc/grpc-js: reads JSON plans on stdin, a line each, and prints a line of JSON, an account, for each.
//
// plan: {address, proto, metadata: {k: v or [v, ...]}, deadlineMs, signals: [InputSignal with base64 payloads], halfClose: true,
//        cancelAfter: n frames, waitFor: n frames before the half-close}
// account: {frames: [...], code, details, events: ["metadata", "frame", "frame", "status"]}
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

function decoded(signal) {
  if (!signal.data) return signal;
  return { data: { ...signal.data, payload: Buffer.from(signal.data.payload || "", "base64") } };
}

function called(plan) {
  const definition = loader.loadSync(plan.proto, { keepCase: true, defaults: true, oneofs: true });
  const { Riff } = grpc.loadPackageDefinition(definition).streaming;

  const metadata = new grpc.Metadata();
  for (const [name, values] of Object.entries(plan.metadata || {})) [values].flat().forEach((one) => metadata.add(name, one));
  const options = plan.deadlineMs ? { deadline: Date.now() + plan.deadlineMs } : {};

  // Each plan has a connection of its own.
  const client = new Riff(plan.address, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  const call = client.Invoke(metadata, options);
  const account = { frames: [], events: [] };

  return new Promise((done) => {
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
      client.close();
      done({ ...account, code: status.code, details: status.details });
    });

    for (const signal of plan.signals) call.write(decoded(signal));
    if (plan.halfClose !== false && !plan.waitFor) call.end();
  });
}

require("./lines.js")(called);
