/**
 * Gives a filesystem of just-bash the interface of node:fs. just-bash has neither open files nor flags. So `open` reads the whole
 * file, and the flag `wx` tests whether the file exists before it writes.
 */
import type { IFileSystem } from "just-bash"
import type { NodeShape, OpenFile, Stats } from "./nodeShape.ts"

type Found = Awaited<ReturnType<IFileSystem["lstat"]>>

const statsOf = ({ isDirectory, isFile, isSymbolicLink, mode, mtime, size }: Found): Stats => ({
  isFile: () => isFile,
  isDirectory: () => isDirectory,
  isSymbolicLink: () => isSymbolicLink,
  mode,
  mtime,
  size
})

/** Gives an error the code with which its message begins. */
const coded = async <A>(answer: Promise<A>): Promise<A> => {
  try {
    return await answer
  } catch (error) {
    const code = error instanceof Error ? /^E[A-Z]+/.exec(error.message)?.[0] : undefined
    throw code === undefined ? error : Object.assign(error as Error, { code })
  }
}

const failure = (code: string): Error => Object.assign(new Error(code), { code })

const dateOf = (time: Date | number): Date => (typeof time === "number" ? new Date(time * 1000) : time)

export const fromJustBash = (fs: IFileSystem): NodeShape => {
  const open = async (path: string): Promise<OpenFile> => {
    const [found, bytes] = [await fs.stat(path), await fs.readFileBuffer(path)]
    return {
      stat: async () => statsOf({ ...found, size: bytes.length }),
      read: async (into, offset, length, position) => {
        const part = bytes.subarray(position, position + length)
        into.set(part, offset)
        return { bytesRead: part.length }
      },
      close: async () => {}
    }
  }
  const writeFile = async (
    path: string,
    data: Uint8Array,
    { flag, mode }: { readonly flag: string; readonly mode?: number }
  ): Promise<void> => {
    if (flag.includes("x") && (await fs.exists(path))) throw failure("EEXIST")
    await fs.writeFile(path, data)
    if (mode !== undefined) await fs.chmod(path, mode)
  }
  return {
    promises: {
      access: (path) => coded(fs.stat(path)).then(() => {}),
      stat: (path) => coded(fs.stat(path)).then(statsOf),
      lstat: (path) => coded(fs.lstat(path)).then(statsOf),
      realpath: (path) => coded(fs.realpath(path)),
      readdir: async (path) =>
        (await coded(fs.readdirWithFileTypes!(path))).map(({ isDirectory, isFile, isSymbolicLink, name }) => ({
          name,
          isFile: () => isFile,
          isDirectory: () => isDirectory,
          isSymbolicLink: () => isSymbolicLink
        })),
      open: (path) => coded(open(path)),
      writeFile: (path, data, options) => coded(writeFile(path, data, options)),
      appendFile: (path, data) => coded(fs.appendFile(path, data)),
      truncate: async (path, length) => coded(fs.writeFile(path, (await coded(fs.readFileBuffer(path))).slice(0, length))),
      mkdir: (path) => coded(fs.mkdir(path)),
      rename: (from, to) => coded(fs.mv(from, to)),
      unlink: (path) => coded(fs.rm(path)),
      rmdir: (path) => coded(fs.rm(path)),
      readlink: (path) => coded(fs.readlink(path)),
      symlink: (target, path) => coded(fs.symlink(target, path)),
      link: (from, to) => coded(fs.link(from, to)),
      chmod: (path, mode) => coded(fs.chmod(path, mode)),
      chown: async () => {
        throw failure("ENOSYS")
      },
      utimes: (path, accessed, modified) => coded(fs.utimes(path, dateOf(accessed), dateOf(modified)))
    }
  }
}
