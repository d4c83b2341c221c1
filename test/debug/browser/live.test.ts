/**
 * Live updates of the debug view: the command serves a workspace, other processes change it, and a browser shows the
 * changes.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile, spawn, type ChildProcess } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Browser, Page } from "playwright-core"
import { inMemory } from "../../scratch.ts"
import { complaintsOf, desk, hasChromium, launch, soon } from "./chromium.ts"

const bin = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url))

describe.skipIf(!hasChromium())("the debug view of a changing workspace", () => {
  let browser: Browser
  let server: ChildProcess
  let url: string
  let top: string
  let env: NodeJS.ProcessEnv

  /** Runs a command in another process. */
  const run = (...args: ReadonlyArray<string>): Promise<string> =>
    new Promise((resolve, reject) => {
      execFile(process.execPath, [bin, ...args, "--root", join(top, "root")], { env }, (error, out, err) =>
        error === null ? resolve(out) : reject(new Error(err))
      )
    })
  const write = (path: string, text: string): Promise<string> =>
    run("write", path, "--text", text, "--journal", join(top, "journal"))

  beforeAll(async () => {
    top = Fs.mkdtempSync(join(inMemory(), "live-"))
    Fs.mkdirSync(join(top, "root"))
    Fs.writeFileSync(join(top, "root/a.txt"), "one\ntwo\n")
    env = { PATH: process.env["PATH"], HOME: top, TMPDIR: top, XDG_STATE_HOME: join(top, "state") }
    await Promise.all([write("first.txt", "first"), run("snapshot")])
    server = spawn(process.execPath, [bin, "debug", "--root", join(top, "root"), "--journal", join(top, "journal")], { env })
    url = await new Promise((resolve, reject) => {
      let said = ""
      server.stderr!.setEncoding("utf8").on("data", (text: string) => {
        said += text
        const found = /http:\/\/\S+\//.exec(said)
        if (found !== null) resolve(found[0])
      })
      server.on("exit", (code) => reject(new Error(`the command ended with ${code}: ${said}`)))
    })
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    server?.kill("SIGTERM")
  })

  /** Opens a page, and checks that it was not reloaded and reported no errors. */
  const visit = async (hash: string, look: (page: Page) => Promise<void>): Promise<void> => {
    const context = await browser.newContext(desk)
    try {
      const page = await context.newPage()
      page.setDefaultTimeout(40_000)
      const complaints = complaintsOf(page, url)
      await page.goto(`${url}#/${hash}`)
      await page.locator("html").evaluate((html) => html.setAttribute("data-mark", "same"))
      // From here on the page receives events.
      await page.getByText("Live", { exact: true }).first().waitFor()
      await look(page)
      assert.strictEqual(await page.locator("html").getAttribute("data-mark"), "same")
      assert.deepStrictEqual(complaints, [])
    } finally {
      await context.close()
    }
  }

  const rowsOf = (page: Page) => page.getByRole("listbox", { name: "Journal, the latest first" }).getByRole("option")

  it("shows journal entries of another process without a reload", () =>
    visit("journal", async (page) => {
      await rowsOf(page).filter({ hasText: "first.txt" }).first().waitFor()
      await write("second.txt", "second")
      await rowsOf(page).filter({ hasText: "FileWritten" }).filter({ hasText: "second.txt" }).first().waitFor()
      // The newest entry is at the top.
      await soon(() => rowsOf(page).first().innerText()).toContain("second.txt")
      await rowsOf(page).first().click()
      await page.getByRole("article", { name: /^Entry \d+: FileWritten/ }).waitFor()
    }))

  it("keeps the scroll position of the journal, and shows the number of new entries", () =>
    visit("journal/1", async (page) => {
      // The window is so small that a few entries do not fit.
      await page.setViewportSize({ width: 1280, height: 190 })
      const list = page.getByRole("listbox", { name: "Journal, the latest first" })
      await rowsOf(page).first().waitFor()
      const newest = Number(await rowsOf(page).first().getAttribute("data-position"))
      const scrolled = (top: number) =>
        list.evaluate((element, top) => {
          element.scrollTo({ top })
          return element.scrollTop
        }, top)
      const top = await scrolled(20)
      assert.strictEqual(top, 20)
      await write("third.txt", "third")
      const fresh = page.getByRole("button", { name: /new entr/ })
      await fresh.waitFor()
      assert.strictEqual(await list.evaluate((element) => element.scrollTop), top)
      assert.strictEqual(Number(await rowsOf(page).first().getAttribute("data-position")), newest)
      await fresh.click()
      await soon(() => rowsOf(page).first().innerText()).toContain("third.txt")
      await soon(() => list.evaluate((element) => element.scrollTop)).toBe(0)
      await soon(() => fresh.count()).toBe(0)
    }))

  it("updates the differences from a snapshot, and the list of snapshots", () =>
    visit("changes", async (page) => {
      const changed = page.getByRole("listbox", { name: "Changed files" }).getByRole("option")
      const from = page.getByLabel("From", { exact: true })
      await from.waitFor()
      const known = await from.locator("option").count()
      Fs.writeFileSync(join(top, "root/a.txt"), "one\nTWO\n")
      await changed.filter({ hasText: "a.txt" }).click()
      await soon(() => page.getByRole("textbox", { name: "After", exact: true }).innerText()).toContain("TWO")
      Fs.writeFileSync(join(top, "root/a.txt"), "one\nTHREE\n")
      await soon(() => page.getByRole("textbox", { name: "After", exact: true }).innerText()).toContain("THREE")
      await run("snapshot")
      await soon(() => from.locator("option").count()).toBe(known + 1)
      // The newest snapshot is now the base, so nothing differs.
      await page.getByText("Both sides have the same files with the same contents.").waitFor()
    }))
})
