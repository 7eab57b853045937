// What programs of tests share: each line of JSON on stdin is answered with a line on stdout, until stdin ends.
//
// One process answers for a whole file of tests, since Node takes longer to start and to load a library than to call.
"use strict";

module.exports = async (answer, close = async () => {}) => {
  for await (const line of require("node:readline").createInterface({ input: process.stdin })) {
    let made;
    try {
      made = { answer: await answer(JSON.parse(line)) };
    } catch (error) {
      made = { failure: error.stack || String(error) };
    }
    process.stdout.write(`${JSON.stringify(made)}\n`);
  }
  await close();
  process.exit(0); // connections that libraries keep do not keep it
};
