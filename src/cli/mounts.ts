/**
 * Implements `--mount`, which copies files from the machine into the in-memory copy of a command. Only the typed paths may
 * be copied, not other files in the same directories. Also mounts several directories in one root, for the command `mcp`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { realpathSync } from "node:fs"
import { basename, dirname, isAbsolute, normalize, resolve, sep } from "node:path"
import { refused } from "../agent/definition.ts"
import { layer as policy } from "../agent/policy/core.ts"
import { type Algebra, Filesystem, make } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type * as HostMount from "../workspace/HostMount.ts"
import { writeRemark } from "./answer.ts"
import { Complaint, exitCodeOf, systemErrorCode, usage, usageErrorCode } from "./exit.ts"
import { count } from "./humanise.ts"
import { errorStyle } from "./look.ts"
import { Screen } from "./screen.ts"
import { type Directory, type MountFlag, refusing, Settings } from "./settings.ts"

/**
 * Splits at the last colon, so that a source may contain colons. The colon of a Windows drive does not split. Returns
 * `undefined` if a part is blank.
 */
export const parseMountFlag = (text: string, platform: NodeJS.Platform = process.platform): MountFlag | undefined => {
  const drive = platform === "win32" && /^[a-z]:/i.test(text) ? 2 : 0
  const colon = text.indexOf(":", drive) === -1 ? -1 : text.lastIndexOf(":")
  const [source, target] = colon === -1 ? [text] : [text.slice(0, colon), text.slice(colon + 1)]
  return source.trim() === "" || target?.trim() === "" ? undefined : { source, target }
}

/**
 * Refuses `--mount` for a layer without an in-memory copy. `why` is the reason in the error. Suggests `--backend memory` if the
 * command did not have this flag.
 */
export const withoutMountFlag = (why: string) =>
  refusing(({ backend, command, mounts }) => {
    if (mounts.length === 0) return undefined
    return backend === "memory"
      ? usage(`--mount cannot be combined with ${command}: ${why}`, "Leave out --mount.")
      : usage(
          `--mount needs --backend memory: ${why}`,
          "Work on a copy with --backend memory, or copy the files into the directory yourself."
        )
  })

interface ResolvedMount {
  readonly source: string
  readonly mount: HostMount.HostMount
  readonly allowed: string
}

/**
 * Resolves a mount. Without a target, a relative source below the working directory is mounted at its own path. Any other
 * source is mounted at its last name. Returns `undefined` if the source does not exist.
 */
const resolveMount = ({ source, target }: MountFlag, directory: string): ResolvedMount | undefined => {
  const path = normalize(source)
  const isBelow = !isAbsolute(path) && path.split(sep)[0] !== ".."
  const hostPath = isBelow ? path : resolve(directory, path)
  try {
    const allowed = dirname(realpathSync(resolve(directory, path)))
    return { source, mount: { hostPath, mountPath: target }, allowed }
  } catch {
    return undefined
  }
}

const adviceByReason: Readonly<Record<HostMount.MountError["reason"], readonly [code: number, hint: string]>> = {
  outside: [exitCodeOf("AccessDenied"), "A store of snapshots must not be changed; mount another directory."],
  missing: [exitCodeOf("NotFound"), "A SOURCE is relative to the current directory; if its name has a colon, give a TARGET."],
  invalid: [usageErrorCode, "Give --mount SOURCE:TARGET, with a TARGET below the root."],
  budget: [exitCodeOf("LimitExceeded"), "Mount a part of that directory."],
  unreadable: [
    exitCodeOf("AccessDenied"),
    "Check the permissions of that file, or mount a part of the directory without that file."
  ],
  changed: [systemErrorCode, "Try again when no program writes to that file."]
}

const complaintOf = (error: HostMount.MountError): Complaint => {
  const { _tag, detail, hostPath, message, path, reason } = error
  const [code, hint] = adviceByReason[reason]
  return new Complaint({ error: { _tag, hostPath, reason, detail, ...(path !== undefined && { path }) }, message, hint, code })
}

const occupiedTargetError = (error: FsError.FsError): Complaint =>
  new Complaint({
    error: Schema.encodeSync(Schema.toCodecJson(FsError.FsError))(error) as Complaint["error"],
    message: FsError.promote(FsError.toFault(error), "--mount", error.path).message,
    hint: "Choose another TARGET: --mount SOURCE:TARGET.",
    code: exitCodeOf(error._tag)
  })

const why: Readonly<Record<HostMount.LeftOut["why"], string>> = {
  link: "it is a link",
  outside: "it leads out of the mounted directory",
  dangling: "its target does not exist",
  loop: "it leads to a directory that contains the link",
  other: "it is not a file, a directory or a link"
}

const maxShownEntries = 3

