/**
 * Converts bytes to text and back without loss, and splits text into lines. Decoding never inserts replacement characters, and
 * keeps a byte order mark.
 */
import { invalidArgument, ioError, limitExceeded } from "../model/Fault.ts"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import { Buffer } from "../runtime/buffer.ts"
import { runAtOnce, runInSlices, unitsPerItem, type Steps, maxUnitsPerStep } from "../runtime/steps.ts"

export const maxStringLength = 2 ** 29 - 24

const decoderOf = (encoding: string) => new TextDecoder(encoding, { fatal: true, ignoreBOM: true })

const utf8 = decoderOf("utf-8")

const notText = (encoding: string, offset: number): Fault => ({ _tag: "NotText", encoding, offset })

/**
 * Decodes bytes, keeping a byte order mark as U+FEFF. `encoding` is any label of the WHATWG Encoding Standard.
 *
 * Returns InvalidArgument for an unknown label. Returns NotText with the offset of the first byte that cannot be
 * decoded. Returns LimitExceeded if the text exceeds the largest string.
 *
 * @default encoding: "utf-8"
 */
export const decodeSteps = function* (bytes: Uint8Array, encoding = "utf-8"): Steps<string | Fault> {
  let decoder = utf8
  if (encoding !== "utf-8") {
    try {
      decoder = decoderOf(encoding)
    } catch {
      return invalidArgument("encoding", `${JSON.stringify(encoding)} is not a known text encoding`)
    }
  }
  const out: Array<string> = []
  let units = 0
  try {
    const isLong = bytes.length > pieceBytes
    if (isLong && decoder === utf8) decoder = decoderOf(encoding)
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const text = decoder.decode(bytes.subarray(at, at + pieceBytes), { stream: isLong && at + pieceBytes < bytes.length })
      out.push(text)
      units += text.length
      yield (text.length === pieceBytes ? 1 : unitsPerDecoded) * (pieceBytes / 4)
    }
  } catch {
    const offset = decoder.encoding === "utf-8" ? yield* illFormedIn(bytes) : yield* undecodableAt(bytes, decoder.encoding)
    if (offset !== undefined) return notText(decoder.encoding, offset)
  }
  if (units > maxStringLength) return limitExceeded("maxStringLength", maxStringLength, units)
  return out.length === 1 ? out[0]! : out.join("")
}

export const decode = (bytes: Uint8Array, encoding = "utf-8"): string | Fault => runAtOnce(decodeSteps(bytes, encoding))

const unitsPerDecoded = 8

/**
 * Returns the offset of the first ill-formed UTF-8 sequence, or `undefined`. An incomplete sequence at the end is
 * ill-formed.
 *
 * The bounds of the second byte exclude overlong forms, surrogates and code points above U+10FFFF.
 */
const illFormedAt = (bytes: Uint8Array): number | undefined => runAtOnce(illFormedIn(bytes))

const illFormedIn = function* (bytes: Uint8Array): Steps<number | undefined> {
  const end = bytes.length
  for (let at = 0, pause = maxUnitsPerStep; at < end;) {
    if (at > pause) {
      yield maxUnitsPerStep
      pause = at + maxUnitsPerStep
    }
    const lead = bytes[at]!
    if (lead < 0x80) {
      at++
      continue
    }
    const length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0
    if (length === 0 || at + length > end) return at
    const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
    const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
    const second = bytes[at + 1]!
    if (second < low || second > high) return at
    for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return at
    at += length
  }
  return undefined
}

/**
 * Returns the offset of the first byte that cannot be decoded in an encoding, or `undefined` if all bytes can.
 *
 * An encoding may be stateful, so every attempt decodes from the start. Each attempt narrows the range for the next
 * attempt.
 */
const undecodableAt = function* (bytes: Uint8Array, encoding: string): Steps<number | undefined> {
  let from = 0
  for (const step of [pieceBytes, 1024, 16, 1]) {
    const decoder = decoderOf(encoding)
    for (const piece of pieces(bytes.subarray(0, from))) {
      decoder.decode(piece, { stream: true })
      yield 4 * pieceBytes
    }
    try {
      for (; from < bytes.length; from += step) {
        decoder.decode(bytes.subarray(from, from + step), { stream: from + step < bytes.length })
        yield unitsPerItem + 4 * step
      }
      return undefined
    } catch {
      // Decoding failed in the step that starts at `from`.
    }
  }
  while (from > 0 && !(yield* isText(bytes.subarray(0, from), encoding))) from--
  return from
}

