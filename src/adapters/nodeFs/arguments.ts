/** Reads the arguments of `node:fs` calls. Throws the errors that Node throws for invalid arguments. */
import { Buffer } from "../../runtime/buffer.ts"
import { builtin, Fs, isNode } from "../../runtime/node.ts"
import type * as NodeUrl from "node:url"

const shown = (value: unknown): string => {
  if (value === undefined || value === null) return String(value)
  if (typeof value === "function") return `function ${value.name}`
  if (typeof value === "object") return `an instance of ${value.constructor?.name ?? "Object"}`
  return `type ${typeof value} (${typeof value === "string" ? quoted(value) : String(value)})`
}

const quoted = (text: string): string =>
  `'${text.slice(0, 128).replace(/[\u0000-\u001f]/g, (unit) => `\\x${unit.charCodeAt(0).toString(16).padStart(2, "0")}`)}'`

const withCode = <E extends Error>(error: E, code: string): E => Object.assign(error, { code })

export const invalidType = (name: string, expected: string, value: unknown): TypeError =>
  withCode(
    new TypeError(
      `The "${name}" ${name.includes(".") ? "property" : "argument"} must be ${expected}. Received ${shown(value)}`
    ),
    "ERR_INVALID_ARG_TYPE"
  )

export const invalidValue = (name: string, value: unknown, why = "is invalid"): TypeError =>
  withCode(
    new TypeError(`The argument '${name}' ${why}. Received ${typeof value === "string" ? quoted(value) : String(value)}`),
    "ERR_INVALID_ARG_VALUE"
  )

