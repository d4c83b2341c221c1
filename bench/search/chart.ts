/** Draws horizontal bars as a picture that needs no other file, and is readable on light and on dark pages. */

export interface Bar {
  readonly name: string
  readonly ms: number
  readonly min: number
  readonly max: number
  /** The ratio to the baseline, as text. */
  readonly ratio: string
  readonly kind: "ours" | "baseline" | "other"
}

const [names, plot, labels, line, top] = [370, 400, 160, 26, 40]

/** Longer bars than this multiple of the baseline are cut with a notch, so the others can be distinguished. */
const most = 6

const escaped = (text: string): string => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)

const style = `
  text { font: 13px system-ui, sans-serif; fill: #4d5561 }
  .title { font-weight: 600; fill: #24292f }
  .ours { fill: #0969da } .baseline { fill: #bc6c00 } .other { fill: #8c959f }
  .spread { stroke: #24292f; stroke-width: 1.5; opacity: .7 }
  .notch { stroke: #fff; stroke-width: 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #b1bac4 } .title { fill: #f0f6fc }
    .ours { fill: #4493f8 } .baseline { fill: #d29922 } .other { fill: #6e7681 }
    .spread { stroke: #f0f6fc } .notch { stroke: #0d1117 }
  }`

const bar = (scale: (ms: number) => number, { kind, max, min, ms, name, ratio }: Bar, index: number): string => {
  const y = top + index * line
  const [width, from, to] = [scale(ms), names + scale(min), names + scale(max)]
  const clipped = width >= plot
  const notch = clipped ? `<path class="notch" d="M${names + plot - 14} ${y + 22}l8 -22"/>` : ""
  const spread = clipped ? "" : `<path class="spread" d="M${from.toFixed(1)} ${y + 11}H${to.toFixed(1)}"/>`
  const end = names + (clipped ? plot : Math.max(width, to - names)) + 8
  const label = `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms${ratio === "" ? "" : ` · ${ratio}`}`
  return [
    `<text x="${names - 8}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>`,
    `<rect class="${kind}" x="${names}" y="${y + 2}" width="${Math.max(1, width).toFixed(1)}" height="18" rx="2"/>`,
    `${spread}${notch}<text x="${end.toFixed(1)}" y="${y + 15}">${label}</text>`
  ].join("")
}

export const draw = (title: string, bars: ReadonlyArray<Bar>, cut = most): string => {
  const least = bars.find(({ kind }) => kind === "baseline")?.ms ?? Math.min(...bars.map(({ ms }) => ms))
  const widest = Math.min(cut * least, Math.max(...bars.map(({ max }) => max)))
  const scale = (ms: number): number => Math.min(plot, (ms / widest) * plot)
  const [width, height] = [names + plot + labels, top + bars.length * line + 8]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}\n</style>`,
    `<text class="title" x="8" y="22">${escaped(title)}</text>`,
    ...bars.map((one, index) => bar(scale, one, index)),
    "</svg>\n"
  ].join("\n")
}
