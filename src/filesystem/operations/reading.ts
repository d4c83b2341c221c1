import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import * as Read from "../../engine/read.ts"
import * as Text from "../../engine/text.ts"
import * as Version from "../../engine/version.ts"
import type { ReadBytesResult, ReadResult } from "../../model/Entry.ts"
import type { Fault, ReadBytesError, ReadError } from "../../model/FsError.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { type Algebra, type ReadBytesOptions, type ReadOptions, versioning } from "../Filesystem.ts"
import { type Caller, checkWholeNumber, readActions as asReader, errorTags } from "./call.ts"

const unboundedLength = Number.POSITIVE_INFINITY
const defaultChunkBytes = 65_536

const noBytes = new Uint8Array(0)

/** The largest file, in bytes, that is decoded and split without a pause. */
const maxSyncBytes = 65_536

const textOf = (bytes: Uint8Array, encoding: string | undefined): Effect.Effect<string, Fault> => {
  const answer = (text: string | Fault) => (typeof text === "string" ? Effect.succeed(text) : Effect.fail(text))
  return bytes.length <= maxSyncBytes
    ? answer(Text.decode(bytes, encoding))
    : Effect.flatMap(
        runInSlices(() => Text.decodeSteps(bytes, encoding)),
        answer
      )
}

const pageOf = (text: string, offset: number, limit: number): Effect.Effect<Text.Page> =>
  text.length <= maxSyncBytes
    ? Effect.succeed(Text.page(text, offset, limit))
    : runInSlices(() => Text.pageSteps(text, offset, limit))

const checkEncoding = (encoding: string | undefined): Fault | undefined => {
  if (encoding === undefined) return undefined
  const text = Text.decode(noBytes, encoding)
  return typeof text === "string" ? undefined : text
}

export const contentOperations = (
  self: Caller
): Pick<Algebra, "read" | "readString" | "readBytes" | "version" | "stream" | "lines"> => {
  const { call, port, callStream: streaming } = self
  return {
    read: versioning<[path: string], ReadOptions, ReadResult, ReadError>((input, options) =>
      call("read", input, errorTags.read, asReader, (path, limits) => {
        const offset = options?.offset ?? 0
        const limit = options?.limit ?? limits.defaultReadLimit
        const fault = Text.checkPage(offset, limit) ?? checkEncoding(options?.encoding)
        if (fault !== undefined) return Effect.fail(fault)
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => {
          const text = textOf(whole.bytes, options?.encoding)
          const page = Eager.flatMap(text, (text) => pageOf(text, offset, limit))
          return options?.version === true
            ? Effect.flatMap(page, (page) => Effect.map(Read.versionOf(whole), (version) => ({ path, ...page, version })))
            : Eager.map(page, (page) => ({ path, ...page }))
        })
      })
    ),
    readString: (input, encoding) =>
      call("readString", input, errorTags.read, asReader, (path, limits) => {
        const fault = checkEncoding(encoding)
        if (fault !== undefined) return Effect.fail(fault)
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => textOf(whole.bytes, encoding))
      }),
    readBytes: versioning<[path: string], ReadBytesOptions, ReadBytesResult, ReadBytesError>((input, options) =>
      call("readBytes", input, errorTags.readBytes, asReader, (path, limits) => {
        const fault = checkWholeNumber("offset", options?.offset) ?? checkWholeNumber("limit", options?.limit)
        if (fault !== undefined) return Effect.fail(fault)
        const offset = options?.offset ?? 0
        const version = options?.version === true
        const answer = ({ bytes, offset, sizeBytes, version }: Read.Window): ReadBytesResult => {
          const limit = bytes.length
          const result = { path, content: bytes, sizeBytes, offset, limit, truncated: offset + limit < sizeBytes }
          return version === undefined ? result : { ...result, version }
        }
        if (offset !== 0 || options?.limit !== undefined) {
          const limit = options?.limit ?? unboundedLength
          return Effect.map(Read.window(port, path, offset, limit, limits.maxReadBytes, version), answer)
        }
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => {
          const bytes = whole.isLent === true ? whole.bytes.slice() : whole.bytes
          const window = { bytes, offset: 0, sizeBytes: bytes.length }
          return version
            ? Effect.map(Read.versionOf(whole), (version) => answer({ ...window, version }))
            : Effect.succeed(answer(window))
        })
      })
    ),
    version: (input) =>
      call("version", input, errorTags.stream, asReader, (path) =>
        Effect.scoped(Effect.flatMap(Read.open(port, path), Version.ofHandle))
      ),
    stream: (input, options) =>
      streaming("stream", input, errorTags.stream, (path) => {
        const fault =
          checkWholeNumber("offset", options?.offset) ??
          checkWholeNumber("length", options?.length) ??
          checkWholeNumber("chunkSize", options?.chunkSize, 1)
        if (fault !== undefined) return Effect.fail(fault)
        const length = options?.length ?? unboundedLength
        return Effect.succeed(Read.stream(port, path, options?.offset ?? 0, length, options?.chunkSize ?? defaultChunkBytes))
      }),
    lines: (input) =>
      streaming("lines", input, errorTags.lines, (path) =>
        Effect.succeed(Text.lines(Read.stream(port, path, 0, unboundedLength, defaultChunkBytes)))
      )
  }
}
