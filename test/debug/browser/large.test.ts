/** Large texts, tables and long lines in a browser. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Browser, Page } from "playwright-core"
import { layoutOf } from "../../../src/debug/page/code/layout.ts"
import { complaintsOf, desk, hasChromium, launch, soon } from "./chromium.ts"
import { holding, serve, type Served } from "./fixture.ts"

const count = 300_000
const lines = Array.from({ length: count }, (_, i) => `line ${i + 1} of the log ${"x".repeat(60)}`)
const oneLine = `${"0123456789".repeat(500_000)}\nthe second line\n`

const csv = [
  "name,note,count",
  'alpha,"with, comma",1',
  'beta,"with ""quotes""\nand a line",22',
  ...Array.from({ length: 500 }, (_, i) => `row${i},<b>text</b>,${i}`)
].join("\n")

describe("the layout of lines", () => {
  it("keeps a text without long lines unchanged", () => {
    const text = "a\nb\n"
    for (const isWrapping of [true, false]) {
      const layout = layoutOf(text, 10, isWrapping)
      assert.strictEqual(layout.text, text)
      assert.deepStrictEqual([1, 2].map(layout.labelOf), ["10", "11"])
      assert.deepStrictEqual([layout.fileLineOf(2), layout.editorLineOf(11)], [11, 2])
    }
  })

  it("breaks a long line into pieces under one number, and splits no character", () => {
    const long = "😀".repeat(7000)
    const layout = layoutOf(`first\n${long}\nlast`, 1, true)
    const shown = layout.text.split("\n")
    assert.strictEqual(shown[0], "first")
    assert.strictEqual(shown.at(-1), "last")
    const pieces = shown.slice(1, -1)
    assert.strictEqual(pieces.join(""), long)
    assert.isTrue(pieces.every((piece) => piece.isWellFormed()))
    assert.deepStrictEqual(
      shown.map((_, i) => layout.labelOf(i + 1)),
      ["1", "2", ...pieces.slice(1).map(() => ""), "3"]
    )
    assert.deepStrictEqual([layout.fileLineOf(3), layout.editorLineOf(2), layout.editorLineOf(3)], [2, 2, shown.length])
    assert.isAbove(layout.editorLineOf(4), shown.length)
  })

  it("keeps long lines whole if wrapping is off", () => {
    assert.strictEqual(layoutOf(oneLine, 1, false).text, oneLine)
  })
})

describe.skipIf(!hasChromium())("the views of large files in a browser", () => {
  let browser: Browser
  let served: Served
  let page: Page
  let complaints: ReadonlyArray<string>

  beforeAll(async () => {
    browser = await launch()
    const content = {
      "big.log": lines.join("\n"),
      "line.txt": oneLine,
      "table.csv": csv,
      "returns.txt": "one\rtwo\r\nthree\nfour"
    }
    served = await serve({ source: { filesystem: await Effect.runPromise(holding(content)), title: "large" } })
    page = await (await browser.newContext(desk)).newPage()
    page.setDefaultTimeout(60_000)
    complaints = complaintsOf(page, served.url)
  })
  afterAll(async () => {
    await browser?.close()
    await served?.close()
  })

  const code = () => page.getByRole("textbox", { name: "Content" }).innerText()
  const status = () => page.getByRole("navigation", { name: "Parts of the file" }).getByRole("status").innerText()

  it("show every line of a large text with its number, part by part", async () => {
    await page.goto(`${served.url}#/files/big.log`)
    await soon(status).toMatch(/^Lines 1 to [\d,]+ of 300,000$/)
    await page.getByRole("button", { name: "Last" }).click()
    await soon(status).toMatch(/ to 300,000 of 300,000$/)
    const first = Number((await status()).split(" ")[1]!.replaceAll(",", ""))
    assert.isAbove(first, 1)
    await soon(code).toContain(`line ${first} of the log`)
    await soon(() => page.locator(".cm-lineNumbers").innerText()).toContain(String(first))
    await page.getByRole("spinbutton", { name: "Line" }).fill("150000")
    await page.getByRole("button", { name: "Go" }).click()
    await soon(() => page.locator(".cm-chosen-line").innerText()).toBe(lines[149_999]!)
    await page.goto("about:blank")
    await page.goto(`${served.url}#/files/big.log?line=299999`)
    await soon(() => page.locator(".cm-chosen-line").innerText()).toBe(lines[299_998]!)
    assert.deepStrictEqual(complaints, [])
  })

  it("wrap a line of five million characters, and show the next line", async () => {
    await page.goto(`${served.url}#/files/line.txt`)
    const wrap = page.getByRole("button", { name: "Wrap long lines" })
    await wrap.click()
    await soon(() => wrap.getAttribute("aria-pressed")).toBe("true")
    // The editor shows pieces, never the whole line.
    await soon(async () => (await page.locator(".cm-line").first().innerText()).length).toBe(5000)
    await page.goto(`${served.url}#/files/line.txt?line=2`)
    await soon(() => page.locator(".cm-chosen-line").innerText()).toBe("the second line")
    await wrap.click()
    await soon(() => wrap.getAttribute("aria-pressed")).toBe("false")
    assert.deepStrictEqual(complaints, [])
  })

  it("do not end a line at a lone CR, so that lines have the same numbers as on the server", async () => {
    await page.goto(`${served.url}#/files/returns.txt`)
    await soon(() => page.locator(".cm-lineNumbers .cm-gutterElement:visible").allInnerTexts()).toEqual(["1", "2", "3"])
    assert.deepStrictEqual(await page.locator(".cm-line").allInnerTexts(), ["one\u240dtwo", "three", "four"])
    assert.deepStrictEqual(complaints, [])
  })

  it("show comma-separated values as a table or as written", async () => {
    await page.goto(`${served.url}#/files/table.csv`)
    const grid = page.getByRole("grid", { name: "table.csv" })
    await grid.getByRole("columnheader", { name: "note" }).waitFor()
    await grid.getByRole("gridcell", { name: "with, comma" }).waitFor()
    await soon(() => grid.getByRole("row").nth(2).innerText()).toContain('with "quotes"\\nand a line')
    // Markup in a cell is shown as text.
    await soon(() => grid.getByRole("row").nth(3).innerText()).toContain("<b>text</b>")
    await page.getByRole("button", { name: "As written" }).click()
    await soon(code).toContain('beta,"with ""quotes""')
    assert.deepStrictEqual(complaints, [])
  })
})
