// Devices on @grpc/grpc-js and Node's own crypto: read one JSON plan on stdin, print what became of each as JSON on stdout.
//
// plan: {address, proto, include, devices: [{population, eligibility, levels, report: base64, status, inputs: {name: [integers]},
//        leaveAfter: accepted | advertise | share | masked (it leaves once the server has answered that), pauseMs, weights: {task: weight}, token, metadata}]}
// All devices run at once. The secure aggregation here is written from the catalogue alone; it shares no code with the server.
"use strict";

const crypto = require("crypto");
const zlib = require("zlib");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const plan = JSON.parse(require("fs").readFileSync(0, "utf8"));
const options = { keepCase: true, defaults: true, oneofs: true, longs: String, enums: Number, includeDirs: [plan.include] };
const root = grpc.loadPackageDefinition(loader.loadSync(plan.proto, options));
const Api = root.google.internal.federatedml.v2.FederatedTrainingApi;
const { requestSerialize, responseDeserialize } = Api.service.Session;

const LEVELS = { 1: 6, 2: 9, 3: 1 };

// Messages in chunks, of both directions of one stream.
class Chunks {
  constructor(stream, deliver) {
    Object.assign(this, { stream, deliver, size: 0, most: 0, level: 0, unacked: 0, waiting: [], blob: null, acks: 0, received: 0 });
  }
  agreed(options) {
    if (!options) return;
    this.size = options.chunk_size_for_upload;
    this.most = options.max_pending_chunks;
    this.level = options.compression_level;
  }
  send(message) {
    if (!this.size || !this.most) return void this.stream.write(message);
    const plain = requestSerialize(message);
    const blob = this.level ? zlib.deflateSync(plain, { level: LEVELS[this.level] }) : plain;
    this.waiting.push({ start: { uncompressed_size: plain.length, compression_level: this.level, blob_size_bytes: blob.length } });
    let count = 0;
    for (let at = 0; at < blob.length || count === 0; at += this.size) {
      this.waiting.push({ data: { chunk_index: count++, chunk_bytes: blob.subarray(at, at + this.size) } });
    }
    this.waiting.push({ end: { chunk_count: count } });
    this.flush();
  }
  flush() {
    while (this.waiting.length && this.unacked < this.most) {
      const piece = this.waiting.shift();
      if (piece.data) this.unacked++;
      this.stream.write({ chunked_transfer: piece });
    }
  }
  receive(message) {
    const piece = message.chunked_transfer;
    if (!piece) return this.deliver(message);
    if (piece.kind === "ack") {
      this.unacked--;
      this.acks++;
      this.flush();
    } else if (piece.kind === "start") {
      this.blob = { level: piece.start.compression_level, size: piece.start.uncompressed_size, parts: [] };
    } else if (piece.kind === "data") {
      this.blob.parts.push(piece.data.chunk_bytes);
      this.stream.write({ chunked_transfer: { ack: { chunk_index: piece.data.chunk_index } } });
    } else {
      const { level, size, parts } = this.blob;
      const whole = level ? zlib.inflateSync(Buffer.concat(parts)) : Buffer.concat(parts);
      if (whole.length !== size || piece.end.chunk_count !== parts.length) throw new Error("a transfer does not add up");
      this.blob = null;
      this.received++;
      this.deliver(responseDeserialize(whole));
    }
  }
}

// Secure aggregation, section 1.4 of the catalogue.
const P = (1n << 31n) + 11n;
const be32 = (number) => { const out = Buffer.alloc(4); out.writeUInt32BE(number); return out; };
const bigOf = (bytes) => BigInt("0x" + (bytes.toString("hex") || "0"));
const bytesOf = (big, size) => Buffer.from(big.toString(16).padStart(2 * size, "0"), "hex");
const sha256 = (...parts) => crypto.createHash("sha256").update(Buffer.concat(parts)).digest();
const mod = (value, modulus) => ((value % modulus) + modulus) % modulus;

function shares(secret, threshold, count) {
  const value = bigOf(secret);
  const limbs = Array.from({ length: 9 }, (_, at) => (value >> BigInt(31 * (8 - at))) & 0x7fffffffn);
  const terms = limbs.map((limb) => [limb, ...Array.from({ length: threshold - 1 }, () => BigInt(crypto.randomInt(Number(P))))]);
  return Array.from({ length: count }, (_, at) => Buffer.concat(terms.map((of) => {
    const x = BigInt(at + 1);
    return be32(Number(of.reduceRight((sum, term) => (sum * x + term) % P, 0n)));
  })));
}

