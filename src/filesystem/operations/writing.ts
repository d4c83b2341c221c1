import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { withFileHeader } from "../../engine/diff.ts"
import { mkdir, runAccelerated, withClaim, withParents, withResolvedLock } from "../../engine/directories.ts"
import * as Edit from "../../engine/edit.ts"
import * as Read from "../../engine/read.ts"
import { remove } from "../../engine/remove.ts"
import { leadsOutside, placeFault, resolve, type Resolved, resolveLink } from "../../engine/resolve.ts"
import * as Text from "../../engine/text.ts"
import * as Transfer from "../../engine/transfer.ts"
import * as Version from "../../engine/version.ts"
import * as Write from "../../engine/write.ts"
import type { EditResult, TransferResult, WriteMode, WriteResult } from "../../model/Entry.ts"
import {
  alreadyExists,
  notFound,
  notAFile,
  accessDenied,
  invalidPath,
  invalidArgument,
  unsupported,
  ioError,
  is as isFault,
  limitExceeded
} from "../../model/Fault.ts"
import { type EditError, type Fault, located, shownPath, type TransferError, type WriteError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type LimitsShape, standard } from "../../model/Limits.ts"
import { isBytes } from "../../model/realms.ts"
import type { Edited, EditPlan } from "../../port/Backend.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import { hasher } from "../../runtime/hash.ts"
import type { Algebra, EditOptions, Precondition, WriteOptions } from "../Filesystem.ts"
import {
  type Action,
  type Caller,
  createActions,
  deleteActions,
  errorTags,
  isWholeNumber,
  moveActions,
  readActions,
  readOnly,
  writeActions,
  versioning
} from "./call.ts"

const writeModes: ReadonlyArray<WriteMode> = ["create", "overwrite", "append", "replace", "appendExisting"]

/**
 * Checks `ifMatch`. Refuses a key with the value `undefined`: the caller has probably read the file without `version:
 * true`.
 */
const checkPrecondition = (options: Precondition | undefined): Fault | undefined => {
  if (typeof options !== "object" || options === null || !("ifMatch" in options)) return undefined
  const expected: unknown = options.ifMatch
  if (expected === undefined) {
    return invalidArgument(
      "ifMatch",
      "it is undefined, so it would protect nothing; read the version with `version: true`, or omit `ifMatch`"
    )
  }
  return expected === null || typeof expected === "string"
    ? undefined
    : invalidArgument("ifMatch", "it must be a version, or null if the file must not exist")
}

/** Rejects an empty path. An empty path would mean the root, but the caller has probably forgotten the name. */
const checkName = (input: string): Fault | undefined => (input === "" ? invalidPath("it is empty; name a file") : undefined)

