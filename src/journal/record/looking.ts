/**
 * Records reads for `Replay.double`: each stat, list and open at the port, and each read of an open file. Opening is recorded as a read of
 * no bytes. Reading a link is recorded as a read without a length, whose content is the link's text.
 */
import { relativeTarget } from "../../port/absoluteLinks.ts"
import * as Effect from "effect/Effect"
import type { FileEntry, FileStat as Stat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, follow, type Handle, keyOf, type Links } from "../../port/Backend.ts"
import { metadataOf } from "../entries/contents.ts"
import { make } from "../entries/kinds.ts"
import { FileContent, FileFault, FileList, FileListing, FileMetadata, FileRead, FileStat } from "../FileSystemEntry.ts"
import type { Entry } from "../Journal.ts"
import * as Faults from "./faults.ts"
import { recordRequest, type StepRecorder } from "./story.ts"

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
  make(FileFault, { correlationId: id, faultKind: "NotFound", path, message: "nothing is there" })

/** Returns the listed entry of a child. The entry's path is the child's key at the port. */
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

export const recordReads = (recorder: StepRecorder, self: Backend): Pick<Backend, "stat" | "list" | "open"> => ({
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

export const readLink =
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
