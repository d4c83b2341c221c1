/**
 * A leaf serves the requests of a journal with a filesystem. The leaf reads requests, carries them out, and appends the answers.
 * `make` and `layer` serve any filesystem; `posixFS`, `windowsFS`, `mockFS`, `s3FS` and `sftpFS` create the filesystem from
 * settings.
 *
 * - Each request is answered once. A request that has an answer is never carried out again, even after a restart.
 * - Two requests run in the order of the journal if they have the same path, or if the path of one is below the path of the
 *   other. Other requests run in parallel.
 * - A failed request is answered by FileFault and does not end the leaf. If the journal fails, the leaf ends, and `failure` is
 *   the error.
 * - A content of at most `streamingThreshold` bytes is one entry. A larger content is sent in chunks. For the read of a range,
 *   the size of the range counts.
 * - A write in chunks runs when its last chunk has arrived. The position of the last chunk determines the order.
 * - `FileList` with a pattern lists the entries of every kind that match the glob. Unless the request is recursive, only the
 *   direct entries of the directory are listed.
 *
 * Several leaves may serve one journal. Each claims the paths at and below its `prefix`, and the longest matching prefix wins.
 * A request that no leaf serves is answered Unavailable, "no leaf serves this path", after `grace`. The leaf that has run
 * longest sends this answer. When a leaf ends, its open requests pass to the leaf that then owns the path. A leaf with the
 * same name or the same prefix replaces the earlier leaf, which finishes its current requests and completes.
 *
 * After a leaf was killed, its successor answers the open requests. Reads are carried out. If the killed leaf was `extended`, a
 * change that the successor recognizes as made gets its normal answer. Any other change is answered with IoError "not
 * executed" (see `resume`), which says whether the change may have been made. If a leaf was killed on this machine, another
 * leaf detects this and reports the killed leaf as Completed. For any other leaf that has not completed, the successor waits at
 * most twice the `timeout`.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bucket from "../backends/Bucket.ts"
import * as InMemory from "../backends/InMemory.ts"
import * as PosixHost from "../backends/PosixHost.ts"
import * as Sftp from "../backends/Sftp.ts"
import * as WindowsHost from "../backends/WindowsHost.ts"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import * as Caller from "../filesystem/operations/call.ts"
import {
  type BackendError,
  InvalidArgument,
  type InvalidPath,
  type NotADirectory,
  type PathTooLong,
  type StatError,
  type Unsupported
} from "../model/FsError.ts"
import { Limits } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import * as Daemon from "./Daemon.ts"
import type { DaemonOptions, Running } from "./Daemon.ts"
import { type Entry, Journal, type Recorded } from "./model.ts"
import type { JournalError } from "./errors.ts"
import type { Answered } from "./leaf/answered.ts"
import * as Dispatch from "./leaf/dispatch.ts"
import * as Executor from "./leaf/executor.ts"
import type { LeafContext } from "./leaf/model.ts"
import * as SettingsModule from "./leaf/settings.ts"
import { type LeafOptions, MockFS, PosixFS, S3FS, type Settings, SftpFS, WindowsFS } from "./leaf/settings.ts"
import * as Checkpoints from "./leaf/survey.ts"

const superseded = Symbol()

interface LeafState {
  readonly dispatch: Dispatch.Dispatch
  readonly answered: Answered
  readonly checkpoints: Checkpoints.Checkpoints
}

/** Processes the entries one at a time. The effect of an entry ends before the next entry is processed. */
const processPage = (
  state: LeafState,
  page: ReadonlyArray<Recorded<Entry>>,
  from = 0
): Effect.Effect<void, typeof superseded> =>
  Effect.suspend(() => {
    for (let i = from; i < page.length; i++) {
      state.answered.advanceTo(page[i]!)
      state.checkpoints.observe(page[i]!)
      const action = state.dispatch.processEntry(page[i]!)
      if (action === "superseded") return Effect.fail(superseded)
      if (action !== undefined) return Effect.flatMap(action, () => processPage(state, page, i + 1))
    }
    const [decided, due] = [state.dispatch.runPostponed(), state.checkpoints.appendIfDue()]
    return Effect.andThen(decided ?? Effect.void, due ?? Effect.void)
  })

