import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { applyEdits, type Edited } from "../../engine/edit.ts"
import { decode } from "../../engine/text.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import { sizeOf } from "../entries/values.ts"
import { concatenate } from "../../runtime/buffer.ts"
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
import type { Entry, Recorded, Scrivener } from "../model.ts"
import {
  type AnySpellCall,
  type DefinitionResult,
  editsOf,
  type Encoding,
  parseInvocation,
  SpellFault,
  SpellFaultKind,
  type SpellInvocation,
  type SpellName,
  SpellResult,
  type Step
} from "./definitions.ts"
import type { SpellAnswer } from "./invocationLog.ts"

export type FileAnswer = FileContent | FileContentChunk | FileWritten | FileListing | FileDeleted | FileEdited | FileFault

export interface Context {
  readonly journal: Scrivener<Entry>
  readonly invocation: SpellInvocation
  readonly step: Step
  readonly id: (step: Step) => string
  /** The largest size, in bytes, of a content in a result. */
  readonly maxBytes: number
}

type NextEntries = ReadonlyArray<SpellAnswer | FileWrite>

const isKind = Schema.is(SpellFaultKind)

const failWith = (
  { correlationId, spell }: SpellInvocation,
  faultKind: SpellFaultKind,
  path: string,
  message: string
): NextEntries => [new SpellFault({ correlationId, spell, faultKind, path, message })]

const succeedWith = <Name extends SpellName>(
  { correlationId }: SpellInvocation,
  spell: Name,
  result: DefinitionResult<Name>
): NextEntries => [new SpellResult({ correlationId, spell, result })]

const faultResult = (invocation: SpellInvocation, path: string, fault: Fault): NextEntries => {
  const { _tag, message } = promote(fault, invocation.spell, path)
  return failWith(invocation, isKind(_tag) ? _tag : "IoError", path, message)
}

const isContent = (entry: Entry): entry is FileContent | FileContentChunk =>
  entry._tag === "FileContent" || entry._tag === "FileContentChunk"

/** Returns the content that the request with this id has read, in parts. All parts must be before the position `before`. */
const contentParts = ({ journal }: Context, id: string, before: number): Effect.Effect<ReadonlyArray<Content>, JournalError> =>
  journal.readBackward(before).pipe(
    Stream.map(({ entry }) => entry),
    Stream.filter(isContent),
    Stream.filter((entry) => entry.correlationId === id),
    Stream.takeUntil((entry) => entry._tag === "FileContent" || entry.offset === 0),
    Stream.map((entry) => (entry._tag === "FileContent" ? entry.content : entry.data)),
    Stream.runCollect,
    Effect.map((latestFirst) => latestFirst.toReversed())
  )

const readWhole = (context: Context, id: string, before: number): Effect.Effect<Uint8Array | Fault, JournalError> =>
  Effect.flatMap(contentParts(context, id, before), (contents) => {
    const { journal, maxBytes } = context
    const actual = contents.reduce((size, content) => size + sizeOf(content), 0)
    if (actual > maxBytes) {
      return Effect.succeed<Fault>({ _tag: "LimitExceeded", limit: "maxBytes", allowed: maxBytes, actual })
    }
    const bytes = Effect.map(Effect.forEach(contents, journal.bytes), concatenate)
    return Effect.catchIf(
      bytes,
      ({ reason }: JournalError) => reason === "corrupt",
      ({ detail }) => Effect.succeed<Fault>({ _tag: "IoError", detail })
    )
  })

const isFault = (value: Uint8Array | Edited | Fault): value is Fault => "_tag" in value

/** Decodes UTF-8 text, and encodes any other content in base64. A content with a NUL byte is not text, as in searches. */
const textOf = (bytes: Uint8Array): { readonly encoding: Encoding; readonly content: string } => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string"
    ? { encoding: "utf-8", content: text }
    : { encoding: "binary", content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64") }
}

const edited = (
  context: Context,
  spellCall: Extract<AnySpellCall, { readonly spell: "edit_file" }>,
  before: number
): Effect.Effect<Edited | Fault, JournalError> =>
  Effect.flatMap(readWhole(context, context.id("read"), before), (bytes) =>
    isFault(bytes) ? Effect.succeed(bytes) : applyEdits(bytes, editsOf(spellCall.parameters), spellCall.parameters.path)
  )

