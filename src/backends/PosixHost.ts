/**
 * A directory of the machine as a filesystem. It stands on `node:fs`, follows no link, touches nothing outside its root, and keeps
 * nothing in memory: whatever else works on the directory sees every change at once, and its changes are seen.
 *
 * What is promised of its confinement today is `best-effort`: no path, no link that stands in the tree, and no error leads out of the
 * root; a process that exchanges directories for links while a call runs could still win a race against it.
 *
 * Names and metadata are asked for synchronously, in microseconds; on a disk that does not answer (a network disk whose server is
 * gone) the whole program waits. Between processes, a move that may not replace anything looks directly before it acts, since no
 * call of Node can do both at once; creating, replacing and appending are atomic between processes too.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { isAbsolute } from "node:path"
import * as Filesystem from "../filesystem/Filesystem.ts"
import { type Fault, type NotADirectory, promote, type StatError, type Unsupported } from "../model/FsError.ts"
import { type FsPath, root } from "../model/FsPath.ts"
import type { Backend, Info, Rules } from "../port/Backend.ts"
import { enforce, fromOptions, isReadOnly } from "../port/Rules.ts"
import * as Locks from "../runtime/locks.ts"
import { put, settleName } from "./internal/atomicReplace.ts"
import { attempt } from "./internal/attempt.ts"
import * as Confined from "./internal/confined.ts"
import { codeOf } from "./internal/errno.ts"
import * as Append from "./internal/hostAppend.ts"
import * as Attributes from "./internal/hostAttributes.ts"
import * as File from "./internal/hostFile.ts"
import { list } from "./internal/hostList.ts"
import * as Naming from "./internal/hostNaming.ts"
import { removeTree } from "./internal/hostTree.ts"
import { watch } from "./internal/hostWatch.ts"
import type { HostOptions } from "./internal/options.ts"

export type {
  /** @since 0.1.0 */
  HostOptions
} from "./internal/options.ts"

/** @since 0.1.0 */
export interface PosixHostOptions extends HostOptions {
  /** `follow` inside the root, `report` in stat, `refuse` any path through a link. @default "follow" */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /** `reject`: files with more than one name are neither read nor appended to. @default "allow" */
  readonly hardlinks?: "allow" | "reject" | undefined
  /** `copy` keeps permission bits. @default false */
  readonly preservePermissions?: boolean | undefined
}

/** What the options ask for and get, in this version, on any machine. */
const confinement: Info["confinement"] = "best-effort"

/** Why these options can never work; `undefined` when they may. */
const refusal = (options: PosixHostOptions): Fault | undefined => {
  const { requireConfinement: required = confinement, root } = options
  if (process.platform === "win32") return { _tag: "Unsupported", feature: "PosixHost on Windows" }
  if (required !== confinement) return { _tag: "Unsupported", feature: `confinement ${required}` }
  if (typeof root !== "string") return { _tag: "InvalidPath", detail: "the root is not a string" }
  if (root.includes("\0")) return { _tag: "InvalidPath", detail: "the root contains a NUL" }
  return isAbsolute(root) ? undefined : { _tag: "InvalidPath", detail: "the root is not an absolute path" }
}

const openRoot = (options: PosixHostOptions): Confined.Confined | Fault => {
  const fault = refusal(options)
  if (fault !== undefined) return fault
  if (options.createRoot === true && Fs.statSync(options.root, { throwIfNoEntry: false }) === undefined) {
    Fs.mkdirSync(options.root, { recursive: true })
  }
  return Confined.open(options.root)
}

const expected = new Set<Fault["_tag"]>([
  "AccessDenied",
  "InvalidPath",
  "IoError",
  "NotADirectory",
  "NotFound",
  "PathTooLong",
  "Timeout",
  "Unavailable",
  "Unsupported"
])

const other = ({ cause }: Fault): Fault => {
  const code = codeOf(cause)
  return { _tag: "IoError", ...(code === undefined ? {} : { code }), detail: "the root cannot be made or opened" }
}

/** With the root as the caller gave it: that is the caller's own to see. */
const promoteRoot = (fault: Fault, path: string): StatError | NotADirectory | Unsupported =>
  promote(expected.has(fault._tag) ? fault : other(fault), "PosixHost", path) as StatError | NotADirectory | Unsupported

const backend = (confined: Confined.Confined, options: PosixHostOptions): Backend => {
  const { durability = "none", hardlinks = "allow", preservePermissions, symlinks } = options
  const rules: Rules = { ...fromOptions(options), symlinks, preservePermissions }
  const maySweep = rules.permits?.("delete") !== false

  /** A change of names, settled where that was asked for. */
  const settled = <A>(change: Effect.Effect<A, Fault>, ...paths: ReadonlyArray<FsPath>): Effect.Effect<A, Fault> =>
    durability === "full"
      ? Effect.tap(change, () => Effect.forEach(paths, (path) => settleName(confined, path, durability), { discard: true }))
      : change
  const naming = (run: () => Fault | undefined, ...paths: ReadonlyArray<FsPath>): Effect.Effect<void, Fault> =>
    settled(attempt(run), ...paths)

  return {
    info: {
      name: "PosixHost",
      root: options.root,
      caseSensitive: confined.caseSensitive,
      readOnly: isReadOnly(rules),
      confinement
    },
    stat: (path) => attempt(() => File.stat(confined, path)),
    list: (path) => list(confined, path, maySweep),
    open: (path) => File.open(confined, path, hardlinks),
    write: (path, content, mode, how) =>
      path === root
        ? Effect.fail<Fault>({ _tag: mode === "create" ? "AlreadyExists" : "NotAFile" })
        : mode === "append"
          ? Append.append(confined, path, content, hardlinks, durability, how?.commit)
          : put(confined, path, content, mode, durability, how?.commit),
    makeDirectory: (path) => naming(() => Naming.makeDirectory(confined, path), path),
    remove: (path) => naming(() => Naming.remove(confined, path), path),
    rename: (from, to, { replace }) => naming(() => Naming.rename(confined, from, to, replace), from, to),
    links: {
      read: (path) => attempt(() => Attributes.readLink(confined, path)),
      make: (path, target) => naming(() => Attributes.makeLink(confined, path, target), path)
    },
    attributes: { set: (path, values) => attempt(() => Attributes.setAttributes(confined, path, values, hardlinks)) },
    watch: (path) => watch(confined, path),
    rules,
    locks: Locks.make({ caseSensitive: confined.caseSensitive }),
    accelerations: {
      read: (path, maxBytes) => File.whole(confined, path, maxBytes, hardlinks),
      removeTree: (path) => settled(removeTree(confined, path), path)
    }
  }
}

/**
 * The port of a host directory, for as long as the scope lives; after that every call fails with Unavailable. Fails with NotFound,
 * NotADirectory or AccessDenied for the root, InvalidPath where it is not absolute, and Unsupported where the machine cannot give
 * the confinement that is required.
 *
 * @since 0.1.0
 */
export const make = (options: PosixHostOptions): Effect.Effect<Backend, StatError | NotADirectory | Unsupported, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.mapError(
        attempt(() => openRoot(options)),
        (fault) => promoteRoot(fault, String(options.root))
      ),
      (confined) => Effect.sync(confined.close)
    ),
    (confined) => enforce(backend(confined, options))
  )

/**
 * A filesystem whose root is a directory of the machine, for as long as the layer lives. Fails as `make` does.
 *
 * @since 0.1.0
 */
export const layer = (options: PosixHostOptions): Layer.Layer<Filesystem.Filesystem, StatError | NotADirectory | Unsupported> =>
  Filesystem.layer(make(options))
