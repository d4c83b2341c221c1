/**
 * Checkpoints shorten the start of a leaf. A running leaf appends an entry with the position up to which every request has an answer. The
 * next leaf finds the latest checkpoint and starts reading there. A checkpoint of another installation, or one that does not match the
 * journal, is ignored. Without a valid checkpoint, the leaf reads the journal from its beginning.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import * as FsPath from "../../model/FsPath.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Installation from "../../runtime/installation.ts"
import { LeafCheckpoint } from "../entries/checkpoint.ts"
import type { JournalError } from "../errors.ts"
import { isEfferent, isTerminal } from "../FileSystemEntry.ts"
import { Entry, type Recorded, type Scrivener } from "../Journal.ts"
import type { Answered } from "./answered.ts"
import * as Registry from "./registry.ts"

/** The least number of positions between checkpoints. After twice as many, any leaf of the installation appends one. */
const checkpointInterval = 1_024

const maxSearchedPositions = 65_536

/** The leaves at a position up to which every request has an answer. */
export interface CheckpointState {
  readonly position: number
  readonly leaves: Registry.Registry
  /** Leaves that do not announce their changes, and have not ended normally. */
  readonly silent: ReadonlyMap<string, Registry.AnnouncedLeaf>
}

export const journalStart: CheckpointState = { position: 0, leaves: Registry.empty(), silent: new Map() }

const encode = Schema.encodeEffect(Schema.toCodecJson(Entry))

const digestAt = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  position: number
): Effect.fn.Return<string | undefined, JournalError> {
  const found = yield* Stream.runHead(journal.stored(position - 1)).pipe(
    Effect.map(Option.getOrUndefined),
    Effect.catchIf(
      ({ reason }) => reason === "compacted",
      () => Effect.undefined
    )
  )
  if (found?.position !== position) return undefined
  return sha256(Buffer.from(JSON.stringify([position, found.at, yield* Effect.orDie(encode(found.entry))])))
})

type CheckpointFields = Pick<LeafCheckpoint, "through" | "digest" | "leaves">

const authenticatedText = ({ digest, leaves, through }: CheckpointFields): string =>
  `journal checkpoint ${JSON.stringify([
    through,
    digest,
    leaves.map(({ daemon, instance, prefix, position, extended, grace, running, down, unfinished, silent }) => [
      daemon,
      instance,
      prefix,
      position,
      extended,
      grace,
      running,
      down,
      unfinished,
      silent
    ])
  ])}`

const stateOf = ({ leaves, through }: CheckpointFields): CheckpointState | undefined => {
  const running: Array<Registry.AnnouncedLeaf> = []
  const down: Array<Registry.AnnouncedLeaf> = []
  const unfinished = new Map<string, Registry.AnnouncedLeaf>()
  const silent = new Map<string, Registry.AnnouncedLeaf>()
  for (const leaf of leaves) {
    const prefix = FsPath.parse(leaf.prefix, "branch")
    if (typeof prefix !== "string" || leaf.position > through) return undefined
    const { daemon, extended, grace, instance, position } = leaf
    const announced = { daemon, instance, prefix, extended, grace, position }
    if (leaf.running) running.push(announced)
    if (leaf.down) down.push(announced)
    if (leaf.unfinished) unfinished.set(instance, announced)
    if (leaf.silent) silent.set(instance, announced)
  }
  return { position: through, leaves: Registry.make({ running, unfinished, down }), silent }
}

const trustedState = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  fields: LeafCheckpoint,
  position: number
): Effect.fn.Return<CheckpointState | undefined, JournalError> {
  if (fields.through < 1 || fields.through >= position || !Installation.isSignatureOf(authenticatedText(fields), fields.code))
    return undefined
  return (yield* digestAt(journal, fields.through)) === fields.digest ? stateOf(fields) : undefined
})

/** Returns the state of the latest valid checkpoint before the position, or of the beginning of the journal. */
export const latestCheckpoint = (journal: Scrivener<Entry>, before: number): Effect.Effect<CheckpointState, JournalError> =>
  journal.readBackward(before).pipe(
    Stream.takeWhile(({ position }) => position > before - maxSearchedPositions),
    Stream.filter(({ entry }) => entry._tag === "LeafCheckpoint"),
    Stream.mapEffect(({ entry, position }) => trustedState(journal, entry as LeafCheckpoint, position)),
    Stream.filter((found) => found !== undefined),
    Stream.runHead,
    Effect.map(Option.getOrElse(() => journalStart))
  )