export const outOfRange = (name: string, range: string, value: unknown): RangeError =>
  withCode(
    new RangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${String(value)}`),
    "ERR_OUT_OF_RANGE"
  )

/** Returns a path as a string. A `file:` URL and a Buffer are converted. */
export const toPath = (value: unknown, name = "path"): string => {
  const path =
    value instanceof Uint8Array
      ? Buffer.from(value.buffer, value.byteOffset, value.length).toString()
      : value instanceof URL
        ? builtin<typeof NodeUrl>("node:url").fileURLToPath(value)
        : value
  if (typeof path !== "string") throw invalidType(name, "of type string or an instance of Buffer or URL", value)
  if (path.includes("\0")) throw invalidValue(name, path, "must be a string, Uint8Array, or URL without null bytes")
  return path
}

export type Encoding = BufferEncoding | "buffer"

const isEncoding = (name: string): boolean =>
  typeof Buffer.isEncoding === "function" ? Buffer.isEncoding(name) : /^(?:utf-?8|latin1|hex|base64)$/.test(name)

/** Returns the options as an object. A string is the encoding; null and functions count as absent. */
export const toOptions = <Options extends object>(value: unknown): Options & { readonly encoding?: Encoding | undefined } => {
  const options =
    value === null || value === undefined || typeof value === "function"
      ? {}
      : typeof value === "string"
        ? { encoding: value }
        : value
  if (typeof options !== "object") throw invalidType("options", "one of type string or object", value)
  const { encoding, signal } = options as { readonly encoding?: unknown; readonly signal?: unknown }
  if (encoding !== undefined && encoding !== null && encoding !== "buffer" && !isEncoding(String(encoding))) {
    throw invalidValue("encoding", encoding, "is invalid encoding")
  }
  // Node accepts any object with a property `aborted` as a signal.
  if (signal !== undefined && (typeof signal !== "object" || signal === null || !("aborted" in signal))) {
    throw invalidType("options.signal", "an instance of AbortSignal", signal)
  }
  return options as Options
}

/** Encodes a name, a path or a link target as the caller wants it. */
export const encodeName = (name: string, encoding: Encoding | null | undefined): string | Buffer =>
  encoding === "buffer"
    ? Buffer.from(name)
    : encoding === undefined || encoding === null || /^utf-?8$/i.test(encoding)
      ? name
      : Buffer.from(name).toString(encoding)

export const toBuffer = (bytes: ArrayBufferView): Buffer =>
  Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)

export const isView = (value: unknown): value is ArrayBufferView => ArrayBuffer.isView(value)

/** Returns the bytes to write. Strings are encoded, views are not copied. */
export const toBytes = (data: unknown, encoding: Encoding | null | undefined, name = "data"): Buffer => {
  if (typeof data === "string") return Buffer.from(data, encoding === "buffer" || encoding === null ? undefined : encoding)
  if (isView(data)) return toBuffer(data)
  throw invalidType(name, "of type string or an instance of Buffer, TypedArray, or DataView", data)
}

/** Reads the mode of an entry, as a number or in octal digits. Returns the default mode, if there is one, for a missing mode. */
export const toMode = (given: unknown, defaultMode?: number): number => {
  const value = given ?? defaultMode ?? given
  const mode = typeof value === "string" && /^[0-7]+$/.test(value) ? Number.parseInt(value, 8) : value
  if (typeof mode === "string") throw invalidValue("mode", mode, "must be a 32-bit unsigned integer or an octal string")
  if (typeof mode !== "number") throw invalidType("mode", "of type number", value)
  if (!Number.isInteger(mode) || mode < 0 || mode > 0xffff_ffff) throw outOfRange("mode", ">= 0 && <= 4294967295", mode)
  return mode
}

/** Reads the mode of `access` and `copyFile`, which has three bits. */
export const toThreeBits = (mode: unknown): number => {
  if (typeof mode !== "number" || !Number.isInteger(mode) || mode < 0 || mode > 7)
    throw outOfRange("mode", ">= 0 && <= 7", mode)
  return mode
}

/** Reads the new size of a file. A negative size means 0. */
export const toLength = (length: unknown): number => {
  if (typeof length !== "number") throw invalidType("len", "of type number", length)
  if (!Number.isInteger(length)) throw outOfRange("len", "an integer", length)
  return Math.max(0, length)
}

/** Returns a time in milliseconds since 1970, or `undefined` for a number of seconds for which Node uses the current time. */
export const toMillis = (time: unknown): number | undefined => {
  if (time instanceof Date) return time.getTime()
  const seconds = typeof time === "string" && time.trim() !== "" ? Number(time) : time
  if (typeof seconds !== "number" || (typeof time === "string" && Number.isNaN(seconds))) {
    throw invalidType("time", "an instance of Date or an Time in seconds", time)
  }
  return Number.isFinite(seconds) && seconds >= 0 ? Math.trunc(seconds * 1000 + 5e-4) : undefined
}

const linux = {
  F_OK: 0,
  X_OK: 1,
  W_OK: 2,
  R_OK: 4,
  COPYFILE_EXCL: 1,
  COPYFILE_FICLONE: 2,
  COPYFILE_FICLONE_FORCE: 4,
  O_RDONLY: 0,
  O_WRONLY: 1,
  O_RDWR: 2,
  O_CREAT: 0o100,
  O_EXCL: 0o200,
  O_TRUNC: 0o1000,
  O_APPEND: 0o2000,
  O_DIRECTORY: 0o200_000,
  O_NOFOLLOW: 0o400_000,
  S_IFMT: 0o170_000,
  S_IFREG: 0o100_000,
  S_IFDIR: 0o040_000,
  S_IFLNK: 0o120_000
}

/** The constants of `node:fs`; without Node those of Linux. */
export const constants: typeof linux = isNode ? { ...linux, ...Fs.constants } : linux

export interface OpenFlags {
  readonly isReadable: boolean
  readonly isWritable: boolean
  readonly isAppending: boolean
  readonly creates: boolean
  readonly isExclusive: boolean
  readonly truncates: boolean
  readonly isDirectoryOnly: boolean
  readonly refusesLink: boolean
}

const textFlags = /^(?:r|rs|sr|r\+|rs\+|sr\+|w|wx|xw|w\+|wx\+|xw\+|a|ax|xa|as|sa|a\+|ax\+|xa\+|as\+|sa\+)$/

/** Reads the flags of `open`, such as "wx+" or `O_RDWR | O_CREAT`. */
export const toFlags = (value: unknown): OpenFlags => {
  if (typeof value === "number" && Number.isInteger(value)) {
    const has = (bits: number) => (value & bits) === bits && bits !== 0
    const access = value & 3
    return {
      isReadable: access !== constants.O_WRONLY,
      isWritable: access !== constants.O_RDONLY,
      isAppending: has(constants.O_APPEND),
      creates: has(constants.O_CREAT),
      isExclusive: has(constants.O_CREAT | constants.O_EXCL),
      truncates: has(constants.O_TRUNC),
      isDirectoryOnly: has(constants.O_DIRECTORY),
      refusesLink: has(constants.O_NOFOLLOW)
    }
  }
  const text = value ?? "r"
  if (typeof text !== "string" || !textFlags.test(text)) throw invalidValue("flags", text)
  const isAppending = text.includes("a")
  const creates = isAppending || text.includes("w")
  const isBoth = text.includes("+")
  return {
    isReadable: isBoth || !creates,
    isWritable: isBoth || creates,
    isAppending,
    creates,
    isExclusive: text.includes("x"),
    truncates: text.includes("w"),
    isDirectoryOnly: false,
    refusesLink: false
  }
}

/** Checks a range of a buffer, and returns its offset and length. */
export const toRange = (
  buffer: ArrayBufferView,
  offset: unknown,
  length: unknown
): readonly [offset: number, length: number] => {
  const size = buffer.byteLength
  const start = offset ?? 0
  if (typeof start !== "number") throw invalidType("offset", "of type number", offset)
  if (!Number.isInteger(start) || start < 0 || start > size) throw outOfRange("offset", `>= 0 && <= ${size}`, start)
  const count = length ?? size - start
  if (typeof count !== "number") throw invalidType("length", "of type number", length)
  if (!Number.isInteger(count) || count < 0) throw outOfRange("length", ">= 0", count)
  if (count > size - start) throw outOfRange("length", `<= ${size - start}`, count)
  return [start, count]
}

/** Returns a position in a file, or undefined for the current position of the descriptor. */
export const toPosition = (value: unknown): number | undefined => {
  if (value === undefined || value === null || value === -1 || value === -1n) return undefined
  if (typeof value !== "number" && typeof value !== "bigint") throw invalidType("position", "an integer or bigint", value)
  const position = Number(value)
  if (!Number.isSafeInteger(position) || position < 0) {
    throw outOfRange("position", ">= -1 && <= 9007199254740991", value)
  }
  return position
}
