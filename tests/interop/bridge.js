// A host on @grpc/grpc-js: reads JSON plans on stdin, a line each, and prints what their steps gave as a line of JSON.
//
// plan: {address, proto, metadata, steps: [{method, request, deadlineMs, cancelAfter: n messages, meanwhile: [steps]}]}
// Steps run one after the other; those in `meanwhile` run when the first message of a stream is there.
// Values are {type, json} there and here: type is the name of a wrapper, ListValue or Struct.
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const protobuf = require("protobufjs");

const options = { keepCase: true, defaults: true, oneofs: true, longs: String, bytes: String };
const well = new protobuf.Root();
for (const name of ["struct", "wrappers"]) well.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`).nested);

function packed(value) {
  const kind = well.lookupType(`google.protobuf.${value.type}`);
  const message = kind.fromObject(value.json);
  return { type_url: `type.googleapis.com/google.protobuf.${value.type}`, value: kind.encode(message).finish() };
}

function unpacked(any) {
  const name = any.type_url.slice(any.type_url.lastIndexOf("/") + 1);
  const kind = well.lookupType(name);
  const message = kind.decode(Buffer.from(any.value, "base64"));
  return { type: name.replace("google.protobuf.", ""), json: kind.toObject(message, { longs: String, bytes: String, defaults: true }) };
}

// Every {type, json} becomes an Any, and every Any of an answer becomes {type, json}.
function walked(node, test, change) {
  if (Array.isArray(node)) return node.map((one) => walked(one, test, change));
  if (node === null || typeof node !== "object" || Buffer.isBuffer(node)) return node;
  if (test(node)) return change(node);
  return Object.fromEntries(Object.entries(node).map(([key, one]) => [key, walked(one, test, change)]));
}

const isValue = (node) => typeof node.type === "string" && "json" in node;
const isAny = (node) => typeof node.type_url === "string";
const read = (answer) => walked(answer, isAny, unpacked);

function ended(status) {
  const trailer = status.metadata.get("dspex-error-bin")[0];
  return { code: status.code, details: status.details, trailer: trailer ? trailer.toString("base64") : "" };
}

async function hosted(plan) {
  const root = grpc.loadPackageDefinition(loader.loadSync(plan.proto, options));
  const alone = { "grpc.use_local_subchannel_pool": 1 };
  const client = new root.dspex.bridge.SnakepitBridge(plan.address, grpc.credentials.createInsecure(), alone);

  function run(step) {
    const metadata = new grpc.Metadata();
    for (const [name, value] of Object.entries(plan.metadata || {})) metadata.set(name, value);
    const call = { deadline: step.deadlineMs ? Date.now() + step.deadlineMs : Infinity };
    const request = walked(step.request || {}, isValue, packed);
    const account = { messages: [] };
    return new Promise((resolve) => {
      const done = async (status) => resolve({ ...account, ...ended(status), inner: await account.inner });
      if (!client[step.method].responseStream) {
        client[step.method](request, metadata, call, (_, answer) => answer && account.messages.push(read(answer)))
          .on("status", done);
        return;
      }
      const stream = client[step.method](request, metadata, call);
      stream.on("data", (message) => {
        account.messages.push(read(message));
        if (account.messages.length === 1 && step.meanwhile) account.inner = all(step.meanwhile);
        if (account.messages.length === step.cancelAfter) stream.cancel();
      });
      stream.on("error", () => {}); // the status event has it all
      stream.on("status", done);
    });
  }

  async function all(steps) {
    const accounts = [];
    for (const step of steps) accounts.push(await run(step));
    return accounts;
  }

  const accounts = await all(plan.steps);
  client.close();
  return accounts;
}

require("./lines.js")(hosted);
