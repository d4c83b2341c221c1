/**
 * Mounts unreadable files and prints the result. Root ignores permissions, so the process first changes to another
 * user. It does so after all modules are loaded, because only root may be able to read them.
 */
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"

const root = process.argv[2]!

const tried = (hostPath: string) =>
  Effect.gen(function* () {
    const fs = make(yield* InMemory.make())
    const result = yield* Effect.result(HostMount.hydrate(fs, [{ hostPath }], { allowedRoots: [root] }))
    const left = (yield* fs.glob("**")).matches.map(({ path }) => path)
    if (result._tag === "Success") return { files: result.success[0]!.files, left }
    const { failure } = result
    return failure._tag === "MountError"
      ? { reason: failure.reason, hostPath: failure.hostPath, path: failure.path, left }
      : { tag: failure._tag, left }
  })

await Effect.runPromise(tried("f"))
if (process.geteuid?.() === 0) {
  process.setgroups!([])
  process.setgid!(65_534)
  process.setuid!(65_534)
}
process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.forEach(["d", "e", "d/secret", "f"], tried))))
