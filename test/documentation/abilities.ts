/**
 * The tables of abilities, generated from real filesystems. Facts that a port does not know (platforms, life of the
 * files) are declared here.
 */
import { NodeFileSystem, NodeServices } from "@effect/platform-node"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChildProcess } from "effect/process"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import {
  type Backend,
  Branch,
  Decorator,
  Filesystem,
  InMemory,
  Journal,
  Leaf,
  Limits,
  Mounts,
  Overlay,
  Platform,
  PosixHost,
  Session,
  Snapshots,
  VfsState
} from "../../src/index.ts"
import type * as Objects from "../../src/backends/bucket/objects.ts"
import * as Bucket from "../../src/backends/bucket/port.ts"
import type { Link } from "../../src/backends/sftp/link.ts"
import * as Sftp from "../../src/backends/sftp/port.ts"
import { plan } from "../../src/backends/container/options.ts"
import * as Strategies from "../../src/backends/container/strategies.ts"
import { bulkScript, program } from "../../src/backends/container/shell/script.ts"
import * as Shell from "../../src/backends/container/shell/port.ts"
import { makeSession } from "../../src/backends/container/shell/session.ts"
import { checked } from "../backends/posixHost.ts"
import { host as windows } from "../backends/windows/windowsHost.ts"
import * as Sqlite from "../examples/sqlite.ts"
import { inMemory } from "../scratch.ts"

type Algebra = Filesystem.Algebra

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(inMemory(), "abilities-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Builds the filesystem of a layer for the scope. */
const built = <E>(layer: Layer.Layer<Filesystem.Filesystem, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Filesystem.Filesystem))

const memory = Effect.map(InMemory.make(), Filesystem.make)

const host = Effect.flatMap(directory, (root) => Effect.map(PosixHost.make({ root }), Filesystem.make))

/** Returns the view of a snapshot. */
const past = (layer: typeof Snapshots.layer, of: Effect.Effect<Algebra, unknown, Scope.Scope>) =>
  Effect.flatMap(of, (fs) =>
    Effect.gen(function* () {
      const snapshots = Context.get(
        yield* Layer.build(Layer.provide(layer, Layer.succeed(Filesystem.Filesystem, fs))),
        Snapshots.Snapshots
      )
      return yield* snapshots.view(yield* snapshots.snapshot())
    })
  )

const shared = Effect.flatMap(directory, (hostDirectory) => {
  const options = { image: { rootfs: "/" }, hostDirectory }
  const planned = plan(options, { uid: process.getuid!(), gid: process.getgid!() })
  if ("_tag" in planned) throw new Error(planned._tag)
  return Effect.map(Strategies.makeShared(planned, options, undefined), ({ port }) => Filesystem.make(port))
})

/** A bucket whose store obeys all conditions. The tables ask the port for its members only. */
const bucket = Effect.sync(() =>
  Filesystem.make(
    Bucket.makePort({
      objects: {} as Objects.Objects,
      support: { put: true, form: "quoted", remove: true, complete: true },
      prefix: "",
      place: "",
      shownRoot: "s3://bucket/",
      rules: {},
      sizes: Bucket.defaultSizes,
      bestEffort: [],
      metadata: false
    })
  )
)

/** A directory of an SSH server. The tables ask the port for its members only. */
const sftp = Effect.sync(() =>
  Filesystem.make(
    Sftp.makePort({
      site: {
        link: {} as Link,
        root: "/srv",
        isDurable: true,
        mayReplaceUnsafely: false,
        mayRemoveLeftovers: true,
        maxEntries: 1,
        clock: { seconds: undefined }
      },
      rules: {},
      shownRoot: "sftp://user@host/srv",
      bestEffort: []
    })
  )
)

/** The port of a container without a shared directory, over a shell of this machine. */
const apart = Effect.gen(function* () {
  const root = yield* directory
  const session = yield* makeSession(
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner
      return yield* spawner.spawn(ChildProcess.make("sh", ["-c", program(bulkScript)]))
    }).pipe(
      Effect.mapError(({ message }): Backend.Fault => ({ _tag: "Unavailable", detail: message })),
      Effect.provide(NodeServices.layer)
    )
  )
  return Filesystem.make(yield* Shell.make({ session, root, name: "Container" }))
})

