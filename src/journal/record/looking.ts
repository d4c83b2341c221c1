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
import { ask, type Story } from "./story.ts"

const look = <A, R>(
  story: Story,
  path: FsPath.FsPath,
  operation: string,
  asked: (id: string) => Entry,
  run: Effect.Effect<A, Fault, R>,
  answer: (id: string, value: A) => Entry
): Effect.Effect<A, Fault, R> =>
  Effect.suspend(() => {
    const id = story.nextId()
    const told = Effect.matchEffect(run, {
      onFailure: (fault): Effect.Effect<A, Fault> =>
        Effect.andThen(ask(story, Faults.answer(id, operation, path, fault)), Effect.fail(fault)),
      onSuccess: (value) => Effect.as(ask(story, answer(id, value)), value)
    })
    return Effect.andThen(ask(story, asked(id)), told)
  })

const metadata = (id: string, stat: Stat): Entry => make(FileMetadata, { correlationId: id, ...metadataOf(stat) })

const nothing = (id: string, path: FsPath.FsPath): Entry =>
  make(FileFault, { correlationId: id, faultKind: "NotFound", path, message: "nothing is there" })

/** Returns the listed entry of a child. The entry's path is the child's key at the port. */
const listed = (child: Child): FileEntry => ({
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

const reading = (story: Story, path: FsPath.FsPath, { read, stat }: Handle): Handle => ({
  stat,
  read: (offset, length) =>
    look(
      story,
      path,
      "read",
      (id) => make(FileRead, { correlationId: id, path, offset, length }),
      read(offset, length),
      (id, bytes) => content(id, stat, bytes)
    )
})

const empty = new Uint8Array(0)

export const looking = (story: Story, self: Backend): Pick<Backend, "stat" | "list" | "open"> => ({
  stat: (path) =>
    look(
      story,
      path,
      "stat",
      (id) => make(FileStat, { correlationId: id, path }),
      self.stat(path),
      (id, stat) => (stat === undefined ? nothing(id, path) : metadata(id, stat))
    ),
  list: (path) =>
    look(
      story,
      path,
      "list",
      (id) => make(FileList, { correlationId: id, path }),
      self.list(path),
      (id, children) => make(FileListing, { correlationId: id, entries: children.map(listed) })
    ),
  open: (path) =>
    Effect.map(
      look(
        story,
        path,
        "open",
        (id) => make(FileRead, { correlationId: id, path, length: 0 }),
        self.open(path),
        (id, { stat }) => content(id, stat, empty)
      ),
      (handle) => reading(story, path, handle)
    )
})

export const readLink =
  (story: Story, links: Links, how: "read" | "follow"): Links["read"] =>
  (path) =>
    look(
      story,
      path,
      "readLink",
      (id) => make(FileRead, { correlationId: id, path }),
      how === "read" ? links.read(path) : Effect.map(follow(links, path), (text) => relativeTarget(links, path, text)),
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
