import { afterAll, assert, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { complaintsOf, desk, hasChromium, launch, phone, soon } from "./chromium.ts"
import { age, dump, emptyDirectory, type Files, holding, type Served, serve, serveWorkspace } from "./fixture.ts"

const files: Files = { "README.md": "# Read me\n", "src/a.ts": "export const a = 1\n", "src/b.ts": "export const b = 2\n" }

describe.skipIf(!hasChromium())("the frame of the debug view", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser?.close())

  /** Opens a new page, and checks at the end that it reported no errors. */
  const look = async (
    served: Served,
    run: (page: Page) => Promise<void>,
    { bears = [], options = desk }: { readonly options?: BrowserContextOptions; readonly bears?: ReadonlyArray<RegExp> } = {}
  ): Promise<void> => {
    const context = await browser.newContext(options)
    try {
      const page = await context.newPage()
      page.setDefaultTimeout(30_000)
      const complaints = complaintsOf(page, served.url)
      await page.goto(served.url)
      await page.getByRole("treeitem").first().waitFor()
      await run(page)
      assert.deepStrictEqual(
        complaints.filter((complaint) => !bears.some((pattern) => pattern.test(complaint))),
        []
      )
    } finally {
      await context.close()
    }
  }
  const names = (page: Page) => page.locator("[role=treeitem] .row-name").allInnerTexts()
  const row = (page: Page, name: string) => page.getByRole("treeitem", { name, exact: true })

  describe("over a workspace", () => {
    let served: Awaited<ReturnType<typeof serveWorkspace>>
    beforeAll(async () => {
      served = await serveWorkspace(files)
    })
    afterAll(() => served?.close())

    it("shows the title and the number of files, also in the title of the window", () =>
      look(served, async (page) => {
        await soon(() => page.title()).toBe("workspace — fs-algebra")
        await soon(() => page.locator(".what-title").innerText()).toBe("workspace")
        await soon(() => page.locator(".tabs a", { hasText: "Files" }).innerText()).toMatch(/3/)
        await soon(() => page.locator(".footer").innerText()).toMatch(/3 files/)
        await row(page, "a.ts").click()
        await page.waitForFunction(() => (globalThis as any).document.title === "src/a.ts — workspace — fs-algebra")
        await soon(() => page.getByRole("navigation", { name: "Path" }).innerText()).toBe("workspace\n/\nsrc\n/\na.ts")
      }))

    it("follows the system theme until the user chooses another theme, and remembers the choice", () =>
      look(
        served,
        async (page) => {
          const ground = () => page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor")
          const dark = await ground()
          const light = "rgb(255, 255, 255)"
          assert.notStrictEqual(dark, light)
          await page.emulateMedia({ colorScheme: "light" })
          await soon(ground).toBe(light)
          await page.keyboard.press("t")
          await soon(ground).toBe(dark)
          await page.reload()
          await page.getByRole("treeitem").first().waitFor()
          await soon(ground).toBe(dark)
          await page.getByRole("button", { name: "Switch theme" }).click()
          await soon(ground).toBe(light)
          // The theme follows the system again.
          await page.emulateMedia({ colorScheme: "dark" })
          await soon(ground).toBe(dark)
        },
        { options: { ...desk, colorScheme: "dark" } }
      ))

    it("has a contrast of at least 4.5 for every colour of text in both themes", () =>
      look(served, async (page) => {
        const contrasts = `(() => {
          const style = getComputedStyle(document.documentElement)
          const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })
          const probe = document.createElement("span")
          document.body.append(probe)
          const rgb = (name) => {
            probe.style.color = "var(" + name + ")"
            canvas.fillStyle = getComputedStyle(probe).color
            canvas.fillRect(0, 0, 1, 1)
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
          }
          const light = (name) => {
            const [r, g, b] = rgb(name).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            return 0.2126 * r + 0.7152 * g + 0.0722 * b
          }
          const texts = ["--text", "--text-2", "--text-3", "--accent-text", "--good", "--bad", "--warn", "--info",
            "--code-comment", "--code-keyword", "--code-string", "--code-number", "--code-function", "--code-type",
            "--code-property", "--code-punctuation"]
          const pairs = texts.flatMap((text) => [[text, "--bg"], [text, "--bg-side"]])
          pairs.push(["--text-2", "--active"], ["--text-2", "--hover"], ["--accent-text", "--accent-soft"], ["--good", "--good-soft"],
            ["--bad", "--bad-soft"], ["--warn", "--warn-soft"], ["--info", "--info-soft"], ["--text", "--match"], ["--text", "--selection"])
          const found = pairs.map(([text, ground]) => {
            const [a, b] = [light(text), light(ground)]
            return [text + " on " + ground, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]
          })
          probe.remove()
          return found
        })()`
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme })
          const found = await page.evaluate<ReadonlyArray<readonly [string, number]>>(contrasts)
          assert.deepStrictEqual(
            found.filter(([, contrast]) => !(contrast >= 4.5)),
            [],
            colorScheme
          )
          // Checks the measurement itself: text on its background has a high contrast.
          assert.isAbove(found.find(([name]) => name === "--text on --bg")![1], 14)
        }
      }))

    it("keeps the position in the address, so that back, forward and a copied address work", () =>
      look(served, async (page) => {
        await row(page, "a.ts").click()
        await page.locator(".cm-line", { hasText: "const a" }).waitFor()
        await row(page, "b.ts").click()
        await page.locator(".cm-line", { hasText: "const b" }).waitFor()
        await page.goBack()
        await page.locator(".cm-line", { hasText: "const a" }).waitFor()
        await page.goForward()
        await page.locator(".cm-line", { hasText: "const b" }).waitFor()
        const other = await page.context().newPage()
        await other.goto(page.url())
        await other.locator(".cm-line", { hasText: "const b" }).waitFor()
        await soon(() => other.locator("[aria-selected=true] .row-name").innerText()).toBe("b.ts")
      }))

    it("switches views with number keys, and lists keys in the help", () =>
      look(served, async (page) => {
        for (const [key, view] of ["files", "changes", "events", "slices", "journal"].entries()) {
          await page.keyboard.press(`${key + 1}`)
          await page.locator(`main.view-${view}`).waitFor()
          await soon(async () =>
            (await page.locator(".tabs [aria-current=page]").innerText()).split("\n")[0]!.toLowerCase()
          ).toBe(view)
        }
        await page.keyboard.press("1")
        await page.locator("main.view-files").waitFor()
        // The previous view is drawn again before the next key is handled.
        const isThere = await page.evaluate<boolean>(`(async () => {
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "4", bubbles: true }))
          for (let i = 0; i < 100; i++) await undefined
          return document.querySelector("main.view-slices").children.length > 0
        })()`)
        assert.isTrue(isThere)
        await page.keyboard.press("1")
        await page.locator("main.view-files").waitFor()
        await page.keyboard.press("?")
        const help = page.getByRole("dialog", { name: "Keys" })
        await help.waitFor()
        await soon(() => help.innerText()).toContain("Filter the files")
        // Keys go to the open help, not to the page below.
        await page.keyboard.press("2")
        assert.match(page.url(), /#\/files/)
        await page.keyboard.press("Escape")
        await help.waitFor({ state: "hidden" })
        await page.keyboard.press("?")
        await help.waitFor()
        // The next key goes to the page at once, although the close event comes later and the focus is lost when the
        // page is drawn.
        const isOpenAgain = await page.evaluate<boolean>(`(async () => {
          const dialog = document.querySelector("dialog")
          const closed = new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }))
          dialog.close()
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }))
          await closed
          await new Promise((resolve) => setTimeout(resolve))
          return dialog.open
        })()`)
        assert.isTrue(isOpenAgain)
        const focused = await page.evaluate<string | null>(`(() => {
          document.querySelector("dialog").close()
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }))
          return document.activeElement.getAttribute("role")
        })()`)
        assert.strictEqual(focused, "combobox")
        await page.keyboard.press("Escape")
        // In a text field, keys are letters.
        await page.keyboard.press("/")
        await page.keyboard.type("2t")
        assert.match(page.url(), /#\/files/)
        await soon(() => page.getByRole("combobox").inputValue()).toBe("2t")
      }))

    it("shows an earlier snapshot, and returns to the current files", async () => {
      await Effect.runPromise(served.snapshots.snapshot({ tag: "the first" }))
      await Effect.runPromise(served.fs.write("src/a.ts", "export const a = 'changed'\n"))
      await Effect.runPromise(served.fs.write("src/later.ts", "later\n"))
      await look(
        served,
        async (page) => {
          await row(page, "a.ts").click()
          await page.locator(".cm-line", { hasText: "changed" }).waitFor()
          // The keys go to the list as soon as the button was pressed, even before the list is drawn.
          await page.evaluate(`(async () => {
            const microtasks = async () => { for (let i = 0; i < 100; i++) await undefined }
            const press = async (key) => {
              document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))
              await microtasks()
            }
            const button = document.querySelector("[title='Shown snapshot']")
            button.focus()
            button.click()
            await microtasks()
            await press("ArrowDown")
            await press("Enter")
          })()`)
          await page.locator(".cm-line", { hasText: "a = 1" }).waitFor()
          await row(page, "later.ts").waitFor({ state: "detached" })
          await page.waitForURL(/at=/)
          await row(page, "b.ts").click()
          await page.locator(".cm-line", { hasText: "const b" }).waitFor()
          await page.waitForURL(/at=/)
          await page.goto(page.url().replace("b.ts", "later.ts"))
          await page.getByText("The path does not exist in this snapshot.").waitFor()
          await page.getByRole("link", { name: "Look for it now" }).click()
          await page.locator(".cm-line", { hasText: "later" }).waitFor()
        },
        { bears: [/status of 404/] }
      )
    })

    it("updates changed files, and keeps the scroll position", () =>
      look(served, async (page) => {
        const lines = Array.from({ length: 400 }, (_, i) => `const n${i + 1} = ${i + 1}`)
        await Effect.runPromise(served.fs.write("src/long.ts", lines.join("\n")))
        await row(page, "long.ts").click()
        await page.locator(".cm-scroller").waitFor()
        await page.locator(".cm-line").first().waitFor()
        await page.locator(".cm-scroller").evaluate((element: any) => element.scrollTo(0, 4000))
        await page.locator(".cm-line", { hasText: "const n205 " }).waitFor()
        const top = () =>
          page.locator(".cm-line", { hasText: "const n205 " }).evaluate((element: any) => element.getBoundingClientRect().top)
        const before = await top()
        const version = await page.locator(".version .mono").innerText()
        await Effect.runPromise(served.fs.write("src/long.ts", [...lines, "const after = 'all'"].join("\n")))
        await page.locator(".version .mono").filter({ hasNotText: version }).waitFor()
        await soon(top).toBe(before)
        await Effect.runPromise(served.fs.write("appears.txt", "here"))
        await row(page, "appears.txt").waitFor()
        await Effect.runPromise(served.fs.delete("appears.txt"))
        await row(page, "appears.txt").waitFor({ state: "detached" })
      }))

    it("shows either the tree or the file on a phone, fits the screen, and filters the files by the key /", () =>
      look(
        served,
        async (page) => {
          const overflow = () => page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")
          await soon(overflow).toBe(0)
          await row(page, "a.ts").tap()
          await page.locator(".cm-line").first().waitFor()
          await soon(() => page.getByRole("tree").isVisible()).toBe(false)
          await soon(overflow).toBe(0)
          for (const button of await page.locator(".header-end .icon-button").all()) {
            const box = await button.boundingBox()
            assert.isTrue(box !== null && box.width >= 32 && box.height >= 32 && box.x + box.width <= 390)
          }
          await page.getByRole("link", { name: "All files" }).last().tap()
          await page.getByRole("tree").waitFor()
          await soon(overflow).toBe(0)
          // Letters typed after the filter key go to the filter.
          await row(page, "a.ts").tap()
          await page.locator(".cm-line").first().waitFor()
          await page.keyboard.press("/")
          await page.keyboard.type("b.t")
          await soon(() => page.getByRole("combobox").inputValue()).toBe("b.t")
        },
        { options: phone }
      ))
  })

  it("shows the word Live only after the connection for live events is open", async () => {
    const served = await serveWorkspace(files)
    const context = await browser.newContext(desk)
    try {
      const page = await context.newPage()
      page.setDefaultTimeout(30_000)
      let listen = (): void => {}
      const may = new Promise<void>((resolve) => (listen = resolve))
      await page.route("**/api/live", async (route) => {
        await may
        await route.continue()
      })
      await page.goto(served.url)
      await row(page, "a.ts").waitFor()
      assert.strictEqual(await page.locator(".live").count(), 0)
      listen()
      await page.getByText("Live", { exact: true }).waitFor()
    } finally {
      await context.close()
      await served.close()
    }
  })

  it("reports that the server cannot be reached, and recovers when the server is back", async () => {
    const first = await serveWorkspace(files)
    let second: Served | undefined
    try {
      await look(
        first,
        async (page) => {
          await first.close()
          await page.getByText("The server does not answer.").waitFor()
          await soon(() => names(page)).toContain("a.ts")
          second = await serve({
            source: { filesystem: await Effect.runPromise(holding({ ...files, "new.txt": "" })), title: "workspace" },
            port: first.port
          })
          await row(page, "new.txt").waitFor()
          await page.getByText("The server does not answer.").waitFor({ state: "detached" })
        },
        { bears: [/ERR_/] }
      )
    } finally {
      await second?.close()
    }
  })

  it("reports that a workspace is not watched", async () => {
    const { port } = await Effect.runPromise(holding(files))
    const watch = () => Stream.fail({ _tag: "IoError" as const, code: "ENOSPC", detail: "no more watches" })
    const served = await serve({ source: { filesystem: make({ ...port, watch }), title: "workspace" } })
    try {
      await look(served, (page) => page.locator(".banner.warn", { hasText: "no more watches" }).waitFor())
    } finally {
      await served.close()
    }
  })

  it("switches to another dump, and loads a rewritten dump again on request", async () => {
    const directory = emptyDirectory()
    age(await dump(directory, "older", { "old.txt": "old", "both.txt": "of the older" }), 120)
    age(await dump(directory, "newer", { "new.txt": "new", "both.txt": "of the newer" }), 60)
    const served = await serve({ source: { dump: directory } })
    try {
      await look(served, async (page) => {
        await soon(() => names(page)).toEqual(["both.txt", "new.txt"])
        await page.getByRole("button", { name: "Shown dump" }).click()
        await soon(() => page.locator(".menu-label").allInnerTexts()).toMatchObject(
          [/newer/, /older/].map((one) => expect.stringMatching(one))
        )
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await row(page, "old.txt").waitFor()
        await row(page, "both.txt").click()
        await page.locator(".cm-line", { hasText: "of the older" }).waitFor()
        await dump(directory, "older", { "both.txt": "written again" })
        await page.getByText("This dump was written again").waitFor()
        // The shown content does not change before the reload.
        assert.strictEqual(await page.locator(".cm-line").innerText(), "of the older")
        const banner = page.locator(".banner", { hasText: "This dump was written again" })
        // The dump is rewritten again between the server's read and the page's answer.
        await page.route(
          "**/api/reload",
          async (route) => {
            const read = await route.fetch()
            await banner.waitFor({ state: "detached" })
            await dump(directory, "older", { "both.txt": "for the third time" })
            await banner.waitFor()
            await route.fulfill({ response: read })
          },
          { times: 1 }
        )
        await banner.getByRole("button", { name: "Reload" }).click()
        await page.locator(".cm-line", { hasText: "written again" }).waitFor()
        await row(page, "old.txt").waitFor({ state: "detached" })
        await banner.getByRole("button", { name: "Reload" }).click()
        await page.locator(".cm-line", { hasText: "for the third time" }).waitFor()
        await banner.waitFor({ state: "detached" })
      })
    } finally {
      await served.close()
    }
  })

  it("reports unreadable data until the message is dismissed, and shows the other data", async () => {
    const directory = emptyDirectory()
    const path = await dump(directory, "half", { "a.txt": "a" })
    Fs.writeFileSync(path.replace(/\.jsonl$/, ".fs.zip"), "no archive at all")
    const served = await serve({ source: { dump: directory } })
    const page = await browser.newPage(desk)
    try {
      await page.goto(served.url)
      await page.getByText("No files", { exact: true }).first().waitFor()
      const banner = page.locator(".banner.warn", { hasText: "archive" })
      await banner.waitFor()
      await page.locator(".tabs a", { hasText: "Slices" }).filter({ hasText: "1" }).waitFor()
      await banner.getByRole("button", { name: "Dismiss" }).click()
      await banner.waitFor({ state: "detached" })
    } finally {
      await page.close()
      await served.close()
    }
  })

  it("shows the names and contents of a hostile archive as text, which run no script and send no request", async () => {
    const script = "<script>window.hit=1</script>"
    const handler = `<img src=x onerror="window.hit=1">`
    const hostile: Files = {
      [`${handler}.txt`]: handler,
      "<b>bold<\u2215b>.md": `# ${script}${handler}`,
      "invoice\u202Efdp.exe": "not a PDF",
      "zero\u200Bwidth.txt": "",
      "README.md": [
        `# Hostile ${script}`,
        `${handler} <a href="javascript:window.hit=1" id=js>one</a> [two](javascript:window.hit=1) [three](JaVaScRiPt:window.hit=1)`,
        `[four](data:text/html,${encodeURIComponent(script)}) <svg><a xlink:href="javascript:window.hit=1"><text>five</text></a></svg>`,
        `<style>body{display:none}</style><link rel=stylesheet href="https://elsewhere.example/a.css">`,
        `<iframe srcdoc="${script}"></iframe><object data="https://elsewhere.example/o"></object><embed src="https://elsewhere.example/e">`,
        `<video src="https://elsewhere.example/v" poster="https://elsewhere.example/p" autoplay></video><audio src="https://elsewhere.example/au">`,
        `![remote](https://elsewhere.example/tracker.png) <img srcset="https://elsewhere.example/s.png 1x" src="//elsewhere.example/t.png">`,
        `<div style="background:url(https://elsewhere.example/bg)" onclick="window.hit=1">six</div>`,
        `<form action="https://elsewhere.example/f"><input name=q autofocus><button formaction="javascript:window.hit=1">seven</button></form>`,
        `<math><mtext></p><style><img src=x onerror="window.hit=1"></style></mtext></math>`,
        `<base href="https://elsewhere.example/"><meta http-equiv=refresh content="0;url=https://elsewhere.example/r">`,
        `<a id=app>clobbered</a><img name=body>`,
        "```html\n" + script + "\n```"
      ].join("\n\n"),
      "picture.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" onload="window.hit=1"><script>window.hit=1</script><image href="https://elsewhere.example/i.png" width="5" height="5"/></svg>`,
      "page.html": `<!doctype html>${script}${handler}`,
      "data.json": JSON.stringify({ [script]: handler, __proto__: null }),
      "bidi.ts": "if (a) { /* \u202E } \u2066 if (admin) \u2069 \u2066 */ }",
      "fake.png": script
    }
    const directory = emptyDirectory()
    await dump(directory, "hostile", hostile)
    const served = await serve({ source: { dump: directory } })
    try {
      await look(served, async (page) => {
        await page.getByRole("heading", { name: "Hostile" }).waitFor()
        const rows = page.getByRole("treeitem")
        await soon(async () => (await names(page)).length).toBe(Object.keys(hostile).length)
        const shown = await names(page)
        assert.include(shown, `${handler}.txt`)
        assert.include(shown, "invoice\\u{202E}fdp.exe")
        assert.include(shown, "zero\\u{200B}width.txt")
        for (let index = 0; index < shown.length; index++) {
          await rows.nth(index).click()
          await page.locator(".crumbs strong", { hasText: shown[index]!.slice(0, 8) }).waitFor()
          await page.locator(".cm-content, .markdown > *, figure img, .empty").first().waitFor()
          assert.notMatch(await page.title(), /\u202e|\u200b|\n/)
        }
        await row(page, "README.md").click()
        const article = page.locator(".markdown")
        await article.getByText("clobbered").waitFor()
        for (const link of await article.locator("a[href]").all()) {
          assert.match((await link.getAttribute("href"))!, /^(?:https:\/\/elsewhere\.example\/tracker\.png|#\/files.*)$/)
        }
        assert.deepStrictEqual(
          await article
            .locator("script, style, iframe, object, embed, form, video, svg, [onerror], [onclick], [style]")
            .count(),
          0
        )
        for (const word of ["one", "two", "three", "six"]) await article.getByText(word, { exact: true }).first().click()
        await row(page, "picture.svg").click()
        await page.getByRole("button", { name: "Text" }).click()
        await page.locator(".cm-line", { hasText: "window.hit" }).waitFor()
        await row(page, "bidi.ts").click()
        await soon(() => page.locator(".cm-specialChar").count()).toBe(4)
        assert.isUndefined(await page.evaluate("window.hit"))
        assert.strictEqual(await page.evaluate("document.querySelector('#app').tagName"), "DIV")
      })
    } finally {
      await served.close()
    }
  })
})
