/**
 * Serves the files of the current Filesystem over HTTP, with effect's HttpStaticServer.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { type PlatformError, systemError } from "effect/PlatformError"
import * as Etag from "effect/http/Etag"
import * as HttpPlatform from "effect/http/HttpPlatform"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpStaticServer from "effect/http/HttpStaticServer"
import { subdirectory } from "../filesystem/Decorator.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import * as Platform from "../filesystem/Platform.ts"
import type { NotADirectory, StatError } from "../model/FsError.ts"
import { sha256 } from "../runtime/hash.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The options of the file handler.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The directory to serve. @default "." */
  readonly root?: string | undefined
  /** The path of the URLs, such as `/static`. @default "/" */
  readonly prefix?: string | undefined
  /** The name of the file that is served for a directory. `undefined` serves none. @default "index.html" */
  readonly index?: string | undefined
  /** True to serve the index file of the root for missing pages. @default false */
  readonly spa?: boolean | undefined
  /** The value of the Cache-Control header. @default no header */
  readonly cacheControl?: string | undefined
  /** MIME types by file extension without the dot, in addition to effect's own types. */
  readonly mimeTypes?: Record<string, string> | undefined
}

/**
 * The MIME type for file extensions that are also the name of a member of `Object.prototype`. Effect looks up the lowercase
 * extension in a plain object, and would find this member.
 */
const inheritedNames = Object.fromEntries(["constructor", "__proto__"].map((name) => [name, "application/octet-stream"]))

/**
 * The largest size in bytes of a file that is read completely before the response, so that the ETag matches the bytes.
 */
const maxWholeBytes = 1 << 20

const reasonsToHide = new Set(["PermissionDenied", "BadArgument", "BadResource", "InvalidData"])

const isTooLong = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "_tag" in cause && cause._tag === "PathTooLong"

/**
 * Reports refused and invalid paths as missing. The response to a link that leads out of the directory is 404, as for a
 * missing page.
 */
const hidingReasons = Effect.map(FileSystem.FileSystem, (fs): FileSystem.FileSystem => ({
  ...fs,
  stat: (path) =>
    Effect.mapError(fs.stat(path), (error) =>
      reasonsToHide.has(error.reason._tag) || isTooLong(error.reason.cause)
        ? systemError({ _tag: "NotFound", module: "FileSystem", method: "stat", pathOrDescriptor: path, cause: error })
        : error
    )
}))

/**
 * Provides the file responses. A small file has a strong ETag, made from its content. A larger file has a weak ETag, made
 * from its size and time, as in effect.
 */
const platform: Layer.Layer<HttpPlatform.HttpPlatform, never, FileSystem.FileSystem> = Layer.effect(
  HttpPlatform.HttpPlatform,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const streamed = yield* HttpPlatform.HttpPlatform
    return HttpPlatform.HttpPlatform.of({
      ...streamed,
      fileResponse: (path, options) =>
        Effect.flatMap(fs.stat(path), ({ mtime, size, type }) => {
          // The index file can be a directory. The static server checks only the entry that the URL names.
          if (type !== "File") {
            return Effect.fail(systemError({ _tag: "NotFound", module: "FileSystem", method: "stat", pathOrDescriptor: path }))
          }
          // The static server passes the offset and the length as bigint only.
          const range = options as { readonly offset?: bigint; readonly bytesToRead?: bigint } | undefined
          const start = Number(range?.offset ?? 0n)
          const end = range?.bytesToRead === undefined ? undefined : start + Number(range.bytesToRead)
          if (size > BigInt(maxWholeBytes)) return streamed.fileResponse(path, options)
          return Effect.map(fs.readFile(path), (bytes) => {
            const etag = { etag: `"${sha256(bytes)}"` }
            const response = HttpServerResponse.uint8Array(bytes.subarray(start, end), { status: options?.status ?? 200 })
            return HttpServerResponse.setHeaders(
              response,
              Option.isSome(mtime) ? { ...etag, "last-modified": mtime.value.toUTCString() } : etag
            )
          })
        })
    })
  })
).pipe(Layer.provide(HttpPlatform.layer), Layer.provide(Etag.layerWeak))

/**
 * Adds a route for the files to the router. Supports index files, MIME types, byte ranges and conditional requests. The
 * response to a link that leads out of the served directory is 404, as for a missing page.
 * Files whose names begin with a dot are served too.
 *
 * @example
 * ```ts
 * import * as HttpRouter from "effect/http/HttpRouter"
 * const files = HttpStaticFiles.layer({ prefix: "/static" }).pipe(
 *   Layer.provide(InMemory.layer({ tree: { "app.js": "run()\n" } }))
 * )
 * const { dispose, handler } = HttpRouter.toWebHandler(files)
 * const response = yield* Effect.promise(() => handler(new globalThis.Request("http://localhost/static/app.js")))
 * yield* Effect.promise(() => response.text()) // => "run()\n"
 * yield* Effect.promise(() => dispose())
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options = {}
): Layer.Layer<never, PlatformError | StatError | NotADirectory, HttpRouter.HttpRouter | Filesystem> => {
  const served = Layer.effect(Filesystem, Effect.flatMap(Filesystem, subdirectory(options.root ?? ".")))
  return HttpStaticServer.layer({ ...options, root: "/", mimeTypes: { ...inheritedNames, ...options.mimeTypes } }).pipe(
    Layer.provide(Layer.provideMerge(platform, Layer.effect(FileSystem.FileSystem, hidingReasons))),
    Layer.provide(Platform.toFileSystem),
    Layer.provide(served),
    Layer.provide(Path.layer)
  )
}

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @category models
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "HttpStaticFiles",
  package: "effect",
  version: "4.1.0",
  maps: [
    "HttpStaticServer: index files, SPA fallback, MIME types, byte ranges",
    "ETag, Last-Modified and all conditional requests"
  ],
  missing: ["several ranges in one request", "strong ETags of files over 1 MiB"]
}
