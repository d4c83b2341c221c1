/** The filesystems of the scoreboard. Each layer makes an empty filesystem that no other code uses. */
import { NodeFileSystem } from "@effect/platform-node"
import { configureSync, fs as zenfs, InMemory as ZenMemory } from "@zenfs/core"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { InMemoryFs } from "just-bash"
import { createFsFromVolume, Volume } from "memfs"
import * as NodeFs from "node:fs"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Union } from "unionfs"
import { InMemory, PosixHost } from "../../src/index.ts"
import { decorate, type Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import { Bench } from "../../src/testing/Law.ts"
import { directory, onDisk } from "../conformance/filesystems.ts"
import { root as project } from "../documentation/markdown.ts"
import { fromCallbacks } from "./callbacks.ts"
import { fromJustBash } from "./justBash.ts"
import { fromNodeFs, type NodeShape } from "./nodeShape.ts"

export interface Subject {
  readonly name: string
  /** The name in the head of a table. */
  readonly short: string
  readonly version: string
  /** Describes the construction of the filesystem and its connection to the kit. */
  readonly how: string
  /** The documented meaning of the package, if it differs from the laws. */
  readonly documented?: string
  readonly isOurs?: boolean
  readonly layer: Layer.Layer<Filesystem, unknown>
}

const versionOf = (name: string): string =>
  (
    JSON.parse(readFileSync(join(project, name === "" ? "" : `node_modules/${name}`, "package.json"), "utf8")) as {
      version: string
    }
  ).version

/** The root below the top of a virtual filesystem, so that the root has a parent. */
const top = "/root"

/** A filesystem over a new object with the interface of node:fs. The root exists in the object. */
export const overShape = (shapeOf: () => Promise<NodeShape>, root = top): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(async () => {
        const shape = await shapeOf()
        if (root === top) await shape.promises.mkdir(top).catch(() => {})
        return shape
      }),
      (shape) => {
        const layer = Layer.provide(fromFileSystem({ root }), Layer.succeed(FileSystem.FileSystem, fromNodeFs(shape)))
        return shape.watch === undefined ? decorate((self) => make({ ...self.port, watch: undefined }))(layer) : layer
      }
    )
  )

const shape = (fs: unknown): NodeShape => fs as NodeShape

const memfs = (): unknown => createFsFromVolume(new Volume())

const zenMemory = async (): Promise<NodeShape> => {
  configureSync({ mounts: { "/": ZenMemory } })
  return shape(zenfs)
}

const union = async (): Promise<NodeShape> => {
  const [lower, upper] = [memfs(), memfs()]
  await shape(lower).promises.mkdir(top)
  await shape(upper).promises.mkdir(top)
  return fromCallbacks(new Union().use(lower as never).use(upper as never))
}

/** A filesystem on a disk, where the tests can make FIFOs. Names that are not UTF-8 are omitted, because Node decodes names. */
const inDirectory = (layerOf: (root: string) => Layer.Layer<Filesystem, unknown>): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.map(directory, (root) => Layer.merge(layerOf(root), Layer.succeed(Bench, { makeOther: onDisk(root).makeOther })))
  )

export const subjects: ReadonlyArray<Subject> = [
  {
    name: "InMemory",
    short: "InMemory",
    version: versionOf(""),
    how: "`InMemory.layer()` of this library",
    isOurs: true,
    layer: InMemory.layer()
  },
  {
    name: "PosixHost",
    short: "PosixHost",
    version: versionOf(""),
    how: "`PosixHost.layer({ root })` of this library, on a directory",
    isOurs: true,
    layer: Layer.unwrap(
      Effect.map(directory, (root) => Layer.merge(PosixHost.layer({ root }), Layer.succeed(Bench, onDisk(root))))
    )
  },
  {
    name: "node:fs",
    short: "node:fs",
    version: process.versions.node,
    how: "`node:fs` itself, on a directory",
    layer: inDirectory((root) => overShape(async () => shape(NodeFs), root))
  },
  {
    name: "@effect/platform-node",
    short: "effect",
    version: versionOf("@effect/platform-node"),
    how: "`NodeFileSystem.layer`, on a directory",
    layer: inDirectory((root) => Layer.provide(fromFileSystem({ root }), NodeFileSystem.layer))
  },
  {
    name: "memfs",
    short: "memfs",
    version: versionOf("memfs"),
    how: "`createFsFromVolume(new Volume())`",
    layer: overShape(async () => shape(memfs()))
  },
  {
    name: "@zenfs/core",
    short: "ZenFS",
    version: versionOf("@zenfs/core"),
    how: "its `fs` with `InMemory` mounted on `/`",
    layer: overShape(zenMemory)
  },
  {
    name: "unionfs",
    short: "unionfs",
    version: versionOf("unionfs"),
    how: "a `Union` of two volumes of memfs; the root exists in both",
    documented:
      "A call that fails in the volume that was added last goes to the other volume, even if it fails because a file exists. Both volumes are memfs, so laws that memfs breaks are broken here too.",
    layer: overShape(union)
  },
  {
    name: "just-bash",
    short: "just-bash",
    version: versionOf("just-bash"),
    how: "`new InMemoryFs()`",
    layer: overShape(async () => fromJustBash(new InMemoryFs()))
  }
]
