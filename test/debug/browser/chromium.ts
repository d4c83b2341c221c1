/** A headless browser for the tests of the page. */
import { existsSync } from "node:fs"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { expect } from "@effect/vitest"

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path))

/** Tests whether Chromium is installed. If not, prints how to install it, or fails if no test may be skipped. `subject` names the skipped tests. */
export const hasChromium = (subject = "the debug view in a browser"): boolean => {
  if (program !== undefined) return true
  const lacking = `skipped: ${subject}, which needs Chromium; on Debian: apt-get install chromium`
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  console.log(lacking)
  return false
}

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: program!, args: ["--no-sandbox", "--disable-dev-shm-usage"] })

export const desk: BrowserContextOptions = { viewport: { width: 1280, height: 800 } }
export const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/**
 * Polls a page until it has the expected value, for at most 30 s. A page draws some time after an action, so a single
 * check would be a race.
 */
export const soon = <A>(look: () => Promise<A>) => expect.poll(look, { timeout: 30_000, interval: 25 })

/** Slows the page down eightfold in the soak, to find checks that do not poll. */
const slowDown = async (page: Page): Promise<void> => {
  if (process.env["FS_ALGEBRA_SOAK"] !== "1") return
  const session = await page.context().newCDPSession(page)
  await session.send("Emulation.setCPUThrottlingRate", { rate: 8 })
}

/**
 * Records the errors of a page: exceptions, errors and warnings on the console, dialogs, and requests to other origins than
 * `origin`. In the soak, also slows the page down.
 */
export const complaintsOf = (page: Page, origin: string): ReadonlyArray<string> => {
  // The page may have been closed already.
  slowDown(page).catch(() => {})
  const complaints: Array<string> = []
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`))
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(`console: ${message.text()}`)
  })
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on("request", (request) => {
    const url = request.url()
    if (!url.startsWith(origin) && !/^(?:data|blob|about):/.test(url)) complaints.push(`request: ${url}`)
  })
  return complaints
}
