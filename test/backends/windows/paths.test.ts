import { assert, describe, it } from "@effect/vitest"
import {
  diskPathOf,
  isWithinRoot,
  linkTarget,
  nameFault,
  parseRoot,
  toNative,
  type WindowsRoot
} from "../../../src/backends/windows/names.ts"
import * as Schema from "effect/Schema"
import { is as isFault } from "../../../src/model/Fault.ts"
import * as TemporaryNames from "../../../src/runtime/temporaryNames.ts"
import { leadsOutside } from "../../../src/engine/resolve.ts"
import * as FsPath from "../../../src/model/FsPath.ts"
import { isName, read } from "./simulatedNames.ts"

const at = (path: string) => FsPath.parse(path) as FsPath.FsPath

const rootAt = (text: string): WindowsRoot => {
  const root = parseRoot(text)
  if (isFault(root)) throw new Error(JSON.stringify(root))
  return root
}

const tagOf = (fault: ReturnType<typeof nameFault> | string) => (typeof fault === "object" ? fault._tag : fault)

/** The device names of Microsoft's page "Naming Files, Paths, and Namespaces" and of security.md. */
const devices = [
  ..."CON PRN AUX NUL CONIN$ CONOUT$ CLOCK$".split(" "),
  ...[..."123456789¹²³"].flatMap((digit) => [`COM${digit}`, `LPT${digit}`])
]

describe("the check of a name on Windows", () => {
  for (const device of devices) {
    it(`refuses the device ${device} in any case, with any extension, and with dots, spaces and colons after it`, () => {
      const forms = ["", ".txt", ".tar.gz", ".", " ", "  ..", " .txt", ":", ":x", ": .txt"].map((tail) => device + tail)
      for (const name of [...forms, ...forms.map((name) => name.toLowerCase())]) {
        const fault = nameFault(name)
        assert.strictEqual(tagOf(fault), "InvalidPath", name)
        assert.include(fault!["detail"] as string, "device", name)
      }
    })
  }

  const refused: ReadonlyArray<readonly [name: string, tag: "InvalidPath" | "PathTooLong", why: string]> = [
    ...[...'<>"/\\|?*\u0001\u001f\u0000'].map((unit) => [`a${unit}b`, "InvalidPath", "character"] as const),
    ["a:b", "InvalidPath", "stream"],
    ["a::$DATA", "InvalidPath", "stream"],
    [":$I30:$INDEX_ALLOCATION", "InvalidPath", "stream"],
    ["C:", "InvalidPath", "stream"],
    ["C:x", "InvalidPath", "stream"],
    ["a.", "InvalidPath", "ends in"],
    ["a ", "InvalidPath", "ends in"],
    ["a. .", "InvalidPath", "ends in"],
    [".", "InvalidPath", "ends in"],
    ["..", "InvalidPath", "ends in"],
    ["...", "InvalidPath", "ends in"],
    [" ", "InvalidPath", "ends in"],
    ["", "InvalidPath", "empty"],
    ["a\ud800", "InvalidPath", "surrogate"],
    ["a".repeat(256), "PathTooLong", "255"],
    ["😀".repeat(128), "PathTooLong", "255"],
    ["GIT~1", "InvalidPath", "short name"],
    ["git~1", "InvalidPath", "short name"],
    ["PROGRA~1.TXT", "InvalidPath", "short name"],
    ["progra~1.txt", "InvalidPath", "short name"],
    ["A~1", "InvalidPath", "short name"],
    ["AB12CD~1.C", "InvalidPath", "short name"],
    ["ABCDEF~1", "InvalidPath", "short name"],
    ["A~999999", "InvalidPath", "short name"],
    ["LONGN~10.TEX", "InvalidPath", "short name"]
  ]
  for (const [name, tag, why] of refused) {
    it(`refuses ${JSON.stringify(name.length > 40 ? name.slice(0, 8) + "…" : name)} as ${tag}: ${why}`, () => {
      const fault = nameFault(name)
      assert.strictEqual(fault?._tag, tag)
      assert.include(fault!["detail"] as string, why)
    })
  }

  const fine = [
    ..."COM0 LPT0 COM10 COM LPT COM⁴ COMX CONIN CONOUT CLOCK NULL CON1 CONSOLE icon AUXILIARY prn1 xNUL".split(" "),
    " CON",
    "a.CON",
    "txt.nul",
    ".gitignore",
    " leading",
    "a b.c d",
    "a..b",
    "file~",
    "~$report.docx",
    "file~1.html",
    "longname~1",
    "abcdef~12",
    "a~1234567",
    "a~b",
    "~1",
    "back~1up",
    "a.b~1",
    "größe",
    "日本語",
    "😀",
    "a\u007f",
    "e\u0301",
    "%PATH%",
    "$MFT",
    "a".repeat(255),
    "😀".repeat(127)
  ]
  for (const name of fine) {
    it(`accepts ${JSON.stringify(name.length > 40 ? name.slice(0, 8) + "…" : name)}`, () => {
      assert.isUndefined(nameFault(name))
    })
  }

  it("accepts the names of our temporary files", () => assert.isUndefined(TemporaryNames.withNameSync(nameFault)))

  it("accepts a short (8.3) name in a root and in the target of a link, but no device", () => {
    assert.isUndefined(nameFault("RUNNER~1", "take"))
    assert.strictEqual(nameFault("NUL", "take")?._tag, "InvalidPath")
  })

  it("refuses a path with an invalid name at any position, and accepts the root", () => {
    assert.strictEqual(diskPathOf(FsPath.root), FsPath.root)
    assert.strictEqual(diskPathOf(at("a/b c/d.txt")), at("a/b c/d.txt"))
    for (const path of ["nul/b", "a/nul", "a/b:c/d", "a/GIT~1/hooks", "a/b./c", "back\\slash"]) {
      assert.deepInclude(diskPathOf(at(path)), { _tag: "InvalidPath" }, path)
    }
    assert.deepInclude(diskPathOf(at(`a/${"b".repeat(256)}`)), { _tag: "PathTooLong" })
  })
})