const makeRun = (fs: Algebra, settings: Settings): DaemonOptions<JournalError, Journal> => {
  let executor: Executor.Executor | undefined

  const run = Effect.fnUntraced(function* ({ instance, position }: Running): Effect.fn.Return<void, JournalError, Journal> {
    const journal = yield* Journal
    const { extended, graceMillis: grace, name, prefix } = settings
    const me = { daemon: name, instance, prefix, extended, grace, position }
    // Wait at most two timeouts for a replaced leaf. After one timeout, an ending leaf drops the requests that have not begun.
    // A request that began just before may take one more timeout.
    const survey = yield* Checkpoints.make(journal, me, 2 * settings.timeoutMillis)
    if (survey === undefined) return
    const clock = yield* Clock.Clock
    const context = Context.add(yield* Effect.context<never>(), Limits, settings.limits)
    const activeExecutor = (executor = Executor.make({
      journal,
      settings,
      caseSensitive: fs.port.info.caseSensitive,
      clock,
      context,
      answered: survey.answered
    }))
    const serving: LeafContext = { fs, caller: Caller.make(fs.port), journal, settings, instance, tell: activeExecutor.tell }
    const dispatch = Dispatch.make(serving, activeExecutor, survey, me, clock)
    const { answered, checkpoint: from } = survey
    const state = { dispatch, answered, checkpoints: Checkpoints.makeCheckpoints(journal, me, answered, from) }
    const reading = Effect.catchIf(
      Stream.runForEachArray(journal.tail(from.position), (page) => processPage(state, page)),
      (error) => error === superseded,
      () => Effect.void
    ) as Effect.Effect<void, JournalError>
    yield* Effect.raceAllFirst([reading, activeExecutor.journalFailure, activeExecutor.watch, dispatch.watch])
  })

  return {
    name: settings.name,
    says: { prefix: settings.prefix, extended: settings.extended, grace: settings.graceMillis },
    run,
    stop: Effect.suspend(() =>
      executor === undefined
        ? Effect.void
        : Effect.raceAllFirst([executor.waitUntilIdle, executor.journalFailure, executor.watch])
    )
  }
}

export { LeafCheckpoint } from "./entries/status.ts"

export {
  /** @since 0.1.0 */
  type LeafOptions,
  MockFS,
  PosixFS,
  S3FS,
  SftpFS,
  WindowsFS
} from "./leaf/settings.ts"

/**
 * Returns a leaf over a filesystem. The caller must start the leaf. The leaf shuts down when the scope closes. Fails with
 * InvalidArgument for an invalid option.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  fs: Algebra,
  options: LeafOptions = {}
): Effect.Effect<Daemon.Daemon, InvalidArgument, Journal | Scope.Scope> =>
  Effect.suspend(() => {
    const settings = SettingsModule.parseOptions(fs, options)
    return settings instanceof InvalidArgument
      ? Effect.fail(settings)
      : Daemon.make(makeRun(SettingsModule.applyOptions(fs, options), settings))
  })

/**
 * Serves the filesystem of the context with a leaf for the lifetime of the layer.
 *
 * @example
 * ```ts
 * const leaf = Leaf.layer({ extended: true })
 * const branch = Branch.layer({ extended: true })
 * const list = Filesystem.Filesystem.use((fs) => fs.list("notes"))
 * const entries = yield* list.pipe(Effect.provide(branch), Effect.provide(leaf), Effect.provide(Journal.layerMemory))
 * entries.map(({ name }) => name) // => ["todo.md"]
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: LeafOptions = {}
): Layer.Layer<never, InvalidArgument | Daemon.DaemonError, Filesystem | Journal> =>
  Daemon.layer(Effect.flatMap(Filesystem, (fs) => make(fs, options)))

type OtherOptions<Config> = Omit<LeafOptions, keyof Config>

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

const decode = <Config, Encoded>(
  schema: Schema.Codec<Config, Encoded>,
  config: Encoded
): Effect.Effect<Config, InvalidArgument> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(config, { onExcessProperty: "error" }), ({ issue }) => {
    const [first] = formatIssue(issue).issues
    return SettingsModule.invalid(
      first?.path?.map(String).join(".") || "config",
      first?.message ?? "the value is not a leaf setting"
    )
  })

const layerOver = <E>(
  backend: Effect.Effect<Backend, E, Scope.Scope>,
  options: LeafOptions
): Layer.Layer<never, E | InvalidArgument | Daemon.DaemonError, Journal> =>
  Daemon.layer(Effect.flatMap(backend, (port) => make(makeAlgebra(port), options)))

/**
 * The errors of a leaf over a directory on the machine.
 *
 * @since 0.1.0
 */
export type HostLeafError = StatError | NotADirectory | Unsupported | InvalidArgument | Daemon.DaemonError

/**
 * Runs a leaf over a directory of a POSIX machine. Fails with InvalidArgument if a setting is invalid, and with the errors of
 * `PosixHost.make`. To read the settings from the environment: `Layer.unwrap(Effect.map(Config.schema(Leaf.PosixFS, "LEAF"),
 * (config) => Leaf.posixFS(config)))`.
 *
 * @category layers
 * @since 0.1.0
 */
export const posixFS = (
  config: typeof PosixFS.Encoded,
  options: OtherOptions<PosixFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(PosixFS, config), ({ rootPath, ...settings }) =>
      layerOver(PosixHost.make({ root: rootPath, preservePermissions: settings.preservePermissions }), {
        name: nameWithPrefix("PosixFS", options),
        ...options,
        ...settings
      })
    )
  )

/**
 * Runs a leaf over a directory of a Windows machine. Fails with the errors of `posixFS`, and with Unsupported on any other
 * machine. `lockedRetries` is 0 by default, because the Windows backend already retries operations on files that another
 * program has open.
 *
 * @category layers
 * @since 0.1.0
 */
export const windowsFS = (
  config: typeof WindowsFS.Encoded,
  options: OtherOptions<WindowsFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(WindowsFS, config), ({ rootPath, useLongPaths, ...settings }) =>
      layerOver(WindowsHost.make({ root: rootPath, useLongPaths }), {
        name: nameWithPrefix("WindowsFS", options),
        lockedRetries: 0,
        names: "windows",
        ...options,
        ...settings
      })
    )
  )

