// Two requests in a row on one HTTP/2 connection by prior knowledge: node http2.js URL BODY; prints one line an answer.
"use strict";

const [url, body] = process.argv.slice(2);
const connection = require("http2").connect(url);

function post() {
  return new Promise((resolve, reject) => {
    const request = connection.request({ ":method": "POST", ":path": "/", "content-type": "application/json" });
    let status, text = "";
    request.on("response", (headers) => { status = headers[":status"]; });
    request.on("data", (chunk) => { text += chunk; });
    request.on("end", () => resolve(`${status} ${text}`));
    request.on("error", reject);
    request.end(body);
  });
}

post()
  .then((first) => post().then((second) => console.log(`${first}\n${second}`)))
  .finally(() => connection.close());
