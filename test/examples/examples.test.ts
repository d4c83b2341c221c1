/** Programs with tools, sessions, archives and virtual filesystems, as a user writes them, with their expected results. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ToolResult } from "../../src/index.ts"
import { has, needs } from "../faults/ground.ts"
import * as Protocol from "./filesystem_protocol.ts"
import * as Archives from "./vfs_archives.ts"
import * as Sessions from "./vfs_sessions.ts"
import * as Tools from "./vfs_tools.ts"

const hasGit = needs("snapshots of a directory on the machine", () => has("git"), "apt-get install git")

type Result = ToolResult.ToolResult<unknown>

const fails = ({ message, success, ...rest }: Result, ...parts: ReadonlyArray<string>): void => {
  assert.isFalse(success)
  assert.deepStrictEqual(rest, {})
  for (const part of parts) assert.include(message, part)
}

/** Checks that a text for a model contains these parts. */
const tells = (text: string, ...parts: ReadonlyArray<string | RegExp>): void => {
  for (const part of parts) {
    if (typeof part === "string") assert.include(text, part)
    else assert.match(text, part)
  }
}

describe("tools and prompts over a filesystem:", () => {
  describe("a handler", () => {
    it.live("reads a page of a file, and reports a missing file", () =>
      Effect.gen(function* () {
        const { missing, page } = yield* Protocol.aHandlerReadsAPage
        assert.deepStrictEqual(page, {
          message: "Read numbers.txt, which has 5 lines.",
          success: true,
          value: { content: "2\n3", path: "numbers.txt", truncated: true }
        })
        fails(missing, "File not found: letters.txt")
      })
    )

    it.live("answers a refused path with a message", () =>
      Effect.gen(function* () {
        const { denied, open } = yield* Protocol.aHandlerIsDenied
        assert.isTrue(open.success)
        fails(denied, "secret.txt", "denied")
      })
    )

    it.live("that declares no need for files runs without a filesystem, but any other handler is not run", () =>
      Effect.gen(function* () {
        fails(yield* Protocol.aHandlerHasNoFiles, "There are no files in this context.")
        const { result, runs } = yield* Protocol.aToolNeedsFiles
        fails(result, "No filesystem available")
        assert.strictEqual(runs, 0)
      })
    )
  })

  it.live("the context of a tool is frozen, and its omitted parts are Option.none", () =>
    Effect.gen(function* () {
      const { isFrozen, leftOut } = yield* Protocol.theContextIsFrozen
      assert.isTrue(isFrozen)
      assert.deepStrictEqual(
        leftOut.map((part) => Option.isNone(part as Option.Option<unknown>)),
        [true, true, true, true]
      )
    })
  )

  it.live("an adapter passes itself, the prompt and the filesystem of the prompt's section to a tool", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Protocol.theAdapterPassesTheFilesystemOn, {
        prompts: true,
        contexts: true,
        isRendered: true,
        adapter: true,
        prompt: true
      })
    })
  )

  it.live("a custom section has files mounted from the machine for its own tools", () =>
    Effect.gen(function* () {
      const { found, read } = yield* Protocol.aSectionOfOnesOwn
      assert.deepStrictEqual<ReadonlyArray<string>>(found, ["src/main.py"])
      assert.deepInclude(read.value as object, { content: "print('hello')" })
    })
  )

  it.live("a prompt finds the first section with a filesystem at any depth, or returns none", () =>
    Effect.gen(function* () {
      const { none, ofItsSection, ofThePrompt, workspace } = yield* Protocol.thePromptFindsTheWorkspace
      assert.deepStrictEqual([Option.getOrUndefined(workspace), Option.isNone(none)], ["child", true])
      assert.deepStrictEqual([ofItsSection, ofThePrompt], ["This is later.", "This is child."])
    })
  )

  it.live.runIf(hasGit)("snapshots are appended to a slice, saved, loaded and restored", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Protocol.snapshotsAreKeptInASession, {
        tags: ["first", "before-refactor"],
        code: "before-refactor"
      })
    })
  )

  it.live.runIf(hasGit)("rollbackTo restores the files and then the session", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Protocol.bothAreRolledBack, {
        files: ["code.py"],
        code: "good",
        notes: ["works"],
        recorded: 1
      })
    })
  )

  it.live.runIf(hasGit)("rollbackTo changes neither files nor session if the files cannot be restored", () =>
    Effect.gen(function* () {
      const { code, error, notes } = yield* Protocol.neitherIsRolledBack
      assert.deepInclude(error, { _tag: "SnapshotRestoreError", reason: "unknown" })
      assert.deepStrictEqual([code, notes], ["new", ["new"]])
    })
  )

  it.live("a prompt's files can be filled before it is rendered, and its tools see the same files", () =>
    Effect.gen(function* () {
      const { isTheSections, mounted, prepared, there } = yield* Protocol.aPromptWithFiles
      assert.isTrue(isTheSections)
      assert.deepStrictEqual<ReadonlyArray<string>>(there, ["docs/guide.md", "scratch/notes.txt", "src/main.py"])
      assert.deepInclude(mounted.value as object, { content: "print('hello')" })
      assert.deepInclude(prepared.value as object, { content: "Working notes..." })
    })
  )
})

