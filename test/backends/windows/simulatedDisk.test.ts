import { assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import type { WindowsDisk } from "../../../src/backends/windows/disk.ts"
import { SimulatedDisk, type SimulatedDiskOptions } from "./simulatedDisk.ts"
import { shortName, upcase } from "./simulatedNames.ts"

const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = Fs.constants

const disk = (options: SimulatedDiskOptions = {}): SimulatedDisk => new SimulatedDisk(options)

const asked = { bigint: true, throwIfNoEntry: false } as const

const codeOf = (run: () => unknown): string | undefined => {
  try {
    run()
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

const long = (path: string) => `\\\\?\\${path}`

const bytes = (text: string) => new TextEncoder().encode(text)

const textOf = (disk: WindowsDisk, descriptor: number): string => {
  const into = new Uint8Array(100)
  return new TextDecoder().decode(into.subarray(0, disk.readSync(descriptor, into, 0, 100, 0)))
}

it("node:fs has the calls of the simulated disk", () => {
  const real: WindowsDisk = Fs
  for (const name of Object.keys(disk()).filter((name) => /Sync$|^(read|write|fsync|readdir)$/.test(name))) {
    assert.isFunction(real[name as keyof WindowsDisk], name)
  }
})

describe("names on the simulated disk", () => {
  // Measured on Wine: which pairs of spellings are the same name.
  it("are case-insensitive and case-preserving", () => {
    for (const [a, b] of ["aA", "éÉ", "σΣ", "ǆǄ"].map((pair) => [...pair])) assert.strictEqual(upcase(a!), upcase(b!), a)
    for (const [a, b] of [
      ["ß", "SS"],
      ["ſ", "s"],
      ["\u212a", "k"],
      ["ς", "Σ"],
      ["𐐀", "𐐨"]
    ])
      assert.notStrictEqual(upcase(a!), upcase(b!), a)
    const it = disk()
    it.mkdirSync("C:\\Dir")
    it.put("C:\\dir\\File.txt", "x")
    assert.deepStrictEqual(it.names("C:\\DIR"), ["File.txt"])
    assert.deepStrictEqual(it.names("C:\\"), ["Dir"])
    assert.strictEqual(it.realpathSync.native("c:\\DIR\\FILE.TXT"), "C:\\Dir\\File.txt")
    assert.strictEqual(
      codeOf(() => it.mkdirSync("C:\\DIR")),
      "EEXIST"
    )
  })

  it("can be renamed to a different case", () => {
    const it = disk()
    it.put("C:\\a.txt", "x")
    it.renameSync("C:\\a.txt", "C:\\A.TXT")
    assert.deepStrictEqual(it.names("C:\\"), ["A.TXT"])
    assert.strictEqual(it.text("C:\\a.txt"), "x")
    it.putDirectory("C:\\dir")
    it.setReadOnly("C:\\a.txt", true)
    it.renameSync("C:\\dir", "C:\\DIR")
    it.renameSync("C:\\A.TXT", "C:\\A.txt")
    assert.deepStrictEqual(it.names("C:\\"), ["A.txt", "DIR"])
  })

  // The rules are Microsoft's description of Win32. Node and Wine enforce none of them, so this disk does.
  it("without the prefix \\\\?\\ are trimmed or read as devices, and recorded as misread", () => {
    const it = disk()
    it.put("C:\\a", "x")
    assert.isDefined(it.lstatSync("C:\\a. .", asked))
    assert.deepStrictEqual(it.misread, ["C:\\a. ."])
    for (const path of ["C:\\nul", "C:\\d\\COM1.txt", "C:\\a:b", "C:\\a::$DATA"]) {
      assert.strictEqual(
        codeOf(() => it.openSync(path, O_WRONLY | O_CREAT)),
        "EINVAL",
        path
      )
    }
    assert.strictEqual(it.misread.length, 5)
  })

  it("with the prefix \\\\?\\ are accepted unchanged, except names of alternate data streams", () => {
    const it = disk()
    it.put("C:\\a", "x")
    assert.isUndefined(it.lstatSync(long("C:\\a."), asked))
    for (const name of ["a.", "a ", "nul", "COM1.txt"])
      it.closeSync(it.openSync(long(`C:\\${name}`), O_WRONLY | O_CREAT | O_EXCL))
    assert.deepStrictEqual([...it.names("C:\\")].sort(), ["COM1.txt", "a", "a ", "a.", "nul"])
    assert.deepStrictEqual(it.misread, [])
    assert.strictEqual(
      codeOf(() => it.openSync(long("C:\\a:b"), O_RDONLY)),
      "EINVAL"
    )
    assert.isUndefined(it.lstatSync(long("C:\\a\\..\\a"), asked))
  })

  it("with forbidden characters or more than 255 units fail with ENOENT", () => {
    const it = disk()
    for (const name of ["a*", "a?", "<", "a|b", "a\u0001", "x".repeat(256)]) {
      assert.strictEqual(
        codeOf(() => it.openSync(long(`C:\\${name}`), O_WRONLY | O_CREAT)),
        "ENOENT",
        name
      )
    }
    it.closeSync(it.openSync(long(`C:\\${"x".repeat(255)}`), O_WRONLY | O_CREAT))
  })

  it("without the prefix \\\\?\\ allow 259 units in a path and 247 in a new directory", () => {
    const it = disk()
    const name = "d".repeat(200)
    it.mkdirSync(`C:\\${name}`)
    assert.strictEqual(
      codeOf(() => it.mkdirSync(`C:\\${name}\\${"e".repeat(44)}`)),
      "ENAMETOOLONG"
    )
    it.mkdirSync(`C:\\${name}\\${"e".repeat(43)}`)
    assert.strictEqual(
      codeOf(() => it.openSync(`C:\\${name}\\${"f".repeat(56)}`, O_WRONLY | O_CREAT)),
      "ENOENT"
    )
    it.closeSync(it.openSync(`C:\\${name}\\${"f".repeat(55)}`, O_WRONLY | O_CREAT))
    it.closeSync(it.openSync(long(`C:\\${name}\\${"f".repeat(56)}`), O_WRONLY | O_CREAT))
  })

  // Microsoft's example, and the name from Git's CVE-2014-9390.
  it("that are long have an 8.3 name, which leads to the same file", () => {
    const none = () => false
    assert.strictEqual(shortName("TextFile.Mine.txt", none), "TEXTFI~1.TXT")
    assert.strictEqual(shortName(".git", none), "GIT~1")
    assert.strictEqual(shortName("README.md", none), undefined)
    assert.strictEqual(shortName("page.html", none), "PAGE~1.HTM")
    const it = disk()
    it.put("C:\\longname one.text", "1")
    it.put("C:\\longname two.text", "2")
    assert.strictEqual(it.text("C:\\LONGNA~1.TEX"), "1")
    assert.strictEqual(it.text("C:\\longna~2.tex"), "2")
    assert.strictEqual(it.realpathSync.native("C:\\LONGNA~2.TEX"), "C:\\longname two.text")
    assert.deepStrictEqual(it.names("C:\\"), ["longname one.text", "longname two.text"])
  })

  it("that are relative never reach the disk", () => {
    for (const path of ["a", "C:a", "\\a"]) assert.throws(() => disk().lstatSync(path, asked), /not absolute/)
  })
})

describe("files on the simulated disk", () => {
  // All codes were measured under Wine.
  it("make calls for another kind of entry fail with the error codes of libuv", () => {
    const it = disk()
    it.put("C:\\f", "x")
    it.put("C:\\d\\in", "x")
    it.putDirectory("C:\\e")
    const rows: ReadonlyArray<readonly [() => unknown, string | undefined]> = [
      [() => it.readdirSync("C:\\f", { withFileTypes: true }), "ENOTDIR"],
      [() => it.readdirSync("C:\\f\\x", { withFileTypes: true }), "ENOENT"],
      [() => it.mkdirSync("C:\\f"), "EEXIST"],
      [() => it.mkdirSync("C:\\f\\x"), "ENOENT"],
      [() => it.mkdirSync("C:\\n\\x"), "ENOENT"],
      [() => it.rmdirSync("C:\\f"), "ENOENT"],
      [() => it.rmdirSync("C:\\d"), "ENOTEMPTY"],
      [() => it.unlinkSync("C:\\d"), "EPERM"],
      [() => it.unlinkSync("C:\\n"), "ENOENT"],
      [() => it.openSync("C:\\n", O_RDONLY), "ENOENT"],
      [() => it.openSync("C:\\f\\x", O_WRONLY | O_CREAT), "ENOENT"],
      [() => it.openSync("C:\\f", O_WRONLY | O_CREAT | O_EXCL), "EEXIST"],
      [() => it.openSync("C:\\d", O_WRONLY | O_CREAT | O_TRUNC), "EISDIR"],
      [() => textOf(it, it.openSync("C:\\d", O_RDONLY)), "EISDIR"],
      [() => it.renameSync("C:\\n", "C:\\m"), "ENOENT"],
      [() => it.renameSync("C:\\f", "C:\\n\\m"), "ENOENT"],
      [() => it.renameSync("C:\\f", "C:\\e"), "EPERM"],
      [() => it.renameSync("C:\\e", "C:\\d"), "EPERM"],
      [() => it.linkSync("C:\\f", "C:\\d"), "EEXIST"],
      [() => it.linkSync("C:\\d", "C:\\l"), "EPERM"],
      [() => it.readlinkSync("C:\\f"), "EINVAL"],
      [() => it.readlinkSync("C:\\n"), "ENOENT"],
      [() => it.realpathSync.native("C:\\n"), "ENOENT"],
      [() => it.fstatSync(7, { bigint: true }), "EBADF"]
    ]
    for (const [run, code] of rows) assert.strictEqual(codeOf(run), code, String(run))
    assert.isUndefined(it.lstatSync("C:\\f\\x", asked))
  })

  it("make calls fail with errors like those of node:fs", () => {
    const it = disk()
    let error: unknown
    try {
      it.renameSync("C:\\a", "C:\\b")
    } catch (thrown) {
      error = thrown
    }
    assert.instanceOf(error, Error)
    assert.deepInclude(error as object, { code: "ENOENT", errno: -4058, syscall: "rename", path: "C:\\a", dest: "C:\\b" })
  })

  it("are read and written at the given position, and appended at the end", () => {
    const it = disk()
    const file = it.openSync("C:\\f", O_RDWR | O_CREAT | O_EXCL)
    assert.strictEqual(it.writeSync(file, bytes("hello"), 0, 5, 0), 5)
    assert.strictEqual(it.writeSync(file, bytes("XY"), 1, 1, 4), 1)
    const more = it.openSync("C:\\f", O_WRONLY | O_APPEND)
    it.writeSync(more, bytes("!"), 0, 1, 0)
    assert.strictEqual(textOf(it, file), "hellY!")
    assert.strictEqual(
      codeOf(() => it.readSync(more, new Uint8Array(1), 0, 1, 0)),
      "EBADF"
    )
    it.ftruncateSync(file, 2)
    assert.strictEqual(it.text("C:\\f"), "he")
    it.closeSync(file)
    it.closeSync(more)
    assert.strictEqual(it.openDescriptors, 0)
    assert.strictEqual(
      codeOf(() => it.closeSync(file)),
      "EBADF"
    )
  })

  it("are read and written with the same results by the calls with callbacks", async () => {
    const it = disk()
    it.put("C:\\f", "abc")
    const file = it.openSync("C:\\f", O_RDWR)
    const into = new Uint8Array(2)
    let answered = false
    const count = await new Promise<number>((resolve) => {
      it.read(file, into, 0, 2, 1, (_, count) => {
        answered = true
        resolve(count)
      })
      assert.isFalse(answered)
    })
    assert.deepStrictEqual([count, ...into], [2, 98, 99])
    const error = await new Promise<Error | null>((resolve) => it.write(7, into, 0, 1, 0, resolve))
    assert.strictEqual((error as NodeJS.ErrnoException).code, "EBADF")
  })

  // Wine allows more than these rules of Windows.
  it("allow a handle only the access it was opened for", () => {
    const it = disk()
    it.put("C:\\f", "abc")
    const reader = it.openSync("C:\\f", O_RDONLY)
    const appender = it.openSync("C:\\f", O_RDWR | O_APPEND)
    for (const run of [() => it.ftruncateSync(reader, 0), () => it.fsyncSync(reader), () => it.ftruncateSync(appender, 0)]) {
      assert.strictEqual(codeOf(run), "EPERM", String(run))
    }
    it.fsyncSync(appender)
    assert.strictEqual(
      codeOf(() => it.writeSync(reader, bytes("x"), 0, 1, 0)),
      "EBADF"
    )
  })

  it("that are read-only cannot be written or replaced, but can be moved, linked and removed", () => {
    const it = disk()
    it.put("C:\\r", "old")
    it.setReadOnly("C:\\r", true)
    it.put("C:\\n", "new")
    assert.strictEqual(it.lstatSync("C:\\r", asked)!.mode, 0o100444n)
    for (const flags of [O_RDWR, O_WRONLY | O_APPEND, O_WRONLY | O_TRUNC]) {
      assert.strictEqual(
        codeOf(() => it.openSync("C:\\r", flags)),
        "EPERM"
      )
    }
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\n", "C:\\r")),
      "EPERM"
    )
    it.linkSync("C:\\r", "C:\\l")
    it.renameSync("C:\\r", "C:\\s")
    // libuv removes the attribute first; measured under Wine.
    it.unlinkSync("C:\\s")
    assert.deepStrictEqual(it.names("C:\\"), ["l", "n"])
    assert.strictEqual(it.text("C:\\l"), "old")
  })

  it("get as many bytes of a write as still fit on a full disk", () => {
    const it = disk()
    const file = it.openSync("C:\\f", O_RDWR | O_CREAT)
    it.free = 3
    assert.strictEqual(it.writeSync(file, bytes("hello"), 0, 5, 0), 3)
    assert.strictEqual(
      codeOf(() => it.writeSync(file, bytes("lo"), 0, 2, 3)),
      "ENOSPC"
    )
    assert.strictEqual(it.writeSync(file, bytes("HEL"), 0, 3, 0), 3, "existing bytes can be overwritten")
    assert.strictEqual(it.text("C:\\f"), "HEL")
  })

  it("have inode numbers that a double cannot distinguish", () => {
    const it = disk()
    it.put("C:\\a")
    it.put("C:\\b")
    const [a, b] = ["C:\\a", "C:\\b"].map((path) => it.lstatSync(path, asked)!.ino)
    assert.notStrictEqual(a, b)
    assert.isFalse(Number.isSafeInteger(Number(a)))
    it.linkSync("C:\\a", "C:\\c")
    const stats = it.lstatSync("C:\\c", asked)!
    assert.deepStrictEqual([stats.ino, stats.nlink], [a, 2n])
  })
})

describe("open files on the simulated disk", () => {
  it("are busy while another program has them open without sharing", () => {
    const it = disk()
    it.put("C:\\f", "old")
    it.put("C:\\n", "new")
    const release = it.hold("C:\\f", { share: "none" })
    for (const [run, code] of [
      [() => it.openSync("C:\\f", O_RDONLY), "EBUSY"],
      [() => it.openSync("C:\\f", O_RDWR), "EBUSY"],
      [() => it.unlinkSync("C:\\f"), "EBUSY"],
      [() => it.renameSync("C:\\f", "C:\\g"), "EBUSY"],
      // [MS-FSCC] 2.4.42: "or the target file was open and ReplaceIfExists is nonzero".
      [() => it.renameSync("C:\\n", "C:\\f"), "EPERM"]
    ] as const) {
      assert.strictEqual(codeOf(run), code, String(run))
    }
    assert.isDefined(it.lstatSync("C:\\f", asked), "a stat needs no share")
    release()
    it.renameSync("C:\\n", "C:\\f")
    assert.strictEqual(it.text("C:\\f"), "new")
  })

  it("allow only the access that every other handle shares", () => {
    const it = disk()
    it.put("C:\\f", "old")
    const may = () => [
      codeOf(() => it.closeSync(it.openSync("C:\\f", O_RDONLY))),
      codeOf(() => it.closeSync(it.openSync("C:\\f", O_RDWR))),
      codeOf(() => it.renameSync("C:\\f", "C:\\F"))
    ]
    const rows = [
      ["none", ["EBUSY", "EBUSY", "EBUSY"]],
      ["read", [undefined, "EBUSY", "EBUSY"]],
      ["readWrite", [undefined, undefined, "EBUSY"]],
      ["all", [undefined, undefined, undefined]]
    ] as const
    for (const [share, expected] of rows) {
      const release = it.hold("C:\\f", { share })
      assert.deepStrictEqual(may(), [...expected], share)
      release()
    }
  })

  // Wine and NTFS (by [MS-FSCC]) behave the same: share-delete does not help.
  it("cannot be replaced by a rename, but can be moved away", () => {
    const it = disk()
    it.put("C:\\f", "old")
    it.put("C:\\n", "new")
    const file = it.openSync("C:\\f", O_RDONLY)
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\n", "C:\\f")),
      "EPERM"
    )
    it.renameSync("C:\\f", "C:\\gone")
    it.renameSync("C:\\n", "C:\\f")
    assert.strictEqual(textOf(it, file), "old")
    assert.strictEqual(it.text("C:\\f"), "new")
  })

  it("can be replaced on a disk with the option replacesOpen if every handle shares deletion", () => {
    const it = disk({ replacesOpen: true })
    it.put("C:\\f", "old")
    it.put("C:\\n", "new")
    const file = it.openSync("C:\\f", O_RDONLY)
    const release = it.hold("C:\\f", { share: "readWrite" })
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\n", "C:\\f")),
      "EPERM"
    )
    release()
    it.renameSync("C:\\n", "C:\\f")
    assert.deepStrictEqual([textOf(it, file), it.text("C:\\f")], ["old", "new"])
  })

  // NTFS refuses such a rename; Wine allows it.
  it("prevent a rename of the directories above them", () => {
    const it = disk()
    it.put("C:\\d\\e\\f", "x")
    const file = it.openSync("C:\\d\\e\\f", O_RDONLY)
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\d", "C:\\g")),
      "EPERM"
    )
    it.closeSync(file)
    it.renameSync("C:\\d", "C:\\g")
    assert.strictEqual(it.text("C:\\g\\e\\f"), "x")
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\g", "C:\\g\\e\\h")),
      "EBUSY"
    )
  })

  it("stay readable after their deletion, and their names become free immediately", () => {
    const it = disk()
    it.put("C:\\f", "old")
    const file = it.openSync("C:\\f", O_RDONLY)
    it.unlinkSync("C:\\f")
    assert.isUndefined(it.lstatSync("C:\\f", asked))
    it.put("C:\\f", "new")
    assert.strictEqual(textOf(it, file), "old")
  })

  it('on a disk with deletes "pending" keep their names until the last handle closes, and cannot be opened', () => {
    const it = disk({ deletes: "pending" })
    it.put("C:\\d\\f", "old")
    const file = it.openSync("C:\\d\\f", O_RDONLY)
    it.unlinkSync("C:\\d\\f")
    for (const run of [
      () => it.lstatSync("C:\\d\\f", asked),
      () => it.openSync("C:\\d\\f", O_WRONLY | O_CREAT),
      () => it.mkdirSync("C:\\d\\f")
    ]) {
      assert.strictEqual(codeOf(run), "EPERM", String(run))
    }
    assert.strictEqual(
      codeOf(() => it.rmdirSync("C:\\d")),
      "ENOTEMPTY"
    )
    assert.strictEqual(textOf(it, file), "old")
    it.closeSync(file)
    it.rmdirSync("C:\\d")
  })
})