const onContent = (
  context: Context,
  spellCall: AnySpellCall,
  position: number
): Effect.Effect<NextEntries, JournalError> | undefined => {
  const { invocation, step } = context
  if (spellCall.spell === "read_file") {
    const { path } = spellCall.parameters
    return Effect.map(readWhole(context, context.id(step), position + 1), (bytes) =>
      isFault(bytes)
        ? faultResult(invocation, path, bytes)
        : succeedWith(invocation, "read_file", { path, ...textOf(bytes), size_bytes: bytes.length })
    )
  }
  if (spellCall.spell !== "edit_file" || step !== "read") return undefined
  const { path } = spellCall.parameters
  return Effect.map(edited(context, spellCall, position + 1), (edited) =>
    isFault(edited)
      ? faultResult(invocation, path, edited)
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
  spellCall: AnySpellCall,
  { entry: { bytesWritten }, position }: Recorded<FileWritten>
): Effect.Effect<NextEntries, JournalError> | undefined => {
  const { invocation, step } = context
  if (spellCall.spell === "write_file") {
    const { mode = "create", path } = spellCall.parameters
    return Effect.succeed(succeedWith(invocation, "write_file", { path, bytes_written: bytesWritten, mode }))
  }
  if (spellCall.spell !== "edit_file" || step !== "write") return undefined
  const { path } = spellCall.parameters
  return Effect.map(edited(context, spellCall, position), (edited) =>
    isFault(edited)
      ? faultResult(invocation, path, edited)
      : succeedWith(invocation, "edit_file", {
          path,
          replacements: edited.replacements,
          bytes_written: bytesWritten,
          diff: edited.diff
        })
  )
}

const onFault = (
  { invocation }: Context,
  spellCall: AnySpellCall,
  { error, faultKind, message, path }: FileFault
): NextEntries => {
  const { spell } = spellCall
  if (faultKind === "NotFound") {
    if (spell === "list_directory") {
      return succeedWith(invocation, spell, { path: spellCall.parameters.path ?? "/", directories: [], files: [] })
    }
    if (spell === "delete_file" && spellCall.parameters.allow_missing === true) {
      return succeedWith(invocation, spell, { path: spellCall.parameters.path, deleted: 0 })
    }
  }
  return failWith(invocation, error !== undefined && isKind(error._tag) ? error._tag : faultKind, path, message)
}

const directoryListing = (path: string, { entries }: FileListing): DefinitionResult<"list_directory"> => ({
  path,
  directories: entries.filter(({ isDirectory }) => isDirectory).map((entry) => entry.path),
  files: entries.filter(({ isDirectory }) => !isDirectory).map((entry) => entry.path)
})

const nextEntries = (
  context: Context,
  spellCall: AnySpellCall,
  recorded: Recorded<FileAnswer>
): Effect.Effect<NextEntries, JournalError> | undefined => {
  const { invocation } = context
  const { entry, position } = recorded
  switch (entry._tag) {
    case "FileFault":
      return Effect.succeed(onFault(context, spellCall, entry))
    case "FileContent":
      return onContent(context, spellCall, position)
    case "FileContentChunk":
      return entry.isFinal ? onContent(context, spellCall, position) : Effect.succeed([])
    case "FileWritten":
      return onWritten(context, spellCall, { ...recorded, entry })
    case "FileListing":
      return spellCall.spell === "list_directory"
        ? Effect.succeed(succeedWith(invocation, "list_directory", directoryListing(spellCall.parameters.path ?? "/", entry)))
        : undefined
    case "FileDeleted":
      return spellCall.spell === "delete_file"
        ? Effect.succeed(
            succeedWith(invocation, "delete_file", { path: spellCall.parameters.path, deleted: entry.deletedCount })
          )
        : undefined
    case "FileEdited":
      return spellCall.spell === "edit_file"
        ? Effect.succeed(
            succeedWith(invocation, "edit_file", {
              path: spellCall.parameters.path,
              replacements: entry.replacements,
              bytes_written: entry.bytesWritten,
              diff: entry.diff
            })
          )
        : undefined
  }
}

/**
 * Returns the answer or the next request of the spell. An answer of an unexpected kind becomes a fault, because the caller
 * would otherwise wait until the timeout.
 */
export const answer = (context: Context, recorded: Recorded<FileAnswer>): Effect.Effect<NextEntries, JournalError> => {
  const spellCall = parseInvocation(context.invocation)
  if ("_tag" in spellCall) return Effect.succeed([spellCall])
  const { invocation } = context
  const unexpectedAnswer = (): NextEntries => [
    new SpellFault({
      correlationId: invocation.correlationId,
      spell: invocation.spell,
      faultKind: "IoError",
      message: `${invocation.spell}: the journal contains an answer of an unexpected kind, ${recorded.entry._tag}`
    })
  ]
  return nextEntries(context, spellCall, recorded) ?? Effect.sync(unexpectedAnswer)
}