const isText = function* (bytes: Uint8Array, encoding: string): Steps<boolean> {
  try {
    const decoder = decoderOf(encoding)
    for (const piece of pieces(bytes)) {
      decoder.decode(piece, { stream: true })
      yield 4 * pieceBytes
    }
    decoder.decode()
    return true
  } catch {
    return false
  }
}

/** The number of bytes decoded in one step. V8 takes many times longer per byte for larger strings. */
const pieceBytes = 65_536

const pieces = function* (bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

/** Encodes text as UTF-8. Returns InvalidArgument for a lone surrogate, which has no encoding. */
export const encode = (text: string): Uint8Array | Fault =>
  text.isWellFormed()
    ? Buffer.from(text)
    : invalidArgument("content", `it contains a lone surrogate, ${describeSurrogate(text)}`)

export const describeSurrogate = (text: string): string => {
  const at = text.search(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/)
  return `\\u${text.charCodeAt(at).toString(16)} at index ${at}`
}

export interface Page {
  readonly content: string
  readonly totalLines: number
  readonly offset: number
  readonly limit: number
  readonly truncated: boolean
  readonly next?: number
  readonly endsWithNewline: boolean
}

const isCount = (value: unknown): boolean =>
  typeof value === "number" && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY) && value >= 0

/** Returns InvalidArgument for an offset or a limit that is negative (except a limit of -1), fractional, NaN or no number. */
export const checkPage = (offset: number, limit: number): Fault | undefined =>
  !isCount(offset)
    ? invalidArgument("offset", "it must be a whole number of lines, 0 for the first line")
    : !isCount(limit) && limit !== -1
      ? invalidArgument("limit", "it must be a whole number of lines, 0 for none, -1 for all")
      : undefined

/**
 * Returns `limit` lines, or all lines if `limit` is -1, starting at the 0-based line `offset`.
 *
 * Only LF and CRLF end a line, and a final terminator starts no new line. If `offset` is beyond the end, the page is
 * empty and its `offset` is `totalLines`.
 *
 * `content` omits the terminator of the last line of the page. `endsWithNewline` is true if this terminator exists,
 * and false for an empty page. So the pages of a file, each with its terminator, add up to the whole text.
 */
export const pageSteps = function* (text: string, offset: number, limit: number): Steps<Page> {
  const [start, first] = yield* skipLines(text, 0, offset)
  const stop = limit === -1 ? Number.POSITIVE_INFINITY : limit
  const [end, lines] = yield* skipLines(text, start, stop)
  const window = { content: content(text, start, end), offset: first, limit: lines }
  const endsWithNewline = end > start && text.charCodeAt(end - 1) === 10
  const next = first + lines
  if (end >= text.length) return { ...window, totalLines: next, truncated: false, endsWithNewline }
  const [, more] = yield* skipLines(text, end, Number.POSITIVE_INFINITY)
  return { ...window, totalLines: next + more, truncated: true, next, endsWithNewline }
}

export const page = (text: string, offset: number, limit: number): Page => runAtOnce(pageSteps(text, offset, limit))

const skipLines = function* (text: string, from: number, most: number): Steps<readonly [end: number, lines: number]> {
  let at = from
  let lines = 0
  while (lines < most && at < text.length) {
    const newline = text.indexOf("\n", at)
    at = newline === -1 ? text.length : newline + 1
    if (++lines % 1024 === 0) yield 1024 * unitsPerItem
  }
  yield (lines % 1024) * unitsPerItem
  return [at, lines]
}