const field = (number, bytes) => Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);

function sealed(key, noise, prf) {
  const iv = crypto.randomBytes(12);
  const cipher = crypto.createCipheriv("aes-256-gcm", key, iv);
  const text = Buffer.concat([cipher.update(Buffer.concat([field(1, noise), field(2, prf)])), cipher.final()]);
  return Buffer.concat([iv, text, cipher.getAuthTag()]);
}

function opened(key, box) {
  const cipher = crypto.createDecipheriv("aes-256-gcm", key, box.subarray(0, 12));
  cipher.setAuthTag(box.subarray(-16));
  const plain = Buffer.concat([cipher.update(box.subarray(12, -16)), cipher.final()]);
  return { noise: plain.subarray(2, 2 + plain[1]), prf: plain.subarray(4 + plain[1]) };
}

const widthOf = (modulus) => (modulus - 1n).toString(2).length;

function mask(key, session, name, length, modulus) {
  const bits = widthOf(modulus);
  const info = Buffer.concat([session, be32(bits), be32(length), Buffer.from(name)]);
  const own = sha256(be32(bits), key, Buffer.from([2]), be32(info.length), info);
  const stream = crypto.createCipheriv("aes-256-ctr", own, Buffer.alloc(16));
  const size = Math.ceil(bits / 8);
  const least = (1n << BigInt(bits)) === modulus ? 0n : ((1n << BigInt(bits)) - modulus) % modulus;
  const found = [];
  while (found.length < length) {
    const sample = bigOf(stream.update(Buffer.alloc(size))) & ((1n << BigInt(bits)) - 1n);
    if (sample >= least) found.push(sample % modulus);
  }
  return found;
}

function packed(values, modulus) {
  const bits = BigInt(widthOf(modulus));
  const sum = values.reduceRight((rest, value) => (rest << bits) | value, 0n);
  return bytesOf(sum, Math.ceil((values.length * Number(bits)) / 8)).reverse();
}

class SecureClient {
  constructor(acceptance, inputs) {
    this.inputs = inputs;
    this.threshold = acceptance.side_channel_protocol_execution_info.secure_aggregation.minimum_surviving_clients_for_reconstruction;
    this.moduli = Object.fromEntries(Object.entries(acceptance.side_channels).map(([name, one]) => [name, BigInt(one.secure_aggregand.modulus)]));
    this.noise = crypto.createECDH("prime256v1");
    this.enc = crypto.createECDH("prime256v1");
    this.keys = { noise_pk: this.noise.generateKeys(null, "compressed"), enc_pk: this.enc.generateKeys(null, "compressed") };
    this.self = crypto.randomBytes(32);
  }
  advertise() {
    return { advertise_keys: { pair_of_public_keys: this.keys } };
  }
  share(request) {
    this.pairs = request.pairs_of_public_keys;
    this.session = request.session_id;
    const parts = this.pairs.flatMap((one) => [be32(one.noise_pk.length), one.noise_pk, be32(one.noise_pk.length), one.enc_pk]);
    if (!sha256(...parts).equals(this.session)) throw new Error("the session id is not that of these keys");
    this.own = this.pairs.findIndex((one) => one.noise_pk.equals(this.keys.noise_pk) && one.enc_pk.equals(this.keys.enc_pk));
    const noise = shares(this.noise.getPrivateKey(), this.threshold, this.pairs.length);
    const prf = shares(this.self, this.threshold, this.pairs.length);
    this.held = this.pairs.map(() => null);
    this.held[this.own] = { noise: noise[this.own], prf: prf[this.own] };
    const boxes = this.pairs.map((one, at) => at === this.own || !one.enc_pk.length ? Buffer.alloc(0) : sealed(this.enc.computeSecret(one.enc_pk), noise[at], prf[at]));
    return { share_keys_response: { encrypted_key_shares: boxes } };
  }
  masked(request) {
    request.encrypted_key_shares.forEach((box, at) => {
      if (box.length) this.held[at] = opened(this.enc.computeSecret(this.pairs[at].enc_pk), box);
    });
    const vectors = {};
    for (const [name, modulus] of Object.entries(this.moduli)) {
      const sum = this.inputs[name].map(BigInt);
      const add = (key, sign) => mask(key, this.session, name, sum.length, modulus).forEach((one, k) => { sum[k] = mod(sum[k] + sign * one, modulus); });
      add(this.self, 1n);
      this.pairs.forEach((one, at) => {
        if (at !== this.own && this.held[at]) add(this.noise.computeSecret(one.noise_pk), at < this.own ? 1n : -1n);
      });
      vectors[name] = { encoded_vector: packed(sum, modulus) };
    }
    return { masked_input_response: { vectors } };
  }
  unmask(request) {
    const dead = new Set(request.dead_3_client_ids.map((one) => one - 1));
    const answers = this.held.map((one, at) => (!one ? {} : dead.has(at) ? { noise_sk_share: one.noise } : { prf_sk_share: one.prf }));
    return { unmasking_response: { noise_or_prf_key_shares: answers } };
  }
}

