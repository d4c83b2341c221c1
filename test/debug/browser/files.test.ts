import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import type { Browser, Page } from "playwright-core"
import { formatted } from "../../../src/debug/page/files/json.ts"
import { Filter, resolved, treeOf } from "../../../src/debug/page/files/tree.ts"
import { complaintsOf, desk, hasChromium, launch, soon } from "./chromium.ts"
import { type Files, images, png, type Served, serve, holding } from "./fixture.ts"
import * as Effect from "effect/Effect"

const markdown = `---
title: Front
---

# A heading

Text with **weight**, \`code\` and [a file](../src/main.ts), [a heading](#a-table), [nothing](nowhere.md), [the web](https://example.com/).

![local](../images/a.png) ![remote](https://example.com/remote.png)

- [x] done
- [ ] to do

## A table

| name | count |
| ---- | ----: |
| one  |     1 |

\`\`\`ts
const answer: number = 42
\`\`\`
`

const source = [
  "// the first line",
  "export const answer = 42",
  ...Array.from({ length: 300 }, (_, i) => `const line${i + 3} = ${i + 3}`)
]

/** Runs in the browser, where the globals of Node do not exist. */
const colourOf = (element: any): string => (globalThis as any).getComputedStyle(element).color

const json = '{"id":12345678901234567890,"price":1.10,"list":[1,{"deep":null}],"text":"\\u00e9"}'

const content: Files = {
  "src/main.ts": source.join("\n"),
  "src/item10.ts": "ten",
  "src/item2.ts": "two",
  "src/deep/er/inner.txt": "inside\r\nof it\r\n",
  "docs/readme.md": markdown,
  "data.json": json,
  "nothing.txt": "",
  "blob.bin": Uint8Array.from({ length: 5000 }, (_, i) => (i * 7) % 256),
  shortcut: { link: "src/main.ts" },
  lost: { link: "/etc/passwd" },
  ...Object.fromEntries(Object.entries(images).map(([name, [bytes]]) => [`images/${name}`, bytes]))
}