const pieces = 'CON nul Aux COM1 lpt² CONIN$ clock$ COM0 a B é 1 ~1 ~12 . : * ? < | \\ " \u0001 TXT x 😀 \ud800 $DATA'.split(
  " "
)
const Piece = Schema.Literals([...pieces, " "])
const Name = Schema.Array(Piece)

describe("names as Win32 and the disk read them", () => {
  it.prop(
    "are refused when Win32 reads them as other names or the disk does not accept them",
    [Name],
    ([pieces]) => {
      const name = pieces.join("")
      const { misread, names } = read(`C:\\root\\${name}`)
      const isAltered = misread !== undefined || names.length !== 2 || names[1] !== name || !isName(name)
      if (isAltered) assert.isDefined(nameFault(name), JSON.stringify(name))
    },
    { arbitrary: { runs: 1500 } }
  )

  it.prop("are read unchanged, with and without the prefix \\\\?\\, when they are accepted", [Name], ([pieces]) => {
    const name = pieces.join("")
    if (nameFault(name) !== undefined) return
    for (const prefix of ["", "\\\\?\\"]) {
      const reading = read(`${prefix}C:\\root\\${name}`)
      assert.deepStrictEqual([...reading.names], ["root", name])
      assert.isUndefined(reading.misread)
    }
  })
})

