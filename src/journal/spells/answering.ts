import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { applied, type Edited } from "../../engine/edit.ts"
import { decode } from "../../engine/text.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import { sizeOf } from "../entries/contents.ts"
import type { JournalError } from "../errors.ts"
import {
  type Content,
  CreateMode,
  type FileContent,
  type FileContentChunk,
  type FileDeleted,
  type FileEdited,
  type FileFault,
  type FileListing,
  FileWrite,
  type FileWritten
} from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../Journal.ts"
import { type AnyUnderstood, editsOf, understand } from "./asking.ts"
import type { SpellAnswer } from "./book.ts"
import type { Encoding, Result } from "./definitions.ts"
import { SpellFault, SpellFaultKind, type SpellInvocation, type SpellName, SpellResult } from "./entries.ts"
import type { Step } from "./ids.ts"

export type FileAnswer = FileContent | FileContentChunk | FileWritten | FileListing | FileDeleted | FileEdited | FileFault

export interface Context {
  readonly journal: Scrivener<Entry>
  readonly invocation: SpellInvocation
  readonly step: Step
  readonly id: (step: Step) => string
  /** The largest content in bytes that a result may include. */
  readonly maxBytes: number
}

type Made = ReadonlyArray<SpellAnswer | FileWrite>

const isKind = Schema.is(SpellFaultKind)

const failed = ({ correlationId, spell }: SpellInvocation, faultKind: SpellFaultKind, path: string, message: string): Made => [
  new SpellFault({ correlationId, spell, faultKind, path, message })
]

const done = <Name extends SpellName>({ correlationId }: SpellInvocation, spell: Name, result: Result<Name>): Made => [
  new SpellResult({ correlationId, spell, result })
]

const faulty = (invocation: SpellInvocation, path: string, fault: Fault): Made => {
  const { _tag, message } = promote(fault, invocation.spell, path)
  return failed(invocation, isKind(_tag) ? _tag : "IoError", path, message)
}

const isContent = (entry: Entry): entry is FileContent | FileContentChunk =>
  entry._tag === "FileContent" || entry._tag === "FileContentChunk"

/** Returns the parts of a content that was read, whose last entry is before the position. */
const parts = ({ journal }: Context, id: string, before: number): Effect.Effect<ReadonlyArray<Content>, JournalError> =>
  journal.readBackward(before).pipe(
    Stream.map(({ entry }) => entry),
    Stream.filter(isContent),
    Stream.filter((entry) => entry.correlationId === id),
    Stream.takeUntil((entry) => entry._tag === "FileContent" || entry.offset === 0),
    Stream.map((entry) => (entry._tag === "FileContent" ? entry.content : entry.data)),
    Stream.runCollect,
    Effect.map((latestFirst) => latestFirst.toReversed())
  )

/** Returns the bytes of a content, or the reason why they are not available. */
const wholeOf = (context: Context, id: string, before: number): Effect.Effect<Uint8Array | Fault, JournalError> =>
  Effect.flatMap(parts(context, id, before), (contents) => {
    const { journal, maxBytes } = context
    const actual = contents.reduce((size, content) => size + sizeOf(content), 0)
    if (actual > maxBytes) {
      return Effect.succeed<Fault>({ _tag: "LimitExceeded", limit: "maxBytes", allowed: maxBytes, actual })
    }
    const bytes = Effect.map(Effect.forEach(contents, journal.bytes), (chunks) =>
      chunks.length === 1 ? chunks[0]! : new Uint8Array(Buffer.concat(chunks))
    )
    return Effect.catchIf(
      bytes,
      ({ reason }: JournalError) => reason === "corrupt",
      ({ detail }) => Effect.succeed<Fault>({ _tag: "IoError", detail })
    )
  })

const isFault = (value: Uint8Array | Edited | Fault): value is Fault => "_tag" in value

/** Decodes text, and encodes other contents in base64. A content with a NUL byte is not text, as in this library's search. */
const textOf = (bytes: Uint8Array): { readonly encoding: Encoding; readonly content: string } => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string"
    ? { encoding: "utf-8", content: text }
    : { encoding: "binary", content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64") }
}

/** Applies the edits to the content that was read, for an edit by a read and a write. */
const edited = (
  context: Context,
  understood: Extract<AnyUnderstood, { readonly spell: "edit_file" }>,
  before: number
): Effect.Effect<Edited | Fault, JournalError> =>
  Effect.flatMap(wholeOf(context, context.id("read"), before), (bytes) =>
    isFault(bytes) ? Effect.succeed(bytes) : applied(bytes, editsOf(understood.parameters), understood.parameters.path)
  )