describe("files and sessions:", () => {
  it.live("files in a session are rolled back with the session: changed files are restored, new files removed", () =>
    Effect.gen(function* () {
      const rolledBack = yield* Sessions.filesAreRolledBackWithTheirSession
      assert.strictEqual(rolledBack.foo, "original")
      assert.deepInclude(rolledBack.new, { _tag: "NotFound", path: "new.txt" })
    })
  )

  it.live("files in a session are saved and loaded with the session, and are independent afterwards", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Sessions.filesAreSavedAndLoadedWithTheirSession, {
        loaded: true,
        now: "print('bye')",
        before: "print('hello')"
      })
    })
  )

  it.live("files outside of a session are stored in its slice ExternalFsSnapshot, and a restore replaces existing files", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Sessions.filesElsewhereAreCarriedAlong, {
        wasThereAny: true,
        names: ["config.json", "src", "src/main.py"],
        config: '{"debug":true}',
        ofAnEmptySession: false
      })
    })
  )

  for (const [name, store] of Object.entries(Sessions.stores)) {
    describe(`on ${name}:`, () => {
      it.live("a written file is read, and its bytes are counted", () =>
        Effect.gen(function* () {
          const { bytes, read } = yield* Sessions.whatIsWrittenIsRead(yield* store)
          assert.deepStrictEqual([bytes, read.content, read.totalLines], [5, "hello", 1])
        })
      )

      it.live("a deleted file is counted and gone", () =>
        Effect.gen(function* () {
          const { deleted, read } = yield* Sessions.whatIsDeletedIsGone(yield* store)
          assert.strictEqual(deleted, 1)
          assert.deepInclude(read, { _tag: "NotFound", path: "a/b.txt" })
        })
      )

      it.live("a snapshot is restored from its bytes", () =>
        Effect.gen(function* () {
          const restored = yield* Sessions.whatIsSnapshotIsRestored(yield* store)
          assert.deepStrictEqual(restored, { modified: "modified", restored: "original" })
        })
      )
    })
  }

  it.live("three kinds of section have the same seven tools; a sandbox adds two, and an option removes all", () =>
    Effect.gen(function* () {
      const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
      assert.deepStrictEqual(yield* Sessions.threeSections, [
        { key: "vfs", title: "Virtual Filesystem", tools: seven },
        { key: "podman", title: "Sandbox", tools: [...seven, "shell", "eval"] },
        { key: "workspace", title: "Workspace", tools: [] }
      ])
    })
  )

  it.live("a workspace without our tools puts its path into the prompt, and the mounts into its directory", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Sessions.aWorkspaceWithoutToolsOfOurs, "# Guide")
    })
  )

  it.live("each tool gets the filesystem of its section", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Sessions.eachToolGetsTheFilesystemOfItsSection, ["first", "second"])
    })
  )
})

