// Cancels many riff calls of @grpc/grpc-js at random moments: reads one JSON plan on stdin, prints one JSON account.
//
// plan: {address, proto, calls, atOnce, cancelled: whether they are, withinMs: how long after its start a call is
//        cancelled at most, metadata: {k: v}}
// Call number n announces its input as "n". An even one is cancelled by `cancel()`, an odd one by its deadline.
// account: {codes: {code: count}, ms: [from the half-close to the status, for calls that are not cancelled]}
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const plan = JSON.parse(require("fs").readFileSync(0, "utf8"));
const definition = loader.loadSync(plan.proto, { keepCase: true, defaults: true, oneofs: true });
const { Riff } = grpc.loadPackageDefinition(definition).streaming;
const client = new Riff(plan.address, grpc.credentials.createInsecure());

const account = { codes: {}, ms: [] };
let begun = 0;
let ended = 0;

function value(number) {
  return { data: { payload: Buffer.from(String(number)), contentType: "application/json", argIndex: 0, headers: {} } };
}

function begin() {
  if (begun === plan.calls) return;
  const number = begun++;
  const waitMs = Math.random() * plan.withinMs;
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(plan.metadata || {})) metadata.set(name, value);
  const hasDeadline = plan.cancelled && number % 2 === 1;
  const call = client.Invoke(metadata, hasDeadline ? { deadline: Date.now() + 1 + waitMs } : {});
  let closedAt = 0;
  call.on("data", () => {});
  call.on("error", () => {}); // the status event has it all
  call.on("status", (status) => {
    account.codes[status.code] = (account.codes[status.code] || 0) + 1;
    if (!plan.cancelled) account.ms.push(Number(process.hrtime.bigint() - closedAt) / 1e6);
    ended++;
    if (ended < plan.calls) return begin();
    client.close();
    process.stdout.write(JSON.stringify(account));
  });
  call.write({ start: { expectedContentTypes: ["application/json"], inputNames: [String(number)], outputNames: [] } });
  for (let sent = 0; sent < 3; sent++) call.write(value(sent));
  if (!plan.cancelled) {
    setTimeout(() => {
      closedAt = process.hrtime.bigint();
      call.end();
    }, waitMs);
  } else if (!hasDeadline) {
    setTimeout(() => call.cancel(), waitMs);
  }
}

client.waitForReady(Date.now() + 10000, (error) => {
  if (error) throw error;
  for (let lane = 0; lane < plan.atOnce; lane++) begin();
});
