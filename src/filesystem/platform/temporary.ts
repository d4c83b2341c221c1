/**
 * Temporary files and directories: ordinary ones with a random name, in the given directory or in the root, because a
 * filesystem has no system directory for them.
 */
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import type { FsError } from "../../model/FsError.ts"
import type { Bridge } from "./bridge.ts"

type Temporary = Pick<FileSystem, "makeTempDirectory" | "makeTempDirectoryScoped" | "makeTempFile" | "makeTempFileScoped">

type DirectoryOptions = Parameters<FileSystem["makeTempDirectory"]>[0]
type FileOptions = Parameters<FileSystem["makeTempFile"]>[0]

const radix = 36
const randomName = (digits: number): Effect.Effect<string> =>
  Effect.map(Random.nextIntBetween(0, radix ** digits), (number) => number.toString(radix).padStart(digits, "0"))

const ownerOnlyMode = 0o700

export const make = ({ withPlatformErrors: answer, fs, port }: Bridge): Temporary => {
  const removeDirectory = (directory: string) => fs.delete(directory, { recursive: true, missing: "ignore" })

  const createPrivateDirectory = (path: string): Effect.Effect<string, FsError> => {
    const made = Effect.as(fs.mkdir(path, { parents: false, existOk: false }), path)
    return port.attributes === undefined
      ? made
      : Effect.tap(made, () =>
          Effect.onError(fs.setAttributes(path, { mode: ownerOnlyMode }), () => Effect.ignore(removeDirectory(path)))
        )
  }

  const makeDirectory = (method: string, options: DirectoryOptions): Effect.Effect<string, PlatformError> => {
    const above = (options?.directory ?? "").replace(/\/+$/, "")
    const randomPath = Effect.map(randomName(6), (name) => `${above}/${options?.prefix ?? ""}${name}`)
    return answer(
      method,
      options?.directory ?? "/",
      Effect.retry(Effect.flatMap(randomPath, createPrivateDirectory), {
        times: 16,
        while: (error) => error._tag === "AlreadyExists"
      })
    )
  }

  const makeFile = (
    method: string,
    options: FileOptions
  ): Effect.Effect<{ readonly directory: string; readonly path: string }, PlatformError> =>
    Effect.flatMap(makeDirectory(method, options), (directory) =>
      Effect.flatMap(randomName(10), (name) => {
        const path = `${directory}/${name}${options?.suffix ?? ""}`
        const made = answer(method, path, fs.writeBytes(path, new Uint8Array(0), { mode: "create", createParents: false }))
        return Effect.as(
          Effect.onError(made, () => Effect.ignore(removeDirectory(directory))),
          { directory, path }
        )
      })
    )

  /** Removes the directory. A finalizer cannot fail, so a failure is logged. */
  const release = (directory: string) => Effect.ignore(removeDirectory(directory), { log: "Warn" })

  return {
    makeTempDirectory: (options) => makeDirectory("makeTempDirectory", options),
    makeTempDirectoryScoped: (options) => Effect.acquireRelease(makeDirectory("makeTempDirectoryScoped", options), release),
    makeTempFile: (options) => Effect.map(makeFile("makeTempFile", options), ({ path }) => path),
    makeTempFileScoped: (options) =>
      Effect.map(
        Effect.acquireRelease(makeFile("makeTempFileScoped", options), ({ directory }) => release(directory)),
        ({ path }) => path
      )
  }
}
