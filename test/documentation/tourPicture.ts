/**
 * Makes the picture of the tour: its real output on a copy of this project, in a terminal of a hundred columns, drawn
 * by Chromium.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { launch } from "../debug/browser/chromium.ts"
import { onDisk } from "../scratch.ts"
import { toHtml } from "./ansi.ts"
import { root } from "./markdown.ts"
import { save } from "./palette.ts"

const columns = 100

/** Copies the committed files to a path that reveals nothing of this machine. */
const copied = (): string => {
  const directory = join(onDisk(), "fs-algebra")
  Fs.mkdirSync(directory)
  execFileSync("sh", ["-c", 'git archive HEAD | tar -xf - -C "$0"', directory], { cwd: root })
  return directory
}

const output = (): string => {
  const directory = copied()
  try {
    const command = `stty cols ${columns}; exec "${process.execPath}" "${join(root, "src/cli/bin.ts")}"`
    const text = execFileSync("script", ["-qec", command, "/dev/null"], { cwd: directory, encoding: "utf8" })
    const lines = text.replaceAll("\r\n", "\n").replaceAll(/[^\n]*\r\u001b\[K/g, "")
    // Only the steps are shown; the README has the next steps.
    return lines
      .replaceAll(directory, "~/fs-algebra")
      .split(/\n[^\n]*Where to go next/, 1)[0]!
      .trim()
  } finally {
    Fs.rmSync(directory, { recursive: true })
  }
}

const page = (ansi: string): string => `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; background: transparent; }
  #card { display: inline-block; margin: 0; background: #16181d; color: #d4d7dd; border-radius: 12px; overflow: hidden; }
  #bar { display: flex; gap: 8px; align-items: center; padding: 11px 14px; background: #20232a; }
  #bar i { width: 11px; height: 11px; border-radius: 50%; background: #4a4f5a; }
  #bar b { flex: 1; text-align: center; margin-right: 50px; font: 500 12px "DejaVu Sans", sans-serif; color: #8b919c; }
  pre { width: calc(${columns}ch + 4px); margin: 0; padding: 16px 20px 20px; font: 12.5px/1.48 "DejaVu Sans Mono", monospace;
    white-space: pre-wrap; overflow-wrap: anywhere; word-break: break-all; tab-size: 8; }
  .bold { font-weight: 700; color: #f3f4f6 } .dim { color: #7d838e }
  .red { color: #ef7a80 } .green { color: #8fce8b } .yellow { color: #e3c27a } .blue { color: #7db1f5 }
  .magenta { color: #d397e8 } .cyan { color: #6fcbd6 }
</style><div id="card"><div id="bar"><i></i><i></i><i></i><b>fs-algebra</b></div><pre><span class="green">$</span> npm start

${toHtml(ansi)}</pre></div>`

/** Writes the picture to the file. */
export const makeTourPicture = async (file: string): Promise<void> => {
  const browser = await launch()
  try {
    const tab = await browser.newPage({ deviceScaleFactor: 2, viewport: { width: 1100, height: 900 } })
    await tab.setContent(page(output()))
    await save(tab, await tab.locator("#card").screenshot({ omitBackground: true }), file)
  } finally {
    await browser.close()
  }
}
