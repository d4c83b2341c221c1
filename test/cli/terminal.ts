/** Runs commands over a filesystem in memory, with a terminal that collects their output and exit codes. */
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { ContainerOpener, type OpenContainer } from "../../src/cli/container.ts"
import { run } from "../../src/cli/main.ts"
import { OutputFailed, Screen, type ScreenShape } from "../../src/cli/screen.ts"
import { type OpenStores, StoreOpener } from "../../src/cli/stores.ts"
import { HostOpener, type OpenHost } from "../../src/cli/workspace.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { Unavailable } from "../../src/model/FsError.ts"
import * as Stores from "../../src/repository/Stores.ts"

/** Splits an example as a shell does: up to a pipe or a redirection, without the quotes. */
export const words = (line: string): ReadonlyArray<string> =>
  [...line.replace(/ [|<>] .*$/, "").matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replace(/['"]/g, ""))

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly bytes: Uint8Array
}

/** Checks that a command has succeeded, and returns its output. */
export const done = ({ code, err, out }: Pick<Ran, "code" | "err" | "out">): string => {
  assert.strictEqual(code, 0, err)
  return out
}

export interface Shell {
  readonly fs: Algebra
  readonly run: (args: ReadonlyArray<string>, options?: RunOptions) => Effect.Effect<Ran>
  /** Runs a command and parses each line of its output as JSON. */
  readonly json: (args: ReadonlyArray<string>, options?: RunOptions) => Effect.Effect<ReadonlyArray<unknown>>
}

export interface RunOptions extends Partial<Omit<ScreenShape, "write" | "warn" | "writeError" | "status" | "input">> {
  readonly input?: string | Uint8Array | Stream.Stream<Uint8Array> | undefined
  /** The number of writes after which the reader exits. */
  readonly closesAfter?: number | undefined
  readonly statuses?: Array<string> | undefined
  /** The pattern of a line on standard error after which the command is interrupted, as by Ctrl-C. */
  readonly endsAt?: RegExp | undefined
  /** @default the filesystem of the shell, whatever the root */
  readonly host?: OpenHost | undefined
  /** @default none is installed */
  readonly engine?: OpenContainer | undefined
}

const noEngine: OpenContainer = () =>
  Layer.effectContext(Effect.fail(new Unavailable({ operation: "Container", path: ".", detail: "podman is not installed" })))

/** Opens an empty store for each address. Examples in the help and the guides name stores that do not exist. */
const emptyStores: OpenStores = () => Effect.succeed(Stores.layerMemory)

const encoder = new TextEncoder()

const inputOf = (input: RunOptions["input"]): Stream.Stream<Uint8Array> =>
  input === undefined
    ? Stream.empty
    : typeof input === "string"
      ? Stream.make(encoder.encode(input))
      : input instanceof Uint8Array
        ? Stream.make(input)
        : input

export const shellOver = (fs: Algebra): Shell => {
  const go: Shell["run"] = (args, options = {}) =>
    Effect.suspend(() => {
      const { closesAfter, endsAt, engine = noEngine, host, input, statuses, ...rest } = options
      const out: Array<Uint8Array> = []
      const err: Array<string> = []
      const ended = Deferred.makeUnsafe<number>()
      const screen: ScreenShape = {
        program: "fs-algebra",
        directory: "/",
        isTerminal: false,
        isInteractive: false,
        showsProgress: false,
        colors: false,
        errorColors: false,
        columns: 80,
        write: (content) =>
          Effect.suspend(() => {
            if (closesAfter !== undefined && out.length >= closesAfter) {
              return Effect.fail(new OutputFailed({ code: "EPIPE", detail: "write EPIPE" }))
            }
            out.push(typeof content === "string" ? encoder.encode(content) : content)
            return Effect.void
          }),
        warn: (line) =>
          Effect.suspend(() => {
            err.push(`${line}\n`)
            return endsAt?.test(line) === true ? Deferred.succeed(ended, 130) : Effect.void
          }),
        writeError: (bytes) => Effect.sync(() => void err.push(Buffer.from(bytes).toString())),
        status: (line) => Effect.sync(() => void statuses?.push(line)),
        input: inputOf(input),
        ...rest
      }
      return Effect.raceFirst(run(args, { version: "1.2.3" }), Deferred.await(ended)).pipe(
        Effect.provideService(Screen, screen),
        Effect.provideService(HostOpener, host ?? (() => Layer.succeed(Filesystem, fs))),
        Effect.provideService(ContainerOpener, engine),
        Effect.provideService(
          StoreOpener,
          rest.directory === undefined ? emptyStores : Context.get(Context.empty(), StoreOpener)
        ),
        Effect.map((code) => {
          const bytes = Buffer.concat(out)
          return { code, out: bytes.toString("utf8"), err: err.join(""), bytes: new Uint8Array(bytes) }
        })
      )
    })
  return {
    fs,
    run: go,
    json: (args, options) =>
      Effect.map(go([...args, "--json"], options), ({ out }) =>
        out
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as unknown)
      )
  }
}

export const shell = (tree: InMemory.Tree): Effect.Effect<Shell> =>
  Effect.map(Effect.orDie(InMemory.make({ tree })), (backend) => shellOver(make(backend)))
