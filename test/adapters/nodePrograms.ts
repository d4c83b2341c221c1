/** Makes random programs of synchronous `node:fs` calls, and runs them on objects with the interface of `node:fs`. */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import type * as Node from "node:fs"
import type { Sync } from "../../src/adapters/NodeFs.ts"

const Path = Schema.Literals([
  "/a",
  "/a",
  "/b",
  "/b",
  "/d",
  "/d",
  "/d/e",
  "/d/e",
  "/d/e/f",
  "/d/f",
  "/l",
  "/l",
  "/l/x",
  "/d/l",
  "/m/n/o",
  "/a/x",
  "/d/",
  "/a/",
  "/d/../a",
  "/l/../b",
  "/d/./e",
  "//d//f",
  "/d/e/.."
])

const calls = [
  "writeFile",
  "writeFile",
  "writeFile",
  "appendFile",
  "mkdir",
  "mkdir",
  "mkdirRecursive",
  "readFile",
  "readdir",
  "readdirTypes",
  "readdirRecursive",
  "stat",
  "lstat",
  "access",
  "exists",
  "unlink",
  "rmdir",
  "rm",
  "rename",
  "rename",
  "rename",
  "copyFile",
  "copyFileNew",
  "symlink",
  "symlink",
  "readlink",
  "realpath",
  "truncate",
  "chmod",
  "utimes",
  "open",
  "open",
  "open",
  "read",
  "read",
  "write",
  "write",
  "write",
  "ftruncate",
  "fstat",
  "close",
  "readFileFd",
  "cp",
  "cpMerge"
] as const

const Command = Schema.Struct({
  call: Schema.Literals(calls),
  path: Path,
  to: Path,
  number: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 11 })),
  text: Schema.Literals(["", "x", "hello", "a longer text\n"])
})
export type Command = typeof Command.Type

export const programs: Arbitrary.Arbitrary<ReadonlyArray<Command>> = Arbitrary.schema(
  Schema.Array(Command).check(Schema.isMinLength(1), Schema.isMaxLength(40))
)

const flags = ["r", "r+", "w", "wx", "w+", "a", "a+", "ax", "rs+", "wx+", "r", "w"] as const
const modes = [0o644, 0o600, 0o755] as const

/** The targets of links, none of which leads out of the root. */
const targets = ["a", "b", "d", "l", "d/e", "nothing", "./d", "d/l", "d/f", "a/x", "m/n", "b"] as const

export interface Place {
  readonly fs: Sync
  /** The directory that is "/" for the program. */
  readonly base: string
}

const kindOf = (stat: Node.Stats): string =>
  stat.isFile() ? `file ${stat.size} ${(stat.mode & 0o777).toString(8)}` : stat.isDirectory() ? "directory" : "symlink"

