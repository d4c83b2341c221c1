/**
 * A backend that answers from a recording. The key of a step is a description of its request. Steps with the same key
 * get their answers in the recorded order. Temporary names of the library are random, so keys contain one fixed name in
 * their place.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/realms.ts"
import type { FileStat } from "../../model/Entry.ts"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend, Child, Handle, Rules, WriteHow } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { sha256 } from "../../runtime/hash.ts"
import { make as makeLocks } from "../../runtime/locks.ts"
import type { JournalError } from "../errors.ts"
import { portModes } from "../entries/kinds.ts"
import { digestOf as contentDigest, faultOf as faultOfEntry, sizedStat, statOf } from "../entries/values.ts"
import type { FileContent, Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { isStep } from "../record/steps.ts"
import { digestFieldsOf, type Operation, operations } from "./operations.ts"
import { HiddenNames } from "./paths.ts"

export interface Options {
  readonly caseInsensitive?: boolean | undefined
  readonly rules?: Rules | undefined
}

interface RecordedAnswer {
  readonly answer: Terminal
  readonly isCommitCalled: boolean
}

const temporaryName = ".~fsa-*.tmp"

const nameTemporaries =
  (hidden: HiddenNames) =>
  (path: FsPath.FsPath): string =>
    path.includes(".~")
      ? FsPath.segments(path)
          .map((segment) => (hidden.hasName(segment) ? temporaryName : segment))
          .join("/")
      : path

/** Returns functions that describe each step in words, because the error for a missing step contains its key. */
const keysOf = (nameOf: (path: FsPath.FsPath) => string) => ({
  stat: (path: FsPath.FsPath) => `stat ${nameOf(path)}`,
  list: (path: FsPath.FsPath) => `list ${nameOf(path)}`,
  open: (path: FsPath.FsPath) => `open ${nameOf(path)}`,
  read: (path: FsPath.FsPath, offset: number, length: number) => `read ${nameOf(path)} from ${offset}, ${length} bytes`,
  readLink: (path: FsPath.FsPath) => `readLink ${nameOf(path)}`,
  write: (path: FsPath.FsPath, mode: "create" | "replace" | "append", hash: string) =>
    `write ${nameOf(path)}, ${mode}, content ${hash}`,
  makeDirectory: (path: FsPath.FsPath) => `mkdir ${nameOf(path)}`,
  remove: (path: FsPath.FsPath) => `delete ${nameOf(path)}`,
  removeTree: (path: FsPath.FsPath) => `delete ${nameOf(path)} and all in it`,
  rename: (from: FsPath.FsPath, to: FsPath.FsPath) => `move ${nameOf(from)} to ${nameOf(to)}`,
  makeLink: (path: FsPath.FsPath, target: string) => `symlink ${nameOf(path)} to ${target}`,
  setAttributes: (path: FsPath.FsPath) => `setAttributes ${nameOf(path)}`
})

type Keys = ReturnType<typeof keysOf>

const keyOf = (journal: Scrivener<Entry>, keys: Keys, operation: Operation): Effect.Effect<string, JournalError> => {
  const { asked, parts, path, to } = operation
  switch (asked._tag) {
    case "FileStat":
      return Effect.succeed(keys.stat(path))
    case "FileList":
      return Effect.succeed(keys.list(path))
    case "FileRead":
      return Effect.succeed(
        asked.length === undefined
          ? keys.readLink(path)
          : asked.offset === undefined
            ? keys.open(path)
            : keys.read(path, asked.offset, asked.length)
      )
    case "FileWrite":
    case "FileWriteChunk":
      return Effect.map(digestFieldsOf(journal, parts), ({ sha256 }) =>
        keys.write(path, portModes[asked.createMode ?? "overwrite"], sha256)
      )
    case "FileMakeDirectory":
      return Effect.succeed(keys.makeDirectory(path))
    case "FileDelete":
      return Effect.succeed(asked.recursive === true ? keys.removeTree(path) : keys.remove(path))
    case "FileMove":
      return Effect.succeed(keys.rename(path, to!))
    case "FileMakeLink":
      return Effect.succeed(keys.makeLink(path, asked.target))
    case "FileSetAttributes":
      return Effect.succeed(keys.setAttributes(path))
    case "FileEdit":
      return Effect.succeed(`edit ${path}`)
  }
}

interface Recording {
  readonly answers: Map<string, Array<RecordedAnswer>>
  readonly keys: Keys
}

const readRecording = Effect.fnUntraced(function* (journal: Scrivener<Entry>): Effect.fn.Return<Recording, JournalError> {
  const hidden = new HiddenNames()
  // Collect all temporary names first, because a step may use a name before another step creates it.
  yield* Stream.runForEachArray(operations(journal), (some) => Effect.sync(() => some.forEach((one) => hidden.observe(one))))
  const keys = keysOf(nameTemporaries(hidden))
  const answers: Recording["answers"] = new Map()
  yield* Stream.runForEach(operations(journal), (operation) => {
    const { answered, asked, started } = operation
    if (answered === undefined || !isStep(asked.correlationId)) return Effect.void
    return Effect.map(keyOf(journal, keys, operation), (key) => {
      const known = answers.get(key) ?? []
      known.push({ answer: answered.answer, isCommitCalled: started !== undefined })
      answers.set(key, known)
    })
  })
  return { answers, keys }
})

const faultOf = (answer: Terminal): Fault | undefined => (answer._tag === "FileFault" ? faultOfEntry(answer) : undefined)

const missingReadsHint = ({ answers }: Recording): string =>
  [...answers.keys()].some((key) => /^(?:stat|list|open) /.test(key))
    ? ""
    : "; the journal contains no reads: record it with Journal.record({ reads: true })"

