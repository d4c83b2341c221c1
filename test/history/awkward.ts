/**
 * Directories with everything that snapshot tools are known to lose or change. The trees are written and read with
 * system calls only.
 */
import * as Fs from "node:fs"
import { join } from "node:path"

const bytes = (text: string) => Buffer.from(text)

const under = (root: string, name: string | Buffer): Buffer => Buffer.concat([bytes(`${root}/`), Buffer.from(name)])

const put = (root: string, name: string | Buffer, content: string | Uint8Array = "", mode = 0o644): void => {
  const path = under(root, name)
  const slash = path.lastIndexOf("/")
  Fs.mkdirSync(path.subarray(0, slash), { recursive: true })
  Fs.writeFileSync(path, content)
  Fs.chmodSync(path, mode)
}

/** Plants a git repository whose configuration and hooks run programs when git looks at it. */
const repository = (root: string, directory: string, trap: string): void => {
  put(root, `${directory}/.git/HEAD`, "ref: refs/heads/main\n")
  put(
    root,
    `${directory}/.git/config`,
    `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "touch ${trap}"\n\thooksPath = hooks\n[filter "trap"]\n\tclean = touch ${trap}\n\tsmudge = touch ${trap}\n`
  )
  for (const hook of ["pre-commit", "post-checkout", "reference-transaction", "post-index-change"]) {
    put(root, `${directory}/.git/hooks/${hook}`, `#!/bin/sh\ntouch ${trap}\n`, 0o755)
  }
  Fs.mkdirSync(join(root, directory, ".git/refs/heads"), { recursive: true })
  Fs.mkdirSync(join(root, directory, ".git/objects/info"), { recursive: true })
  put(root, `${directory}/inside.txt`, "in a nested repository\n")
}

/** Plants the tree. `trap` is a file outside that appears if anything of the tree is executed. */
export const plant = (root: string, trap: string): void => {
  put(root, "plain.txt", "one\ntwo\n")
  put(root, "empty")
  put(root, "no newline", "end")
  put(root, "crlf.txt", "a\r\nb\r\n")
  put(root, ".gitattributes", "* text=auto eol=lf\n*.txt filter=trap ident working-tree-encoding=UTF-16\n")
  put(root, ".gitignore", "ignored/\n*.log\nbuild*\n")
  put(root, "ignored/secret.log", "ignored by git\n")
  put(root, "build.out", Buffer.from([0, 255, 254, 10, 13, 0]))
  put(root, "$Id$.txt", "$Id$\n")
  put(root, "bom.txt", "\ufeffbom\n")
  put(root, "run.sh", "#!/bin/sh\n", 0o755)
  put(root, "private", "p", 0o600)
  put(root, "read only", "r", 0o444)
  put(root, "none", "n", 0o000)
  put(root, "group", "g", 0o664)
  put(root, "large.bin", Buffer.alloc(5 * 1024 * 1024 + 7, "0123456789abcdef\n"))
  put(root, "names/-rf")
  put(root, "names/ leading and trailing ")
  put(root, "names/e\u0301 and \u00e9", "two forms")
  put(root, "names/\u00e9")
  put(root, "names/e\u0301", "e\u0301")
  put(root, "names/\u{1f600}")
  put(root, "names/a\\b")
  put(root, "names/a\nb")
  put(root, Buffer.concat([bytes("names/"), Buffer.from([0x66, 0xff, 0xfe])]), "not UTF-8")
  put(root, `names/${"n".repeat(255)}`)
  put(root, "names/%fs-algebra%modes")
  put(root, "names/%fs-algebra%=x")
  put(root, "names/git~1")
  put(root, "names/.GIT/config", "[core]\n")
  put(root, "names/.gitmodules", '[submodule "x"]\n\tpath = ../x\n\turl = ext::sh -c touch% ' + trap + "\n")
  put(root, "names/.git\u200c", "invisible")
  put(root, "a-b.txt")
  put(root, "a/b.txt")
  put(root, "a.txt")
  for (const directory of ["hollow", "hollow2/in/it"]) Fs.mkdirSync(join(root, directory), { recursive: true })
  Fs.mkdirSync(join(root, "closed"))
  put(root, "closed/file", "c")
  Fs.chmodSync(join(root, "closed"), 0o500)
  Fs.mkdirSync(join(root, "shared"))
  Fs.chmodSync(join(root, "shared"), 0o770)
  Fs.symlinkSync("plain.txt", join(root, "link"))
  Fs.symlinkSync("a", join(root, "link to directory"))
  Fs.symlinkSync("/etc/passwd", join(root, "link out"))
  Fs.symlinkSync("../../..", join(root, "link up"))
  Fs.symlinkSync("nowhere", join(root, "dangling"))
  Fs.symlinkSync("loop", join(root, "loop"))
  repository(root, "nested", trap)
  repository(root, "deep/er/nested", trap)
  repository(root, ".", trap)
}

