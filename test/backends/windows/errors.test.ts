import { assert, describe, it } from "@effect/vitest"
import { fromWindows, isBusy } from "../../../src/backends/windows/errors.ts"
import type { Kind } from "../../../src/model/Entry.ts"
import { windowsError } from "./simulatedDisk.ts"

const busy = { _tag: "AccessDenied", why: "busy" }
const permission = { _tag: "AccessDenied", why: "permission" }

/** Win32 error numbers with their faults: first the numbers of file operations, then further numbers that libuv knows. */
const numbers: ReadonlyArray<readonly [number: number, expected: Record<string, unknown>]> = [
  [2, { _tag: "NotFound" }],
  [3, { _tag: "NotFound" }],
  [80, { _tag: "AlreadyExists" }],
  [183, { _tag: "AlreadyExists" }],
  [5, permission],
  [19, { _tag: "AccessDenied", why: "readOnly" }],
  [32, busy],
  [33, busy],
  [145, { _tag: "DirectoryNotEmpty" }],
  [267, { _tag: "NotADirectory" }],
  [39, { _tag: "DiskFull" }],
  [112, { _tag: "DiskFull" }],
  [206, { _tag: "PathTooLong" }],
  [123, { _tag: "InvalidPath" }],
  [161, { _tag: "InvalidPath" }],
  [121, { _tag: "Timeout" }],
  [258, { _tag: "Timeout" }],
  [1, { _tag: "NotAFile" }],
  [4, { _tag: "IoError", code: "EMFILE" }],
  [17, { _tag: "IoError", code: "EXDEV" }],
  [82, { _tag: "DiskFull" }],
  [1295, { _tag: "DiskFull" }],
  [1314, permission],
  [31, { _tag: "IoError", code: "UNKNOWN" }],
  [1921, { _tag: "InvalidPath" }]
]

const codes: ReadonlyArray<readonly [code: string, syscall: string, expected: Record<string, unknown>, kind?: Kind]> = [
  ["ENOENT", "open", { _tag: "NotFound" }],
  ["EEXIST", "mkdir", { _tag: "AlreadyExists" }],
  ["EEXIST", "link", { _tag: "AlreadyExists" }],
  ["EACCES", "open", permission],
  ["EPERM", "open", permission],
  ["EPERM", "rename", permission],
  ["EPERM", "symlink", permission],
  ["EPERM", "unlink", permission, "file"],
  ["EPERM", "unlink", { _tag: "NotAFile" }, "directory"],
  ["EROFS", "open", { _tag: "AccessDenied", why: "readOnly" }],
  ["EBUSY", "open", busy],
  ["ENOTEMPTY", "rmdir", { _tag: "DirectoryNotEmpty" }],
  ["ENOTDIR", "scandir", { _tag: "NotADirectory" }],
  ["EISDIR", "open", { _tag: "NotAFile" }],
  ["ENOSPC", "write", { _tag: "DiskFull" }],
  ["ENAMETOOLONG", "mkdir", { _tag: "PathTooLong" }],
  ["EINVAL", "open", { _tag: "InvalidPath" }],
  ["EINVAL", "ftruncate", { _tag: "IoError", code: "EINVAL" }],
  ["ELOOP", "open", { _tag: "InvalidPath" }],
  ["ETIMEDOUT", "read", { _tag: "Timeout" }],
  ["EMFILE", "open", { _tag: "IoError", code: "EMFILE" }],
  ["EIO", "read", { _tag: "IoError", code: "EIO" }],
  ["EXDEV", "rename", { _tag: "IoError", code: "EXDEV" }],
  ["ENOTSUP", "link", { _tag: "IoError", code: "ENOTSUP" }],
  ["UNKNOWN", "open", { _tag: "IoError", code: "UNKNOWN" }]
]

const checked = (error: Error, expected: Record<string, unknown>, kind?: Kind) => {
  const { cause, ...fault } = fromWindows(error, kind)
  assert.deepInclude(fault as Record<string, unknown>, expected)
  assert.strictEqual(cause, error)
  assert.notInclude(JSON.stringify(fault), "host", "only the cause may contain the path")
  for (const field of Object.values(fault)) assert.isString(field)
}

describe("an error of Windows", () => {
  for (const [number, expected] of numbers) {
    it(`with the number ${number} becomes the fault ${JSON.stringify(expected)}`, () => {
      checked(Object.assign(windowsError("UNKNOWN", "open", "C:\\host"), { errno: number }), expected)
    })
  }

  for (const [code, syscall, expected, kind] of codes) {
    const of = kind === undefined ? "" : ` of a ${kind}`
    it(`with the code ${code} from ${syscall}${of} becomes the fault ${JSON.stringify(expected)}`, () => {
      checked(windowsError(code, syscall, "C:\\host"), expected, kind)
    })
  }

  it("is busy if it is a sharing violation or a refused rename, and in no other case", () => {
    assert.isTrue(isBusy(windowsError("EBUSY", "open")))
    assert.isTrue(isBusy(windowsError("EBUSY", "unlink")))
    assert.isTrue(isBusy(windowsError("EPERM", "rename")))
    assert.isTrue(isBusy(windowsError("EACCES", "rename")))
    assert.isTrue(isBusy(Object.assign(windowsError("UNKNOWN", "open"), { errno: 32 })))
    assert.isTrue(isBusy(Object.assign(windowsError("UNKNOWN", "write"), { errno: 33 })))
    for (const [code, syscall] of [
      ["EPERM", "open"],
      ["EACCES", "unlink"],
      ["ENOENT", "rename"],
      ["ENOTEMPTY", "rmdir"]
    ] as const) {
      assert.isFalse(isBusy(windowsError(code, syscall)), `${code} ${syscall}`)
    }
    for (const other of [undefined, null, "EBUSY", { code: "EBUSY" }, new Error("EBUSY")]) assert.isFalse(isBusy(other))
  })

  it("becomes no fault if it is a TypeError, which is thrown again", () => {
    const mistake = new TypeError("undefined is not a function")
    assert.throws(() => fromWindows(mistake), mistake)
  })
})