const make = (journal: Scrivener<Entry>, recording: Recording, options: Options): Backend => {
  const { keys } = recording
  const takeAnswer = (key: string): Effect.Effect<RecordedAnswer, Fault> =>
    Effect.suspend(() => {
      const answers = recording.answers.get(key)
      const answered = answers?.shift()
      if (answered !== undefined) return Effect.succeed(answered)
      const why = answers === undefined ? "this step was never recorded" : "all recorded answers to this step are used"
      const detail = `the recording has no answer, because ${why}: ${key}${missingReadsHint(recording)}`
      return Effect.fail(unavailable(detail))
    })
  const takeSuccess = (key: string): Effect.Effect<Terminal, Fault> =>
    Effect.flatMap(takeAnswer(key), ({ answer }) => {
      const fault = faultOf(answer)
      return fault === undefined ? Effect.succeed(answer) : Effect.fail(fault)
    })
  const bytesOf = ({ content }: FileContent): Effect.Effect<Uint8Array, Fault> =>
    Effect.mapError(journal.bytes(content), (error) => unavailable(error.message))
  const content = (key: string): Effect.Effect<FileContent, Fault> =>
    Effect.flatMap(takeSuccess(key), (answer) =>
      answer._tag === "FileContent"
        ? Effect.succeed(answer)
        : Effect.fail(unavailable(`the recorded answer to this step is a ${answer._tag} instead of a FileContent: ${key}`))
    )

  const open: Backend["open"] = (path) =>
    Effect.map(content(keys.open(path)), ({ stat }): Handle => ({
      stat: stat!,
      read: (offset, length) => Effect.flatMap(content(keys.read(path, offset, length)), bytesOf)
    }))

  const hashOf = <E, R>(bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>): Effect.Effect<string, E, R> =>
    isBytes(bytes) ? Effect.sync(() => sha256(bytes)) : Effect.map(contentDigest(bytes), ({ sha256 }) => sha256)

  const writtenStat = (path: FsPath.FsPath, answer: Terminal): FileStat =>
    answer._tag === "FileWritten" ? (answer.stat ?? sizedStat(path, answer.bytesWritten)) : sizedStat(path, 0)

  const write = <E, R>(
    path: FsPath.FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace" | "append",
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(hashOf(bytes), (hash) =>
      Effect.flatMap(takeAnswer(keys.write(path, mode, hash)), ({ answer, isCommitCalled }): Effect.Effect<FileStat, Fault> => {
        const fault = faultOf(answer)
        const publish = fault === undefined ? Effect.succeed(writtenStat(path, answer)) : Effect.fail(fault)
        return isCommitCalled && how?.commit !== undefined ? how.commit(publish) : publish
      })
    )

  const readLink = (path: FsPath.FsPath): Effect.Effect<string, Fault> =>
    Effect.map(Effect.flatMap(content(keys.readLink(path)), bytesOf), (bytes) => new TextDecoder().decode(bytes))

  return {
    info: {
      name: "Recorded",
      root: "/",
      caseSensitive: options.caseInsensitive !== true,
      readOnly: false,
      confinement: "virtual"
    },
    stat: (path) =>
      Effect.flatMap(takeAnswer(keys.stat(path)), ({ answer }): Effect.Effect<FileStat | undefined, Fault> => {
        if (answer._tag === "FileMetadata") return Effect.succeed(statOf(path, answer))
        const fault = faultOf(answer)!
        return fault._tag === "NotFound" ? Effect.undefined : Effect.fail(fault)
      }),
    list: (path) =>
      Effect.map(takeSuccess(keys.list(path)), (answer): ReadonlyArray<Child> =>
        answer._tag !== "FileListing"
          ? []
          : answer.entries.map(({ addressable, kind, name, path, sizeBytes }) => ({
              name,
              kind,
              addressable,
              ...(path === (name as string) ? {} : { key: path }),
              ...(sizeBytes === undefined ? {} : { sizeBytes })
            }))
      ),
    open,
    write,
    makeDirectory: (path) => Effect.asVoid(takeSuccess(keys.makeDirectory(path))),
    remove: (path) => Effect.asVoid(takeSuccess(keys.remove(path))),
    rename: (from, to) => Effect.asVoid(takeSuccess(keys.rename(from, to))),
    links: {
      read: readLink,
      make: (path, target) => Effect.asVoid(takeSuccess(keys.makeLink(path, target)))
    },
    attributes: { set: (path) => Effect.asVoid(takeSuccess(keys.setAttributes(path))) },
    rules: options.rules,
    locks: makeLocks({ caseSensitive: options.caseInsensitive !== true }),
    perform: hasTreeRemovals(recording)
      ? Request.handlers({
          RemoveTree: ({ path }) =>
            Effect.map(takeSuccess(keys.removeTree(path)), (answer) =>
              Option.some(
                answer._tag === "FileDeleted"
                  ? { deleted: answer.deletedCount, directories: answer.directories ?? 0 }
                  : { deleted: 0, directories: 0 }
              )
            )
        })
      : undefined
  }
}

/** Tests whether the recorded backend removed trees in one step. If not, the engine removes a tree file by file. */
const hasTreeRemovals = ({ answers }: Recording): boolean => [...answers.keys()].some((key) => key.endsWith(" and all in it"))

export const makeRecordedBackend = (journal: Scrivener<Entry>, options: Options = {}): Effect.Effect<Backend, JournalError> =>
  Effect.map(readRecording(journal), (recording) => make(journal, recording, options))
