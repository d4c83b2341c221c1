import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcSchema from "effect/rpc/RpcSchema"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import { Unavailable } from "../../src/model/FsError.ts"
import { codecFor } from "../../src/remote/exits.ts"
import { FilesystemRpcs } from "../../src/remote/protocol.ts"

const tags = ["port.stat", "port.read", "port.readAt", "port.write", "port.publish", "port.look", "version", "mkdir"] as const

const schemaOf = (tag: (typeof tags)[number]) => Rpc.exitSchema(FilesystemRpcs.requests.get(tag)!)

type Codec = Schema.Codec<unknown, unknown>

/** Returns the result of a codec as data: the value, or the message of the failure. */
const resultOf = (run: (value: unknown) => Result.Result<unknown, { readonly message: string }>, value: unknown) => {
  const result = run(value)
  return Result.isSuccess(result) ? { value: result.success } : { message: result.failure.message }
}

const decoders = (tag: (typeof tags)[number]) =>
  [codecFor, RpcSerialization.json.codecFor].map((codecFor) => {
    const decode = Schema.decodeUnknownResult(codecFor(schemaOf(tag)) as unknown as Codec)
    return (wire: unknown) => resultOf(decode, wire)
  })

const encoders = (tag: (typeof tags)[number]) =>
  [codecFor, RpcSerialization.json.codecFor].map((codecFor) => {
    const encode = Schema.encodeUnknownResult(codecFor(schemaOf(tag)) as unknown as Codec)
    return (exit: unknown) => resultOf(encode, exit)
  })

const now = DateTime.makeUnsafe(1_700_000_000_001)

const stat = { kind: "file", isFile: true, isDirectory: false, sizeBytes: 4096 }
const fullStat = { ...stat, createdAt: now, modifiedAt: now, mode: 0o644, isSymlink: false, identity: "1:2" }
const bytes = Uint8Array.of(1, 2, 3)

/** Values that most answers, and most fields of an answer, must not have. */
const odd: ReadonlyArray<unknown> = [
  undefined,
  null,
  true,
  0,
  1.5,
  -1,
  2 ** 53,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  8.64e15 + 1,
  "",
  "file",
  "1700000000001",
  "AQID",
  "A",
  [],
  {},
  bytes,
  new Date(0),
  now,
  DateTime.makeZonedUnsafe(0, { timeZone: "UTC" }),
  stat,
  { stat, bytes },
  { ...stat, unknown: 1 },
  // A worker thread can send an array with named properties.
  Object.assign([], stat),
  Object.assign([], { _tag: "Success", value: bytes })
]

const answers: Readonly<Record<(typeof tags)[number], ReadonlyArray<unknown>>> = {
  "port.stat": [null, stat, fullStat],
  "port.read": [null, { stat, bytes }, { stat: fullStat, bytes: new Uint8Array(0) }],
  "port.readAt": [bytes, new Uint8Array(0)],
  "port.write": [stat, fullStat],
  "port.publish": [fullStat],
  "port.look": [[{ stat: fullStat }]],
  version: ["a"],
  mkdir: [undefined]
}

/** Returns the value with each of its fields, at any depth, replaced with each odd value, or removed. */
const spoiled = (value: unknown): ReadonlyArray<unknown> =>
  typeof value !== "object" || value === null || value instanceof Uint8Array || DateTime.isDateTime(value)
    ? odd
    : [
        ...odd,
        ...Object.keys(value).flatMap((key) => {
          const { [key]: field, ...rest } = value as Record<string, unknown>
          return [rest, ...spoiled(field).map((odd) => ({ ...value, [key]: odd }))]
        })
      ]

describe("answers of the server", () => {
  for (const tag of tags) {
    it(`to ${tag} are encoded and refused as the schema says`, () => {
      const [ours, ofSchema] = encoders(tag)
      const failure = new Unavailable({ operation: "stat", path: "a", detail: "gone" })
      const exits = [
        ...answers[tag].flatMap((answer) => [answer, ...spoiled(answer)]).map((answer) => Exit.succeed(answer)),
        Exit.fail(failure),
        Exit.die("defect"),
        Exit.interrupt(1),
        undefined,
        stat
      ]
      for (const exit of exits) assert.deepStrictEqual(ours!(exit), ofSchema!(exit))
    })

    it(`to ${tag} are decoded and refused as the schema says`, () => {
      const [ours, ofSchema] = decoders(tag)
      const [encode] = encoders(tag)
      let accepted = 0
      for (const answer of answers[tag]) {
        const wire = encode!(Exit.succeed(answer)).value
        assert.deepStrictEqual(ours!(wire), { value: Exit.succeed(answer) })
        for (const odd of [wire, ...spoiled(wire)]) {
          const result = ours!(odd)
          assert.deepStrictEqual(result, ofSchema!(odd))
          if ("value" in result) accepted++
        }
      }
      assert.isAbove(accepted, 0)
    })
  }

  it("with a negative size are refused", () => {
    const child = { name: "a", path: "a", kind: "file", isFile: true, isDirectory: false, addressable: true }
    const parts = { walk: { entries: [child], skips: [] }, glob: { matches: [child], skips: [] } }
    for (const sizeBytes of [-1, 0]) {
      const decoded = [
        ...tags.slice(0, 6).flatMap((tag) =>
          answers[tag]
            .filter((answer) => JSON.stringify(answer)?.includes("sizeBytes"))
            .map((answer) => {
              const wire = JSON.stringify(encoders(tag)[0]!(Exit.succeed(answer)).value).replace(
                '"sizeBytes":4096',
                `"sizeBytes":${sizeBytes}`
              )
              return decoders(tag)[0]!(JSON.parse(wire))
            })
        ),
        ...(["walk", "glob", "port.listAll"] as const).map((tag) => {
          const { successSchema } = FilesystemRpcs.requests.get(tag)!
          assert.isTrue(RpcSchema.isStreamSchema(successSchema))
          const schema = (successSchema as unknown as { readonly success: Codec }).success
          const part = JSON.stringify(tag === "port.listAll" ? [child] : parts[tag])
          return resultOf(
            Schema.decodeUnknownResult(schema),
            JSON.parse(part.replace('"kind"', `"sizeBytes":${sizeBytes},"kind"`))
          )
        })
      ]
      assert.lengthOf(decoded, 11)
      for (const result of decoded) assert.property(result, sizeBytes < 0 ? "message" : "value")
    }
  })

  it("with a name of Object.prototype are refused", () => {
    for (const json of ['{"__proto__":{"_tag":"Success","value":null}}', '{"_tag":"Success","constructor":null}']) {
      const [ours, ofSchema] = decoders("port.stat")
      const result = ours!(JSON.parse(json))
      assert.property(result, "message")
      assert.deepStrictEqual(result, ofSchema!(JSON.parse(json)))
    }
  })
})
