// How the page looks and what it says: scenarios of page.js. `at()` gives the page and the helpers.
"use strict";

const TARGETS = "a, button, input:not(.hidden), select, textarea, summary, label.link";

module.exports = (at) => ({
  async readme() {
    const {page, open, press, options} = at();
    await open("brew");
    await press("Run");
    await page.locator(".value", {hasText: "cup 2"}).or(page.getByText("cup 1 cup 2")).first().waitFor();
    await page.locator("#flow tr.out").first().waitFor();
    await page.screenshot({path: options.file});
    return {};
  },

  async script() {
    const {page, open, options} = at(), heard = [];
    page.on("console", (message) => heard.push(message.text()));
    await open("brew");
    await page.evaluate(`(() => { ${options.code}; window.cups = cups; })()`);
    await page.waitForFunction(() => window.cups.readyState === EventSource.CLOSED);
    return heard;
  },

  async exact() {
    const {page, open, box, options} = at(), found = {};
    await open("told");
    for (const text of options.texts) {
      await box("value").fill(text);
      found[text] = {};
      for (const tab of ["curl", "Python", "JavaScript"]) {
        await page.getByRole("tab", {name: tab}).click();
        found[text][tab] = await page.getByRole("tabpanel").innerText();
      }
    }
    return found;
  },

  async lacks() {
    const {page, open, box, press, over} = at(), code = () => page.getByRole("tabpanel").innerText();
    const soon = async (text) => { await page.getByRole("tabpanel").getByText(text).waitFor(); return code(); };
    await open("add");
    const empty = await soon("# b is needed.");
    await box("a").fill("x");
    const wrong = await soon("# a is left out");
    await open("running_mean");
    for (let one = 1; one <= 53; one += 1) { await box("numbers").fill(String(one)); await page.keyboard.press("Enter"); }
    await press("End inputs");
    await over();
    return {empty, wrong, many: await soon("got before")};
  },

  async beside() {
    const {page, open} = at();
    await open("length");
    return page.evaluate(() => ["dragover", "drop"].map((name) => [() => new File(["a"], "a.txt"), () => "a text"].map((make) => {
      const dataTransfer = new DataTransfer(), given = make();
      if (given instanceof File) dataTransfer.items.add(given); else dataTransfer.setData("text/plain", given);
      return !document.querySelector("h1").dispatchEvent(new DragEvent(name, {dataTransfer, bubbles: true, cancelable: true}));
    })));
  },

  async targets() {
    const {page, open, box, press, over} = at(), found = [];
    for (const name of ["paint", "generate", "rows", "matrix", "picture", "fail", "length", "repeat", "many", "tag"]) {
      await open(name);
      if (name === "paint") await press("Add an item");
      if (name === "fail") await box("x").fill("1");
      if (["rows", "matrix", "picture", "fail"].includes(name)) { await press("Run"); await over(); }
      found.push(...await page.evaluate(([where, all]) => [...document.querySelectorAll(all)].filter((one) => one.checkVisibility() && !one.matches(".skip"))
        .map((one) => [one, one.getBoundingClientRect()]).filter(([, {width, height}]) => width < 24 || height < 24)
        .map(([one, {width, height}]) => `${where}: ${one.outerHTML.slice(0, 80)} ${width}x${height}`), [name, TARGETS]));
    }
    return found;
  },

  async sticky() {
    const {page, open, box, press, picture} = at(), seen = [];
    await open("paint");
    await box("x").fill("1");
    await press("Run");
    const high = await page.evaluate(() => document.querySelector(".panes > .pane").getBoundingClientRect().bottom + scrollY - innerHeight);
    for (let top = 0; top < high; top += 100) {
      await page.evaluate((to) => scrollTo(0, to), top);
      seen.push(await page.evaluate(() => ["button.main", "p.state"].every((one) => { const {top, bottom} = document.querySelector(one).getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; })));
    }
    await picture(`sticky-${page.viewportSize().width}`);
    return {high, seen};
  },

  async narrow() {
    const {page, open, box, picture} = at();
    await open("repeat");
    await box("words").fill("ho");
    await page.keyboard.press("Enter");
    await page.locator("#flow tbody:not(.over) tr.in").first().waitFor();
    await picture("narrow");
    return page.evaluate(() => {
      const cut = [...document.querySelectorAll("#flow tbody :is(td, th)")].filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.textContent);
      const rows = [".bar button", ".input:first-child .acts button", "#flow > header > :is(h2, button)", ".codes > header > :is(h2, .tabs, button)"].map((one) => {
        const boxes = [...document.querySelectorAll(one)].slice(0, 4).map((each) => each.getBoundingClientRect());
        return Math.max(...boxes.map(({top}) => top)) < Math.min(...boxes.map(({bottom}) => bottom));
      });
      return {cut, rows, queues: document.querySelectorAll("#flow tr.in .queue").length, scrolls: document.querySelector("#flow .wide").scrollWidth > document.querySelector("#flow .wide").clientWidth};
    });
  },

  async held() {
    const {page, open, box, press} = at();
    await open("stuck");
    for (const one of ["11", "22", "33"]) { await box("numbers").fill(one); await page.keyboard.press("Enter"); }
    const row = page.locator("#flow tbody", {hasText: "stuck"});
    await row.getByText("held 3 frames, 6 B").waitFor();
    const queue = await row.locator("tr.in .queue").innerText();
    await press("Cancel");
    return queue;
  },

  async wide() {
    const {page, open, picture} = at();
    await open("paint");
    await picture("wide");
    return page.evaluate(() => Math.max(...[...document.querySelectorAll("main .pane")].map((one) => one.getBoundingClientRect().right)) / innerWidth);
  },

  async list() {
    const {page, open} = at();
    await open("apart");
    const nav = page.getByRole("navigation", {name: "Functions"});
    return {
      find: await page.getByRole("searchbox", {name: "Find a function"}).getAttribute("placeholder"), kinds: await nav.locator(".kinds span").allInnerTexts(),
      marks: Object.fromEntries(await nav.locator("a").evaluateAll((all) => all.map((one) => [one.dataset.name, one.querySelector(".kind").getAttribute("aria-label")]))),
      addresses: await nav.locator("dt").allInnerTexts(), protocols: await nav.locator("dd").allInnerTexts(), tags: await page.locator(".title .tag").allInnerTexts(),
    };
  },

  async defaults() {
    const {page, open} = at(), found = {};
    for (const name of ["paint", "generate"]) {
      await open(name);
      found[name] = {signature: await page.locator(".signature").innerText(), fields: await page.locator(".panes [placeholder^=default], .panes option[value='']").evaluateAll((all) => all.map((one) => one.placeholder ?? one.textContent))};
    }
    return found;
  },

  async failed() {
    const {page, open, box, press, over} = at();
    await open("fail");
    await press("Run");
    await page.getByText("Not sent: x is needed").waitFor();
    const colour = (one) => page.locator(one).first().evaluate((element) => getComputedStyle(element).color);
    const refused = await colour("p.state");
    await box("x").fill("3");
    await press("Run");
    await over();
    await page.locator("#flow .bad", {hasText: "failed"}).waitFor();
    return {refused, colours: [await colour("p.state"), await colour(".lane .mark"), await colour("#flow .bad"), await colour(".problem h3")], words: await page.locator(".detail").innerText()};
  },

  async gone() {
    const {page, open, press, over} = at();
    await open("first");
    await page.evaluate(() => { window.WebSocket = Object.assign(class { constructor() { setTimeout(() => this.onclose({code: 1006, reason: ""})); } send() {} close() {} }, {CONNECTING: 0}); });
    await press("Run");
    await over();
    return page.locator(".problem").innerText();
  },

  async duration() {
    const {page, open, press, over} = at();
    await open("first");
    await page.evaluate(() => {
      window.WebSocket = class extends WebSocket {
        set onclose(does) { super.onclose = (event) => setTimeout(() => does(event), 3000); }
      };
    });
    await press("Run");
    return over();
  },
});