const onContent = (
  context: Context,
  understood: AnyUnderstood,
  position: number
): Effect.Effect<Made, JournalError> | undefined => {
  const { invocation, step } = context
  if (understood.spell === "read_file") {
    const { path } = understood.parameters
    return Effect.map(wholeOf(context, context.id(step), position + 1), (bytes) =>
      isFault(bytes)
        ? faulty(invocation, path, bytes)
        : done(invocation, "read_file", { path, ...textOf(bytes), size_bytes: bytes.length })
    )
  }
  if (understood.spell !== "edit_file" || step !== "read") return undefined
  const { path } = understood.parameters
  return Effect.map(edited(context, understood, position + 1), (edited) =>
    isFault(edited)
      ? faulty(invocation, path, edited)
      : [
          new FileWrite({
            correlationId: context.id("write"),
            path,
            content: edited.bytes,
            createMode: CreateMode.ReplaceExisting
          })
        ]
  )
}

const onWritten = (
  context: Context,
  understood: AnyUnderstood,
  { entry: { bytesWritten }, position }: Recorded<FileWritten>
): Effect.Effect<Made, JournalError> | undefined => {
  const { invocation, step } = context
  if (understood.spell === "write_file") {
    const { mode = "create", path } = understood.parameters
    return Effect.succeed(done(invocation, "write_file", { path, bytes_written: bytesWritten, mode }))
  }
  if (understood.spell !== "edit_file" || step !== "write") return undefined
  const { path } = understood.parameters
  return Effect.map(edited(context, understood, position), (edited) =>
    isFault(edited)
      ? faulty(invocation, path, edited)
      : done(invocation, "edit_file", {
          path,
          replacements: edited.replacements,
          bytes_written: bytesWritten,
          diff: edited.diff
        })
  )
}

const onFault = ({ invocation }: Context, understood: AnyUnderstood, { error, faultKind, message, path }: FileFault): Made => {
  const { spell } = understood
  if (faultKind === "NotFound") {
    if (spell === "list_directory") {
      return done(invocation, spell, { path: understood.parameters.path ?? "/", directories: [], files: [] })
    }
    if (spell === "delete_file" && understood.parameters.allow_missing === true) {
      return done(invocation, spell, { path: understood.parameters.path, deleted: 0 })
    }
  }
  return failed(invocation, error !== undefined && isKind(error._tag) ? error._tag : faultKind, path, message)
}

const listed = (path: string, { entries }: FileListing): Result<"list_directory"> => ({
  path,
  directories: entries.filter(({ isDirectory }) => isDirectory).map((entry) => entry.path),
  files: entries.filter(({ isDirectory }) => !isDirectory).map((entry) => entry.path)
})

const made = (
  context: Context,
  understood: AnyUnderstood,
  recorded: Recorded<FileAnswer>
): Effect.Effect<Made, JournalError> | undefined => {
  const { invocation } = context
  const { entry, position } = recorded
  switch (entry._tag) {
    case "FileFault":
      return Effect.succeed(onFault(context, understood, entry))
    case "FileContent":
      return onContent(context, understood, position)
    case "FileContentChunk":
      return entry.isFinal ? onContent(context, understood, position) : Effect.succeed([])
    case "FileWritten":
      return onWritten(context, understood, { ...recorded, entry })
    case "FileListing":
      return understood.spell === "list_directory"
        ? Effect.succeed(done(invocation, "list_directory", listed(understood.parameters.path ?? "/", entry)))
        : undefined
    case "FileDeleted":
      return understood.spell === "delete_file"
        ? Effect.succeed(done(invocation, "delete_file", { path: understood.parameters.path, deleted: entry.deletedCount }))
        : undefined
    case "FileEdited":
      return understood.spell === "edit_file"
        ? Effect.succeed(
            done(invocation, "edit_file", {
              path: understood.parameters.path,
              replacements: entry.replacements,
              bytes_written: entry.bytesWritten,
              diff: entry.diff
            })
          )
        : undefined
  }
}

/**
 * Returns the answer or the next request of the spell. An answer that does not fit also ends the spell, because its caller
 * would wait until the timeout.
 */
export const answer = (context: Context, recorded: Recorded<FileAnswer>): Effect.Effect<Made, JournalError> => {
  const understood = understand(context.invocation)
  if ("_tag" in understood) return Effect.succeed([understood])
  const { invocation } = context
  const stray = (): Made => [
    new SpellFault({
      correlationId: invocation.correlationId,
      spell: invocation.spell,
      faultKind: "IoError",
      message: `${invocation.spell}: ${recorded.entry._tag} is no answer to what was asked`
    })
  ]
  return made(context, understood, recorded) ?? Effect.sync(stray)
}
