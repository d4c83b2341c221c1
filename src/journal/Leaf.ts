/**
 * What serves the intents of a journal with a filesystem: it reads what is asked, does it, and appends the answer. One leaf serves any
 * filesystem; `posixFS`, `windowsFS` and `mockFS` are those of the seed, with its settings.
 *
 * - Each intent is answered once. What has an answer is never carried out again, also after a restart.
 * - Intents on one path are carried out in the order of the journal, a directory's with those of what is in it; others side by side.
 * - What fails is answered by FileFault, and never ends the leaf; a journal that fails does, and then the leaf says so (`failure`).
 * - A content of at most `streamingThreshold` bytes is one entry, a larger one comes in chunks; of a range, its own size decides.
 * - A write in parts is carried out when the last part is there, in its place in the order. Its content is what the journal holds.
 * - `FileList` with a pattern lists what `Filesystem.glob` matches, of every kind; not recursive, only what stands in the directory itself.
 *
 * Several leaves may serve one journal: each claims the paths from its `prefix` down, the longest prefix has it. A request that
 * no leaf serves is answered Unavailable, "no leaf serves this path", after `grace`, by the leaf that is there longest. When a leaf ends,
 * what it had open passes to the leaf that owns the path then. A leaf of the same name or the same prefix as an earlier one takes
 * its place: that one finishes what it has in hand and completes. After a leaf was killed, the one that takes its place answers what it
 * left: reads as ever, changes with IoError "not executed" (`resume`). Whether a change had been made before the kill it tells where that
 * leaf was `extended`; else it says that it may have been. One that was killed on this machine is known to be dead; any other that has not
 * completed is waited for, twice as long as `timeout` at most. A leaf that died on this machine is reported as Completed by another one.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Scope from "effect/Scope"
import * as InMemory from "../backends/InMemory.ts"
import * as PosixHost from "../backends/PosixHost.ts"
import * as WindowsHost from "../backends/WindowsHost.ts"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import {
  InvalidArgument,
  type NotADirectory,
  type PathTooLong,
  type InvalidPath,
  type StatError,
  type Unsupported
} from "../model/FsError.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import * as Daemon from "./Daemon.ts"
import type { Journal } from "./Journal.ts"
import { MockFS, PosixFS, WindowsFS } from "./leaf/configs.ts"
import * as Run from "./leaf/run.ts"
import * as Settings from "./leaf/settings.ts"

export {
  /** @since 0.1.0 */
  LeafCheckpoint
} from "./entries/checkpoint.ts"
export {
  /** @since 0.1.0 */
  MockFS,
  /** @since 0.1.0 */
  PosixFS,
  /** @since 0.1.0 */
  WindowsFS
} from "./leaf/configs.ts"

/**
 * What a leaf is called, which paths it claims, and how it works through what is asked of it.
 *
 * @since 0.1.0
 */
export interface LeafOptions {
  /** What it is called, the same after a restart. @default the backend's name, with the prefix where there is one */
  readonly name?: string | undefined
  /** Claims the paths from this one down; they stay as they are, relative to the root of the filesystem. @default all */
  readonly prefix?: string | undefined
  /** AccessDenied for what writes, where not. @default true */
  readonly allowWrite?: boolean | undefined
  /** AccessDenied for what deletes, where not; moving needs both, overwriting only the other. @default true */
  readonly allowDelete?: boolean | undefined
  /** Bytes of a chunk; only the last is shorter. @default 65,536 */
  readonly chunkSize?: number | undefined
  /** Bytes up to which a content is one entry. @default 1,048,576 */
  readonly streamingThreshold?: number | undefined
  /** `false`: FileStat tells of a link itself; reading reads what it leads to. @default as the filesystem has it: true */
  readonly followSymlinks?: boolean | undefined
  /** Keeps the permission bits of a copy that a branch makes; needs `extended`. @default false, unless the filesystem's layer sets it */
  readonly preservePermissions?: boolean | undefined
  /** `windows`: InvalidPath for names that Windows cannot have, on whatever disk. @default "posix" */
  readonly names?: "posix" | "windows" | undefined
  /** How many intents are carried out at once. @default 16 */
  readonly concurrency?: number | undefined
  /** How long one may take, or for large contents go without any progress. @default 30 seconds */
  readonly timeout?: Duration.Input | undefined
  /** How long the next part of a write may be waited for. @default 60 seconds */
  readonly idle?: Duration.Input | undefined
  /** How long a request may wait for a leaf that serves its path, before it is answered Unavailable. @default 5 seconds */
  readonly grace?: Duration.Input | undefined
  /**
   * What becomes of changes that stood unanswered in the journal before the leaf did: `reads`: IoError "not executed"; `all`: carried out,
   * but for those of which it is known that they were, or cannot be told. @default "reads"
   */
  readonly resume?: "reads" | "all" | undefined
  /**
   * Takes the further kinds of intent, answers whole errors, metadata and versions, and says before each change what it has met.
   * @default false
   */
  readonly extended?: boolean | undefined
  /** @default Limits.standard */
  readonly limits?: LimitsShape | undefined
  /** How often what another program has open is asked for again, to read or to write it, from 50 ms on. @default 5 */
  readonly lockedRetries?: number | undefined
}

