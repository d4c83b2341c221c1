import * as Effect from "effect/Effect"
import { type Algebra, make as makeFilesystem } from "../../filesystem/Filesystem.ts"
import type { FileEntry, FileStat as Stat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, follow, type Handle, keyOf, type Links } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import * as Correlation from "../Correlation.ts"
import { FileContent, FileFault, FileList, FileListing, FileMetadata, FileRead, FileStat } from "../FileSystemEntry.ts"
import { type Entry, Journal, type Scrivener } from "../model.ts"
import { make } from "../entries/kinds.ts"
import { metadataOf } from "../entries/values.ts"
import { ownAppendOf } from "../store/memoryStore.ts"
import * as Changing from "./changes.ts"
import * as RecentContents from "./recentContents.ts"
import * as Faults from "./steps.ts"
import { recordRequest, type StepRecorder } from "./steps.ts"
import { type RecordContext, write } from "./writes.ts"

// Records reads for `Replay.double`: each stat, list and open at the port, and each read of an open file. An open is recorded
// as a read of 0 bytes. Reading a link is recorded as a read without a length, whose content is the target text.

const recordRead = <A, R>(
  recorder: StepRecorder,
  path: FsPath.FsPath,
  operation: string,
  asked: (id: string) => Entry,
  run: Effect.Effect<A, Fault, R>,
  answer: (id: string, value: A) => Entry
): Effect.Effect<A, Fault, R> =>
  Effect.suspend(() => {
    const id = recorder.nextId()
    const runAndAnswer = Effect.matchEffect(run, {
      onFailure: (fault): Effect.Effect<A, Fault> =>
        Effect.andThen(recordRequest(recorder, Faults.faultAnswer(id, operation, path, fault)), Effect.fail(fault)),
      onSuccess: (value) => Effect.as(recordRequest(recorder, answer(id, value)), value)
    })
    return Effect.andThen(recordRequest(recorder, asked(id)), runAndAnswer)
  })

const metadataAnswer = (id: string, stat: Stat): Entry => make(FileMetadata, { correlationId: id, ...metadataOf(stat) })

const notFoundAnswer = (id: string, path: FsPath.FsPath): Entry =>
  make(FileFault, { correlationId: id, faultKind: "NotFound", path, message: "the entry does not exist" })

/** Returns the entry of a listing for a child. The path of the entry is the key of the child at the port. */
const listedEntry = (child: Child): FileEntry => ({
  name: child.name,
  path: keyOf(child) as FsPath.FsPath,
  kind: child.kind,
  isFile: child.kind === "file",
  isDirectory: child.kind === "directory",
  addressable: child.addressable,
  ...(child.sizeBytes === undefined ? {} : { sizeBytes: child.sizeBytes })
})

const content = (id: string, stat: Stat, bytes: Uint8Array): Entry =>
  make(FileContent, {
    correlationId: id,
    content: bytes,
    totalSize: stat.sizeBytes,
    isPartial: bytes.length !== stat.sizeBytes,
    stat
  })

const recordedHandle = (recorder: StepRecorder, path: FsPath.FsPath, { read, stat }: Handle): Handle => ({
  stat,
  read: (offset, length) =>
    recordRead(
      recorder,
      path,
      "read",
      (id) => make(FileRead, { correlationId: id, path, offset, length }),
      read(offset, length),
      (id, bytes) => content(id, stat, bytes)
    )
})

const noBytes = new Uint8Array(0)

const recordReads = (recorder: StepRecorder, self: Backend): Pick<Backend, "stat" | "list" | "open"> => ({
  stat: (path) =>
    recordRead(
      recorder,
      path,
      "stat",
      (id) => make(FileStat, { correlationId: id, path }),
      self.stat(path),
      (id, stat) => (stat === undefined ? notFoundAnswer(id, path) : metadataAnswer(id, stat))
    ),
  list: (path) =>
    recordRead(
      recorder,
      path,
      "list",
      (id) => make(FileList, { correlationId: id, path }),
      self.list(path),
      (id, children) => make(FileListing, { correlationId: id, entries: children.map(listedEntry) })
    ),
  open: (path) =>
    Effect.map(
      recordRead(
        recorder,
        path,
        "open",
        (id) => make(FileRead, { correlationId: id, path, length: 0 }),
        self.open(path),
        (id, { stat }) => content(id, stat, noBytes)
      ),
      (handle) => recordedHandle(recorder, path, handle)
    )
})

