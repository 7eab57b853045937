// A generated client on @grpc/grpc-js: reads plans on stdin, a line each, and prints what came back.
//
// plan: {address, folder, file, service, method, requests: [...]}; answer: {responses: [...], code, details}
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const loaded = {};

function called(plan) {
  const options = { keepCase: true, longs: Number, enums: String, oneofs: true, includeDirs: [plan.folder] };
  const root = (loaded[plan.folder] ||= grpc.loadPackageDefinition(loader.loadSync(plan.file, options)));
  const Service = plan.service.split(".").reduce((found, name) => found[name], root);
  const client = new Service(plan.address, grpc.credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  const { requestStream, responseStream } = Service.service[plan.method];
  const answer = { responses: [] };

  return new Promise((resolve) => {
    function end(error) {
      client.close();
      resolve({ ...answer, code: error ? error.code : 0, details: error ? error.details : "" });
    }

    function done(error, response) {
      if (response) answer.responses.push(response);
      end(error);
    }

    const first = requestStream ? [] : [plan.requests[0]];
    const call = client[plan.method](...first, ...(responseStream ? [] : [done]));
    if (responseStream) {
      let failure = null;
      call.on("data", (one) => answer.responses.push(one));
      call.on("error", (error) => (failure = error));
      call.on("status", (status) => end(status.code ? status : failure));
    }
    if (requestStream) {
      for (const one of plan.requests) call.write(one);
      call.end();
    }
  });
}

require("./lines.js")(called);