describe("links on the simulated disk", () => {
  it("that are junctions need no privilege, are absolute, and are followed by every call but lstat", () => {
    const it = disk({ allowSymlinks: false })
    it.put("C:\\outside\\secret", "s")
    it.symlinkSync("\\\\?\\C:\\outside", "C:\\j", "junction")
    assert.strictEqual(
      codeOf(() => it.symlinkSync("outside", "C:\\l", "dir")),
      "EPERM"
    )
    assert.strictEqual(
      codeOf(() => it.symlinkSync("outside", "C:\\k", "junction")),
      "EINVAL"
    )
    assert.isTrue(it.lstatSync("C:\\j", asked)!.isSymbolicLink())
    assert.strictEqual(it.readlinkSync("C:\\j"), "C:\\outside\\")
    assert.strictEqual(textOf(it, it.openSync("C:\\j\\secret", O_RDONLY)), "s")
    assert.strictEqual(it.realpathSync.native("C:\\J\\SECRET"), "C:\\outside\\secret")
    it.unlinkSync("C:\\j")
    assert.deepStrictEqual(it.names("C:\\outside"), ["secret"])
  })

  it("are relative to their directory, and a file link cannot lead to a directory", () => {
    const it = disk()
    it.put("C:\\a\\b\\f", "x")
    it.symlinkSync("../a/b", "C:\\a\\l", "dir")
    it.symlinkSync("b", "C:\\a\\wrong", "file")
    assert.strictEqual(it.readlinkSync("C:\\a\\l"), "..\\a\\b")
    assert.strictEqual(it.realpathSync.native("C:\\a\\l\\f"), "C:\\a\\b\\f")
    assert.strictEqual(
      codeOf(() => it.openSync("C:\\a\\wrong\\f", O_RDONLY)),
      "ENOENT"
    )
    it.putLink("C:\\a\\loop", "loop", "file")
    assert.strictEqual(
      codeOf(() => it.openSync("C:\\a\\loop", O_RDONLY)),
      "ELOOP"
    )
  })

  it("that are hard links cannot cross volumes, nor can renames", () => {
    const it = disk({ volumes: ["C:", "\\\\server\\share"] })
    it.put("C:\\f", "x")
    it.put("\\\\Server\\Share\\g", "y")
    assert.strictEqual(it.text("\\\\server\\share\\g"), "y")
    assert.isDefined(it.lstatSync("\\\\?\\UNC\\server\\share\\g", asked))
    assert.strictEqual(
      codeOf(() => it.renameSync("C:\\f", "\\\\server\\share\\f")),
      "EXDEV"
    )
    assert.strictEqual(
      codeOf(() => it.linkSync("C:\\f", "\\\\server\\share\\f")),
      "EXDEV"
    )
    assert.isUndefined(it.lstatSync("D:\\f", asked))
  })
})

it("the simulated disk counts every call and can make it fail", () => {
  const it = disk()
  it.put("C:\\f", "x")
  assert.strictEqual(it.touched, 0)
  it.before = ({ name, path }) => (name === "unlink" && path === "C:\\f" ? "EBUSY" : undefined)
  assert.strictEqual(
    codeOf(() => it.unlinkSync("C:\\f")),
    "EBUSY"
  )
  it.before = undefined
  it.unlinkSync("C:\\f")
  assert.deepStrictEqual(
    it.calls.map(({ name }) => name),
    ["unlink", "unlink"]
  )
})