const content = (text: string, start: number, end: number): string => {
  const stop = end > start && text.charCodeAt(end - 1) === 10 ? end - 1 : end
  const slice = text.slice(start, stop < end && stop > start && text.charCodeAt(stop - 1) === 13 ? stop - 1 : stop)
  // A slice keeps its whole source string in memory. Joining two parts copies the text, so that a page in memory does
  // not keep the whole file there.
  return slice.length * 2 < text.length ? [slice.slice(0, 1), slice.slice(1)].join("") : slice
}

/**
 * Splits UTF-8 bytes into lines without terminators. Chunks may be cut anywhere.
 *
 * Only the current line is kept between chunks.
 *
 * Fails with NotText after the lines before the ill-formed byte, and with IoError if a line exceeds the largest string.
 */
export const lines = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<string, E | Fault, R> =>
  Stream.transformPull(bytes, (pull) =>
    Effect.sync(() => {
      const splitter = makeSplitter()
      let ended = false
      const more = Pull.catchDone(
        Effect.flatMap(pull, (chunks) =>
          runInSlices(function* () {
            for (const chunk of chunks) {
              for (const piece of pieces(chunk)) yield splitter.feed(piece)
            }
          })
        ),
        () => {
          ended = true
          splitter.end()
          return Effect.void
        }
      )
      const next: Pull.Pull<Arr.NonEmptyReadonlyArray<string>, E | Fault> = Effect.suspend(() => {
        const found = splitter.take()
        if (Arr.isArrayNonEmpty(found)) return Effect.succeed(found)
        const fault = splitter.fault()
        if (fault !== undefined) return Effect.fail(fault)
        return ended ? Cause.done() : Effect.andThen(more, next)
      })
      return next
    })
  )

interface Splitter {
  /** Processes at most `pieceBytes` bytes, or ignores them after a fault. Returns the work units for `runInSlices`. */
  readonly feed: (piece: Uint8Array) => number
  /** Ends the input. An incomplete character becomes a fault; otherwise, remaining text becomes the last line. */
  readonly end: () => void
  readonly take: () => Array<string>
  readonly fault: () => Fault | undefined
}

const makeSplitter = (): Splitter => {
  const noBytes = new Uint8Array(0)
  let found: Array<string> = []
  let fault: Fault | undefined
  /** The bytes of an incomplete character, which the next piece continues, and their offset in the file. */
  let pending = noBytes
  let offset = 0
  let line = ""
  const cutLines = (text: string): void => {
    let at = text.indexOf("\n")
    if (line.length + (at === -1 ? text.length : at) > maxStringLength) {
      fault = ioError("a line exceeds the largest possible string", "ERR_STRING_TOO_LONG")
      return
    }
    let from = 0
    for (; at !== -1; at = text.indexOf("\n", from)) {
      const whole = line + text.slice(from, at)
      found.push(whole.endsWith("\r") ? whole.slice(0, -1) : whole)
      from = at + 1
      line = ""
    }
    line += text.slice(from)
  }
  const decode = (bytes: Uint8Array): void => {
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      const bad = illFormedAt(bytes)!
      text = utf8.decode(bytes.subarray(0, bad))
      fault = notText("utf-8", offset + bad)
    }
    offset += bytes.length
    cutLines(text)
  }
  return {
    feed: (piece) => {
      if (fault !== undefined) return 0
      const before = found.length
      const bytes = pending.length === 0 ? piece : concat(pending, piece)
      const whole = bytes.length - countIncompleteBytes(bytes)
      pending = whole === bytes.length ? noBytes : bytes.slice(whole)
      decode(bytes.subarray(0, whole))
      return piece.length + 2 * unitsPerItem * (found.length - before)
    },
    end: () => {
      if (fault !== undefined) return
      if (pending.length > 0) fault = notText("utf-8", offset)
      else if (line !== "") found.push(line)
    },
    take: () => {
      const taken = found
      found = []
      return taken
    },
    fault: () => fault
  }
}

const concat = (a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> => {
  const out = new Uint8Array(a.length + b.length)
  out.set(a)
  out.set(b, a.length)
  return out
}

/**
 * Returns the number of bytes of an incomplete character at the end. Its bytes are checked when the character is
 * complete.
 */
const countIncompleteBytes = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (byte >= 0xc0) return back < (byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4) ? back : 0
    if (byte < 0x80) return 0
  }
  return 0
}