const checkOptions = (options: WriteOptions | undefined): Fault | undefined => {
  const mode = options?.mode
  if (mode !== undefined && !writeModes.includes(mode))
    return invalidArgument("mode", `it must be one of ${writeModes.join(", ")}`)
  if (mode === "create" && options?.ifMatch !== undefined) {
    return invalidArgument(
      "ifMatch",
      "the mode `create` expects no file, so there is no version to compare; omit `mode` or `ifMatch`"
    )
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
  actual > allowed ? limitExceeded(limit, allowed, actual) : undefined

const checkSize = (actual: number, { maxFileSize }: LimitsShape): Fault | undefined =>
  checkLimit("maxFileSize", maxFileSize, actual)

/**
 * Checks the number of bytes of a sink. A stream is not kept in memory, so it needs no limit by default. The limit is
 * `maxStreamBytes`, or else a `maxFileSize` below the standard.
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
  if (typeof content !== "string") return invalidArgument("content", "it must be a string; use writeBytes for bytes")
  const mayBeTooLarge = content.length > limits.maxFileSize && content.isWellFormed()
  return (mayBeTooLarge ? checkSize(FsPath.codePoints(content), limits) : undefined) ?? Text.encode(content)
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
        if (!isBytes(chunk)) return Effect.fail(invalidArgument("content", "every chunk of the stream must be a Uint8Array"))
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
              : invalidArgument("content", "it must be a Uint8Array; use write for text"))
          return fault === undefined ? writeAll(path, content, toWritePlan(options, limits)) : Effect.fail(fault)
        })
    ),
    sink: sink as Algebra["sink"],
    edit: versioning<[path: string, edits: Edit.Edit | ReadonlyArray<Edit.Edit>], EditOptions, EditResult, EditError>(
      (input, edits, options) => {
        const dryRun = options?.dryRun === true
        return call("edit", input, errorTags.edit, dryRun ? readActions : writeActions, (path, limits) => {
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

const rootDeniedFault: Fault = accessDenied("root")
const changedMeanwhileFault: Fault = ioError("the entry at this path keeps changing", "ECHANGED")
const escapeFault: Fault = accessDenied("escape")

const checkTarget = (target: string): Fault | undefined =>
  typeof target !== "string" || target === "" || (FsPath.unfit(target) ?? FsPath.uncreatable(target)) !== undefined
    ? invalidArgument(
        "target",
        "it must be a path without control characters, lone surrogates or names reserved for temporary files"
      )
    : undefined

export const nameOperations = (
  self: Caller
): Pick<Algebra, "delete" | "mkdir" | "copy" | "move" | "readLink" | "symlink" | "setAttributes"> => {
  const { call, isPermitted, parse, port, run } = self

  const transfer = (
    operation: "copy" | "move",
    from: string,
    to: string,
    actions: ReadonlyArray<Action>,
    body: (source: FsPath.FsPath, target: FsPath.FsPath) => Effect.Effect<TransferResult, Fault>
  ) =>
    run<TransferResult, TransferError>(operation, from, errorTags.transfer, (limits) => {
      for (const action of actions) if (!isPermitted(action)) return Effect.fail(readOnly)
      const source = parse(from, limits)
      if (typeof source !== "string") return Effect.fail(located(source, shownPath(from)))
      const target = parse(to, limits)
      if (typeof target !== "string") return Effect.fail(located(target, shownPath(to)))
      const kept = FsPath.uncreatable(target)
      if (kept !== undefined) return Effect.fail(located(kept, shownPath(to)))
      if (operation === "move" && !isPermitted("delete", source)) return Effect.fail(located(readOnly, from))
      if (!isPermitted("write", target)) return Effect.fail(located(readOnly, to))
      if (operation === "move" && source === FsPath.root) return Effect.fail(located(rootDeniedFault, from))
      const fault = Transfer.checkNames(port, operation, source, target)
      if (fault !== undefined) return Effect.fail(located(fault, to))
      // Report the path as the caller wrote it, if the fault concerns the source or the target.
      return Effect.mapError(body(source, target), (fault) =>
        fault["path"] === source ? { ...fault, path: from } : fault["path"] === target ? { ...fault, path: to } : fault
      )
    })

  return {
    delete: (input, options) =>
      call("delete", input, errorTags.delete, deleteActions, (path) => {
        const fault = checkPrecondition(options)
        if (fault !== undefined) return Effect.fail(fault)
        return remove(port, path, {
          recursive: options?.recursive === true,
          missing: options?.missing === "ignore" ? "ignore" : "fail",
          ifMatch: options?.ifMatch
        })
      }),
    mkdir: (input, options) =>
      call("mkdir", input, errorTags.mkdir, createActions, (path) =>
        mkdir(port, path, { parents: options?.parents !== false, existOk: options?.existOk !== false })
      ),
    copy: (from, to, options) =>
      transfer("copy", from, to, writeActions, (source, target) =>
        Transfer.copy(port, source, target, options?.overwrite === true)
      ),
    move: (from, to, options) =>
      transfer("move", from, to, moveActions, (source, target) =>
        Transfer.move(port, source, target, options?.overwrite === true)
      ),
    readLink: (input) =>
      call("readLink", input, errorTags.attributes, readActions, (path) => {
        const links = port.links
        if (links === undefined) return Effect.fail(unsupported("symbolic links"))
        return Effect.flatMap(resolveLink(port, path), ({ path: at, stat }) =>
          stat === undefined
            ? Effect.fail(notFound)
            : stat.kind === "symlink"
              ? links.read(at)
              : Effect.fail(invalidArgument("path", "it is not a symbolic link"))
        )
      }),
    symlink: (input, target) =>
      call("symlink", input, errorTags.link, createActions, (path) => {
        const fault = checkTarget(target)
        if (fault !== undefined) return Effect.fail(fault)
        const links = port.links
        if (links === undefined) return Effect.fail(unsupported("symbolic links"))
        return withResolvedLock(port, path, resolveLink(port, path), (found): Effect.Effect<void, Fault> => {
          if (found.stat !== undefined) return Effect.fail(alreadyExists)
          const fault = placeFault(found)
          if (fault !== undefined) return Effect.fail(fault)
          if (leadsOutside(FsPath.parent(found.path), relativeTarget(links, found.path, target)))
            return Effect.fail(escapeFault)
          return withParents<void, never, never>(port, found.path, links.make(found.path, target))
        })
      }),
    setAttributes: (input, attributes) =>
      call("setAttributes", input, errorTags.attributes, writeActions, (path) => {
        const { mode, modifiedAt } = attributes ?? {}
        if (mode !== undefined && !(isWholeNumber(mode, 0) && mode <= 0o777)) {
          return Effect.fail(invalidArgument("mode", "it must be permission bits, at most 0o777"))
        }
        if (modifiedAt !== undefined && !DateTime.isDateTime(modifiedAt)) {
          return Effect.fail(invalidArgument("modifiedAt", "it must be a DateTime"))
        }
        const attributesPort = port.attributes
        if (attributesPort === undefined) return Effect.fail(unsupported("attributes"))
        const values = { mode, modifiedAt: modifiedAt === undefined ? undefined : DateTime.toUtc(modifiedAt) }
        const set = withResolvedLock(port, path, resolve(port, path), ({ path: at, stat }) =>
          stat === undefined
            ? Effect.fail(notFound)
            : Effect.mapError(attributesPort.set(at, values), (fault) =>
                // The values are valid, so the path must have become a symlink meanwhile.
                fault._tag === "InvalidArgument" && stat.kind !== "symlink" ? changedMeanwhileFault : fault
              )
        )
        return Effect.retry(set, { times: 8, while: (fault) => fault["code"] === changedMeanwhileFault["code"] })
      })
  }
}
