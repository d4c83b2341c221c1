/** The views of the page pass axe in light and dark on a desktop, and in light on a phone. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { desk, hasChromium, launch, phone, soon } from "./chromium.ts"
import { show, type Shown } from "./panelsFixture.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Each view with a selector of an element that it shows once drawn. */
const views: ReadonlyArray<readonly [hash: string, ready: string]> = [
  ["files", ".listing a"],
  ["files/src/values.ts", ".cm-content"],
  ["files/README.md", ".markdown h1, .prose h1, .file-body h1"],
  ["files/data/blob.bin", ".hex"],
  ["changes", ".item, [role=option]"],
  ["changes/src/values.ts", ".cm-content"],
  ["events/7", "article"],
  ["slices/Plan?session=main", ".detail-title"],
  ["journal/3", "article"],
  ["journal?as=changes", ".changes-only .entry"]
]

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<string>; readonly failureSummary: string }>
}

const violationsIn = async (page: Page): Promise<ReadonlyArray<string>> => {
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    readonly violations: ReadonlyArray<Violation>
  }
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ failureSummary, target }) => `${id}: ${target.join(" ")}: ${failureSummary.replace(/\s+/g, " ")}`)
  )
}

describe.skipIf(!hasChromium())("the page", () => {
  let browser: Browser
  let shown: Shown

  beforeAll(async () => {
    ;[browser, shown] = await Promise.all([launch(), show()])
  })
  afterAll(async () => {
    await browser?.close()
    await shown?.close()
  })

  /** On a phone the chosen file replaces the tree, so the list of a directory is not visible. */
  const onPhone = views.filter(([hash]) => hash !== "files")
  const surroundings: ReadonlyArray<readonly [name: string, options: BrowserContextOptions, shown: typeof views]> = [
    ["light on a desktop", { ...desk, colorScheme: "light" }, views],
    ["dark on a desktop", { ...desk, colorScheme: "dark" }, views],
    ["light on a phone", { ...phone, colorScheme: "light" }, onPhone]
  ]
  for (const [name, options, chosen] of surroundings) {
    it(`has no violation of axe in ${chosen.length} views, ${name}`, { timeout: 300_000 }, async () => {
      // The page's content security policy would block the test's script.
      const context = await browser.newContext({ ...options, bypassCSP: true, reducedMotion: "reduce" })
      try {
        const page = await context.newPage()
        page.setDefaultTimeout(60_000)
        const found: Array<string> = []
        await page.goto(shown.url)
        await page.evaluate(axe)
        for (const [hash, ready] of chosen) {
          await page.goto(`${shown.url}#/${hash}`)
          await page.locator(ready).first().waitFor()
          await soon(() => page.getByRole("main").getByRole("heading", { level: 1 }).count()).toBeGreaterThan(0)
          for (const violation of await violationsIn(page)) found.push(`${hash}: ${violation}`)
        }
        assert.deepStrictEqual(found, [])
      } finally {
        await context.close()
      }
    })
  }
})
