import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { FsError } from "../../model/FsError.ts"
import * as FsErrors from "../../model/FsError.ts"
import * as Limits from "../../model/Limits.ts"
import { lawForms, withFaults, expectTree, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { type Files } from "../Files.ts"
import { abilities, Bench, type Law } from "../Law.ts"
import { toBytes, collect, pathCalls, paths, supportedCalls } from "../operations.ts"

const service = lawForms("service")
const writing = lawForms("service", "write")
const deleting = lawForms("service", "delete")

const lawsOnMachine = lawForms("service", "a place on a machine")

const deepPath = Array.from({ length: 20 }, () => "d").join("/")
const deep: Files = { [`${deepPath}/f`]: "hit" }
const withAgentLimits = withLimits(Limits.agent)

export const limitLaws: ReadonlyArray<Law> = [
  service("C-22", deep).law("walks and searches include entries deeper than maxPathDepth", function* (fs) {
    yield* equal((yield* withAgentLimits(collect(fs.walk()))).length, 21)
    yield* equal(paths((yield* withAgentLimits(fs.glob("f"))).matches), [`${deepPath}/f`])
    yield* equal(paths((yield* withAgentLimits(fs.grep("hit"))).matches), [`${deepPath}/f`])
  }),
  deleting("C-22", deep).law("a recursive delete includes entries deeper than maxPathDepth", function* (fs) {
    yield* equal(yield* withAgentLimits(fs.delete("d", { recursive: true })), { deleted: 1, directories: 20 })
    yield* expectTree(fs, {})
  }),
  writing("C-22", deep).law("a copy includes entries deeper than maxPathDepth", function* (fs) {
    yield* equal(yield* withAgentLimits(fs.copy("d", "e")), { files: 1, directories: 20, bytes: 3 })
    yield* expectTree(fs, { ...deep, [`e${deepPath.slice(1)}/f`]: "hit" })
  }),
  service("C-22", { "a/b": "x" }).law("a limit applies only to the effect for which it is provided", function* (fs) {
    yield* fails(withLimits({ maxPathDepth: 1 })(fs.readString("a/b")), "PathTooLong")
    yield* equal(yield* fs.readString("a/b"), "x")
  }),
  service("C-22", { a: "x\n".repeat(3000) }).law("a read without limits returns all lines of a file at once", function* (fs) {
    const all = Effect.provideService(fs.read("a"), Limits.Limits, Limits.unlimited)
    yield* has(yield* all, { limit: 3000, truncated: false })
  })
]

const failingTree: Files = { "d/f": "x", bad: toBytes(0xff), "source.txt": "a" }

const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(FsError))
const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(FsError))

const writeOrder = writing("C-54", failingTree)

const readOrder = service("C-54", failingTree)

