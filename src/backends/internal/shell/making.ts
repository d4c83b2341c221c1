/**
 * Creates many new entries in one request. The shell itself writes the files, so no file costs a process.
 *
 * Unusual entries are declined: the engine then creates them with the plain operations, which report any failure.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fault } from "../../../model/FsError.ts"
import type { NewEntry } from "../../../port/Backend.ts"
import type { Handlers } from "../../../port/Request.ts"
import { faultOf } from "./faults.ts"
import { isFault, nameOf, type ShellRoot, succeedOrUnexpected } from "./place.ts"
import type { Reply } from "./session.ts"

/** Entries in one request, and bytes of their paths. The system limits a program's arguments. */
const maxEntries = 1024
const maxNames = 96 * 1024
const maxInput = 1024 * 1024
const maxFile = 64 * 1024

const [fileMode, directoryMode] = [0o644, 0o755]

const special: Readonly<Record<string, string>> = { "\n": "\\n", "%": "%%", "\\": "\\\\" }

/** The text for each byte in a format of `printf`, which every shell reads alike. */
const printfTexts: ReadonlyArray<string> = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return special[character] ?? (/[ -&(-~]/.test(character) ? character : `\\${byte.toString(8).padStart(3, "0")}`)
})

/** Returns the format for which `printf` prints the bytes. Escapes a leading hyphen, which would begin an option. */
const formatOf = (bytes: Uint8Array): string => {
  let format = bytes[0] === 0x2d ? "\\055" : ""
  for (let at = format === "" ? 0 : 1; at < bytes.length; at++) format += printfTexts[bytes[at]!]!
  return format
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

interface EntryRequest {
  readonly index: number
  readonly mode: number
  readonly isFile: boolean
  readonly nameLength: number
  readonly text: string
}

const entryRequestOf = ({ bytes, mode, path }: NewEntry, index: number): EntryRequest | undefined => {
  const name = nameOf(path)
  if (isFault(name) || (bytes !== undefined && bytes.length > maxFile)) return undefined
  const isFile = bytes !== undefined
  const bits = (mode ?? (isFile ? fileMode : directoryMode)) & 0o777
  const shown = quoted(Buffer.from(name).toString("latin1"))
  const text = isFile ? `${shown} ${bytes.length} ${quoted(formatOf(bytes))}` : `${shown} d ${bits.toString(8)}`
  return { index, mode: bits, isFile, nameLength: name.length, text }
}

const findFittingEnd = (all: ReadonlyArray<EntryRequest>, start: number): number => {
  let [names, input] = [0, 0]
  let end = start
  let mode: number | undefined
  for (; end < all.length && end - start < maxEntries; end++) {
    const next = all[end]!
    names += next.nameLength
    input += next.text.length + 1
    if (end > start && (names > maxNames || input > maxInput)) break
    if (!next.isFile) continue
    if (mode !== undefined && mode !== next.mode) break
    mode = next.mode
  }
  return end
}

/**
 * The number of the first path among the arguments, and of arguments per entry, by which the answer names removed
 * entries.
 */
const [firstArgument, argumentsPerEntry] = [4, 3]

const parseCreated = (count: number, { output }: Reply): ReadonlyArray<boolean> | undefined => {
  const [, digits = "", removed = ""] = /^([01]*)\n((?:[0-9]+ )*)\n$/.exec(output.toString("latin1")) ?? []
  if (digits.length !== count) return undefined
  const gone = new Set(removed.split(" ").map(Number))
  return Array.from(digits, (digit, at) => digit === "1" && !gone.has(firstArgument + argumentsPerEntry * at))
}

const sendRequest = (place: ShellRoot, some: ReadonlyArray<EntryRequest>): Effect.Effect<ReadonlyArray<boolean>, Fault> => {
  const mode = some.find(({ isFile }) => isFile)?.mode ?? fileMode
  // A redirection never creates an executable file, so the mode needs a `chmod`.
  const chmods = (mode & 0o111) !== 0 ? "1" : "''"
  const head = `${mode.toString(8)} ${(~mode & 0o777).toString(8)} ${chmods}`
  const input = Buffer.from([head, ...some.map(({ text }) => text)].join(" "), "latin1")
  return Effect.flatMap(place.sendRequest({ call: "bulk_taken", arguments: ["bulk_make"], input, repeats: false }), (reply) =>
    reply.status === 0 ? succeedOrUnexpected(parseCreated(some.length, reply)) : Effect.fail(faultOf(reply))
  )
}

export const makeMany =
  (place: ShellRoot): NonNullable<Handlers["MakeMany"]> =>
  ({ entries }) =>
    Effect.gen(function* () {
      const out: Array<boolean> = entries.map(() => false)
      const entryRequests = entries.flatMap((entry, index) => entryRequestOf(entry, index) ?? [])
      const files = entryRequests.filter(({ isFile }) => isFile).sort((one, other) => one.mode - other.mode)
      const all = [...entryRequests.filter(({ isFile }) => !isFile), ...files]
      for (let at = 0; at < all.length;) {
        const end = findFittingEnd(all, at)
        const some = all.slice(at, end)
        const made = yield* sendRequest(place, some)
        for (const [place, { index }] of some.entries()) out[index] = made[place]!
        at = end
      }
      return Option.some(out)
    })
