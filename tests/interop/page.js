// Drives the page in a real Chromium: reads lines of JSON, {scenario, base, options}, and prints what each has seen.
//
// One browser looks at all of them, each time as somebody who has never been there: in a context of its own.
"use strict";

const {chromium} = require("playwright-core");
const {readFileSync} = require("node:fs");

let base, options, seen, page;

const open = async (name) => {
  await page.goto(`${base}#/${name}`);
  await page.getByRole("heading", {level: 1, name, exact: true}).waitFor();
};
const box = (name) => page.getByRole("textbox", {name, exact: true});
const press = (name) => page.getByRole("button", {name, exact: true}).click();
const over = async () => {
  await page.getByText(/^(Ended normally|Failed after|Cancelled after)/).waitFor();
  return page.locator("p.state").textContent();
};
const bodies = () => page.locator(".lane-body").allInnerTexts();
const values = () => page.locator(".lane-body .value").allInnerTexts();
const pwned = () => page.evaluate(() => ({pwned: window.pwned ?? 0, planted: document.querySelectorAll('img[src="x"], #view script, #flow script').length}));
const picture = async (name) => { if (options.pictures) await page.screenshot({path: `${options.pictures}/${name}.png`, fullPage: true}); };

const scenarios = {
  async load() {
    await page.goto(base);
    await page.getByRole("heading", {level: 1}).waitFor();
    await page.getByText("Nothing runs.").waitFor();
    const links = await page.getByRole("navigation", {name: "Functions"}).getByRole("link").allInnerTexts();
    return {title: await page.title(), links: links.map((one) => one.split(/\s/)[0]), heading: await page.getByRole("heading", {level: 1}).innerText()};
  },

  async first() {
    // From the navigation to the first output, with a click as early as a button can be clicked.
    await page.addInitScript(() => {
      new MutationObserver(() => {
        const run = document.querySelector("button.main");
        if (run && !window.clickedAt) { window.clickedAt = performance.now(); run.click(); }
        if (!window.shownAt && document.querySelector(".lane-body .value")) window.shownAt = performance.now();
      }).observe(document, {subtree: true, childList: true});
    });
    await page.goto(`${base}#/first`);
    await page.waitForFunction(() => window.shownAt);
    return {ms: await page.evaluate(() => window.shownAt), values: await values()};
  },

  async run() {
    await open("generate");
    await box("prompt").fill("tea and tarts");
    await press("Run");
    const state = await over();
    const text = await page.locator(".joined").innerText();
    await picture("run");
    await box("temperature").fill("3");
    await press("Run");
    const wrong = await page.locator(".wrong:visible").innerText();
    const invalid = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    await box("temperature").fill("0.5");
    await box("words").fill("2");
    await press("Run");
    await page.getByText("with 2 items").waitFor();
    return {state, text, wrong, invalid, again: await page.locator(".joined, .stream").innerText()};
  },

  async digits() {
    await open("add");
    await box("a").fill("9007199254740993");
    await box("b").fill("1");
    await press("Run");
    await over();
    return values();
  },

  async form() {
    await open("paint");
    await box("x").fill("1.5");
    await page.getByRole("combobox", {name: "colour"}).selectOption({label: "green"});
    await press("Add an item");
    await box("tags, item 1").fill("a");
    await press("Add an item");
    await box("tags, item 2").fill("b");
    await page.getByRole("button", {name: "Remove item of tags"}).first().click();
    await page.getByRole("combobox", {name: "dry"}).selectOption({label: "true"});
    await press("Run");
    await over();
    const form = await page.locator(".code").innerText();
    await picture("form");
    const point = page.getByRole("group", {name: "point"});
    await point.getByRole("button", {name: "JSON"}).click();
    const json = await page.locator("textarea.json:visible").inputValue();
    await page.locator("textarea.json:visible").fill('{"x": 2, "label": "corner"}');
    await press("Run");
    await page.locator(".lane-body").getByText('"corner"').waitFor();
    await page.locator("textarea.json:visible").fill('{"x": ');
    await press("Run");
    return {form, json, state: await page.locator("p.state").textContent(), wrong: await page.locator(".wrong:visible").innerText()};
  },

  async two() {
    await open("repeat");
    await box("words").fill("ho");
    await page.keyboard.press("Enter");
    await box("counts").fill("2");
    await page.keyboard.press("Enter");
    await page.locator(".value").nth(1).waitFor();
    const before = await values();
    const live = page.locator("#flow tbody:not(.over)");
    await live.locator("tr.out").waitFor();
    const streams = await live.locator("tr.in [scope=row]").allInnerTexts();
    await picture("two");
    await box("words").fill("ha");
    await press("Send an item to words");
    await press("End words");
    const isShut = await box("words").isDisabled();
    await box("counts").fill("1");
    await press("Send an item to counts");
    await page.locator(".value").nth(2).waitFor();
    await press("End inputs");
    return {before, streams, isShut, state: await over(), values: await values(), isOpenAgain: !(await box("words").isDisabled()), code: await page.locator(".code").innerText()};
  },

  async outputs() {
    await open("split");
    for (const one of ["1", "2", "3"]) { await box("numbers").fill(one); await page.keyboard.press("Enter"); }
    await press("End inputs");
    const state = await over();
    const lanes = {};
    for (const name of ["even", "odd"]) lanes[name] = await page.getByRole("group", {name: `What ${name} has given`}).locator(".value").allInnerTexts();
    return {state, lanes};
  },

  async open() {
    const found = {};
    await open("many");
    await box("a").fill("1");
    await box("rest").fill("2");
    await press("Add an input");
    await box("rest1").fill("4");
    await press("Run");
    found.many = [await over(), await values(), await page.locator(".code").innerText()];
    await open("further");
    await box("a").fill("1");
    await box("further parameters").fill('{"b": "x", "c": "it\'s"}');
    await press("Run");
    found.further = [await over(), await bodies(), await page.locator(".code").innerText()];
    await open("tag");
    await box("Names of outputs, with commas between").fill("good, errors");
    for (const one of ["fine", "e1"]) { await box("words").fill(one); await page.keyboard.press("Enter"); }
    await press("End inputs");
    found.tag = [await over()];
    for (const name of ["good", "errors"]) found.tag.push(await page.getByRole("group", {name: `What ${name} has given`}).locator(".value").allInnerTexts());
    return found;
  },

  async file() {
    await open("length");
    const transfer = await page.evaluateHandle((name) => {
      const made = new DataTransfer();
      made.items.add(new File([new Uint8Array(1234)], name, {type: "application/octet-stream"}));
      return made;
    }, options.name ?? "drop.bin");
    await page.locator(".drop").dispatchEvent("drop", {dataTransfer: transfer});
    const names = await page.locator(".files").innerText();
    await press("Run");
    await over();
    const found = {names, dropped: await values(), code: await page.locator(".code").innerText(), ...(await pwned())};
    await page.locator("input[type=file]").setInputFiles({name: "chosen.bin", mimeType: "", buffer: Buffer.alloc(77)});
    await press("Run");
    await page.locator(".value", {hasText: "77"}).waitFor();
    return {...found, chosen: await values()};
  },

  async error() {
    await open("fail");
    await box("x").fill("3");
    await press("Run");
    const state = await over(), alert = await page.locator(".problem").innerText();
    await page.getByText("The problem as an object").click();
    await picture("error");
    return {state, alert, object: await page.locator(".problem .tree").innerText(), ...(await pwned())};
  },

  async cancel() {
    await open("ticks");
    await press("Run");
    await page.locator(".value").nth(5).waitFor();
    await press("Cancel");
    const state = await over();
    await page.locator('#flow .status[data-ending="failed"]').waitFor();
    const ending = await page.locator("#flow .status").first().innerText();
    await press("Run");
    await page.locator(".value").nth(5).waitFor();
    await page.keyboard.press("Escape");
    return {state, ending, again: await over()};
  },

  async flood() {
    page.setDefaultTimeout(90_000); // on a busy machine the browser has much to draw before it gets to the click
    await open("flood");
    await press("Run");
    await page.waitForFunction(() => /\d{2},\d{3} items/.test(document.querySelector(".lane .count").textContent));
    const began = Date.now();
    await press("Cancel");
    const state = await over();
    return {state, ms: Date.now() - began, entries: await page.locator(".stream > li").count(), note: await page.locator(".note").first().innerText()};
  },

  async shown() {
    const found = {};
    for (const name of ["picture", "tone", "matrix", "tensor", "rows", "svg", "html"]) {
      await open(name);
      await press("Run");
      found[`${name} state`] = await over();
      if (name === "picture") found[name] = await page.locator(".media img").evaluate((one) => one.decode().then(() => [one.naturalWidth, one.naturalHeight]));
      if (name === "tone") found[name] = await page.locator("audio").evaluate(async (one) => { while (!one.duration) await new Promise((done) => setTimeout(done, 20)); return one.duration; });
      if (name === "matrix" || name === "tensor") {
        found[name] = await page.locator(".heat > canvas").evaluate((one) => [one.width, one.height, one.getAttribute("aria-label")]);
        await page.locator(".heat > canvas").focus();
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("ArrowRight");
        found[`${name} here`] = await page.locator(".here").innerText();
      }
      if (name === "rows") found[name] = await page.locator("table.rows").evaluate((one) => [one.tHead.rows[0].cells.length, one.tBodies[0].rows.length, one.tBodies[0].rows[1].cells[1].textContent, one.tBodies[0].rows[1].cells[2].textContent]);
      if (name === "svg" || name === "html") found[name] = (await bodies())[0];
      await picture(name);
    }
    return {...found, ...(await pwned())};
  },

  async hostile() {
    await open("hostile");
    await press("Run");
    await over();
    const tree = (await bodies())[0], about = await page.locator("article").innerText();
    for (const tab of ["curl", "Python", "JavaScript"]) await page.getByRole("tab", {name: tab}).click();
    await page.goto(`${base}#/%3Cimg%20src=x%20onerror=%22window.pwned=1%22%3E`);
    await open("paint");
    const choices = await page.getByRole("combobox", {name: "colour"}).locator("option").allInnerTexts();
    await page.waitForTimeout(100);
    return {tree, about, choices, ...(await pwned())};
  },

  async code() {
    const found = {};
    const take = async (name) => {
      found[name] = {};
      for (const tab of ["curl", "Python", "JavaScript"]) {
        await page.getByRole("tab", {name: tab}).click();
        found[name][tab] = await page.getByRole("tabpanel").innerText();
      }
    };
    await open("add");
    await box("a").fill("-7");
    await box("b").fill("12345678901234567890");
    await take("add");
    await open("generate");
    await box("prompt").fill("it's \"quoted\" $HOME `x` \\ tea\nand tarts");
    await box("words").fill("3");
    await take("generate");
    await open("repeat");
    for (const [name, value] of [["words", "a"], ["words", "it's"], ["counts", "1"], ["counts", "2"]]) { await box(name).fill(value); await press(`Send an item to ${name}`); }
    await press("End inputs");
    await over();
    await take("repeat");
    await open("running_mean");
    await box("numbers").fill("4");
    await box("digits").fill("1");
    await take("running_mean");
    await open("length");
    await page.locator("input[type=file]").setInputFiles(options.file);
    await take("length");
    await open("picture");
    await take("picture");
    await open("add");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("tab", {name: "curl"}).click();
    await press("Copy the code");
    await page.getByText("Copied.").waitFor();
    found.copied = await page.evaluate(() => navigator.clipboard.readText());
    return found;
  },

  async dark() {
    const colours = () => page.evaluate(() => { const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]; });
    await open("first");
    const auto = await colours();
    await press("Theme: auto");
    const light = await colours();
    await press("Theme: light");
    const dark = await colours();
    await page.reload();
    await page.getByRole("heading", {level: 1}).waitFor();
    return {auto, light, dark, kept: await colours()};
  },

  async keyboard() {
    await page.goto(`${base}#/first`);
    await page.getByRole("heading", {level: 1}).waitFor();
    const here = () => page.evaluate(() => { const one = document.activeElement, style = getComputedStyle(one); return {name: one.getAttribute("aria-label") || one.textContent.trim().slice(0, 40), tag: one.tagName, ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0}; });
    const until = async (wanted, key = "Tab") => {
      for (let step = 0; step < 60; step += 1) {
        await page.keyboard.press(key);
        const at = await here();
        if (wanted(at)) return at;
      }
      throw new Error("the keyboard does not come there");
    };
    const skip = await until(() => true);
    const link = await until((at) => at.tag === "A" && at.name.startsWith("running_mean"));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", {level: 1, name: "running_mean"}).waitFor();
    const field = await until((at) => at.name === "numbers");
    await page.keyboard.type("4");
    await page.keyboard.press("Enter");
    await page.keyboard.type("8");
    await page.keyboard.press("Enter");
    await page.locator(".value").nth(1).waitFor();
    const end = await until((at) => at.name === "End inputs");
    await page.keyboard.press("Enter");
    const state = await over();
    const tab = await until((at) => at.name === "curl");
    await page.keyboard.press("ArrowRight");
    const next = await here();
    return {rings: [skip, link, field, end, tab].map((one) => one.ring), skip: skip.name, state, values: await values(), next: next.name, code: await page.getByRole("tabpanel").innerText()};
  },

  async axe() {
    const found = [];
    const look = async (where) => {
      await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
      const {violations} = await page.evaluate(() => window.axe.run(document, {resultTypes: ["violations"]}));
      found.push(...violations.map((one) => `${where}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 120)} ${node.any?.[0]?.message ?? ""}`).join(" | ")}`));
    };
    for (const name of ["paint", "generate", "rows", "matrix", "fail", "length", "repeat"]) {
      await open(name);
      if (name === "generate") await box("prompt").fill("tea and tarts");
      if (name === "fail") await box("x").fill("1");
      if (["generate", "rows", "matrix", "fail"].includes(name)) { await press("Run"); await over(); }
      if (name === "paint") await press("Run");
      if (name === "repeat") { await box("words").fill("a"); await press("Send an item to words"); await page.locator("#flow tbody:not(.over) tr.in").first().waitFor(); }
      await look(name);
    }
    return found;
  },

  async flow() {
    await open("first");
    const row = page.locator("#flow tbody", {hasText: "ticks"});
    await row.locator("tr.out").waitFor();
    const frames = async () => Number((await row.locator("tr.out td").nth(1).innerText()).replaceAll(",", ""));
    const before = await frames();
    await page.waitForFunction((least) => Number(document.querySelector("#flow tr.out td:nth-of-type(2)").textContent.replaceAll(",", "")) > least, before);
    const found = {before, after: await frames(), rate: await row.locator("tr.out td").nth(3).innerText(), moves: await row.locator("tr.moves").count()};
    await picture("flow");
    await press("Pause");
    await page.getByText("paused", {exact: true}).waitFor();
    return found;
  },

  async pictures() {
    for (const name of ["generate", "paint", "repeat"]) {
      await open(name);
      if (name === "generate") { await box("prompt").fill("tea and tarts"); await press("Run"); await over(); }
      if (name === "repeat") { await box("words").fill("ho"); await page.keyboard.press("Enter"); await page.locator("#flow tbody:not(.over) tr.in").first().waitFor(); }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      seen.wide = Math.max(seen.wide ?? 0, wide);
      await picture(`${options.prefix ?? ""}${name}`);
    }
    return {wide: seen.wide};
  },
};

Object.assign(scenarios, require("./page_looks.js")(() => ({page, options, open, box, press, over, picture})));

const browsers = {};

async function look(asked) {
  ({base, options} = asked);
  seen = {errors: [], foreign: []};
  browsers[options.chromium] ??= await chromium.launch({executablePath: options.chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
  const context = await browsers[options.chromium].newContext({viewport: options.viewport ?? {width: 1280, height: 900}, colorScheme: options.scheme ?? "light", reducedMotion: "reduce"});
  try {
    page = await context.newPage();
    page.setDefaultTimeout(options.limitMs ?? 20000);
    const {errors, foreign} = seen, here = base;
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
    page.on("pageerror", (error) => errors.push(error.message));
    const isOurs = (url) => url.startsWith(here) || url.startsWith(here.replace("http", "ws")) || url.startsWith("blob:");
    page.on("request", (request) => { if (!isOurs(request.url())) foreign.push(request.url()); });
    page.on("websocket", (socket) => { if (!isOurs(socket.url())) foreign.push(socket.url()); });
    return {...seen, result: await scenarios[asked.scenario]()};
  } catch (error) {
    throw new Error(`${error.stack ?? error} ${JSON.stringify(seen)}`);
  } finally {
    await context.close();
  }
}

require("./lines.js")(look, async () => { for (const one of Object.values(browsers)) await one.close(); });
