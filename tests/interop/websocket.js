// A client on the WebSocket that Node has: frames of a plan are sent, and what comes is told.
// Run it with --experimental-websocket where Node is older than 22.

const fs = require("node:fs")

const chunks = []
process.stdin.on("data", (chunk) => chunks.push(chunk))
process.stdin.on("end", () => {
  const plan = JSON.parse(Buffer.concat(chunks).toString())
  const told = { frames: [], code: 0, reason: "", protocol: "", errors: 0 }
  const socket = new WebSocket(plan.url, plan.protocols || [])
  socket.binaryType = "arraybuffer"
  socket.onopen = () => {
    told.protocol = socket.protocol
    for (const frame of plan.frames) {
      if (frame.binary !== undefined) socket.send(Buffer.from(frame.binary, "base64"))
      else socket.send(JSON.stringify(frame))
    }
    if (plan.close) socket.close(plan.close)
  }
  socket.onmessage = ({ data }) => {
    told.frames.push(typeof data === "string" ? JSON.parse(data) : { binary: Buffer.from(data).toString("base64") })
  }
  socket.onerror = () => { told.errors += 1 }
  socket.onclose = ({ code, reason }) => {
    told.code = code
    told.reason = reason
  }
  process.on("exit", () => fs.writeSync(1, JSON.stringify(told))) // undici does not close what never opened
})
