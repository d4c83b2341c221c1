import { assert, describe, it } from "@effect/vitest"
import { faultOf as faultOfSystemError } from "../../../src/runtime/host.ts"
import { faultOf } from "../../../src/backends/container/shell/shellRoot.ts"

const words: Readonly<Record<string, ReadonlyArray<string>>> = {
  ENOENT: ["No such file or directory", "No such file", "no such file", "Directory nonexistent", "nonexistent directory"],
  ENOTDIR: ["Not a directory"],
  EISDIR: ["Is a directory"],
  EEXIST: ["File exists"],
  ENOTEMPTY: ["Directory not empty"],
  EACCES: ["Permission denied"],
  EPERM: ["Operation not permitted"],
  ETXTBSY: ["Text file busy"],
  EROFS: ["Read-only file system"],
  EBUSY: ["Device or resource busy", "Resource busy"],
  ENOSPC: ["No space left on device"],
  EDQUOT: ["Disk quota exceeded", "Quota exceeded"],
  EFBIG: ["File too large"],
  ENAMETOOLONG: ["File name too long", "Filename too long"],
  ELOOP: ["Too many levels of symbolic links", "Symbolic link loop"],
  ETIMEDOUT: ["Connection timed out", "Operation timed out"],
  EIO: ["Input/output error", "I/O error"],
  EXDEV: ["Invalid cross-device link", "Cross-device link"],
  EMFILE: ["Too many open files", "No file descriptors available"],
  EINVAL: ["Invalid argument"]
}

const systemError = (code: string) => Object.assign(new Error("simulated"), { code, errno: -1, syscall: "read" })

describe("the error messages of a tool", () => {
  for (const [code, texts] of Object.entries(words)) {
    for (const text of texts) {
      it(`"${text}" gives the same fault as ${code} on a host`, () => {
        const expected = faultOfSystemError(systemError(code))
        for (const errors of [
          `mv: cannot stat './a b': ${text}\n`,
          `0+1 records in\nsh: can't create ./x: ${text}\n0+1 records out\n`
        ]) {
          const fault = faultOf({ status: 1, output: Buffer.alloc(0), errors })
          assert.strictEqual(fault._tag, expected._tag)
          assert.strictEqual(fault["why"], expected["why"])
          if (expected._tag === "IoError") assert.strictEqual(fault["code"], code)
        }
      })
    }
  }

  it("appear only in the cause of a fault, because they contain paths", () => {
    const fault = faultOf({ status: 1, output: Buffer.alloc(0), errors: "mv: '/secret/place': something else\n" })
    assert.strictEqual(fault._tag, "IoError")
    assert.notInclude(JSON.stringify({ ...fault, cause: undefined }), "secret")
  })

  it("are recognised by the last line that reports an error", () => {
    const errors = "ln: failed to create hard link './x': Operation not permitted\nmv: './y': No space left on device\n"
    assert.strictEqual(faultOf({ status: 1, output: Buffer.alloc(0), errors })._tag, "DiskFull")
  })
})
