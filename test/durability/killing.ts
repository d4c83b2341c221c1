/**
 * Starts writers, kills them, and checks the directory twice: right after the kill, and after a new program has started on it.
 * The rules are in `model.ts`.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { type Child, start } from "./children.ts"
import { type Dice, dice } from "./choice.ts"
import { apply, complaint, directory, type Found, look, mend, type Op, tailOf, type Tree } from "./model.ts"
import type { Entry, Orders } from "./writer.ts"

export interface Plan extends Pick<Orders, "durability" | "replacing" | "seed"> {
  /** The directory for all files of the run. Its entry `root` is the tree. */
  readonly directory: string
  readonly kills: number
  /** True to stop at the first complaint. @default false */
  readonly stopsAtFirst?: boolean
}

export interface Report {
  kills: number
  operations: number
  /** The number of kills inside an operation. */
  within: number
  /** The number of kills that left temporary files, and the number of these files. */
  littered: number
  left: number
  /** The number of kills that left a half-done operation on a tree, or a cut record. */
  partial: number
  readonly kinds: Record<string, number>
  readonly complaints: Array<string>
}

/** Returns the last acknowledged tree of the journal and the unfinished operation. */
const replay = (journal: string, before: Tree) => {
  let tree = before
  let op: Op | undefined
  let operations = 0
  let id = 0
  let failed: string | undefined
  const lines = Fs.existsSync(journal) ? Fs.readFileSync(journal, "utf8").split("\n").slice(0, -1) : []
  for (const entry of lines.map((line) => JSON.parse(line) as Entry)) {
    id = entry.id
    if (entry.failed !== undefined) failed = `${JSON.stringify(op)} failed with ${entry.failed}`
    else if (entry.op === undefined) {
      tree = apply(tree, op!)
      op = undefined
      operations++
    } else op = entry.op
  }
  return { tree, op, operations, id, failed }
}

const spin = (milliseconds: number): void => {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/** Kills the writer shortly after a random operation begins, or after a random time. */
const kill = async (child: Child, { below }: Dice): Promise<void> => {
  if (below(4) === 0) await new Promise((resolve) => setTimeout(resolve, below(150)))
  else {
    await child.dots(1 + below(25))
    spin(below(3000) / 1000)
  }
  child.process.kill("SIGKILL")
}

const directoriesOf = (tree: Tree): ReadonlyArray<string> => [
  "",
  ...[...tree.keys()].filter((path) => tree.get(path) === directory)
]

/** Runs a new program on the tree. It lists everything or writes to every directory. */
export const startAnew = (root: string, tree: Tree, writes: boolean): Promise<void> =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    if (!writes) return yield* Stream.runDrain(fs.walk())
    for (const path of directoriesOf(tree)) {
      yield* fs.write(join(path, "anew"), "anew")
      Fs.unlinkSync(join(root, path, "anew"))
    }
  }).pipe(Effect.provide(PosixHost.layer({ root })), Effect.orDie, Effect.runPromise)

const kindOf = (op: Op | undefined): string =>
  op === undefined ? "between" : op.kind === "write" ? `${op.mode} ${op.how}` : op.kind

/** Kills one writer after another on the same tree. Each writer continues where the previous one was killed. */
export const killLoop = async (plan: Plan): Promise<Report> => {
  const report: Report = { kills: 0, operations: 0, within: 0, littered: 0, left: 0, partial: 0, kinds: {}, complaints: [] }
  const root = join(plan.directory, "root")
  const cache = join(plan.directory, "cache")
  Fs.mkdirSync(root, { recursive: true })
  const random = dice(plan.seed)
  let tree: Tree = new Map()
  let id = 1
  const complain = (said: string): void => void report.complaints.push(`seed ${plan.seed}, kill ${report.kills}: ${said}`)

  const examine = (journal: string, before: Tree): { readonly found: Found; readonly op: Op | undefined } => {
    const past = replay(journal, before)
    const found = look(root, tailOf(past.op))
    const wrong = complaint(past.tree, past.op, found.tree)
    if (wrong !== undefined) complain(`${wrong}, in ${JSON.stringify(past.op)}`)
    if (past.failed !== undefined) complain(past.failed)
    id = Math.max(id, past.id + 1)
    report.operations += past.operations
    const isDone =
      past.op === undefined || [past.tree, apply(past.tree, past.op)].some((tree) => !complaint(tree, undefined, found.tree))
    report.within += past.op === undefined ? 0 : 1
    report.partial += isDone ? 0 : 1
    report.littered += found.hidden.length === 0 ? 0 : 1
    report.left += found.hidden.length
    const kind = kindOf(past.op)
    report.kinds[kind] = (report.kinds[kind] ?? 0) + 1
    return { found: mend(root, found), op: past.op }
  }

  const goOn = async ({ found, op }: ReturnType<typeof examine>): Promise<void> => {
    await startAnew(root, found.tree, report.kills % 2 === 0)
    const { hidden, tree } = look(root)
    const wrong = complaint(found.tree, undefined, tree)
    if (wrong !== undefined) complain(`the next start changed something: ${wrong}`)
    for (const path of hidden) {
      complain(`the next start leaves ${path}, of ${JSON.stringify(op)}`)
      Fs.rmSync(join(root, path), { recursive: true })
    }
  }

  let next = start("writer.ts", cache)
  while (report.kills < plan.kills && !(plan.stopsAtFirst === true && report.complaints.length > 0)) {
    const child = next
    report.kills++
    await child.dots(0)
    next = start("writer.ts", cache)
    const journal = join(plan.directory, `journal-${report.kills}`)
    const { durability, replacing } = plan
    child.say({ root, journal, durability, replacing, seed: random.below(2 ** 31), tree: [...tree], id } satisfies Orders)
    await kill(child, random)
    const { errors, signal } = await child.ended
    if (signal !== "SIGKILL") {
      complain(`the writer ended by itself: ${errors}`)
      break
    }
    const left = examine(journal, tree)
    await goOn(left)
    ;({ tree } = left.found)
    Fs.rmSync(journal, { force: true })
  }
  next.process.kill("SIGKILL")
  await next.ended
  return report
}