describe("roots on Windows", () => {
  const roots: ReadonlyArray<readonly [text: string, path: string, verbatim: string]> = [
    ["C:\\x", "C:\\x", "\\\\?\\C:\\x"],
    ["c:\\x\\", "C:\\x", "\\\\?\\C:\\x"],
    ["C:/x/y", "C:\\x\\y", "\\\\?\\C:\\x\\y"],
    ["C:\\x\\\\y//z\\", "C:\\x\\y\\z", "\\\\?\\C:\\x\\y\\z"],
    ["C:\\", "C:\\", "\\\\?\\C:\\"],
    ["z:/", "Z:\\", "\\\\?\\Z:\\"],
    ["\\\\?\\C:\\x", "C:\\x", "\\\\?\\C:\\x"],
    ["\\\\?\\C:\\", "C:\\", "\\\\?\\C:\\"],
    ["\\\\server\\share\\x", "\\\\server\\share\\x", "\\\\?\\UNC\\server\\share\\x"],
    ["\\\\server\\share", "\\\\server\\share", "\\\\?\\UNC\\server\\share"],
    ["\\\\server\\c$\\", "\\\\server\\c$", "\\\\?\\UNC\\server\\c$"],
    ["//server/share/x", "\\\\server\\share\\x", "\\\\?\\UNC\\server\\share\\x"],
    ["\\\\?\\UNC\\server\\share\\x", "\\\\server\\share\\x", "\\\\?\\UNC\\server\\share\\x"],
    ["\\\\?\\unc\\server\\share", "\\\\server\\share", "\\\\?\\UNC\\server\\share"],
    ["C:\\Users\\RUNNER~1\\Temp", "C:\\Users\\RUNNER~1\\Temp", "\\\\?\\C:\\Users\\RUNNER~1\\Temp"],
    ["C:\\Program Files (x86)", "C:\\Program Files (x86)", "\\\\?\\C:\\Program Files (x86)"]
  ]
  for (const [text, path, verbatim] of roots) {
    it(`include ${text} as ${path}`, () => {
      const root = rootAt(text)
      assert.strictEqual(root.path, path)
      assert.strictEqual(toNative(root, FsPath.root, { useLongPaths: false }), path)
      assert.strictEqual(toNative(root, FsPath.root, { useLongPaths: true }), verbatim)
      assert.deepStrictEqual(rootAt(path), root)
      assert.deepStrictEqual(rootAt(verbatim), root)
    })
  }

  const refused = [
    "",
    "x",
    "x\\y",
    ".",
    "C:",
    "C:x",
    "C:x\\y",
    "\\x",
    "/x",
    "\\",
    "CC:\\x",
    "1:\\x",
    "é:\\x",
    "\\\\.\\C:\\x",
    "\\\\.\\PhysicalDrive0",
    "\\??\\C:\\x",
    "/??/C:/x",
    "\\\\?\\",
    "\\\\?\\C:",
    "\\\\?\\C:x",
    "\\\\?\\C:/x",
    "\\\\?\\GLOBALROOT\\Device\\HarddiskVolume1\\x",
    "\\\\?\\Volume{b75e2c83-0000-0000-0000-602f00000000}\\",
    "\\\\?\\UNC\\server",
    "\\\\?\\UNC\\.\\C:\\x",
    "\\\\?\\UNC\\?\\C:\\x",
    "//?/C:/x",
    "//./C:/x",
    "\\\\?\\\\\\server\\share",
    "\\\\server\\sh*re\\x",
    "\\\\server\\nul",
    "\\\\server\\..\\x",
    "\\\\ser|ver\\share",
    "\\\\server",
    "\\\\server\\",
    "\\\\server\\pipe\\x",
    "\\\\server\\PIPE",
    "\\\\server\\ipc$\\x",
    "\\\\server\\mailslot\\x",
    "\\\\\\server\\share",
    "C:\\x\\..\\y",
    "C:\\..",
    "C:\\.\\x",
    "C:\\x\\.",
    "C:\\x\\nul",
    "C:\\con.d\\x",
    "C:\\x.",
    "C:\\x \\y",
    "C:\\x:y",
    "C:\\a\\C:\\b",
    "C:\\x*",
    "C:\\x\u0000",
    "C:\\x\ud800",
    "file:///C:/x",
    "~"
  ]
  for (const text of refused) {
    it(`exclude ${JSON.stringify(text)}`, () => assert.strictEqual(tagOf(parseRoot(text) as never), "InvalidPath"))
  }

  it("exclude values that are not strings", () => {
    for (const text of [undefined, null, 7, {}]) {
      assert.strictEqual(tagOf(parseRoot(text as unknown as string) as never), "InvalidPath")
    }
  })

  it("fail with PathTooLong if a name is too long", () => {
    assert.strictEqual(tagOf(parseRoot(`C:\\${"x".repeat(256)}`) as never), "PathTooLong")
  })
})