/**
 * A leaf over a filesystem, not started; it shuts down with the scope. Fails with InvalidArgument for an option that can never work.
 *
 * @since 0.1.0
 */
export const make = (
  fs: Algebra,
  options: LeafOptions = {}
): Effect.Effect<Daemon.Daemon, InvalidArgument, Journal | Scope.Scope> =>
  Effect.suspend(() => {
    const settings = Settings.of(fs, options)
    return settings instanceof InvalidArgument
      ? Effect.fail(settings)
      : Daemon.make(Run.make(Settings.seen(fs, options), settings))
  })

/**
 * The same over the filesystem of the context, started with the layer and shut down with it.
 *
 * @since 0.1.0
 */
export const layer = (
  options: LeafOptions = {}
): Layer.Layer<never, InvalidArgument | Daemon.DaemonError, Filesystem | Journal> =>
  Daemon.layer(Effect.flatMap(Filesystem, (fs) => make(fs, options)))

/** What a leaf takes beside the settings of its kind. */
type Further<Config> = Omit<LeafOptions, keyof Config>

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** The first setting that is wrong is named. */
const decode = <Config, Encoded>(
  schema: Schema.Codec<Config, Encoded>,
  config: Encoded
): Effect.Effect<Config, InvalidArgument> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(config, { onExcessProperty: "error" }), ({ issue }) => {
    const [first] = formatIssue(issue).issues
    return Settings.invalid(first?.path?.map(String).join(".") || "config", first?.message ?? "it is not one")
  })

const over = <E>(
  backend: Effect.Effect<Backend, E, Scope.Scope>,
  options: LeafOptions
): Layer.Layer<never, E | InvalidArgument | Daemon.DaemonError, Journal> =>
  Daemon.layer(Effect.flatMap(backend, (port) => make(makeAlgebra(port), options)))

/**
 * What the making of a leaf over a directory of the machine can fail with.
 *
 * @since 0.1.0
 */
export type HostLeafError = StatError | NotADirectory | Unsupported | InvalidArgument | Daemon.DaemonError

/**
 * A leaf over a directory of a POSIX machine. Fails with InvalidArgument, which names the setting, for what can never work, and as
 * `PosixHost.make` does. Settings from the environment: `Layer.unwrap(Effect.map(Config.schema(Leaf.PosixFS, "LEAF"), (config) => Leaf.posixFS(config)))`.
 *
 * @since 0.1.0
 */
export const posixFS = (
  config: typeof PosixFS.Encoded,
  options: Further<PosixFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(PosixFS, config), ({ rootPath, ...settings }) =>
      over(PosixHost.make({ root: rootPath, preservePermissions: settings.preservePermissions }), {
        name: named("PosixFS", options),
        ...options,
        ...settings
      })
    )
  )

/**
 * A leaf over a directory of a Windows machine. Fails as `posixFS`, and with Unsupported on any other machine. What another program has
 * open the disk itself asks for again.
 *
 * @since 0.1.0
 */
export const windowsFS = (
  config: typeof WindowsFS.Encoded,
  options: Further<WindowsFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(WindowsFS, config), ({ rootPath, useLongPaths, ...settings }) =>
      over(WindowsHost.make({ root: rootPath, useLongPaths }), {
        name: named("WindowsFS", options),
        lockedRetries: 0,
        names: "windows",
        ...options,
        ...settings
      })
    )
  )

/**
 * The settings of a leaf in memory, and what it starts with.
 *
 * @since 0.1.0
 */
export interface MockOptions extends Further<MockFS> {
  /** What is there at first. @default nothing */
  readonly tree?: InMemory.Tree | undefined
}

/**
 * A leaf over a tree in memory, which goes with the layer. Fails with InvalidArgument, which names the setting, and as `InMemory.make` does.
 *
 * @since 0.1.0
 */
export const mockFS = (
  config: typeof MockFS.Encoded = {},
  { tree, ...options }: MockOptions = {}
): Layer.Layer<never, InvalidArgument | InvalidPath | PathTooLong | Daemon.DaemonError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(MockFS, config), ({ caseInsensitive, ...settings }) =>
      over(InMemory.make({ tree: tree ?? {}, caseInsensitive }), { name: named("MockFS", options), ...options, ...settings })
    )
  )

/**
 * `windowsFS` on Windows, `posixFS` everywhere else. What only the other has is left out there.
 *
 * @since 0.1.0
 */
export const localFS = (
  config: Omit<typeof PosixFS.Encoded & typeof WindowsFS.Encoded, "useLongPaths" | "followSymlinks" | "preservePermissions">,
  options: Further<PosixFS & WindowsFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  process.platform === "win32" ? windowsFS(config, options) : posixFS(config, options)

const named = (name: string, { prefix }: Pick<LeafOptions, "prefix">): string =>
  prefix === undefined ? name : `${name}:${prefix}`