describe("archives and sessions:", () => {
  it.live("a section makes its filesystem at first use and keeps it, together with its snapshots", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Archives.aSectionMakesItsFilesystemOnce, { before: 0, made: 1, isTheSame: true })
    })
  )

  it.live("files and session are captured under one id per turn, and rolled back to any turn", () =>
    Effect.gen(function* () {
      const { archives, shown } = yield* Archives.turnsAreTakenAndRolledBack
      assert.deepStrictEqual(shown, ["print(1) after 1", "print(3) after 3", "print(2) after 2"])
      assert.deepStrictEqual(archives, [
        ["turn-1", "turn-1.fs.zip"],
        ["turn-2", "turn-2.fs.zip"],
        ["turn-3", "turn-3.fs.zip"]
      ])
    })
  )

  it.live("a rollback to a checkpoint and a failed transaction restore files and session", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Archives.aCheckpointTakesBoth, {
        failure: "no",
        code: "v1",
        turns: [{ said: "v1 is written" }]
      })
    })
  )

  it.live("coordinated snapshots restore the session and the files of a section", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Archives.coordinatedSnapshots, { code: "v1", turns: [{ said: "something" }] })
    })
  )

  it.live("a dump is {id}.jsonl with a line per session, and {id}.fs.zip beside it", () =>
    Effect.gen(function* () {
      const { ids, names, path, sessions } = yield* Archives.aDumpIsTwoFilesSideBySide
      assert.isTrue(path)
      assert.deepStrictEqual(names, ["abc123.fs.zip", "abc123.jsonl"])
      assert.deepStrictEqual(
        sessions.map(({ parentId, schemaVersion, sessionId }) => [schemaVersion, sessionId, parentId]),
        [
          [1, ids[0], undefined],
          [1, ids[1], ids[0]]
        ]
      )
      assert.deepStrictEqual(
        sessions.map(({ slices }) => slices),
        [
          [{ name: "Turns", policy: "state", items: [{ said: "hello" }] }],
          [{ name: "Turns", policy: "state", items: [{ said: "hello from below" }] }]
        ]
      )
    })
  )

  it.live("a dump without a session_id gets a new UUID as its name, in the directory of the given file", () =>
    Effect.gen(function* () {
      const { name, names } = yield* Archives.aDumpWithoutANameGetsOne
      assert.match(name, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.deepStrictEqual(names, [`${name}.fs.zip`, `${name}.jsonl`, "notes.txt"].sort())
    })
  )

  it.live("a session without items is not dumped, and no directory is made", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Archives.nothingIsDumpedOfNothing, { path: undefined, names: [] })
    })
  )

  it.live("a dump is resumed on InMemory, VfsState and PosixHost", () =>
    Effect.gen(function* () {
      const { archive, below, resumed, turns } = yield* Archives.aDumpIsResumedAnywhere
      assert.strictEqual(archive, "abc123.fs.zip")
      assert.deepStrictEqual([turns, below], [[{ said: "hello" }], [{ said: "hello from below" }]])
      assert.deepStrictEqual(
        resumed.map(({ name }) => name),
        ["InMemory", "VfsState", "PosixHost", "PosixHost"]
      )
      for (const { count, main, there } of resumed) {
        assert.deepStrictEqual<ReadonlyArray<unknown>>([count, main, [...there]], [1, "print('hello')", ["empty", "src"]])
      }
    })
  )

  it.live("a damaged dump is refused with its line, and the files stay unchanged", () =>
    Effect.gen(function* () {
      const { error, there } = yield* Archives.aDamagedDumpChangesNothing
      assert.deepInclude(error, { _tag: "SessionError", reason: "corrupt" })
      assert.include(error.message, "line 2")
      assert.deepStrictEqual<ReadonlyArray<string>>(there, ["before.txt"])
    })
  )
})