describe("the system path of an entry:", () => {
  const rows: ReadonlyArray<readonly [root: string, path: string, plain: string, verbatim: string]> = [
    ["C:\\r", "a/b", "C:\\r\\a\\b", "\\\\?\\C:\\r\\a\\b"],
    ["C:\\", "a/b", "C:\\a\\b", "\\\\?\\C:\\a\\b"],
    ["\\\\s\\d\\r", "a", "\\\\s\\d\\r\\a", "\\\\?\\UNC\\s\\d\\r\\a"],
    ["\\\\s\\d", "a/é", "\\\\s\\d\\a\\é", "\\\\?\\UNC\\s\\d\\a\\é"]
  ]
  for (const [root, path, plain, verbatim] of rows) {
    it(`${path} below ${root} is ${plain}`, () => {
      assert.strictEqual(toNative(rootAt(root), at(path), { useLongPaths: false }), plain)
      assert.strictEqual(toNative(rootAt(root), at(path), { useLongPaths: true }), verbatim)
    })
  }

  /** Returns a path that has `units` units below `C:\r`, of names that are not too long. */
  const ofLength = (units: number): FsPath.FsPath => {
    let left = units - "C:\\r".length
    const names: Array<string> = []
    while (left > 0) {
      const take = left <= 201 ? left : left === 202 ? 200 : 201
      names.push("x".repeat(take - 1))
      left -= take
    }
    return names.join("/") as FsPath.FsPath
  }

  const limits: ReadonlyArray<readonly [what: string, units: number, options: Parameters<typeof toNative>[2], prefix: number]> =
    [
      ["a path without the prefix", 259, { useLongPaths: false }, 0],
      ["a new directory without the prefix", 247, { useLongPaths: false, makesDirectory: true }, 0],
      ["a path with the prefix", 32_766, { useLongPaths: true }, 4],
      ["a new directory with the prefix", 32_766, { useLongPaths: true, makesDirectory: true }, 4]
    ]
  for (const [what, units, options, prefix] of limits) {
    it(`${what} has at most ${units} units`, () => {
      const longest = toNative(rootAt("C:\\r"), ofLength(units - prefix), options)
      assert.isString(longest)
      assert.strictEqual((longest as string).length, units)
      assert.strictEqual(tagOf(toNative(rootAt("C:\\r"), ofLength(units - prefix + 1), options)), "PathTooLong")
    })
  }

  it("its length is counted in UTF-16 units, not in characters", () => {
    const names = Array.from({ length: 2 }, () => "😀".repeat(63)).join("/") as FsPath.FsPath
    assert.strictEqual((toNative(rootAt("C:\\r"), names, { useLongPaths: false }) as string).length, 4 + 2 * 127)
    const more = `${names}/a` as FsPath.FsPath
    assert.strictEqual(tagOf(toNative(rootAt("C:\\r"), more, { useLongPaths: false })), "PathTooLong")
  })

  it("its fault for a long path does not contain the root", () => {
    const fault = toNative(rootAt("C:\\secret"), "x".repeat(260) as FsPath.FsPath, { useLongPaths: false })
    assert.notInclude(JSON.stringify(fault), "secret")
  })
})

describe("a path that may be within a root:", () => {
  const rows: ReadonlyArray<readonly [root: string, native: string, isWithin: boolean]> = [
    ["C:\\Work", "C:\\Work", true],
    ["C:\\Work", "c:\\WORK\\a", true],
    ["C:\\Work", "\\\\?\\C:\\work\\a", true],
    ["C:\\Work", "\\\\?\\C:\\Work\\", true],
    ["C:\\Work", "C:\\Workshop", false],
    ["C:\\Work", "C:\\Workshop\\Work", false],
    ["C:\\Work", "C:\\", false],
    ["C:\\Work", "C:\\other\\Work", false],
    ["C:\\Work", "D:\\Work\\a", false],
    ["C:\\Work", "C:\\Work\\..\\x", false],
    ["C:\\Work", "C:Work", false],
    ["C:\\Work", "\\Work\\a", false],
    ["C:\\Work", "\\\\.\\C:\\Work\\a", false],
    ["C:\\Work", "\\\\?\\Volume{1}\\Work", false],
    ["C:\\Work", "\\\\C:\\Work", false],
    ["C:\\", "C:\\anything", true],
    ["C:\\", "D:\\anything", false],
    ["\\\\Server\\Share\\r", "\\\\server\\SHARE\\R\\x", true],
    ["\\\\Server\\Share\\r", "\\\\?\\UNC\\server\\share\\r", true],
    ["\\\\Server\\Share\\r", "\\\\server\\share2\\r", false],
    ["\\\\Server\\Share", "\\\\server\\share\\x", true],
    ["C:\\É", "C:\\é\\x", true],
    // Measured on Wine, whose table is that of Windows: the two names of each pair can exist side by side.
    ["C:\\work", "C:\\wor\u212a\\x", false],
    ["C:\\straße", "C:\\STRASSE\\x", false],
    ["C:\\s", "C:\\ſ\\x", false],
    ["C:\\i\u0307", "C:\\\u0130\\x", false],
    ["C:\\𐐀", "C:\\𐐨\\x", false]
  ]
  for (const [root, native, isWithin] of rows) {
    it(`${native} is ${isWithin ? "" : "not "}within ${root}`, () => {
      assert.strictEqual(isWithinRoot(rootAt(root), native), isWithin)
    })
  }

  const Root = Schema.Literals(["C:\\", "C:\\r", "C:\\a b\\c", "\\\\s\\d", "\\\\s\\d\\e"])
  it.prop("an accepted path is always within the root, in any case", [Root, Schema.Array(Name)], ([text, names]) => {
    const path = FsPath.parse(names.map((pieces) => pieces.join("")).join("/"))
    if (typeof path !== "string" || typeof diskPathOf(path) !== "string") return
    for (const useLongPaths of [false, true]) {
      const native = toNative(rootAt(text), path, { useLongPaths }) as string
      assert.isTrue(isWithinRoot(rootAt(text), native))
      assert.isTrue(isWithinRoot(rootAt(text), native.toUpperCase()))
      const reading = read(native)
      assert.isUndefined(reading.misread)
      assert.deepStrictEqual([...reading.names], [...rootAt(text).names, ...FsPath.segments(path)])
    }
  })
})