/**
 * The options of a leaf over a tree in memory.
 *
 * @since 0.1.0
 */
export interface MockOptions extends OtherOptions<MockFS> {
  /** The initial tree. @default an empty tree */
  readonly tree?: InMemory.Tree | undefined
}

/**
 * Runs a leaf over a tree in memory. The tree lives as long as the layer. Fails with InvalidArgument if a setting is
 * invalid, and with the errors of `InMemory.make`.
 *
 * @category layers
 * @since 0.1.0
 */
export const mockFS = (
  config: typeof MockFS.Encoded = {},
  { tree, ...options }: MockOptions = {}
): Layer.Layer<never, InvalidArgument | InvalidPath | PathTooLong | Daemon.DaemonError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(MockFS, config), ({ caseInsensitive, ...settings }) =>
      layerOver(InMemory.make({ tree: tree ?? {}, caseInsensitive }), {
        name: nameWithPrefix("MockFS", options),
        ...options,
        ...settings
      })
    )
  )

/**
 * The errors of a leaf over files that are elsewhere.
 *
 * @since 0.1.0
 */
export type RemoteLeafError = BackendError | InvalidArgument | Daemon.DaemonError

/**
 * The options of a leaf over a bucket.
 *
 * @since 0.1.0
 */
export interface S3Options extends OtherOptions<S3FS> {
  /**
   * The keys that sign the requests, as in `Bucket`.
   * @default the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the configuration
   */
  readonly credentials?: Bucket.BucketOptions["credentials"]
}

/**
 * Runs a leaf over a bucket. Fails with InvalidArgument if a setting is invalid, and with the errors of `Bucket.make`.
 *
 * @category layers
 * @since 0.1.0
 */
export const s3FS = (
  config: typeof S3FS.Encoded,
  { credentials, ...options }: S3Options = {}
): Layer.Layer<never, RemoteLeafError, Journal> =>
  Layer.unwrap(
    Effect.map(decode(S3FS, config), ({ bucket, conditional, endpoint, keyPrefix, metadata, region, ...settings }) => {
      const { allowDelete, allowWrite } = settings
      const place = { bucket, prefix: keyPrefix, endpoint, region, credentials }
      // Without the permission to write, opening the bucket writes nothing either.
      return layerOver(Bucket.make({ ...place, conditional, metadata, allowWrite, allowDelete }), {
        name: nameWithPrefix("S3FS", options),
        ...options,
        ...settings
      })
    })
  )

/**
 * The options of a leaf over a directory of an SSH server. One of `privateKey`, `password` and the setting `agent` is required.
 *
 * @since 0.1.0
 */
export interface SftpOptions extends OtherOptions<SftpFS> {
  /** A private key without a passphrase, in the format of OpenSSH or PEM. */
  readonly privateKey?: Redacted.Redacted | undefined
  readonly password?: Redacted.Redacted | undefined
}

/**
 * Runs a leaf over a directory of an SSH server. Fails with InvalidArgument if a setting is invalid, and with the errors of
 * `Sftp.make`.
 *
 * @category layers
 * @since 0.1.0
 */
export const sftpFS = (
  config: typeof SftpFS.Encoded,
  { password, privateKey, ...options }: SftpOptions = {}
): Layer.Layer<never, RemoteLeafError, Journal> =>
  Layer.unwrap(
    Effect.flatMap(
      decode(SftpFS, config),
      ({ agent, durable, host, hostKeys, knownHosts, port, rootPath, unsafeReplace, username, ...settings }) => {
        if (knownHosts !== undefined && hostKeys.length > 0) {
          return Effect.fail(SettingsModule.invalid("hostKeys", "give either hostKeys or knownHosts"))
        }
        const { allowDelete, allowWrite } = settings
        const server = { host, port, username, agent, privateKey, password }
        const keys = knownHosts === undefined ? hostKeys : { knownHosts }
        const durability = durable ? "file" : "none"
        return Effect.succeed(
          layerOver(
            Sftp.make({ ...server, root: rootPath, hostKeys: keys, durability, unsafeReplace, allowWrite, allowDelete }),
            { name: nameWithPrefix("SftpFS", options), ...options, ...settings }
          )
        )
      }
    )
  )

/**
 * Runs `windowsFS` on Windows and `posixFS` on other systems. Accepts only the settings that both functions accept.
 *
 * @category layers
 * @since 0.1.0
 */
export const localFS = (
  config: Omit<typeof PosixFS.Encoded & typeof WindowsFS.Encoded, "useLongPaths" | "followSymlinks" | "preservePermissions">,
  options: OtherOptions<PosixFS & WindowsFS> = {}
): Layer.Layer<never, HostLeafError, Journal> =>
  process.platform === "win32" ? windowsFS(config, options) : posixFS(config, options)

const nameWithPrefix = (name: string, { prefix }: Pick<LeafOptions, "prefix">): string =>
  prefix === undefined ? name : `${name}:${prefix}`