export const errorLaws: ReadonlyArray<Law> = [
  service("C-23, api: FsError", failingTree).law("errors can be encoded to JSON and decoded again", function* (fs) {
    const errors: ReadonlyArray<FsError> = [
      yield* fails(fs.readString("no"), "NotFound"),
      yield* fails(fs.readString("d"), "NotAFile"),
      yield* fails(fs.list("d/f"), "NotADirectory"),
      yield* fails(fs.readString("bad"), "NotText"),
      yield* fails(fs.readString("../x"), "InvalidPath"),
      yield* fails(fs.read("d/f", { limit: -3 }), "InvalidArgument"),
      yield* fails(withLimits({ maxReadBytes: 0 })(fs.readString("d/f")), "LimitExceeded"),
      yield* fails(withLimits({ maxPathDepth: 1 })(fs.readString("d/f")), "PathTooLong")
    ]
    for (const error of errors) {
      const sent: unknown = JSON.parse(JSON.stringify(yield* encode(error)))
      const received = yield* decode(sent)
      yield* equal<object>({ ...received, message: received.message }, { ...error, message: error.message })
      yield* holds(received instanceof FsErrors[error._tag], `an instance of ${error._tag}`, received)
    }
  }),
  service("api: FsError", failingTree).law("a message names the operation and the path", function* (fs) {
    const { message } = yield* fails(fs.readString("d/no"), "NotFound")
    yield* holds(message.includes("readString") && message.includes("d/no"), "readString and d/no in the message", message)
  }),
  lawsOnMachine("architecture: errors", failingTree).law(
    "no error contains the location of the root on the host",
    function* (fs) {
      const root = fs.port.info.root
      for (const path of ["no/where", "d", "d/f", "d/f/x", "bad", "../x"]) {
        for (const call of supportedCalls(pathCalls, abilities(fs, yield* Bench))) {
          const result = yield* Effect.result(call.run(fs, path))
          if (result._tag === "Success") continue
          const errorText = JSON.stringify({ ...result.failure }) + result.failure.message
          yield* holds(!errorText.includes(root), "an error without the root of the host", errorText)
        }
      }
    }
  ),
  service("architecture: errors", failingTree).law("an IoError does not contain the message of its cause", function* (fs) {
    const cause = new Error("/secret/root/d/f")
    const broken = yield* withFaults(fs, {
      operation: "Open",
      fault: { _tag: "IoError", code: "EIO", detail: "it failed", cause }
    })
    const error = yield* fails(broken.readString("d/f"), "IoError", { code: "EIO", path: "d/f", operation: "readString" })
    yield* holds(!(JSON.stringify({ ...error }) + error.message).includes("secret"), "an error without the cause", error)
  }),
  readOrder.law("exists fails only if the backend is unavailable", function* (fs) {
    const on = (fault: FsErrors.Fault) =>
      Effect.flatMap(withFaults(fs, { operation: ["Stat", "Open", "List", "ReadLink"], fault }), (broken) =>
        broken.exists("d/f")
      )
    yield* fails(on({ _tag: "Unavailable", detail: "stopped" }), "Unavailable")
    yield* equal(yield* on({ _tag: "AccessDenied", why: "permission" }), false)
  }),
  ...(
    [
      ["the path before the arguments", "../x", { limit: -3 }, "InvalidPath"],
      ["the arguments before the existence of the file", "no", { limit: -3 }, "InvalidArgument"]
    ] as const
  ).map(([what, path, options, tag]) => readOrder.refuses(`a read checks ${what}`, (fs) => fs.read(path, options), tag)),
  writeOrder.refuses("a write checks the path before its content", (fs) => fs.write("../x", "\ud800"), "InvalidPath"),
  writeOrder.refuses(
    "a write checks its arguments before the limits",
    (fs) => withLimits({ maxFileSize: 1 })(fs.write("d/f", "12\ud800")),
    "InvalidArgument"
  ),
  writeOrder.refuses(
    "a write checks the limits before the precondition",
    (fs) => withLimits({ maxFileSize: 1 })(fs.write("d/f", "12", { ifMatch: null })),
    "LimitExceeded"
  ),
  writeOrder.refuses(
    "a write checks the limits before the existing entry",
    (fs) => withLimits({ maxFileSize: 1 })(fs.write("d", "12")),
    "LimitExceeded"
  ),
  writeOrder.refuses(
    "a write checks the precondition before the existence that its mode requires",
    (fs) => fs.write("no", "12", { mode: "replace", ifMatch: "0".repeat(64) }),
    "Conflict"
  ),
  writeOrder.refuses(
    "an edit checks the precondition before its matches",
    (fs) => fs.edit("d/f", { oldText: "none", newText: "" }, { ifMatch: "0".repeat(64) }),
    "Conflict"
  ),
  writeOrder.refuses(
    "an edit checks its arguments before the precondition",
    (fs) => fs.edit("d/f", { oldText: "", newText: "" }, { ifMatch: "0".repeat(64) }),
    "InvalidArgument"
  ),
  readOrder.refuses("a glob checks its pattern before its base", (fs) => fs.glob("", { path: "d/f" }), "InvalidArgument"),
  readOrder.refuses("a glob checks its base's path before its pattern", (fs) => fs.glob("", { path: "../x" }), "InvalidPath"),
  service("C-23", failingTree).law("catchTag catches an error by its tag", function* (fs) {
    const caught = yield* fs
      .readString("no")
      .pipe(Effect.catchTag("NotFound", ({ operation, path }) => Effect.succeed(`${operation} ${path}`)))
    yield* equal(caught, "readString no")
  })
]