describe("the target of a link", () => {
  const rows: ReadonlyArray<readonly [directory: string, text: string, target: string]> = [
    ["", "b", "b"],
    ["a", "..\\b\\c", "../b/c"],
    ["a", "../b", "../b"],
    ["a", ".\\b", "./b"],
    ["", "C:\\root\\b", "b"],
    ["", "C:\\root\\b\\", "b"],
    ["a", "C:\\root\\b\\c", "../b/c"],
    ["a", "C:\\root\\a\\c", "c"],
    ["a/b", "C:\\root\\a\\c", "../c"],
    ["a/b", "C:\\root", "../.."],
    ["a", "C:\\root\\a", "."],
    ["", "C:\\root", "."],
    ["", "c:\\ROOT\\B", "B"],
    ["a", "\\??\\C:\\root\\b", "../b"],
    ["a", "\\\\?\\C:\\root\\b", "../b"],
    ["a", "C:/root/b", "../b"],
    ["a", "\\root\\b", "../b"]
  ]
  for (const [directory, text, target] of rows) {
    it(`of ${text} in "${directory}" is ${target}`, () => {
      const told = linkTarget([rootAt("C:\\root")], at(directory), text)
      assert.strictEqual(told, target)
      assert.isFalse(leadsOutside(at(directory), told))
    })
  }

  const outside = [
    "C:\\",
    "C:\\rooted",
    "C:\\Windows\\win.ini",
    "D:\\root\\b",
    "C:\\root\\..\\x",
    "C:\\root\\a\\..\\..\\x",
    "C:b",
    "a:b",
    "\\b",
    "/etc/passwd",
    "\\\\server\\share\\x",
    "\\??\\UNC\\server\\share",
    "\\??\\Volume{1}\\",
    "\\\\?\\Volume{1}\\root\\b",
    "\\\\.\\pipe\\x",
    "\\\\?\\GLOBALROOT\\x",
    "..\\..\\x",
    "b\\..\\..\\..\\x"
  ]
  for (const text of outside) {
    it(`of ${text} leads outside the root`, () =>
      assert.isTrue(leadsOutside(at("a"), linkTarget([rootAt("C:\\root")], at("a"), text))))
  }

  it("below a root on a share stays inside only if its text names the server and the share", () => {
    const root = rootAt("\\\\server\\share\\root")
    assert.strictEqual(linkTarget([root], at("a"), "\\\\SERVER\\share\\root\\b"), "../b")
    assert.strictEqual(linkTarget([root], at("a"), "\\??\\UNC\\server\\share\\root\\b"), "../b")
    assert.isTrue(leadsOutside(at("a"), linkTarget([root], at("a"), "\\root\\b")))
    assert.isTrue(leadsOutside(at("a"), linkTarget([root], at("a"), "C:\\root\\b")))
  })

  const Path = Schema.Array(Schema.Literals(["a", "b", "c d"]))
  it.prop("inside the root is a relative path that Windows follows to the same entry", [Path, Path], ([directory, target]) => {
    const told = linkTarget([rootAt("C:\\root")], FsPath.fromSegments(directory), ["C:\\root", ...target].join("\\"))
    const { names } = read(["C:\\root", ...directory, ...told.split("/")].join("\\"))
    assert.deepStrictEqual([...names], ["root", ...target])
  })
})
