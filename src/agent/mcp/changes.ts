/** Reports every change below the root to effect from the first subscription on. Effect forwards the subscribed ones. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as McpServer from "effect/ai/McpServer"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type { WatchEvent } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Memory from "../memory.ts"
import { inForce } from "../policy/core.ts"
import { uriOf } from "./uri.ts"

/**
 * Lists the URIs that an event changes. The content of a directory is its list of names, so a new or removed entry changes its
 * parent too.
 */
const changed = ({ _tag, path }: WatchEvent): ReadonlyArray<string> =>
  _tag === "Updated" || path === FsPath.root ? [uriOf(path)] : [uriOf(path), uriOf(FsPath.parent(path))]

/** The filesystem with the policies applied, so that unreadable files cause no notices. */
const visibleFilesystem = Effect.gen(function* () {
  const base: Algebra = yield* Filesystem
  const memory = Memory.make()
  return (yield* inForce).reduce((self, policy) => policy.filesystem?.(self, memory) ?? self, base)
})

const sendNotices = (server: McpServer.McpServer["Service"]): Effect.Effect<void, never, Filesystem> =>
  Effect.flatMap(visibleFilesystem, (fs) =>
    fs.watch().pipe(
      Stream.map(changed),
      Stream.flattenIterable,
      Stream.runForEach((uri) => server.notifications["notifications/resources/updated"]({ uri })),
      Effect.catchCause((cause) => Effect.logDebug("changes are not watched", cause))
    )
  )

export const layer = (subscribed: Effect.Effect<void>): Layer.Layer<never, never, McpServer.McpServer | Filesystem> =>
  Layer.effectDiscard(
    Effect.flatMap(McpServer.McpServer, (server) => Effect.forkScoped(Effect.andThen(subscribed, sendNotices(server))))
  )
