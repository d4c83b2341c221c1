import { assert, describe, it } from "@effect/vitest"
import { isTransient } from "../../src/backends/posix/errors.ts"
import { faultOf } from "../../src/runtime/host.ts"
import type { Kind } from "../../src/model/Entry.ts"
import { systemError } from "./posixFailures.ts"

/** Each row has an error code, its number on Linux, the system call, the fault, and the kind of entry if it matters. */
const rows: ReadonlyArray<readonly [string, number, string, Record<string, unknown>, Kind?]> = [
  ["ENOENT", -2, "open", { _tag: "NotFound" }],
  ["EEXIST", -17, "mkdir", { _tag: "AlreadyExists" }],
  ["EEXIST", -17, "link", { _tag: "AlreadyExists" }],
  ["EEXIST", -17, "rmdir", { _tag: "DirectoryNotEmpty" }],
  ["EACCES", -13, "open", { _tag: "AccessDenied", why: "permission" }],
  ["EPERM", -1, "rename", { _tag: "AccessDenied", why: "permission" }],
  ["EPERM", -1, "unlink", { _tag: "AccessDenied", why: "permission" }, "file"],
  ["EPERM", -1, "unlink", { _tag: "NotAFile" }, "directory"],
  ["ETXTBSY", -26, "open", { _tag: "AccessDenied", why: "permission" }],
  ["EROFS", -30, "open", { _tag: "AccessDenied", why: "readOnly" }],
  ["EBUSY", -16, "rename", { _tag: "AccessDenied", why: "busy" }],
  ["EAGAIN", -11, "open", { _tag: "AccessDenied", why: "busy" }],
  ["ENOTEMPTY", -39, "rmdir", { _tag: "DirectoryNotEmpty" }],
  ["ENOTDIR", -20, "mkdir", { _tag: "NotADirectory" }],
  ["EISDIR", -21, "open", { _tag: "NotAFile" }],
  ["ENOSPC", -28, "write", { _tag: "DiskFull" }],
  ["EDQUOT", -122, "write", { _tag: "DiskFull" }],
  ["Unknown system error -122", -122, "write", { _tag: "DiskFull" }],
  ["Unknown system error -69", -69, "write", { _tag: "DiskFull" }],
  ["EFBIG", -27, "write", { _tag: "DiskFull" }],
  ["ENAMETOOLONG", -36, "lstat", { _tag: "PathTooLong" }],
  ["EINVAL", -22, "open", { _tag: "InvalidPath" }],
  ["EINVAL", -22, "rename", { _tag: "InvalidPath" }],
  ["EINVAL", -22, "fsync", { _tag: "IoError", code: "EINVAL" }],
  ["EILSEQ", -84, "open", { _tag: "InvalidPath" }],
  ["ELOOP", -40, "open", { _tag: "InvalidPath" }],
  ["ETIMEDOUT", -110, "read", { _tag: "Timeout" }],
  ["EMFILE", -24, "open", { _tag: "IoError", code: "EMFILE" }],
  ["ENFILE", -23, "open", { _tag: "IoError", code: "ENFILE" }],
  ["EIO", -5, "read", { _tag: "IoError", code: "EIO" }],
  ["ENODEV", -19, "open", { _tag: "IoError", code: "ENODEV" }],
  ["ENXIO", -6, "open", { _tag: "IoError", code: "ENXIO" }],
  ["EXDEV", -18, "rename", { _tag: "IoError", code: "EXDEV" }],
  ["ENOMEM", -12, "read", { _tag: "IoError", code: "ENOMEM" }],
  ["ESTALE", -116, "read", { _tag: "IoError", code: "ESTALE" }],
  ["Unknown system error -133", -133, "open", { _tag: "IoError", code: "Unknown system error -133" }]
]

describe("an error of the system", () => {
  for (const [code, errno, syscall, expected, kind] of rows) {
    it(`${code} from ${syscall}${kind === undefined ? "" : " of a " + kind} becomes the fault ${JSON.stringify(expected)}`, () => {
      const error = systemError(code, errno, syscall)
      const { cause, ...fault } = faultOf(error, kind)
      assert.deepInclude(fault as Record<string, unknown>, expected)
      assert.strictEqual(cause, error)
      assert.notInclude(JSON.stringify(fault), "/host/path")
      for (const field of Object.values(fault)) assert.isString(field)
    })
  }

  it("is transient if its code is EAGAIN, EBUSY, EMFILE or ENFILE, and with no other code", () => {
    const transient = rows.filter(([code, errno, syscall]) => isTransient(faultOf(systemError(code, errno, syscall))))
    assert.deepStrictEqual([...new Set(transient.map(([code]) => code))].sort(), ["EAGAIN", "EBUSY", "EMFILE", "ENFILE"])
    assert.isFalse(isTransient({ _tag: "AccessDenied", why: "busy" }))
  })

  it("becomes a fault, but a TypeError is thrown again", () => {
    const mistake = new TypeError("undefined is not a function")
    assert.throws(() => faultOf(mistake), mistake)
  })
})