const branch = Effect.flatMap(memory, (fs) =>
  built(
    Layer.provide(
      Branch.layer({ extended: true }),
      Layer.provideMerge(
        Layer.effectDiscard(Effect.flatMap(Leaf.make(fs, { limits: Limits.unlimited, extended: true }), (leaf) => leaf.start)),
        Journal.layerMemory
      )
    )
  )
)

interface Row {
  readonly name: string
  /** The platforms on which the filesystem runs. */
  readonly platforms: string
  /** The event that ends the life of the files. */
  readonly life: string
  readonly filesystem: Effect.Effect<Algebra, unknown, Scope.Scope>
}

const backends: ReadonlyArray<Row> = [
  { name: "`InMemory`", platforms: "everywhere", life: "end with the layer", filesystem: memory },
  {
    name: "`InMemory.layerSession`",
    platforms: "everywhere",
    life: "are in the session, its dumps and snapshots",
    filesystem: Effect.flatMap(Session.make(), (session) => Effect.map(InMemory.makeSession(session), Filesystem.make))
  },
  { name: "`PosixHost`, Linux", platforms: "Linux with /proc", life: "are the directory", filesystem: host },
  {
    name: "`PosixHost`, elsewhere",
    platforms: "macOS, BSD, Linux without /proc",
    life: "are the directory",
    filesystem: Effect.flatMap(directory, (root) => Effect.map(checked({ root }), Filesystem.make))
  },
  {
    name: "`WindowsHost`",
    platforms: "Windows",
    life: "are the directory",
    filesystem: Effect.map(windows(), ({ port }) => Filesystem.make(port))
  },
  {
    name: "`Container`, `overlay`",
    platforms: "a POSIX system with podman or docker; runs commands",
    life: "are a directory that the container shares",
    filesystem: shared
  },
  {
    name: "`Container`, `exec`",
    platforms: "any system with podman or docker; runs commands",
    life: "end with the container",
    filesystem: apart
  },
  { name: "`Bucket`", platforms: "any system that reaches the store", life: "are objects of the bucket", filesystem: bucket },
  { name: "`Sftp`", platforms: "any system with Node", life: "are the directory on the server", filesystem: sftp },
  {
    name: "`VfsState`",
    platforms: "Linux, macOS",
    life: "are in the session, its dumps and snapshots",
    filesystem: Effect.gen(function* () {
      const session = yield* Session.make()
      return (yield* VfsState.make({ session, directory: yield* directory })).filesystem
    })
  },
  {
    name: "`Platform.fromFileSystem`",
    platforms: "any system with effect's FileSystem",
    life: "are the directory",
    filesystem: Effect.flatMap(directory, (root) =>
      built(Layer.provide(Platform.fromFileSystem({ root }), NodeFileSystem.layer))
    )
  },
  { name: "`Branch`", platforms: "any system that reaches its journal", life: "are those of the leaf", filesystem: branch },
  {
    name: "`Snapshots` `view`, in memory",
    platforms: "everywhere",
    life: "are those of the snapshot, read-only",
    filesystem: past(Snapshots.layer, memory)
  },
  {
    name: "`Snapshots` `view`, git",
    platforms: "with git",
    life: "are those of the snapshot, read-only",
    filesystem: past(Snapshots.layer, host)
  },
  {
    name: "`Snapshots` `view`, archive",
    platforms: "everywhere",
    life: "are those of the snapshot, read-only",
    filesystem: past(Snapshots.layerArchive, memory)
  },
  {
    name: "[your own](./backend.md), SQLite",
    platforms: "everywhere",
    life: "are the database",
    filesystem: built(Sqlite.layer({ file: ":memory:" }))
  }
]

const said = (has: boolean): string => (has ? "yes" : "no")

const locksOf = ({ locks }: Backend.Backend): string =>
  locks === undefined ? "no" : locks.claim === undefined ? "fibers" : "processes"

const snapshotsOf = ({ history, info }: Backend.Backend): string =>
  history?._tag === "Memory"
    ? "the tree itself"
    : history?._tag === "Directory"
      ? "git objects"
      : info.readOnly
        ? "-"
        : "archives"

const fastOf = ({ explore, perform }: Backend.Backend): ReadonlyArray<string> =>
  [...(perform?.tags ?? []), ...(explore === undefined ? [] : ["explore"])].sort()