describe.skipIf(!hasChromium())("the file views in a browser", () => {
  let browser: Browser
  let served: Served
  let page: Page
  let complaints: ReadonlyArray<string>

  const open = async (path: string): Promise<void> => {
    await page.goto(`${served.url}#/files${path === "" ? "" : `/${path}`}`)
  }
  const text = (selector: string) => page.locator(selector).innerText()
  const names = () => page.locator("[role=treeitem] .row-name").allInnerTexts()
  const active = () => page.locator("[role=treeitem].is-active .row-name").innerText()

  beforeAll(async () => {
    browser = await launch()
    served = await serve({ source: { filesystem: await Effect.runPromise(holding(content)), title: "things" } })
    const context = await browser.newContext({ ...desk, permissions: ["clipboard-read", "clipboard-write"] })
    page = await context.newPage()
    complaints = complaintsOf(page, served.url)
    page.setDefaultTimeout(30_000)
    await open("")
  })
  afterAll(async () => {
    await browser?.close()
    await served?.close()
  })

  it("list directories first, then files in natural order", async () => {
    await soon(async () => (await names()).slice(0, 3)).toEqual(["docs", "readme.md", "images"])
    await soon(async () =>
      (await names())
        .join(" ")
        .replace(/^.* src /, "src ")
        .split(" ")
    ).toEqual([
      "src",
      "deep",
      "er",
      "inner.txt",
      "item2.ts",
      "item10.ts",
      "main.ts",
      "blob.bin",
      "data.json",
      "lost",
      "nothing.txt",
      "shortcut"
    ])
    const deep = page.getByRole("treeitem", { name: "deep" })
    for (const [name, value] of Object.entries({ level: "2", expanded: "true", posinset: "1", setsize: "4" }))
      await soon(() => deep.getAttribute(`aria-${name}`)).toBe(value)
  })

  it("can be navigated with keys, and closed directories stay closed after a reload", async () => {
    await page.getByRole("tree").focus()
    await page.keyboard.press("Home")
    await soon(active).toBe("docs")
    await page.keyboard.press("ArrowDown")
    await soon(active).toBe("readme.md")
    await page.keyboard.press("ArrowLeft")
    await soon(active).toBe("docs")
    await page.keyboard.press("ArrowLeft")
    await soon(names).not.toContain("readme.md")
    await page.keyboard.press("End")
    await soon(active).toBe("shortcut")
    // The keys are sent without a pause, because a slow machine would make the pause too long.
    await page.evaluate(
      `for (const key of "bl") document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))`
    )
    await soon(active).toBe("blob.bin")
    await page.reload()
    await page.getByRole("treeitem", { name: "docs" }).waitFor()
    await soon(names).not.toContain("readme.md")
    await page.getByRole("tree").focus()
    await page.keyboard.press("Home")
    await page.keyboard.press("ArrowRight")
    await page.getByRole("treeitem", { name: "readme.md" }).waitFor()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "A heading" }).waitFor()
    await soon(async () => page.url()).toContain("#/files/docs/readme.md")
  })

  it("filter paths by letters in the typed order, mark these letters, and open the chosen file", async () => {
    await open("")
    await page.keyboard.press("/")
    await page.keyboard.type("itm")
    await soon(() => page.locator("[role=option] .row-name").allInnerTexts()).toEqual(["item10.ts", "item2.ts"])
    await soon(() => page.locator("[role=option]").first().locator("mark").allInnerTexts()).toEqual(["it", "m"])
    await soon(() => text(".filter-count")).toBe("2")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.waitForURL(/src\/item2\.ts/)
    await page.keyboard.press("Escape")
    await page.getByRole("tree").waitFor()
    await soon(() => page.getByRole("combobox").inputValue()).toBe("")
    await page.keyboard.type("zzzz")
    await page.getByText("Nothing matches").waitFor()
    await page.keyboard.press("Escape")
  })

  it("show a text with line numbers and colours, and mark the line in the address", async () => {
    await open("src/main.ts?line=200")
    const line = page.locator(".cm-chosen-line")
    await soon(() => line.innerText()).toBe("const line200 = 200")
    await page.locator(".cm-gutterElement", { hasText: /^200$/ }).waitFor()
    await soon(async () => (await line.boundingBox())?.y).toSatisfy((y) => y > 100 && y < 780)
    const colour = (word: string) =>
      page
        .locator(".cm-line span", { hasText: new RegExp(`^${word}$`) })
        .first()
        .evaluate(colourOf)
    await page
      .locator(".cm-line span", { hasText: /^const$/ })
      .first()
      .waitFor()
    await soon(async () => (await colour("const")) === (await line.evaluate(colourOf))).toBe(false)
    await page.locator(".cm-gutterElement", { hasText: /^198$/ }).click()
    await page.waitForURL(/line=198/)
    await soon(() => line.innerText()).toBe("const line198 = 198")
  })

  it("can be searched for a text", async () => {
    await open("src/main.ts")
    await page.locator(".cm-content").focus()
    await page.keyboard.press("Control+f")
    await page.keyboard.type("line250 ")
    await page.keyboard.press("Enter")
    await page.locator(".cm-line", { hasText: "const line250 = 250" }).waitFor()
    await page.keyboard.press("Escape")
  })

  it("wrap long lines if wrapping is switched on", async () => {
    const wraps = () => page.locator(".cm-lineWrapping").count()
    const toggle = page.getByRole("button", { name: "Wrap long lines" })
    await soon(wraps).toBe(0)
    await toggle.click()
    await soon(wraps).toBe(1)
    await toggle.click()
    await soon(wraps).toBe(0)
  })

  it("show JSON formatted without changing a digit, or as written", async () => {
    await open("data.json")
    await page.locator(".cm-line", { hasText: '"deep": null' }).waitFor()
    const laid = () => page.locator(".cm-line").allInnerTexts()
    for (const line of ['  "id": 12345678901234567890,', '  "price": 1.10,', '  "text": "\\u00e9"'])
      await soon(laid).toContain(line)
    await page.getByRole("button", { name: "As written" }).click()
    await page.locator(".cm-line", { hasText: json }).waitFor()
    await soon(laid).toEqual([json])
    await page.goBack()
  })

  it("show Markdown with headings, tables, tasks, code, links to files, and images from the tree only", async () => {
    await open("docs/readme.md")
    const article = page.locator(".markdown")
    await article.getByRole("heading", { level: 1, name: "A heading" }).waitFor()
    await soon(() => article.locator("td").last().innerText()).toBe("1")
    await soon(() =>
      article.locator("input[type=checkbox]").evaluateAll((all: Array<any>) => all.map((each) => each.checked))
    ).toEqual([true, false])
    await article.locator(".tok-keyword", { hasText: "const" }).waitFor()
    await page.waitForFunction(() => (globalThis as any).document.querySelector(".markdown img")?.naturalWidth === 1)
    assert.strictEqual(await article.locator("img").count(), 1)
    const remote = article.getByRole("link", { name: /remote/ })
    assert.strictEqual(await remote.getAttribute("href"), "https://example.com/remote.png")
    for (const link of [remote, article.getByRole("link", { name: "the web" })]) {
      assert.strictEqual(await link.getAttribute("rel"), "noopener noreferrer")
      assert.strictEqual(await link.getAttribute("target"), "_blank")
    }
    assert.isNull(await article.locator("a", { hasText: "nothing" }).getAttribute("href"))
    await page.getByRole("button", { name: "Raw" }).click()
    await page.locator(".cm-line", { hasText: "# A heading" }).waitFor()
    await page.getByRole("button", { name: "Rendered" }).click()
    await article.getByRole("link", { name: "a file" }).click()
    await page.waitForURL(/#\/files\/src\/main\.ts$/)
  })

  for (const [name, [, size]] of Object.entries(images)) {
    it(`show ${name} as an image with its size`, async () => {
      await open(`images/${name}`)
      await page.locator("figcaption", { hasText: size }).waitFor()
      // A broken image is complete too, but has no width.
      await soon(() => page.locator("figure img").evaluate((image: any) => image.naturalWidth)).toBeGreaterThan(0)
      await soon(() => page.getByRole("button", { name: "Text" }).count()).toBe(name === "a.svg" ? 1 : 0)
    })
  }

  it("show the type, the size and the first bytes of a binary file", async () => {
    await open("blob.bin")
    await soon(() => text(".file-notice")).toContain("5.0 kB")
    const lines = async () => (await text(".hex")).split("\n")
    await soon(async () => (await lines()).length).toBe(256)
    await soon(async () => (await lines())[0]).toMatch(/^00000000 {2}00 07 0e 15 1c 23 2a 31 {2}38 /)
    await soon(async () => (await lines())[255]).toMatch(/^00000ff0 /)
  })

  it("show the target of a link, and a message for an empty file and for a missing file", async () => {
    await open("shortcut")
    await page.getByText("A symbolic link").waitFor()
    await soon(() => page.getByRole("link", { name: "src/main.ts" }).getAttribute("href")).toMatch(/#\/files\/src\/main\.ts$/)
    await open("lost")
    await page.getByText("which is not in this tree").waitFor()
    await soon(() => page.getByRole("link", { name: "/etc/passwd" }).count()).toBe(0)
    await open("nothing.txt")
    await page.getByText("This file is empty").waitFor()
    await open("src/never.ts")
    await page.getByText("There is no such file").waitFor()
  })

  it("list the entries of a directory", async () => {
    await open("src")
    await soon(() => page.locator(".listing .grow").allInnerTexts()).toEqual(["deep", "item2.ts", "item10.ts", "main.ts"])
  })

  it("copy path and content completely, and download the exact bytes", async () => {
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()")
    await open("src/main.ts")
    await page.getByRole("button", { name: "Copy the path" }).click()
    await soon(copied).toBe("src/main.ts")
    await page.locator(".cm-line").first().waitFor()
    // The confirmation is visible only for a moment.
    const said = page.locator(".file-tools [data-said=done]").waitFor()
    await Promise.all([said, page.getByRole("button", { name: "Copy the content" }).click()])
    await soon(copied).toBe(source.join("\n"))
    // Copying with keys takes the whole file, not only the drawn lines.
    await page.evaluate("navigator.clipboard.writeText('')")
    await page.locator(".cm-content").focus()
    await page.keyboard.press("Control+a")
    await page.keyboard.press("Control+c")
    await soon(async () => (await copied()).split("\n").length).toBe(source.length)
    for (const [path, bytes] of [
      ["images/a.png", png],
      ["src/deep/er/inner.txt", Buffer.from("inside\r\nof it\r\n")]
    ] as const) {
      await open(path)
      const coming = page.waitForEvent("download")
      await page.getByRole("button", { name: "Download" }).click()
      assert.deepStrictEqual(Buffer.from(Fs.readFileSync(await (await coming).path())), Buffer.from(bytes))
    }
  })

  it("open the next and the previous file with j and k", async () => {
    await open("src/item2.ts")
    await page.locator(".cm-line", { hasText: "two" }).waitFor()
    await page.locator("body").press("j")
    await page.waitForURL(/src\/item10\.ts/)
    await page.locator("body").press("k")
    await page.waitForURL(/src\/item2\.ts/)
    // Each key counts, however fast the keys come.
    await page.evaluate(
      `for (const key of "jjk") document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))`
    )
    await page.waitForURL(/src\/item10\.ts/)
  })

  it("cause no errors except 404 for a missing file", () =>
    assert.deepStrictEqual(
      complaints.filter((complaint) => !/status of 404/.test(complaint)),
      []
    ))
})