const readLink =
  (recorder: StepRecorder, links: Links, purpose: "read" | "follow"): Links["read"] =>
  (path) =>
    recordRead(
      recorder,
      path,
      "readLink",
      (id) => make(FileRead, { correlationId: id, path }),
      purpose === "read" ? links.read(path) : Effect.map(follow(links, path), (text) => relativeTarget(links, path, text)),
      (id, target) => {
        const bytes = new TextEncoder().encode(target)
        const stat: Stat = {
          path,
          kind: "symlink",
          isFile: false,
          isDirectory: false,
          sizeBytes: bytes.length,
          isSymlink: true
        }
        return content(id, stat, bytes)
      }
    )

/**
 * The options of `record`.
 *
 * @since 0.1.0
 */
export interface RecordOptions {
  /**
   * True if reads are recorded too, as `Replay.double` needs: stat, list, open and each read. Turns accelerations of reads off.
   * @default false
   */
  readonly reads?: boolean | undefined
  /**
   * True if an answer includes the data that the change removed. `Replay` reads the former state from this data, and
   * `Replay.undo` restores it.
   *
   * @default true
   */
  readonly previous?: boolean | undefined
}

const performOf = ({ previous, reads, self }: RecordContext): Request.Perform | undefined =>
  Request.only(
    self.perform,
    new Set<Request.Tag>([...(reads ? [] : Request.reading), ...(previous ? (["RemoveTree"] as const) : [])])
  )

const recordBackend = (writing: RecordContext): Backend => {
  const { reads, self } = writing
  const { attributes, links } = self
  return {
    ...self,
    history: undefined,
    perform: Request.override(performOf(writing), (perform) => ({ RemoveTree: Changing.removeTree(writing, perform) })),
    ...(reads ? { explore: undefined } : {}),
    ...(reads ? recordReads(writing, self) : {}),
    write: write(writing),
    makeDirectory: Changing.makeDirectory(writing),
    remove: Changing.remove(writing),
    rename: Changing.rename(writing),
    links: links && {
      ...links,
      ...(reads ? { read: readLink(writing, links, "read"), follow: readLink(writing, links, "follow") } : {}),
      make: Changing.makeLink(writing, links)
    },
    attributes: attributes && { set: Changing.setAttributes(writing, attributes) }
  }
}

export const recordInto =
  (journal: Scrivener<Entry>, options?: RecordOptions) =>
  ({ port: self }: Algebra): Effect.Effect<Algebra> =>
    Effect.map(Correlation.generate, (beginning) =>
      makeFilesystem(
        recordBackend({
          journal,
          appendOwn: ownAppendOf(journal),
          nextId: Faults.makeIds(beginning),
          self,
          reads: options?.reads === true,
          previous: options?.previous !== false,
          recent: RecentContents.make()
        })
      )
    )

/**
 * Records every change that is made through the filesystem, by any caller and on any path. Each step at the port is recorded:
 * the request before the step, and the result after it. So an overwriting move is recorded as its steps, and the rollback of a
 * failed call is recorded too. The journal must have no leaf, because a leaf would carry out the requests again.
 *
 * - streams are recorded in chunks as they pass, in constant memory
 * - after an interruption or a defect, the answer says whether the change was made; if this is unclear, there is no answer
 * - if the request cannot be recorded, nothing is done and the call fails with Unavailable; if the answer cannot be recorded,
 *   the call also fails with Unavailable, and its message says that the change was made
 * - the port keeps its locks, its rules and its requests that only read; with `previous`, it also keeps the removal of trees;
 *   other requests and the history are dropped
 *
 * @since 0.1.0
 */
export const record =
  (options?: RecordOptions) =>
  (self: Algebra): Effect.Effect<Algebra, never, Journal> =>
    Effect.flatMap(Journal, (journal) => recordInto(journal, options)(self))
