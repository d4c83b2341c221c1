/** The data that the process of a table passes to the report. */
import type { Size } from "./corpus.ts"
import type { Delay, Timing } from "./measure.ts"
import type { Target } from "./tables.ts"

export interface Row {
  readonly id: string
  readonly name: string
  /** Differences from the first peer's answer. A wrong peer is not timed. */
  readonly wrong: ReadonlyArray<string>
  readonly timing?: Timing
  readonly delay?: Delay
  /** MiB beyond an idle process; absent if the answer never reaches this process. */
  readonly memory?: number
}

export interface Result {
  readonly id: string
  readonly results: number
  readonly size: Size
  /** The number of files left out of the comparison of answers, because they are not text. */
  readonly left: number
  readonly idle: Delay
  readonly rows: ReadonlyArray<Row>
}

export interface Verdict {
  readonly what: string
  readonly bound: string
  readonly measured: string
  readonly held: boolean
}

export const medianOf = (result: Result, id: string): number | undefined =>
  result.rows.find((row) => row.id === id)?.timing?.median

/** The limit for a synchronous slice. */
const sliceMs = 20

const ratio = (result: Result, { beside, bound, ours }: Target): ReadonlyArray<Verdict> => {
  const [a, b] = [medianOf(result, ours), medianOf(result, beside)]
  const name = (id: string) => result.rows.find((row) => row.id === id)?.name
  if (name(beside) === undefined) return []
  const measured = a === undefined || b === undefined ? "not measured" : (a / b).toFixed(2)
  const held = a !== undefined && b !== undefined && a / b <= bound
  return [{ what: `${name(ours)}, beside ${name(beside)}`, bound: `≤ ${bound}`, measured, held }]
}

const firsts = (result: Result, bound: number): ReadonlyArray<Verdict> =>
  result.rows.flatMap(({ id, name, timing }) =>
    id !== "ours-stream" || timing?.firstMs === undefined
      ? []
      : [
          {
            what: `${name}: first result`,
            bound: `≤ ${bound} ms`,
            measured: `${timing.firstMs.toFixed(1)} ms`,
            held: timing.firstMs <= bound
          }
        ]
  )

const slices = (result: Result): ReadonlyArray<Verdict> =>
  result.rows.flatMap(({ delay, name }) =>
    delay === undefined
      ? []
      : [
          {
            what: `${name}: longest wait of the event loop`,
            bound: `≤ ${sliceMs} ms`,
            measured: `${delay.max.toFixed(1)} ms`,
            held: delay.max <= sliceMs
          }
        ]
  )

export const verdicts = (
  result: Result,
  { firstMs, targets }: { readonly targets: ReadonlyArray<Target>; readonly firstMs?: number | undefined }
): ReadonlyArray<Verdict> => [
  ...targets.flatMap((target) => ratio(result, target)),
  ...(firstMs === undefined ? [] : firsts(result, firstMs)),
  ...slices(result)
]
