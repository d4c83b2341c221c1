/** Makes promises of the callbacks of an object with the interface of node:fs, if it has no public promises. */
import { promisify } from "node:util"
import type { NodeShape, OpenFile, Stats } from "./nodeShape.ts"

type Calls = Readonly<Record<string, (...args: ReadonlyArray<unknown>) => unknown>>

const names =
  "access appendFile chmod chown link lstat mkdir readdir readlink realpath rename rmdir stat symlink truncate unlink utimes writeFile"

export const fromCallbacks = (object: object): NodeShape => {
  const calls = object as Calls
  const promised = (name: string) =>
    promisify((...args: ReadonlyArray<unknown>) => calls[name]!(...args)) as (
      ...args: ReadonlyArray<unknown>
    ) => Promise<unknown>
  const open = async (path: string, flags: string): Promise<OpenFile> => {
    const file = await promised("open")(path, flags)
    return {
      stat: () => promised("fstat")(file) as Promise<Stats>,
      read: async (into, offset, length, position) => ({
        bytesRead: (await promised("read")(file, into, offset, length, position)) as number
      }),
      close: async () => void (await promised("close")(file))
    }
  }
  return {
    promises: {
      ...Object.fromEntries(names.split(" ").map((name) => [name, promised(name)])),
      open
    } as unknown as NodeShape["promises"],
    watch: (path, options, listener) => calls["watch"]!(path, options, listener) as { readonly close: () => void }
  }
}