function run(device) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(device.metadata || {})) metadata.set(name, value);
  const client = new Api(plan.address, grpc.credentials.createInsecure());
  const stream = client.Session(metadata, { deadline: Date.now() + (device.deadlineMs || 30000) });
  const account = { kinds: [], plan: "", checkpoint: "", phase: "", task: "", acks: 0, chunked: 0 };
  const common = { population_name: device.population, retry_token: device.token || "", client_version: "node" };
  const can = (should_ack_checkin) => ({
    supports_chunked_blob_transfer: !!device.levels,
    supported_compression_levels: device.levels || [],
    side_channels: device.inputs ? { secure_aggregation: { client_variant: [2] } } : null,
    should_ack_checkin,
  });
  let secure = null;
  const leaves = (point) => device.leaveAfter === point && (stream.cancel(), true);
  const secret = (message, report) => chunks.send({ ...report, secure_aggregation_client_message: message });
  const report = () => ({
    report_request: {
      population_name: device.population,
      execution_phase_id: account.phase,
      report: { update_checkpoint: Buffer.from(device.report || "", "base64"), status_code: device.status || 0 },
    },
  });
  const checkin = (info) => chunks.send({
    checkin_request: { ...common, protocol_options_request: can(!device.eligibility), task_eligibility_info: info },
  });

  const heard = {
    eligibility_eval_checkin_response(answer) {
      chunks.agreed(answer.protocol_options_response);
      account.eligibility = answer.checkin_result;
      const weights = Object.entries(device.weights || {}).map(([task_name, weight]) => ({ task_name, weight }));
      if (answer.checkin_result === "rejection_info") return stream.end();
      checkin(answer.checkin_result === "eligibility_eval_payload" ? { version: 1, task_weights: weights } : null);
    },
    checkin_request_ack(ack) {
      account.windows = [ack.retry_window_if_accepted, ack.retry_window_if_rejected];
    },
    checkin_response(answer) {
      chunks.agreed(answer.protocol_options_response);
      if (answer.checkin_result !== "acceptance_info") return void (account.rejected = true, stream.end());
      const info = answer.acceptance_info;
      Object.assign(account, { phase: info.execution_phase_id, task: info.task_name });
      account.plan = info.plan.toString("base64");
      account.checkpoint = info.init_checkpoint.toString("base64");
      if (leaves("accepted")) return;
      const go = () => {
        if (!device.inputs) return chunks.send(report());
        secure = new SecureClient(info, device.inputs);
        secret(secure.advertise());
      };
      device.pauseMs ? setTimeout(go, device.pauseMs) : go();
    },
    report_response() {
      stream.end();
    },
  };

  const answered = (message) => {
    if (message.kind) {
      account.kinds.push(message.kind);
      heard[message.kind](message[message.kind]);
    }
    const wrapped = message.secure_aggregation_server_message;
    if (!wrapped || !wrapped.message_content) return;
    account.kinds.push(wrapped.message_content);
    if (wrapped.share_keys_request) leaves("advertise") || secret(secure.share(wrapped.share_keys_request));
    else if (wrapped.masked_input_request) leaves("share") || secret(secure.masked(wrapped.masked_input_request), report());
    else if (wrapped.unmasking_request) leaves("masked") || secret(secure.unmask(wrapped.unmasking_request));
    else if (!wrapped.abort.early_success) account.aborted = wrapped.abort.diagnostic_info;
  };
  const chunks = new Chunks(stream, answered);

  return new Promise((resolve) => {
    stream.on("data", (message) => chunks.receive(message));
    stream.on("error", () => {}); // the status event has it all
    stream.on("status", (status) => {
      client.close();
      resolve({ ...account, acks: chunks.acks, chunked: chunks.received, code: status.code, details: status.details });
    });
    if (!device.eligibility) return checkin(null);
    chunks.send({ eligibility_eval_checkin_request: { ...common, protocol_options_request: can(true) } });
  });
}

Promise.all(plan.devices.map(run)).then((accounts) => {
  process.stdout.write(JSON.stringify(accounts));
});