describe("helpers of the page", () => {
  /** Removes all white space between tokens. */
  const tokens = (text: string): string => text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1")

  it("format JSON by changing white space only", () => {
    for (const text of [
      json,
      '{"a":1e400,"a":2,"-0":-0, "b" : [ ] ,"c":{ }}',
      '[1,2 ,\n\n3,{"x":" spaces  in   text ","y":"\\" \\\\"}]',
      '{"left": [1, 2',
      JSON.stringify(Array.from({ length: 2000 }, (_, i) => ({ [`key ${i}`]: [i, `${i} "quoted"`, null] })))
    ]) {
      assert.strictEqual(tokens(formatted(text)), tokens(text))
    }
    assert.strictEqual(formatted('{"a":[1,{"b":2}]}'), '{\n  "a": [\n    1,\n    {\n      "b": 2\n    }\n  ]\n}')
  })

  it("find the same paths with a new filter and with a reused filter, with the best match first", () => {
    const paths = [
      "src/alpha.ts",
      "src/Beta/alphabet.md",
      "lib/a/l/p/x.ts",
      "docs/al-pine.txt",
      "zeta/ALPHA",
      "x/y.z",
      "src/pal.ts"
    ]
    const tree = treeOf(paths.map((path) => ({ path, size_bytes: 0 })))
    /** Tests whether the path contains the letters of each word in order. This is the definition of a match. */
    const holds = (path: string, words: string): boolean =>
      words
        .split(" ")
        .every((word) => new RegExp([...word].map((letter) => (letter === "." ? "\\." : letter)).join(".*"), "i").test(path))
    const kept = new Filter(tree)
    for (const words of ["a", "al", "alp", "alp x", "alp", "alph", "alpha", "b", "md", "ts src", "z.z", "q", "alpha"]) {
      const expected = paths.filter((path) => holds(path, words)).sort()
      const found = kept.find(words).map(({ path }) => path)
      assert.deepStrictEqual([...found].sort(), expected, words)
      assert.deepStrictEqual(
        new Filter(tree).find(words).map(({ path }) => path),
        found,
        words
      )
    }
    assert.deepStrictEqual(
      kept.find("alpha").map(({ path }) => path),
      ["zeta/ALPHA", "src/alpha.ts", "src/Beta/alphabet.md"]
    )
    for (const node of kept.find("lp")) {
      const letters = [...kept.marks(node)].sort((a, b) => a - b).map((place) => node.path[place]!.toLowerCase())
      assert.strictEqual(letters.join(""), "lp", node.path)
    }
  })

  it("resolve a relative reference from the directory of its file, and never out of the root", () => {
    for (const [from, reference, expected] of [
      ["docs/a.md", "b.md", "docs/b.md"],
      ["docs/a.md", "../src/x.ts", "src/x.ts"],
      ["docs/a.md", "/src/x.ts", "src/x.ts"],
      ["docs/a.md", "./../.", ""],
      ["docs/a.md", "../../etc/passwd", undefined],
      ["a.md", "..", undefined]
    ] as const) {
      assert.strictEqual(resolved(from, reference), expected, `${reference} in ${from}`)
    }
  })
})

