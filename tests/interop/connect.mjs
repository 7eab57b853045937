// Clients of Connect, gRPC-Web and gRPC by @connectrpc, with code that protoc-gen-es made: reads plans on stdin, a line each, and
// prints an account of each.
//
// plan: {transport: connect|connect-gzip|connect-json|grpc-web|grpc-web-gzip|grpc|web-connect|web-grpc, address, file, service, method, requests, timeoutMs}
// account: {responses, code, message}
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_PATH}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { createClient, ConnectError, Code } = await load("@connectrpc/connect");
const node = await load("@connectrpc/connect-node");
const web = await load("@connectrpc/connect-web");
const { fromJson, toJson } = await load("@bufbuild/protobuf");

async function called(plan) {
  const made = await import(pathToFileURL(plan.file));
  // "-gzip" packs every message that leaves, as clients of Connect in Python do unless they are told otherwise.
  const gzip = { sendCompression: node.compressionGzip, compressMinBytes: 0 };
  const http = { baseUrl: `http://${plan.address}`, httpVersion: plan.httpVersion || "1.1" };
  const transports = {
    connect: () => node.createConnectTransport({ ...http, useBinaryFormat: true }),
    "connect-gzip": () => node.createConnectTransport({ ...http, ...gzip }),
    "connect-json": () => node.createConnectTransport({ ...http, useBinaryFormat: false }),
    "connect-get": () => node.createConnectTransport({ ...http, useHttpGet: true }),
    "grpc-web-gzip": () => node.createGrpcWebTransport({ ...http, ...gzip }),
    "grpc-web": () => node.createGrpcWebTransport(http),
    grpc: () => node.createGrpcTransport({ baseUrl: http.baseUrl }),
    "web-connect": () => web.createConnectTransport({ baseUrl: http.baseUrl }),
    "web-grpc": () => web.createGrpcWebTransport({ baseUrl: http.baseUrl }),
  };

  const service = made[plan.service];
  const method = service.method[plan.method];
  const client = createClient(service, transports[plan.transport]());
  const account = { responses: [], code: "ok", message: "" };
  const requests = plan.requests.map((one) => fromJson(method.input, one));
  const options = plan.timeoutMs ? { timeoutMs: plan.timeoutMs } : {};
  const streamsIn = ["client_streaming", "bidi_streaming"].includes(method.methodKind);

  // The next request of a conversation leaves when the last one was answered.
  let answered = () => {};
  async function* given() {
    for (const one of requests) {
      const next = new Promise((resolve) => (answered = resolve));
      yield one;
      if (plan.inTurns) await next;
    }
  }

  function keep(response) {
    account.responses.push(toJson(method.output, response, { useProtoFieldName: true }));
    answered();
  }

  try {
    const call = client[plan.method](streamsIn ? given() : requests[0], options);
    if (["unary", "client_streaming"].includes(method.methodKind)) keep(await call);
    else for await (const response of call) keep(response);
  } catch (error) {
    const known = ConnectError.from(error);
    Object.assign(account, { code: Code[known.code], message: known.rawMessage });
  }
  return account;
}

await createRequire(import.meta.url)("./lines.js")(called);