const reportLeftOut = Effect.fnUntraced(function* (previews: ReadonlyArray<HostMount.Preview>) {
  const { name, yellow } = errorStyle(yield* Screen)
  for (const { leftOut, source } of previews) {
    if (leftOut.count === 0) continue
    const lines = leftOut.entries.slice(0, maxShownEntries).map((entry) => `\n  ${name(entry.path)}: ${why[entry.why]}`)
    const rest = leftOut.count > maxShownEntries ? `\n  and ${leftOut.count - maxShownEntries} more` : ""
    const text = `left out of ${name(source)}, ${count(leftOut.count, "entry")}:${lines.join("")}${rest}`
    yield* writeRemark(`${yellow("note:")}  ${text}`, { mount: source, leftOut })
  }
})

export const mountAll = Effect.fnUntraced(function* (fs: Algebra) {
  const { mounts } = yield* Settings
  if (mounts.length === 0) return
  const { directory } = yield* Screen
  const { hydrate, MountError } = yield* Effect.promise(() => import("../workspace/HostMount.ts"))
  const all: Array<ResolvedMount> = []
  for (const flag of mounts) {
    const found = resolveMount(flag, directory)
    if (found === undefined) {
      const { source: hostPath } = flag
      return yield* complaintOf(new MountError({ hostPath, reason: "missing", detail: "there is no such file or directory" }))
    }
    all.push(found)
  }
  // Relative paths are resolved against the first root.
  const allowedRoots = [directory, ...all.map(({ allowed }) => allowed)]
  const hydrated = hydrate(
    fs,
    all.map(({ mount }) => mount),
    { allowedRoots }
  )
  const toComplaint = (error: HostMount.MountError) => {
    const source = all.find(({ mount }) => mount.hostPath === error.hostPath)?.source ?? error.hostPath
    return complaintOf(new MountError({ ...error, hostPath: source }))
  }
  const previews = yield* Effect.mapError(hydrated, (error) =>
    error._tag === "MountError" ? toComplaint(error) : occupiedTargetError(error)
  )
  yield* reportLeftOut(previews)
})

const nameOf = (path: string): string => {
  const name = basename(path)
  return name !== "" && FsPath.parse(name) === name ? name : "directory"
}

/**
 * Names each directory by the last segment of its path. Equal names, and names that differ only in case, get a number: `app`,
 * `app-2`.
 */
export const nameDirectories = (paths: ReadonlyArray<string>): ReadonlyArray<Directory> => {
  const taken = new Set<string>()
  return paths.map((path) => {
    const name = nameOf(path)
    let unique = name
    for (let n = 2; taken.has(FsPath.fold(unique)); n++) unique = `${name}-${n}`
    taken.add(FsPath.fold(unique))
    return { name: unique, path }
  })
}

export const mountDirectories = <E, R>(
  directories: ReadonlyArray<Directory>,
  open: (path: string) => Layer.Layer<Filesystem, E, R>
): Layer.Layer<Filesystem, E | FsError.FsError, R> =>
  Layer.effect(
    Filesystem,
    Effect.gen(function* () {
      const { mount } = yield* Effect.promise(() => import("../filesystem/Mounts.ts"))
      const memory = yield* Effect.promise(() => import("../backends/InMemory.ts"))
      const scope = yield* Effect.scope
      let fs: Algebra = make(yield* memory.make({ tree: Object.fromEntries(directories.map(({ name }) => [name, {}])) }))
      for (const { name, path } of directories) {
        const opened = yield* Layer.buildWithScope(open(path), scope)
        fs = yield* mount(name, Context.get(opened, Filesystem))(fs)
      }
      return fs
    })
  )

const isOutsideDirectories = (path: FsPath.FsPath, names: ReadonlyArray<string>, caseSensitive: boolean): boolean => {
  const [first] = FsPath.segments(path)
  const toComparableName = (name: string): string => (caseSensitive ? name : FsPath.fold(name))
  return first !== undefined && !names.some((name) => toComparableName(name) === toComparableName(first))
}

/**
 * Refuses changes outside the served directories. Files outside would exist only in memory, and would be lost when the server
 * ends.
 */
export const refuseOutsideDirectories = (directories: ReadonlyArray<Directory>): Layer.Layer<never> => {
  const names = directories.map(({ name }) => name)
  return policy({
    name: "directories",
    before: ({ filesystem, tool, touches }) => {
      const { caseSensitive } = filesystem.port.info
      const outsideAccess = touches.find(
        ({ access, path }) => access !== "read" && isOutsideDirectories(path, names, caseSensitive)
      )
      return outsideAccess === undefined
        ? Effect.void
        : Effect.fail(
            refused(
              `${tool} was refused: ${JSON.stringify(outsideAccess.path)} is in none of the served directories.`,
              `Begin the path with one of the served directories: ${names.join(", ")}.`
            )
          )
    }
  })
}