export interface Checkpoints {
  /** Observes an entry, after `answered` has. */
  readonly observe: (recorded: Recorded<Entry>) => void
  /** Appends a checkpoint if one is due and this leaf has to write it. */
  readonly appendIfDue: () => Effect.Effect<void> | undefined
}

export const make = (
  journal: Scrivener<Entry>,
  me: Registry.AnnouncedLeaf,
  answered: Pick<Answered, "has">,
  from: CheckpointState
): Checkpoints => {
  /** The positions of unanswered requests of all leaves, in order. */
  const open = new Map<string, number>()
  let states: Array<CheckpointState> = [from]
  let position = from.position
  let lastCheckpointPosition = from.position

  const recordLeaf = (entry: Extract<Entry, { readonly _tag: "DaemonChanged" }>): void => {
    const last = states.at(-1)!
    const leaves = last.leaves.copy()
    const silent = new Map(last.silent)
    const announced = leaves.observe(entry, position)
    if (announced?.extended === false) silent.set(entry.instance, announced)
    if (entry.status === "Completed" && entry.failure === undefined) silent.delete(entry.instance)
    states.push({ position, leaves, silent })
  }

  const through = (): number => (open.values().next().value ?? position + 1) - 1

  const stateAt = (wanted: number): CheckpointState => {
    const at = states.findLastIndex((state) => state.position <= wanted)
    states = states.slice(Math.max(0, at))
    return { ...states[0]!, position: wanted }
  }

  const append = Effect.fnUntraced(function* (state: CheckpointState): Effect.fn.Return<void, JournalError> {
    const digest = yield* digestAt(journal, state.position)
    if (digest === undefined) return
    const running = state.leaves.running()
    const down = state.leaves.down()
    // The order of the running leaves determines the first leaf.
    const all = new Map(
      [...running, ...down, ...state.leaves.unfinished.values(), ...state.silent.values()].map((leaf) => [leaf.instance, leaf])
    )
    const leaves = [...all.values()].map(({ daemon, extended, grace, instance, position, prefix }) => ({
      daemon,
      instance,
      prefix,
      extended,
      grace,
      position,
      running: running.some((leaf) => leaf.instance === instance),
      down: down.some((leaf) => leaf.instance === instance),
      unfinished: state.leaves.unfinished.has(instance),
      silent: state.silent.has(instance)
    }))
    const fields = { through: state.position, digest, leaves }
    yield* journal.append(new LeafCheckpoint({ ...fields, code: Installation.signName(authenticatedText(fields)) }))
  })

  return {
    observe: (recorded) => {
      position = recorded.position
      const { entry } = recorded
      if (entry._tag === "DaemonChanged") recordLeaf(entry)
      else if (entry._tag === "LeafCheckpoint") {
        // A checkpoint of another installation is useless for the leaves of this one.
        if (Installation.isSignatureOf(authenticatedText(entry), entry.code))
          lastCheckpointPosition = Math.max(lastCheckpointPosition, Math.min(entry.through, position))
      } else if (isTerminal(entry)) open.delete(entry.correlationId)
      else if (isEfferent(entry)) {
        if (entry._tag === "FileWriteChunk" && entry.discard === true) open.delete(entry.correlationId)
        else if (!answered.has(entry.correlationId) && !open.has(entry.correlationId)) open.set(entry.correlationId, position)
      }
    },
    appendIfDue: () => {
      if (!me.extended || position <= me.position || through() - lastCheckpointPosition < checkpointInterval) return undefined
      const wanted = through()
      const writer = states
        .at(-1)!
        .leaves.running()
        .find(({ extended }) => extended)
      // The first leaf may belong to another installation, so this leaf appends after twice the interval.
      if (writer?.instance !== me.instance && wanted - lastCheckpointPosition < 2 * checkpointInterval) return undefined
      lastCheckpointPosition = wanted
      return Effect.ignore(append(stateAt(wanted)))
    }
  }
}