export const makeRunner = ({ base, fs }: Place) => {
  const open: Array<number> = []
  /** Returns every entry: the targets of links, and the modes and contents of files. */
  const tree = (): Record<string, string> => {
    const out: Record<string, string> = {}
    const visit = (at: string): void => {
      for (const name of fs.readdirSync(base + at || "/").sort()) {
        const path = `${at}/${name}`
        const stat = fs.lstatSync(base + path)
        if (stat.isSymbolicLink()) out[path] = `-> ${fs.readlinkSync(base + path)}`
        else if (stat.isDirectory()) {
          out[path] = "directory"
          visit(path)
        } else out[path] = `${(stat.mode & 0o777).toString(8)} ${fs.readFileSync(base + path, "utf8")}`
      }
    }
    visit("")
    return out
  }
  const hasLinks = () => Object.values(tree()).some((entry) => entry.startsWith("-> "))
  const isDirectory = (at: string): boolean => {
    try {
      return fs.statSync(at).isDirectory()
    } catch {
      return false
    }
  }
  /** Tests whether Node's own cpSync may end the process (for a path that is not in normal form) or treats links differently. */
  const isHardForNode = (path: string, to: string) => [path, to].some((path) => /\/\.|\/\/|\/$/.test(path)) || hasLinks()
  const run = ({ call, number, path, text, to }: Command): unknown => {
    const at = base + path
    const other = base + to
    const fd = open.length === 0 ? 9999 : open[number % open.length]!
    switch (call) {
      case "writeFile":
        return fs.writeFileSync(at, text, number < 6 ? undefined : { flag: flags[number]! })
      case "appendFile":
        return fs.appendFileSync(at, text)
      case "mkdir":
        return fs.mkdirSync(at)
      case "mkdirRecursive":
        return fs.mkdirSync(at, { recursive: true })
      case "readFile":
        return fs.readFileSync(at, "utf8")
      case "readdir":
        return fs.readdirSync(at).sort()
      case "readdirTypes":
        return fs
          .readdirSync(at, { withFileTypes: true })
          .map(
            (entry) => `${entry.name} ${entry.isDirectory()} ${entry.isFile()} ${entry.isSymbolicLink()} ${entry.parentPath}`
          )
          .sort()
      case "readdirRecursive":
        // Node's synchronous call follows links, but its asynchronous calls do not.
        if (hasLinks()) return
        return fs.readdirSync(at, { recursive: true }).sort()
      case "stat":
        return kindOf(fs.statSync(at))
      case "lstat":
        return kindOf(fs.lstatSync(at))
      case "access":
        return fs.accessSync(at)
      case "exists":
        return fs.existsSync(at)
      case "unlink":
        return fs.unlinkSync(at)
      case "rmdir":
        return fs.rmdirSync(at)
      case "rm":
        // Node removes the entries of "x/.." but not the directory, and formats errors for such paths differently.
        if (/\.\.|\/$/.test(path) || (hasLinks() && path.split("/").length > 2)) return
        return fs.rmSync(at, { recursive: number % 2 === 0, force: number % 3 === 0 })
      case "rename":
        return fs.renameSync(at, other)
      case "copyFile":
        // Node removes the destination when the source is a directory.
        if (isDirectory(at)) return
        return fs.copyFileSync(at, other)
      case "copyFileNew":
        if (isDirectory(at)) return
        return fs.copyFileSync(at, other, 1)
      case "symlink": {
        const up = path.split("/").filter((name) => name !== "").length === 2 && !path.includes("..") ? "../" : ""
        return fs.symlinkSync(up + targets[number]!, at)
      }
      case "readlink":
        return fs.readlinkSync(at)
      case "realpath":
        return fs.realpathSync.native(at)
      case "truncate":
        return fs.truncateSync(at, number)
      case "chmod":
        return fs.chmodSync(at, modes[number % modes.length]!)
      case "utimes":
        return fs.utimesSync(at, number, number)
      case "open":
        return void open.push(fs.openSync(at, flags[number]!))
      case "read": {
        const buffer = Buffer.alloc(8)
        const count = fs.readSync(fd, buffer, 0, 8, number % 2 === 0 ? null : number)
        return buffer.toString("latin1", 0, count)
      }
      case "write":
        return fs.writeSync(fd, text, number % 2 === 0 ? null : number)
      case "ftruncate":
        return fs.ftruncateSync(fd, number)
      case "fstat":
        return kindOf(fs.fstatSync(fd))
      case "close":
        open.splice(number % Math.max(1, open.length), 1)
        return fs.closeSync(fd)
      case "readFileFd":
        return fs.readFileSync(fd, "utf8")
      case "cp":
        if (isHardForNode(path, to)) return
        return fs.cpSync(at, other, { verbatimSymlinks: true })
      case "cpMerge":
        if (isHardForNode(path, to)) return
        return fs.cpSync(at, other, { recursive: true, force: number % 2 === 0, verbatimSymlinks: true })
    }
  }
  const withoutBase = (text: string): string => (base === "" ? text : text.replaceAll(base, ""))
  return {
    /** Runs a command, and returns its value or its error as Node describes it. */
    run: (command: Command): unknown => {
      try {
        const value = run(command)
        return typeof value === "string"
          ? withoutBase(value)
          : Array.isArray(value)
            ? value.map((text) => withoutBase(text))
            : value
      } catch (error) {
        const { code, dest, errno, message, path, syscall } = error as NodeJS.ErrnoException & { readonly dest?: string }
        // The two implementations of cp in Node, in C++ and in JavaScript, have different codes.
        if (command.call.startsWith("cp")) return "cp fails"
        const strings = { message, path, dest, syscall }
        return {
          code,
          errno,
          ...Object.fromEntries(Object.entries(strings).map(([key, text]) => [key, text && withoutBase(text)]))
        }
      }
    },
    closeAll: () => {
      for (const fd of open) fs.closeSync(fd)
    },
    tree
  }
}