/** Reads every entry, FIFOs included, by its bytes: kind, permission bits, content or target. */
export const read = (root: string): Record<string, string> => {
  const out: Record<string, string> = {}
  const visit = (path: Buffer, shown: string): void => {
    const stats = Fs.lstatSync(path)
    const mode = (stats.mode & 0o7777).toString(8)
    if (stats.isSymbolicLink()) out[shown] = `link ${Fs.readlinkSync(path, "buffer").toString("latin1")}`
    else if (stats.isFile()) out[shown] = `file ${mode} ${Fs.readFileSync(path).toString("latin1")}`
    else if (stats.isDirectory()) {
      out[shown] = `directory ${mode}`
      for (const name of Fs.readdirSync(path, { encoding: "buffer" })) {
        visit(Buffer.concat([path, bytes("/"), name]), `${shown}/${name.toString("latin1")}`)
      }
    } else out[shown] = `other ${mode}`
  }
  visit(bytes(root), ".")
  return Object.fromEntries(Object.entries(out).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns a deterministic source of choices. */
export const chooser = (seed: number): ((below: number) => number) => {
  let state = seed >>> 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state % below
  }
}

const all = (root: string): Array<Buffer> => {
  const out: Array<Buffer> = []
  const visit = (path: Buffer): void => {
    for (const name of Fs.readdirSync(path, { encoding: "buffer" })) {
      const at = Buffer.concat([path, bytes("/"), name])
      out.push(at)
      if (Fs.lstatSync(at).isDirectory()) visit(at)
    }
  }
  visit(bytes(root))
  return out
}

/** Makes random changes, as another program might. */
export const disturb = (root: string, choose: (below: number) => number): void => {
  const entries = all(root)
  const some = (): Buffer => entries[choose(entries.length)]!
  const quietly = (run: () => void): void => {
    try {
      run()
    } catch {
      // Some random changes are impossible and are ignored.
    }
  }
  for (let left = 1 + choose(6); left > 0 && entries.length > 0; left--) {
    const at = some()
    const kind = choose(9)
    quietly(() => {
      if (kind === 0) Fs.rmSync(at.toString(), { recursive: true })
      else if (kind === 1) Fs.writeFileSync(at, `changed ${choose(1000)}\n`)
      else if (kind === 2) Fs.chmodSync(at, [0o600, 0o644, 0o755, 0o700, 0o555, 0o400][choose(6)]!)
      else if (kind === 3) Fs.mkdirSync(Buffer.concat([at, bytes(`/new ${choose(5)}`)]))
      else if (kind === 4) Fs.writeFileSync(Buffer.concat([at, bytes(`/new file ${choose(5)}`)]), `${choose(100)}`)
      else if (kind === 5) Fs.renameSync(at, Buffer.concat([some(), bytes(` ${choose(9)}`)]))
      else if (kind === 6) {
        Fs.rmSync(at.toString(), { recursive: true })
        Fs.symlinkSync(["a", "/nowhere", "../x"][choose(3)]!, at)
      } else if (kind === 7) {
        Fs.rmSync(at.toString(), { recursive: true })
        Fs.mkdirSync(at)
        Fs.writeFileSync(Buffer.concat([at, bytes("/was something else")]), "")
      } else {
        // A change of the same size with the time put back escapes a comparison of sizes and times.
        const stats = Fs.lstatSync(at)
        if (!stats.isFile() || stats.size === 0) return
        const content = Fs.readFileSync(at)
        content[choose(content.length)]! ^= 1
        Fs.writeFileSync(at, content)
        Fs.utimesSync(at, stats.atime, stats.mtime)
      }
    })
  }
}
