/** What happens in a workspace is seen as it happens: the command serves it, other processes work in it, and a browser only looks. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile, spawn, type ChildProcess } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Browser, Page } from "playwright-core"
import { inMemory } from "../../scratch.ts"
import { complaintsOf, desk, hasChromium, launch, soon } from "./chromium.ts"

const bin = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url))

describe.skipIf(!hasChromium())("the debug view of a workspace where something happens", () => {
  let browser: Browser
  let server: ChildProcess
  let url: string
  let top: string
  let env: NodeJS.ProcessEnv

  /** Another process. */
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
      server.on("exit", (code) => reject(new Error(`it ended with ${code}: ${said}`)))
    })
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    server?.kill("SIGTERM")
  })

  /** Nothing is loaded again: a mark on the page stays, and nothing is complained of. */
  const visit = async (hash: string, look: (page: Page) => Promise<void>): Promise<void> => {
    const context = await browser.newContext(desk)
    try {
      const page = await context.newPage()
      page.setDefaultTimeout(40_000)
      const complaints = complaintsOf(page, url)
      await page.goto(`${url}#/${hash}`)
      await page.locator("html").evaluate((html) => html.setAttribute("data-mark", "same"))
      // What comes is heard of from now on.
      await page.getByText("Live", { exact: true }).first().waitFor()
      await look(page)
      assert.strictEqual(await page.locator("html").getAttribute("data-mark"), "same")
      assert.deepStrictEqual(complaints, [])
    } finally {
      await context.close()
    }
  }

  const rowsOf = (page: Page) => page.getByRole("listbox", { name: "Journal, the latest first" }).getByRole("option")

  it("shows what another process writes into the journal, without being loaded again", () =>
    visit("journal", async (page) => {
      await rowsOf(page).filter({ hasText: "first.txt" }).first().waitFor()
      await write("second.txt", "second")
      await rowsOf(page).filter({ hasText: "FileWritten" }).filter({ hasText: "second.txt" }).first().waitFor()
      // The latest is on top.
      await soon(() => rowsOf(page).first().innerText()).toContain("second.txt")
      await rowsOf(page).first().click()
      await page.getByRole("article", { name: /^Entry \d+: FileWritten/ }).waitFor()
    }))

  it("leaves the list where one reads, whatever is chosen, and says how much is new", () =>
    visit("journal/1", async (page) => {
      // So small that a few entries are more than can be seen.
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

  it("shows what differs from the snapshot now, and snapshots as they are taken", () =>
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
      // What is newer is compared with from now on, and differs in nothing.
      await page.getByText("Both hold the same files with the same contents.").waitFor()
    }))
})