/** The columns after the first one, by title. */
const columns: Readonly<Record<string, (port: Backend.Backend) => string>> = {
  writes: ({ info }) => said(!info.readOnly),
  links: ({ links }) => said(links !== undefined),
  attributes: ({ attributes }) => said(attributes !== undefined),
  watch: ({ watch }) => said(watch !== undefined),
  "`a` is not `A`": ({ info }) => said(info.caseSensitive),
  confinement: ({ info }) => info.confinement,
  "`ifMatch` holds among": (port) => (port.info.readOnly ? "-" : locksOf(port)),
  "a snapshot is": snapshotsOf
}

const tableOf = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const [head, ...body] = rows
  return [head!, head!.map(() => "---"), ...body].map((cells) => `| ${cells.join(" | ")} |\n`).join("")
}

const backendTable = Effect.map(
  Effect.forEach(backends, (row) =>
    Effect.map(row.filesystem, ({ port }) => [row.name, ...Object.values(columns).map((of) => of(port))])
  ),
  (rows) => tableOf([["filesystem", ...Object.keys(columns)], ...rows])
)

const placeTable = Effect.map(
  Effect.forEach(backends, (row) =>
    Effect.map(row.filesystem, ({ port }) => {
      const fast = fastOf(port)
      return [row.name, row.platforms, row.life, fast.length === 0 ? "none" : fast.map((name) => `\`${name}\``).join(", ")]
    })
  ),
  (rows) => tableOf([["filesystem", "runs on", "the files", "accelerations"], ...rows])
)

const combinators: ReadonlyArray<readonly [name: string, combine: (self: Algebra) => Effect.Effect<Algebra, unknown>]> = [
  ["`Decorator.readOnly`", (self) => Effect.succeed(Decorator.readOnly(self))],
  [
    "`Decorator.subdirectory`",
    (self) =>
      Effect.andThen(
        self.mkdir("sub"),
        Effect.suspend(() => Decorator.subdirectory("sub")(self))
      )
  ],
  ["`Decorator.quota`", (self) => Decorator.quota({ maxBytes: 1e6 })(self)],
  ["`Decorator.retry`", (self) => Effect.succeed(Decorator.retry({ times: 1 })(self))],
  ["`Decorator.traced`", (self) => Effect.succeed(Decorator.traced(self))],
  ["`Overlay.overlay`, over it", (self) => Effect.map(memory, (upper) => Overlay.overlay(upper)(self))],
  ["`Mounts.mount`, into it", (self) => Effect.flatMap(memory, (other) => Mounts.mount("mounted", other)(self))],
  ["`Journal.record`", (self) => Effect.provide(Journal.record()(self), Journal.layerMemory)]
]

const kept = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): string => {
  const names = after.filter((name) => before.includes(name))
  return names.length === before.length ? "all" : names.length === 0 ? "none" : names.map((name) => `\`${name}\``).join(", ")
}

const combinatorTable = Effect.gen(function* () {
  const rows = yield* Effect.forEach(combinators, ([name, combine]) =>
    Effect.gen(function* () {
      const self = yield* host
      const before = self.port
      const after = (yield* combine(self)).port
      const has = (key: "links" | "attributes" | "watch" | "history"): string => (after[key] === undefined ? "dropped" : "kept")
      return [
        name,
        has("links"),
        has("attributes"),
        has("watch"),
        locksOf(after) === locksOf(before) ? "kept" : locksOf(after),
        has("history"),
        kept(fastOf(before), fastOf(after))
      ]
    })
  )
  return tableOf([["combinator", "links", "attributes", "watch", "`ifMatch`", "history", "accelerations"], ...rows])
})

/** The tables by their names in the guide. */
export const tables = Effect.scoped(Effect.all({ abilities: backendTable, combinators: combinatorTable, places: placeTable }))

const place = (name: string): RegExp => new RegExp(`(<!-- ${name}: by test/documentation/make.ts -->\n)[^]*?(\n<!-- end -->)`)

/** Returns the guide with these tables in their places. */
export const fill = (guide: string, found: Readonly<Record<string, string>>): string =>
  Object.entries(found).reduce((text, [name, table]) => {
    if (!place(name).test(text)) throw new Error(`the guide has no place for ${name}`)
    return text.replace(place(name), (_all, begin: string, end: string) => `${begin}\n${table}${end}`)
  }, guide)
