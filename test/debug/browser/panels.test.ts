/** The views beside the file view, in a real browser, over dumps with known contents. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { complaintsOf, desk, hasChromium, launch, phone, soon } from "./chromium.ts"
import { after, before, blue, calls, evil, failing, lines, reading, red, show, type Shown } from "./panelsFixture.ts"

const asBytes = (file: string | Uint8Array | undefined): Buffer => Buffer.from(file ?? "")

describe.skipIf(!hasChromium())("the panels of the debug view:", () => {
  let browser: Browser
  let shown: Shown
  let complaints: ReadonlyArray<string> = []
  /** The shared page and its recorded errors. */
  let common: Page | undefined
  let kept: ReadonlyArray<string> = []

  beforeAll(async () => {
    ;[browser, shown] = await Promise.all([launch(), show()])
  })
  afterAll(async () => {
    await browser?.close()
    await shown?.close()
  })

  const begin = async (url: string, options: BrowserContextOptions): Promise<Page> => {
    const context = await browser.newContext({ ...desk, timezoneId: "UTC", locale: "en-GB", ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    complaints = complaintsOf(page, url)
    return page
  }

  /**
   * Opens a view, runs the test and checks that the page reported no errors. Tests without options share one page, and each
   * test opens its own address. A failed test discards its page.
   */
  const visit = async (
    hash: string,
    look: (page: Page) => Promise<void>,
    options?: BrowserContextOptions & { readonly url?: string }
  ): Promise<void> => {
    const url = options?.url ?? shown.url
    const isShared = options === undefined
    const page = isShared && common !== undefined ? common : await begin(url, options ?? {})
    if (page === common) complaints = kept
    if (isShared) common = undefined
    let isWell = false
    try {
      await page.goto(`${url}#/${hash}`)
      await look(page)
      assert.deepStrictEqual(complaints, [])
      isWell = true
    } finally {
      if (isWell && isShared) [common, kept] = [page, complaints]
      else await page.context().close()
    }
  }

  const rowsOf = (page: Page, list: string) => page.getByRole("listbox", { name: list }).getByRole("option")
  const chosenOf = (page: Page, list: string) => page.getByRole("listbox", { name: list }).locator('[aria-selected="true"]')
  /** Opens a view and waits until it is drawn, so that the previous view is not mistaken for it. */
  const go = async (page: Page, hash: string): Promise<void> => {
    await page.goto(`${shown.url}#/${hash}`)
    const view = page.locator(`main.view-${/^\w+/.exec(hash)![0]}`)
    await view
      .locator(hash === "slices" ? ".session" : ".detail, .diff")
      .first()
      .waitFor()
  }
  const hashOf = (page: Page): string => decodeURIComponent(new URL(page.url()).hash)

  describe("events", () => {
    it("are listed from the first event on, with tool, path, message and time since the beginning", () =>
      visit("events", async (page) => {
        const first = rowsOf(page, "Events").first()
        await first.waitFor()
        for (const part of ["write_file", "src/", "values.ts", "Wrote number 0", "1.0 kB", "+0.000"])
          await soon(() => first.innerText()).toContain(part)
        for (const part of ["read_file", "+3.000"]) await soon(() => rowsOf(page, "Events").nth(3).innerText()).toContain(part)
        await page.getByText(`${calls} events · ${failing.length} failed`).waitFor()
      }))

    it("are marked as failed or done, with a text alternative", () =>
      visit("events", async (page) => {
        const row = rowsOf(page, "Events").nth(failing[0]!)
        await row.getByRole("img", { name: "failed" }).waitFor()
        await rowsOf(page, "Events").nth(0).getByRole("img", { name: "done" }).waitFor()
      }))

    it("are filtered by tool, outcome and text, and the filter is in the address", () =>
      visit("events", async (page) => {
        await page.getByLabel("Tool", { exact: true }).selectOption("read_file")
        await soon(() => rowsOf(page, "Events").count()).toBe(reading.length)
        await page.getByLabel("Tool", { exact: true }).selectOption("")
        await page.getByLabel("Outcome", { exact: true }).selectOption("failed")
        await soon(async () =>
          (await rowsOf(page, "Events").allInnerTexts()).map((text) => /number (\d+)/.exec(text)?.[1])
        ).toEqual(failing.map(String))
        await page.getByRole("searchbox").fill("NUMBER 23")
        await soon(() => rowsOf(page, "Events").count()).toBe(1)
        await page.reload()
        await soon(() => rowsOf(page, "Events").count()).toBe(1)
        await soon(() => rowsOf(page, "Events").first().innerText()).toContain("number 23")
        await page.getByRole("searchbox").fill("nothing has this")
        await page.getByRole("button", { name: "Clear the filter" }).click()
        await page.getByText(`${calls} events`).waitFor()
      }))

    it("show all details of the chosen event: parameters, result and links", () =>
      visit("events/7", async (page) => {
        const detail = page.getByRole("article", { name: /^Event 7/ })
        await detail.getByText("Conflict: number 7 came too late").first().waitFor()
        for (const text of ["failed", "2026-01-02 03:04:12.000", "8 ms", "overwrite", "call-7"]) {
          await detail.getByText(text, { exact: true }).first().waitFor()
        }
        const json = detail.getByRole("figure", { name: "Parameters" }).locator(".json-body")
        await soon(async () => JSON.parse(await json.innerText())).toEqual({ path: "src/values.ts", number: 7, isLast: false })
        await soon(() => detail.locator(".json-number").first().innerText()).toBe("7")
        await detail.getByRole("link", { name: "ToolInvoked" }).waitFor()
        await detail.getByRole("link", { name: /values\.ts/ }).click()
        await soon(async () => hashOf(page)).toBe("#/files/src/values.ts")
        await page.goBack()
        await detail.waitFor()
      }))

    it("are chosen with keys, and the address changes with the choice", () =>
      visit("events", async (page) => {
        await rowsOf(page, "Events").first().waitFor()
        for (const key of ["j", "j", "ArrowDown", "k"]) await page.keyboard.press(key)
        await soon(async () => hashOf(page)).toBe("#/events/1")
        await page.keyboard.press("End")
        await soon(async () => hashOf(page)).toBe(`#/events/${calls - 1}`)
        await soon(() => chosenOf(page, "Events").innerText()).toContain(`Wrote number ${calls - 1}`)
        // A letter in a text field is not a command.
        await page.getByRole("searchbox").fill("k")
        await page.getByRole("searchbox").press("k")
        await soon(async () => hashOf(page)).toBe(`#/events/${calls - 1}?q=kk`)
      }))

    it("are reached by Tab, and the focus follows the arrow keys even beyond the drawn rows", () =>
      visit("events", async (page) => {
        await rowsOf(page, "Events").first().waitFor()
        await page.getByLabel("Outcome", { exact: true }).focus()
        for (let tabs = 0; tabs < 5 && (await page.locator(".item:focus").count()) === 0; tabs++)
          await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await soon(async () => hashOf(page)).toBe("#/events/0")
        await page.keyboard.press("End")
        const last = page.locator('.item:focus[aria-selected="true"]', { hasText: `number ${calls - 1}` })
        await last.waitFor()
        await page.keyboard.press("ArrowUp")
        await page.locator('.item:focus[aria-selected="true"]', { hasText: `number ${calls - 2}` }).waitFor()
      }))

    it("can be limited to a time span that the user drags over the time line", () =>
      visit("events", async (page) => {
        const line = page.getByRole("img", { name: /^Events over time: 60 marks/ })
        const box = (await line.boundingBox())!
        await page.mouse.move(box.x + 12, box.y + 20)
        await page.mouse.down()
        await page.mouse.move(box.x + box.width / 2, box.y + 24)
        await page.mouse.up()
        // The calls are one second apart, so half of the line holds half of them, give or take one.
        await soon(() => rowsOf(page, "Events").count()).toBeLessThan(40)
        await soon(async () => {
          const [, found] = /(\d+) of 60 events/.exec(await page.locator(".bar-count").innerText()) ?? []
          return Math.abs(Number(found) - calls / 2)
        }).toBeLessThanOrEqual(1)
        await page.getByTitle("Show the whole time span").click()
        await page.getByText(`${calls} events`).waitFor()
      }))
  })

  describe("slices", () => {
    it("are shown in a tree of sessions, with tags, policies and counts", () =>
      visit("slices", async (page) => {
        const tree = page.getByRole("tree", { name: "Sessions and slices" })
        await tree.getByText("helper", { exact: true }).waitFor()
        const sessions = async (): Promise<ReadonlyArray<string>> =>
          (
            await tree
              .getByRole("treeitem")
              .evaluateAll((all: any) =>
                all.map((one: any) => `${one.getAttribute("aria-level")} ${one.innerText.split("\n")[0]}`)
              )
          )
            .map((item: string) => item.replace(/ [≡◆]$/, ""))
            .filter((item: string) => /^(?:1 main|2 helper)/.test(item))
        await soon(sessions).toEqual(["1 main", "2 helper"])
        await tree.getByText("reviewer").waitFor()
        for (const [name, policy, count] of [
          ["Plan", "log", "120"],
          ["Mood", "state", "2"],
          ["ToolInvoked", "log", "60"]
        ]) {
          const slice = tree.getByRole("treeitem").filter({ hasText: name! }).filter({ hasText: policy! }).first()
          await soon(() => slice.innerText()).toContain(count!)
        }
      }))

    it("with the policy `state` show the latest item first", () =>
      visit("slices/Mood?session=main", async (page) => {
        await page.getByText("#1 · the latest").waitFor()
        await soon(async () => (await page.locator(".json-body").allInnerTexts()).map((body) => JSON.parse(body))).toEqual([
          { mood: "late" },
          { mood: "early" }
        ])
      }))

    it("with the policy `log` show the items in order, page by page", () =>
      visit("slices/Plan?session=main", async (page) => {
        const steps = async () => (await page.locator(".json-body").allInnerTexts()).map((body) => JSON.parse(body).step)
        await soon(steps).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
        await page.getByRole("button", { name: /Next/ }).first().click()
        await soon(steps).toEqual(Array.from({ length: 50 }, (_, index) => index + 51))
        await page.getByRole("button", { name: /Next/ }).first().click()
        await soon(steps).toEqual(Array.from({ length: 20 }, (_, index) => index + 101))
        await page.goBack()
        await soon(async () => (await steps())[0]).toBe(51)
      }))

    it("with equal names are distinguished by their sessions", () =>
      visit("slices/Plan?session=helper", async (page) => {
        await soon(async () => (await page.locator(".json-body").allInnerTexts()).map((body) => JSON.parse(body))).toEqual([
          { step: 1, text: evil }
        ])
      }))
  })

  describe("changes", () => {
    const kinds = [
      ["modified", "assets/dot.png"],
      ["modified", "data/blob.bin"],
      ["modified", "endings.txt"],
      ["deleted", "src/gone.ts"],
      ["added", "src/new.ts"],
      ["renamed", "src/there.ts"],
      ["modified", "src/values.ts"]
    ]
    const sideOf = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true })
    const textOf = async (page: Page, name: string, lines: string): Promise<ReadonlyArray<string>> =>
      (await sideOf(page, name).locator(lines).allInnerTexts()).map((text) => text.trim())

    const wholeOf = async (page: Page, name: string): Promise<string> =>
      (await sideOf(page, name).locator(".cm-line").allTextContents()).join("\n")

    it("are listed by kind, relative to the previous dump", () =>
      visit("changes", async (page) => {
        await rowsOf(page, "Changed files").first().waitFor()
        await soon(() =>
          rowsOf(page, "Changed files").evaluateAll((rows: any) =>
            rows.map((row: any) => [
              row.querySelector(".kind")!.getAttribute("aria-label"),
              row.querySelector(".changed-path")!.textContent
            ])
          )
        ).toEqual(kinds)
        for (const text of ["1 added", "4 modified", "1 deleted", "1 renamed"])
          await page.getByRole("button", { name: text }).waitFor()
        await page.getByRole("button", { name: "1 deleted" }).click()
        await soon(() => rowsOf(page, "Changed files").count()).toBe(1)
        await page.getByRole("button", { name: "1 deleted" }).click()
        await soon(() => rowsOf(page, "Changed files").count()).toBe(kinds.length)
        await page.getByRole("searchbox").fill("HERE")
        // The filter matches the new name and the old name.
        await soon(() => rowsOf(page, "Changed files").count()).toBe(1)
      }))

    it("keep a filter that the user chooses as soon as they are shown", () =>
      visit("events", async (page) => {
        await rowsOf(page, "Events").first().waitFor()
        const drawn = page.evaluate<string>(`new Promise((resolve) => {
          const observer = new MutationObserver(() => {
            const chip = document.querySelector(".chip.deleted")
            if (chip === null || document.querySelector(".changed") === null) return
            observer.disconnect()
            chip.click()
            setTimeout(() => resolve(location.hash), 500)
          })
          observer.observe(document, { childList: true, subtree: true })
          location.hash = "#/changes"
        })`)
        assert.match(await drawn, /kind=deleted/)
      }))

    it("can be chosen by a link and filtered by kind at the same time", () =>
      visit("changes", async (page) => {
        await rowsOf(page, "Changed files").nth(1).waitFor()
        const [found, wanted] = await page.evaluate<[string, string]>(`(async () => {
          const row = document.querySelectorAll(".changed")[1]
          const wanted = row.getAttribute("href")
          row.click()
          for (let i = 0; i < 100; i++) await undefined
          // A real click runs microtasks between its listeners.
          const chip = document.querySelector(".chip.modified")
          dispatchEvent(new Event("click"))
          for (let i = 0; i < 100; i++) await undefined
          chip.click()
          return [location.hash, wanted]
        })()`)
        assert.strictEqual(found, `${wanted}?kind=modified`)
      }))

    it("do not take the focus from a field that the user has selected", () =>
      visit("changes", async (page) => {
        await rowsOf(page, "Changed files").first().waitFor()
        const focused = await page.evaluate<string>(`(async () => {
          const row = document.querySelector(".changed[tabindex='0']")
          row.focus()
          row.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }))
          document.querySelector(".panel-search").focus()
          for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame)
          return document.activeElement.className
        })()`)
        assert.match(focused, /panel-search/)
      }))

    it("are shown side by side, with equal lines folded", () =>
      visit("changes/src/values.ts?mode=split", async (page) => {
        await sideOf(page, "Before").waitFor()
        await soon(() => textOf(page, "Before", ".cm-changedLine")).toEqual([lines(80)[19], lines(80)[39]])
        await soon(() => textOf(page, "After", ".cm-changedLine")).toEqual([
          "export const value20 = 2000",
          "export const between = 60.5"
        ])
        await soon(() => sideOf(page, "Before").innerText()).not.toContain("value30 ")
        await soon(() => sideOf(page, "After").innerText()).not.toContain("value40 ")
        await page.getByTitle("2 lines added, 2 deleted").waitFor()
        // The two sides are beside each other, not one above the other.
        await soon(async () => {
          const [left, right] = [await sideOf(page, "Before").boundingBox(), await sideOf(page, "After").boundingBox()]
          return right!.x - (left!.x + left!.width)
        }).toBeGreaterThanOrEqual(-1)
        await page.getByText("unchanged lines").first().click()
        await sideOf(page, "Before").getByText("value1 = 1", { exact: false }).first().waitFor()
      }))

    it("are shown in one column, with the line numbers of both sides", () =>
      visit("changes/src/values.ts", async (page) => {
        await page.getByRole("button", { name: "Unified" }).click()
        const one = sideOf(page, "Before and after")
        await one.waitFor()
        await soon(() => textOf(page, "Before and after", ".cm-deletedLine")).toEqual([lines(80)[19], lines(80)[39]])
        await soon(() => textOf(page, "Before and after", ".cm-changedLine")).toContain("export const between = 60.5")
        for (const deleted of ["20", "40"])
          await soon(() => page.locator(".cm-before-numbers .cm-gutterElement").allInnerTexts()).toContain(deleted)
        await soon(() => page.locator(".cm-lineNumbers .cm-gutterElement").allInnerTexts()).toContain("20")
        // The mode is remembered, also when the address does not name it.
        await page.goto(`${shown.url}#/changes/src/values.ts`)
        await page.reload()
        await one.waitFor()
        await page.keyboard.press("u")
        await sideOf(page, "Before").waitFor()
      }))

    it("are visited with keys, and after the last change the key opens the next file", () =>
      visit("changes/src/there.ts?mode=split", async (page) => {
        await page.getByText("The file was moved, and its content is unchanged.").waitFor()
        await soon(() => page.locator(".diff-title").innerText()).toContain("src/here.ts → src/there.ts")
        await page.keyboard.press("n")
        await soon(async () => hashOf(page)).toContain("#/changes/src/values.ts")
        await sideOf(page, "After").waitFor()
        for (const place of ["1/3", "2/3", "3/3"]) {
          await page.keyboard.press("n")
          await page.locator(".diff-place", { hasText: place }).waitFor()
        }
        await page.keyboard.press("p")
        await page.locator(".diff-place", { hasText: "2/3" }).waitFor()
        await page.keyboard.press("k")
        await soon(async () => hashOf(page)).toContain("#/changes/src/there.ts")
      }))

    it("show added and deleted files completely", () =>
      visit("changes/src/new.ts", async (page) => {
        await soon(() => wholeOf(page, "Added")).toBe(after["src/new.ts"])
        await page.getByTitle("3 lines added, 0 deleted").waitFor()
        await page.goto(`${shown.url}#/changes/src/gone.ts`)
        await soon(() => wholeOf(page, "Deleted")).toBe(before["src/gone.ts"])
        await page.getByTitle("0 lines added, 2 deleted").waitFor()
      }))

    it("show images side by side, and the sizes of other binary files", () =>
      visit("changes/assets/dot.png", async (page) => {
        const dot = async (side: string) => {
          const image = page.getByRole("region", { name: side }).getByRole("img")
          await image.waitFor()
          return Buffer.from((await image.getAttribute("src"))!.replace("data:image/png;base64,", ""), "base64")
        }
        await soon(async () => [await dot("Before"), await dot("After")]).toEqual([red, blue])
        await page.getByText("1 × 1 · PNG image").first().waitFor()
        await page.goto(`${shown.url}#/changes/data/blob.bin`)
        await page
          .getByRole("region", { name: "Before" })
          .getByText(`${asBytes(before["data/blob.bin"]).length} bytes`)
          .waitFor()
        await page
          .getByRole("region", { name: "After" })
          .getByText(`${asBytes(after["data/blob.bin"]).length} bytes`)
          .waitFor()
      }))

    it("report a change of line endings", () =>
      visit("changes/endings.txt", async (page) => {
        await page.getByText("Line endings: LF → CRLF.").waitFor()
      }))

    it("can be shown in reverse", () =>
      visit("changes/src/new.ts", async (page) => {
        await sideOf(page, "Added").waitFor()
        await page.getByRole("button", { name: "Swap the sides" }).click()
        await soon(() => wholeOf(page, "Deleted")).toBe(after["src/new.ts"])
        await page.goBack()
        await sideOf(page, "Added").waitFor()
      }))
  })

  describe("the journal", () => {
    const list = "Journal, the latest first"

    it("begins with the latest entry, and loads earlier entries while the user scrolls", () =>
      visit("journal", async (page) => {
        await rowsOf(page, list).first().waitFor()
        const positions = async () =>
          (await rowsOf(page, list).evaluateAll((rows: any) => rows.map((row: any) => Number(row.dataset.position)))).sort(
            (a: number, b: number) => b - a
          )
        await soon(async () => (await positions())[0]).toBe(605)
        assert.isBelow((await positions()).length, 100)
        await soon(async () => {
          await page.getByRole("listbox", { name: list }).evaluate((element) => element.scrollTo({ top: 1e6 }))
          return (await positions()).at(-1)
        }).toBe(1)
      }))

    it("shows a request with its answer or that there is none yet, and marks faults", () =>
      visit("journal/3", async (page) => {
        const detail = page.getByRole("article", { name: "Entry 3: FileWrite" })
        await detail.getByRole("region", { name: "Request and answers" }).getByText("FileFault").waitFor()
        // The content is shown as text.
        await soon(() => detail.getByRole("textbox", { name: "Content" }).innerText()).toBe(evil)
        await detail.getByRole("link", { name: /FileFault/ }).click()
        const fault = page.getByRole("article", { name: "Entry 4: FileFault" })
        await fault.getByText("AccessDenied", { exact: true }).first().waitFor()
        await fault.getByText("it is locked", { exact: true }).first().waitFor()
        await soon(
          async () =>
            JSON.parse(await fault.getByRole("figure", { name: "Entry" }).locator(".json-body").innerText()).correlationId
        ).toBe("second")
        await page.goto(`${shown.url}#/journal/5`)
        await page.getByText("There is no answer yet.").waitFor()
      }))

    it("shows each size once per row", () =>
      visit("journal/1", async (page) => {
        for (const position of [1, 2]) {
          const row = page.locator(`[data-position="${position}"]`)
          await row.waitFor()
          await soon(async () => (await row.innerText()).match(/32 \w+/g)).toEqual(["32 bytes"])
        }
      }))

    it("is filtered by kind, text and correlation id, across all entries", () =>
      visit("journal", async (page) => {
        await page.getByLabel("Kind", { exact: true }).selectOption("faults")
        await soon(async () => (await rowsOf(page, list).allInnerTexts()).length).toBe(1)
        await soon(() => rowsOf(page, list).first().innerText()).toContain("AccessDenied")
        await soon(() => rowsOf(page, list).first().getAttribute("class")).toContain("is-fault")
        await page.getByLabel("Kind", { exact: true }).selectOption("")
        await page.getByRole("searchbox").fill("values.ts")
        await soon(() => rowsOf(page, list).count()).toBe(2)
        await page.goto(`${shown.url}#/journal?correlation=second`)
        await soon(async () =>
          rowsOf(page, list).evaluateAll((rows: any) => rows.map((row: any) => row.dataset.position))
        ).toEqual(["4", "3"])
        await soon(() =>
          rowsOf(page, list).evaluateAll((rows: any) => rows.map((row: any) => row.querySelector(".tie")?.className))
        ).toEqual(["tie first", "tie last"])
        await rowsOf(page, list).first().hover()
        await soon(() => page.locator(".is-partner").count()).toBe(2)
      }))
  })

  it("the history of a file lists the changes of the file, with links to them", () =>
    visit("files/src/values.ts", async (page) => {
      await page.getByText(lines(1)[0]!).first().waitFor()
      await page.keyboard.press("h")
      const list = page.getByRole("list", { name: "Who changed src/values.ts" })
      await list.getByText("Wrote number 59").waitFor()
      await list.getByRole("img", { name: "failed" }).first().waitFor()
      await list.getByRole("link").filter({ hasText: "Wrote number 59" }).click()
      await page.getByRole("article", { name: /^Event 59/ }).waitFor()
      await page.goBack()
      await list.getByRole("link").filter({ hasText: "journal" }).first().click()
      await page
        .getByRole("article", { name: "Entry 1: FileWrite" })
        .or(page.getByRole("article", { name: /^Entry 2/ }))
        .waitFor()
    }))

  it("every panel shows hostile content as text without effect", () =>
    visit("events/50", async (page) => {
      const detail = page.getByRole("article")
      await detail.getByRole("heading", { name: evil }).waitFor()
      await soon(() => detail.innerText()).toContain("\\u{202E}gnp.exe")
      for (const hash of ["events/50", "slices/Plan?session=helper", "slices", "journal/3", "changes/src/values.ts"]) {
        await go(page, hash)
        assert.strictEqual(await page.locator('img[src="x"], main script').count(), 0, hash)
        assert.notStrictEqual(await page.title(), "owned")
        assert.notInclude(await page.locator("#app").innerText(), "\u202e", hash)
      }
    }))

  describe("in light and dark mode, on a desktop and on a phone:", () => {
    const views = ["events/7", "slices/Mood?session=main", "changes/src/values.ts?mode=unified", "journal/3"]

    /** Computes the WCAG contrast between a text's colour and the first opaque background behind it. */
    const contrasts = (page: Page, selector: string) =>
      page.locator(selector).evaluateAll((elements: any) => {
        const { getComputedStyle, OffscreenCanvas } = elements[0].ownerDocument.defaultView
        const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!
        const paint = (colours: ReadonlyArray<string>): ReadonlyArray<number> => {
          canvas.clearRect(0, 0, 1, 1)
          for (const colour of colours) {
            canvas.fillStyle = colour
            canvas.fillRect(0, 0, 1, 1)
          }
          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
        }
        const light = (rgb: ReadonlyArray<number>): number => {
          const [r, g, b] = rgb.map((one) => (one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4))
          return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
        }
        return elements
          .filter((element: any) => element.innerText?.trim() !== "" && element.getClientRects().length > 0)
          .map((element: any) => {
            const grounds: Array<string> = []
            for (let one = element; one !== null; one = one.parentElement) {
              grounds.unshift(getComputedStyle(one).backgroundColor)
            }
            const ground = paint(grounds)
            const text = paint([...grounds, getComputedStyle(element).color])
            const [a, b] = [light(ground), light(text)]
            return {
              text: element.innerText.slice(0, 40),
              ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
            }
          })
      })

    const texts =
      ".badge, .faint, .num, .said, .chip, .mini, .event-said, .way-name, .way-directory, .json-body span, .plus, .minus, .kind, dt, .tag, .remark"

    for (const colorScheme of ["light", "dark"] as const) {
      it(`every text has a contrast of at least 4.5 in ${colorScheme} mode`, () =>
        visit(
          views[0]!,
          async (page) => {
            for (const hash of views) {
              await go(page, hash)
              const ground = await page
                .locator("html")
                .evaluate((html: any) => html.ownerDocument.defaultView.getComputedStyle(html).backgroundColor)
              const [first] = /\d+/.exec(ground)!
              assert.strictEqual(Number(first) > 128, colorScheme === "light", ground)
              const found = await contrasts(page, texts)
              assert.isAbove(found.length, 0, hash)
              assert.deepStrictEqual(
                found.filter(({ ratio }: { readonly ratio: number }) => ratio < 4.5),
                [],
                hash
              )
            }
          },
          { colorScheme }
        ))
    }

    it("a phone shows either the list or the detail, with a way back", () =>
      visit(
        views[0]!,
        async (page) => {
          for (const hash of views) {
            await go(page, hash)
            await soon(() => page.locator(".split-list").isVisible()).toBe(false)
            const beyond = () =>
              page.locator("html").evaluate((html: any) => html.scrollWidth - html.ownerDocument.defaultView.innerWidth)
            await soon(beyond).toBeLessThanOrEqual(0)
            await page.locator(".split-back").click()
            await page.locator(".split-list").waitFor()
            await soon(() => page.locator(".split-detail").isVisible()).toBe(false)
          }
        },
        phone
      ))

    it("a phone shows changes in one column, even if the address asks for two", () =>
      visit(
        "changes/src/values.ts?mode=split",
        async (page) => {
          await page.getByRole("textbox", { name: "Before and after" }).waitFor()
          await soon(() => page.getByRole("button", { name: "Split" }).count()).toBe(0)
        },
        phone
      ))
  })

  it("a panel without content says what it would show, and how to record it", async () => {
    const bare = await show("bare")
    try {
      for (const [hash, title, hint] of [
        ["events", "No events", "ToolEvents.log"],
        ["slices", "No sessions", "Session.dumpSessionTree"],
        ["journal", "No journal", "--journal FILE"],
        ["changes", "Nothing to compare with", "fs-algebra snapshot"]
      ]) {
        await visit(
          hash!,
          async (page) => {
            const empty = page.getByRole("status").filter({ hasText: title! })
            await empty.getByText(title!, { exact: true }).waitFor()
            await soon(() => empty.innerText()).toContain(hint!)
          },
          { url: bare.url }
        )
      }
    } finally {
      await bare.close()
    }
  })
})
