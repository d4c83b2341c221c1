import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import { withFileHeader } from "../../engine/diff.ts"
import { runAccelerated, withClaim, withResolvedLock } from "../../engine/directories.ts"
import * as Edit from "../../engine/edit.ts"
import * as Read from "../../engine/read.ts"
import { type Resolved, resolve } from "../../engine/resolve.ts"
import * as Text from "../../engine/text.ts"
import * as Version from "../../engine/version.ts"
import * as Write from "../../engine/write.ts"
import type { EditResult, WriteMode, WriteResult } from "../../model/Entry.ts"
import type { EditError, Fault, WriteError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type LimitsShape, standard } from "../../model/Limits.ts"
import type { Edited, EditPlan } from "../../port/Backend.ts"
import { hasher } from "../../runtime/hash.ts"
import { type Algebra, type EditOptions, type Precondition, versioning, type WriteOptions } from "../Filesystem.ts"
import {
  type Caller,
  createActions,
  invalidArgument,
  isFault,
  notAFile,
  notFound,
  readActions,
  errorTags,
  writeActions as changing
} from "./call.ts"

const writeModes: ReadonlyArray<WriteMode> = ["create", "overwrite", "append", "replace", "appendExisting"]

/** Checks `ifMatch`. A key with the value `undefined` is an error: the caller probably read without `version: true`. */
export const checkPrecondition = (options: Precondition | undefined): Fault | undefined => {
  if (typeof options !== "object" || options === null || !("ifMatch" in options)) return undefined
  const expected: unknown = options.ifMatch
  if (expected === undefined) {
    return invalidArgument(
      "ifMatch",
      "it is undefined, which guards nothing; read the version with version: true, or leave ifMatch out"
    )
  }
  return expected === null || typeof expected === "string"
    ? undefined
    : invalidArgument("ifMatch", "it must be a version, or null for no file")
}

/** Rejects an empty path, which means the root: the caller has forgotten the name. */
const checkName = (input: string): Fault | undefined =>
  input === "" ? { _tag: "InvalidPath", detail: "it is empty; name a file" } : undefined

const checkOptions = (options: WriteOptions | undefined): Fault | undefined => {
  const mode = options?.mode
  if (mode !== undefined && !writeModes.includes(mode))
    return invalidArgument("mode", `it must be one of ${writeModes.join(", ")}`)
  if (mode === "create" && options?.ifMatch !== undefined) {
    return invalidArgument("ifMatch", "a file that is to be created has no version to compare with; leave one of the two out")
  }
  return checkPrecondition(options)
}

const toWritePlan = (options: WriteOptions | undefined, limits: LimitsShape): Write.Plan => ({
  mode: options?.mode ?? "overwrite",
  createParents: options?.createParents !== false,
  ifMatch: options?.ifMatch,
  version: options?.version === true,
  limits
})

const checkLimit = (limit: string, allowed: number, actual: number): Fault | undefined =>
  actual > allowed ? { _tag: "LimitExceeded", limit, allowed: Math.floor(allowed), actual } : undefined

const checkSize = (actual: number, { maxFileSize }: LimitsShape): Fault | undefined =>
  checkLimit("maxFileSize", maxFileSize, actual)

/**
 * Checks the number of bytes of a sink. A stream needs no limit for memory, but a `maxFileSize` below the standard
 * applies to streams too.
 */
const checkStream = (actual: number, { maxFileSize, maxStreamBytes }: LimitsShape): Fault | undefined =>
  maxStreamBytes !== undefined
    ? checkLimit("maxStreamBytes", maxStreamBytes, actual)
    : maxFileSize < standard.maxFileSize
      ? checkLimit("maxFileSize", maxFileSize, actual)
      : undefined

const checkTexts = (edits: ReadonlyArray<Edit.Edit>, limits: LimitsShape): Fault | undefined => {
  for (const { newText } of edits) {
    const fault = newText.length > limits.maxFileSize ? checkSize(FsPath.codePoints(newText), limits) : undefined
    if (fault !== undefined) return fault
  }
  return undefined
}

const encodeText = (content: string, limits: LimitsShape): Uint8Array | Fault => {
  if (typeof content !== "string") return invalidArgument("content", "it must be a string; bytes are for writeBytes")
  if (!content.isWellFormed()) return invalidArgument("content", "it holds a lone surrogate, which no encoding can write")
  const fault = content.length > limits.maxFileSize ? checkSize(FsPath.codePoints(content), limits) : undefined
  return fault ?? Text.encode(content)
}

const editPlan = (options: EditOptions | undefined, limits: LimitsShape): EditPlan => ({
  ifMatch: options?.ifMatch,
  version: options?.version === true,
  limits
})

const toEditResult =
  (path: FsPath.FsPath) =>
  (edited: Edited): EditResult => ({
    path,
    bytesWritten: edited.bytesWritten,
    mode: "replace",
    replacements: edited.replacements,
    diff: withFileHeader(path, edited.hunks),
    ...(edited.version !== undefined && { version: edited.version })
  })

const toWriteResult = (path: FsPath.FsPath, bytesWritten: number, plan: Write.Plan, version: string | undefined): WriteResult =>
  version === undefined ? { path, bytesWritten, mode: plan.mode } : { path, bytesWritten, mode: plan.mode, version }