describe.skipIf(!hasChromium())("50,000 files in a browser", () => {
  it("are rendered as a few rows, and can be filtered and scrolled to the end", async () => {
    const many: Record<string, string> = {}
    for (let i = 0; i < 50_000; i++) many[`package${i % 50}/module${Math.floor(i / 50) % 20}/file${i}.ts`] = ""
    many["zebra.txt"] = "striped"
    const served = await serve({ source: { filesystem: await Effect.runPromise(holding(many)), title: "many" } })
    const browser = await launch()
    try {
      const page = await browser.newPage(desk)
      await page.goto(served.url)
      await page.getByRole("treeitem", { name: "package1", exact: true }).waitFor()
      await page.getByRole("tree").focus()
      // Open a directory, so that the list scrolls.
      await page.keyboard.press("Home")
      await page.keyboard.press("ArrowRight")
      await page.getByRole("treeitem", { name: "module19" }).waitFor()
      await page.keyboard.press("End")
      await page.locator(".is-active", { hasText: "zebra.txt" }).waitFor()
      assert.isBelow(await page.locator(".row").count(), 200)
      await page.keyboard.press("/")
      await page.keyboard.type("ts")
      await page.locator(".filter-count", { hasText: "50,000" }).waitFor()
      assert.isBelow(await page.locator(".row").count(), 200)
      await page.locator(".results").evaluate((list) => list.scrollTo(0, list.scrollHeight))
      await page.locator("#result-49999").waitFor()
      await page.getByRole("combobox").fill("file31415.ts")
      await page.locator(".filter-count", { hasText: /^1$/ }).waitFor()
      await page.keyboard.press("Enter")
      await page.waitForURL(/package15\/module8\/file31415\.ts/)
      await page.keyboard.press("Escape")
      await page.locator(".is-chosen", { hasText: "file31415.ts" }).waitFor()
    } finally {
      await browser.close()
      await served.close()
    }
  })
})
