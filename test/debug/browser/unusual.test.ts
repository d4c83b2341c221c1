/** The page with unusual names, long messages and a long journal. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import * as ToolEvents from "../../../src/agent/ToolEvents.ts"
import * as Entry from "../../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../../src/journal/Journal.ts"
import * as Session from "../../../src/workspace/Session.ts"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { complaintsOf, desk, hasChromium, launch, soon } from "./chromium.ts"
import { emptyDirectory, holding, serve, type Served } from "./fixture.ts"

/** The text that the library stores in place of a message that is too long. */
const replaced = "442 characters"

const invoked = (number: number, message: string) =>
  ToolEvents.ToolInvoked.make({
    tool: "edit_file",
    callId: `call-${number}`,
    params: { path: "a.txt" },
    success: true,
    message,
    path: "a.txt",
    durationMillis: 1,
    at: DateTime.makeUnsafe(1_700_000_000_000 + number)
  })

const entries = 900

describe.skipIf(!hasChromium())("the page in unusual cases", () => {
  let browser: Browser
  let served: Served
  let page: Page
  let complaints: ReadonlyArray<string>
  const scope = Scope.makeUnsafe()

  beforeAll(async () => {
    const directory = emptyDirectory()
    const made = Effect.gen(function* () {
      const filesystem = yield* holding({
        "a.txt": "a",
        "blob.constructor": Uint8Array.of(0, 1, 2, 255),
        "b.tostring": "text",
        " c ": ""
      })
      for (const name of ["older", "newer"]) {
        const session = yield* Session.make({ slices: [ToolEvents.log], tags: { session_id: name } })
        yield* session.publish(invoked(1, replaced))
        yield* session.publish(invoked(2, "Edited a.txt"))
        yield* Session.dumpSessionTree(session, join(directory, "dumps"), { filesystem })
      }
      const journal = yield* Journal.makeFile(Journal.Entry, { path: join(directory, "journal") })
      for (let i = 1; i <= entries; i++) yield* journal.append(Entry.FileStat.make({ correlationId: `s${i}`, path: `p/${i}` }))
      return journal
    })
    const journal = await Effect.runPromise(Scope.provide(Effect.orDie(made), scope))
    ;[browser, served] = await Promise.all([launch(), serve({ source: { dump: join(directory, "dumps") }, journal })])
    page = await browser.newPage(desk)
    page.setDefaultTimeout(30_000)
    complaints = complaintsOf(page, served.url)
    await page.goto(served.url)
  })
  afterAll(async () => {
    await browser?.close()
    await served?.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const go = (hash: string) => page.goto(`${served.url}#/${hash}`)

  it("shows a file as a file of unknown type if its extension is a member of Object.prototype", async () => {
    await go("files/blob.constructor")
    await page.locator(".hex").waitFor()
    await go("files/b.tostring")
    await page.locator(".cm-content", { hasText: "text" }).waitFor()
  })

  it("makes spaces at the ends of a name visible", async () => {
    await page.locator("[role=treeitem] .row-name").getByText("\\u{20}c\\u{20}", { exact: true }).waitFor()
  })

  it("shows no placeholder for a long message in the history of a file", async () => {
    await go("files/a.txt")
    await page.keyboard.press("h")
    const changes = page.getByRole("list", { name: "Who changed a.txt" })
    await changes.getByText("Edited a.txt").waitFor()
    await soon(() => changes.getByRole("listitem").count()).toBe(2)
    assert.notInclude(await changes.innerText(), replaced)
  })

  it("does not show the number of snapshots on the Changes tab", async () => {
    await page.locator(".tabs a", { hasText: "Events" }).locator(".tab-count").waitFor()
    await soon(() => page.locator(".tabs a", { hasText: "Changes" }).innerText()).toBe("Changes")
  })

  it("scrolls the list to an old entry that the address names", async () => {
    await go("journal/7")
    await page.getByRole("option", { selected: true }).and(page.locator("[data-position='7']")).waitFor()
  })

  it("reports no errors", () => assert.deepStrictEqual(complaints, []))
})