export const writeOperations = (self: Caller): Pick<Algebra, "write" | "writeBytes" | "sink" | "edit"> => {
  const { call, port } = self

  const writeAll = (path: FsPath.FsPath, bytes: Uint8Array, plan: Write.Plan): Effect.Effect<WriteResult, Fault> =>
    path === FsPath.root
      ? Effect.fail(notAFile)
      : Effect.map(Write.bytes(port, path, bytes, plan), ({ version }) => toWriteResult(path, bytes.length, plan, version))

  const observeStream = (source: Stream.Stream<Uint8Array>, plan: Write.Plan, limits: LimitsShape) => {
    const digest = plan.version ? hasher() : undefined
    let size = 0
    const content = Stream.mapArrayEffect(source, (chunks) => {
      for (const chunk of chunks) {
        if (!isBytes(chunk)) return Effect.fail(invalidArgument("content", "a sink takes bytes"))
        size += chunk.length
        digest?.update(chunk)
      }
      const fault = checkStream(size, limits)
      return fault === undefined ? Effect.succeed(chunks) : Effect.fail(fault)
    })
    return { content, size: () => size, digest: () => digest!.digest() }
  }

  const sink = (input: string, options?: WriteOptions): Sink.Sink<WriteResult, Uint8Array, never, WriteError> =>
    Sink.fromTransform((upstream) =>
      Effect.map(
        call<WriteResult, WriteError>("sink", input, errorTags.write, createActions, (path, limits) => {
          const fault = checkName(input) ?? checkOptions(options) ?? (path === FsPath.root ? notAFile : undefined)
          if (fault !== undefined) return Effect.fail(fault)
          const plan = toWritePlan(options, limits)
          const { content, digest, size } = observeStream(Stream.fromPull(Effect.succeed(upstream)), plan, limits)
          return Effect.map(Write.stream(port, path, content, plan, digest), ({ version }) =>
            toWriteResult(path, size(), plan, version)
          )
        }),
        (written) => [written] as const
      )
    )

  const editAt = (
    path: FsPath.FsPath,
    at: FsPath.FsPath,
    edits: ReadonlyArray<Edit.Edit>,
    options: EditOptions | undefined,
    limits: LimitsShape
  ): Effect.Effect<EditResult, Fault> =>
    Effect.flatMap(Read.wholeAt(port, at, limits.maxReadBytes), (whole) => {
      const expected = options?.ifMatch
      const apply = Effect.gen(function* (): Effect.fn.Return<EditResult, Fault> {
        const edited = yield* Edit.applyEdits(whole.bytes, edits, path, limits.maxFileSize)
        if (isFault(edited)) return yield* Effect.fail(edited)
        const answer: EditResult = {
          path,
          bytesWritten: edited.bytes.length,
          mode: "replace",
          replacements: edited.replacements,
          diff: edited.diff,
          ...(options?.version === true ? { version: yield* Version.computeVersion(edited.bytes) } : {})
        }
        if (options?.dryRun !== true) yield* port.write<never, never>(at, edited.bytes, "replace")
        return answer
      })
      return expected === undefined
        ? apply
        : Effect.flatMap(Read.versionOf(whole), (actual) =>
            actual === expected ? apply : Effect.fail<Fault>({ _tag: "Conflict", expected, actual })
          )
    })

  return {
    write: versioning<[path: string, content: string], WriteOptions, WriteResult, WriteError>((input, content, options) =>
      call("write", input, errorTags.write, createActions, (path, limits) => {
        const fault = checkName(input) ?? checkOptions(options)
        if (fault !== undefined) return Effect.fail(fault)
        const bytes = encodeText(content, limits)
        return isFault(bytes) ? Effect.fail(bytes) : writeAll(path, bytes, toWritePlan(options, limits))
      })
    ),
    writeBytes: versioning<[path: string, content: Uint8Array], WriteOptions, WriteResult, WriteError>(
      (input, content, options) =>
        call("writeBytes", input, errorTags.write, createActions, (path, limits) => {
          const fault =
            checkName(input) ??
            checkOptions(options) ??
            (isBytes(content)
              ? checkSize(content.length, limits)
              : invalidArgument("content", "it must be a Uint8Array; text is for write"))
          return fault === undefined ? writeAll(path, content, toWritePlan(options, limits)) : Effect.fail(fault)
        })
    ),
    sink: sink as Algebra["sink"],
    edit: versioning<[path: string, edits: Edit.Edit | ReadonlyArray<Edit.Edit>], EditOptions, EditResult, EditError>(
      (input, edits, options) => {
        const dryRun = options?.dryRun === true
        return call("edit", input, errorTags.edit, dryRun ? readActions : changing, (path, limits) => {
          const list: ReadonlyArray<Edit.Edit> = Array.isArray(edits) ? edits : [edits as Edit.Edit]
          const fault = checkPrecondition(options) ?? Edit.checkEdits(list) ?? checkTexts(list, limits)
          if (fault !== undefined) return Effect.fail(fault)
          const expected = options?.ifMatch
          const missingFileFault: Fault = typeof expected === "string" ? { _tag: "Conflict", expected, actual: null } : notFound
          const edited = ({ path: at, stat }: Resolved): Effect.Effect<EditResult, Fault> => {
            if (stat === undefined) return Effect.fail(missingFileFault)
            if (stat.kind !== "file") return Effect.fail(notAFile)
            const run = editAt(path, at, list, options, limits)
            if (dryRun) return run
            // Another process may have removed the file before or during the wait for the claim.
            return Effect.catch(withClaim(port, at, run), (fault) =>
              Effect.fail(fault._tag === "NotFound" ? missingFileFault : fault)
            )
          }
          const found = resolve(port, path)
          if (dryRun) return Effect.flatMap(found, edited)
          const editStepByStep = () => withResolvedLock(port, path, found, edited)
          return runAccelerated(
            port,
            "Edit",
            [path],
            (perform) =>
              Effect.map(
                perform({ _tag: "Edit", path, edits: list, plan: editPlan(options, limits) }),
                Option.map(toEditResult(path))
              ),
            editStepByStep
          )
        })
      }
    )
  }
}