describe("the virtual filesystem of a session", () => {
  it.live("adds instructions, its mounts and four tools to the prompt, which has the texts of its sections in order", () =>
    Effect.gen(function* () {
      const { known, text, tools } = yield* Tools.aPromptIsRenderedAndTheSessionKnowsTheFiles
      assert.deepStrictEqual(tools, ["list_directory", "read_file", "write_file", "delete_file"])
      assert.deepStrictEqual(known, { "docs/guide.md": 1 })
      assert.deepStrictEqual(text.match(/^#+ .*/gm), ["## Behaviour", "## Virtual Filesystem Tools"])
      tells(
        text,
        "Use the virtual filesystem to stage edits before applying them to the host workspace.",
        /contains only the mounted files.*`write_file`/,
        /You cannot mount other files from the machine/,
        /Look before you read: `list_directory`/,
        /`read_file` before you change it.*the version that you have read.*`if_version`/,
        /Write whole files with `write_file`, and keep them short\. Write binary.*Append only to logs/,
        /Remove files that you no longer need with `delete_file`/,
        /Do not copy whole repositories.*48,000 characters.*16 names.*80 characters/,
        "`docs/guide.md`"
      )
      assert.notInclude(text, "logo.png")
    })
  )

  it.live("has no files and no directory before the first call if it starts lazily", () =>
    Effect.gen(function* () {
      const { before, known, listed } = yield* Tools.nothingIsKnownBeforeTheFirstCall
      assert.isTrue(Option.isNone(before.known))
      assert.deepStrictEqual(before.made, [])
      assert.deepStrictEqual(listed, ["guide.md"])
      assert.deepStrictEqual(known, { "docs/guide.md": 1 })
    })
  )

  it.live("starts empty without mounts, and the prompt says so", () =>
    Effect.gen(function* () {
      const { known, listed, text } = yield* Tools.withoutMountsItStartsEmpty
      assert.deepStrictEqual<unknown>(listed, { path: ".", directories: [], files: [] })
      assert.deepStrictEqual(known, {})
      tells(text, /This filesystem is empty at the beginning: /)
    })
  )

  it.live("tells the session after each call which files exist and how often each was written", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.eachCallIsSeenInTheSession, [
        [true, { "log.txt": 1 }],
        [false, { "log.txt": 1 }],
        [true, { "log.txt": 2 }],
        [true, { "log.txt": 2, "src/b.txt": 1 }],
        [true, { "log.txt": 2, "src/a/c.txt": 1, "src/b.txt": 1 }],
        [true, { "log.txt": 3, "src/a/c.txt": 1, "src/b.txt": 1 }],
        [true, { "log.txt": 3, "src/a/c.txt": 1, "src/b.txt": 1 }],
        [true, { "log.txt": 3 }]
      ])
    })
  )

  it.live("keeps the creation time of a file, and each write updates the version and the size", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.timesAndSizesAreKept, {
        sizes: [4, 9, 1],
        versions: [1, 2, 3],
        encodings: ["utf-8", "utf-8", "utf-8"],
        isMadeOnce: true,
        isOrdered: true,
        isInWholeMillis: true
      })
    })
  )

  it.live("has a frozen value as its state in the session, and later calls do not change this value", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.whatIsKnownIsAValue, { before: ["a.txt"], held: ["a.txt"], isFrozen: true })
    })
  )

  it.live("has a directory that other programs can use", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual<unknown>(yield* Tools.theDirectoryCanBeUsedDirectly, {
        ours: "by the tools",
        theirs: "by a program",
        listed: { path: "out", directories: [], files: ["a.txt", "b.txt"] }
      })
    })
  )

  it.live("can be restored from one snapshot repeatedly, into new directories and without later writes", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.aSnapshotIsNeverWrittenThrough, {
        seen: ["saved", "saved"],
        directories: 3,
        left: 1
      })
    })
  )

  it.live("contains only the current mounts at the next call after a reset", () =>
    Effect.gen(function* () {
      const { content, isAnother, isOldGone, known, versions } = yield* Tools.aResetBeginsAnew
      assert.isTrue(Option.isNone(known))
      assert.strictEqual(content, "# Guide, second edition\n")
      assert.deepStrictEqual(versions, { "docs/guide.md": 1 })
      assert.deepStrictEqual([isAnother, isOldGone], [true, true])
    })
  )

  it.live("leaves no directory on disk when the scope ends", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.nothingIsLeftWhenTheSessionEnds, { during: true, after: [] })
    })
  )

  it.live("has the same files in a second section of the session", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Tools.aSecondSectionHasTheSameFiles, "for both")
    })
  )

  it.live("has tools that refuse calls in a run of another session, without effect", () =>
    Effect.gen(function* () {
      const { isThere, result } = yield* Tools.anotherSessionIsRefused
      fails(result, "a different session")
      assert.isFalse(isThere)
    })
  )

  it.live("normalises paths, or refuses a path with the reason", () =>
    Effect.gen(function* () {
      const { normalised, refused } = yield* Tools.pathsAreNormalisedOrRefused
      assert.deepStrictEqual(normalised, ["a/b.txt", "absolute.txt", "spaced.txt", `${"d/".repeat(15)}f`, "x".repeat(80)])
      const why = ['".." segment', '".." segment', '"." segment', "ASCII", "control character", "16", "80"]
      assert.strictEqual(refused.length, why.length)
      for (const [i, message] of refused.entries()) assert.include(message, why[i]!)
    })
  )

  it.live("merges its mounts in order, later mounts over earlier mounts, with the same result each time", () =>
    Effect.gen(function* () {
      const names = ["a.md", "b.md"]
      assert.deepStrictEqual(yield* Tools.mountsMerge, [
        { names, b: "b of the team" },
        { names, b: "b of the team" },
        { names, b: "b of the project" }
      ])
    })
  )

  it.live("refuses mounts outside the allowed roots, from missing paths or over their budget, and leaves nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Tools.mountsAreRefused, {
        outside: ["outside", 0],
        upwards: ["invalid", 0],
        unlisted: ["outside", 0],
        missing: ["missing", 0],
        overBudget: ["budget", 0]
      })
    })
  )

  it.live("logs calls with path, mode and size but without content, and keeps the log through a rollback", () =>
    Effect.gen(function* () {
      const [written, missed, ...more] = yield* Tools.callsAreTold
      assert.deepInclude(
        { ...written },
        { tool: "write_file", callId: "call-1", success: true, path: "notes.txt", mode: "create", sizeBytes: 8 }
      )
      assert.notInclude(JSON.stringify(written), "täglich")
      assert.deepInclude({ ...missed }, { tool: "read_file", callId: "call-2", success: false, path: "nowhere.txt" })
      assert.deepStrictEqual(more, [])
    })
  )
})
