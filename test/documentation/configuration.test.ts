/**
 * Checks that the guides to configuration and the command line name every option, flag, limit and variable of the
 * sources, with its default, and no others.
 */
import { assert, describe, it } from "@effect/vitest"
import type { ts as Compiler } from "@ts-morph/common"
import * as Schema from "effect/Schema"
import * as Completions from "effect/cli/Completions"
import * as OpenApi from "effect/http-api/OpenApi"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { foreignFlags, sharedForeignFlags } from "../../src/cli/argv.ts"
import { command } from "../../src/cli/main.ts"
import { Api, Dump } from "../../src/debug/index.ts"
import { Leaf, Limits, ToolSettings } from "../../src/index.ts"
import { codeIn, root, rowsOf, sectionsOf, textOf } from "./markdown.ts"
import { ts } from "./typescript.ts"

const guide = "src/guides/configuration.md"
const sections = sectionsOf(guide)

const exported = Object.entries(
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { exports: Record<string, string> }).exports
)
  .filter(([, file]) => file.endsWith(".js") && file !== "./dist/index.js")
  .map(([name, file]) => ({
    name: name.slice(2),
    file: join(root, file.replace("./dist/", "src/").replace(/\.js$/, ".ts"))
  }))

const program = ts.createProgram(
  exported.map(({ file }) => file),
  {
    strict: true,
    target: ts.ScriptTarget.ES2024,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
    types: []
  }
)
const checker = program.getTypeChecker()

interface Member {
  readonly name: string
  readonly isOptional: boolean
  readonly default: string | undefined
}

interface Declared {
  /** The exported names, as `Module.Name`. */
  readonly names: Set<string>
  readonly own: ReadonlyArray<Member>
  readonly all: ReadonlySet<string>
}

const memberOf = (symbol: Compiler.Symbol): Member => ({
  name: symbol.name,
  isOptional: (symbol.flags & ts.SymbolFlags.Optional) !== 0,
  default: symbol
    .getJsDocTags(checker)
    .filter(({ name }) => name === "default")
    .map(({ text }) => ts.displayPartsToString(text).replaceAll(/\s+/g, " ").trim())[0]
})

/** Tests whether the members of a module are modules. */
const isFlat = (module: string): boolean => module === "testing" || module === "debug"

const interfaces = new Map<Compiler.Symbol, Declared>()
const functions = new Set<string>()

const visit = (module: string, symbol: Compiler.Symbol, prefix = ""): void => {
  for (const one of checker.getExportsOfModule(symbol)) {
    const target = (one.flags & ts.SymbolFlags.Alias) === 0 ? one : checker.getAliasedSymbol(one)
    const name = `${prefix}${one.name}`
    if (
      (target.flags & ts.SymbolFlags.Module) !== 0 &&
      (target.flags & ts.SymbolFlags.Value) !== 0 &&
      prefix === "" &&
      isFlat(module)
    ) {
      visit(module, target, `${one.name}.`)
      continue
    }
    const title = isFlat(module) ? name : `${module}.${name}`
    if (target.valueDeclaration !== undefined) functions.add(title)
    const declaration = target.declarations?.find((each) => ts.isInterfaceDeclaration(each))
    if (declaration === undefined) continue
    const known = interfaces.get(target)
    if (known !== undefined) {
      known.names.add(title)
      continue
    }
    const own = declaration.members.flatMap(({ name }) => {
      const member = name && checker.getSymbolAtLocation(name)
      return member === undefined ? [] : [memberOf(member)]
    })
    const all = new Set(
      checker
        .getDeclaredTypeOfSymbol(target)
        .getProperties()
        .map((property) => property.name)
    )
    interfaces.set(target, { names: new Set([title]), own, all })
  }
}

for (const { file, name } of exported) visit(name, checker.getSymbolAtLocation(program.getSourceFile(file)!)!)

/** Tests whether an interface has options, by its name or by a member with a default. */
const isOptions = ({ names, own }: Declared): boolean =>
  own.some((member) => member.isOptional && member.default !== undefined) ||
  [...names].some((name) => /(?:Options|Settings|SettingsShape|LimitsShape)$/.test(name))

/** Interfaces that users implement, which are not configuration. The API pages document them. */
const leftOut: ReadonlySet<string> = new Set([
  // Parts of a backend: src/guides/backend.md.
  "Backend.Links",
  "Backend.Locks",
  "Backend.Rules",
  // The implementation of a custom policy.
  "Policy.Policy",
  // A service, not options.
  "Snapshots.Operations"
])

const plain = (text: string): string => text.replaceAll("\\|", "|").replaceAll("`", "").replaceAll(/\s+/g, " ").trim()

const sectionOf = ({ names }: Declared) => sections.find(({ title }) => names.has(title))

describe("the guide to configuration", () => {
  const all = [...interfaces.values()].filter(isOptions)

  it("is compared with all options that the sources declare", () => {
    assert.isAbove(all.length, 60)
    const names = new Set(all.flatMap((one) => [...one.names]))
    for (const name of ["Filesystem.WriteOptions", "PosixHost.PosixHostOptions", "Suite.SuiteOptions"]) {
      assert.isTrue(names.has(name), name)
    }
  })

  for (const declared of all) {
    const [title] = declared.names
    if (leftOut.has(title!)) continue
    it(`has each option of ${title} with its default`, () => {
      const section = sectionOf(declared)
      if (declared.own.length === 0 && section === undefined) return
      assert.isDefined(section, `there is no section ${[...declared.names].join(" or ")}`)
      const rows = new Map(rowsOf(section!.text).map(([name, type, value]) => [plain(name!), { type, value: value! }] as const))
      for (const { default: value, isOptional, name } of declared.own) {
        // The limits are a table of presets.
        if (title === "Limits.LimitsShape") assert.isTrue(rows.has(name), name)
        else {
          const row = rows.get(name)
          assert.isDefined(row, `${title}.${name}`)
          if (value !== undefined) assert.strictEqual(plain(row!.value), plain(value), `${title}.${name}`)
          if (!isOptional && value === undefined) assert.strictEqual(row!.value, "required", `${title}.${name}`)
          if (isOptional) assert.notStrictEqual(row!.value, "required", `${title}.${name}`)
        }
      }
    })
  }

  it("has no option that does not exist", () => {
    const byName = new Map([...interfaces.values()].flatMap((one) => [...one.names].map((name) => [name, one] as const)))
    for (const { text, title } of sections.filter(({ title }) => /^\w+\.\w+$/.test(title))) {
      const declared = byName.get(title)
      if (declared === undefined) assert.isTrue(functions.has(title), title)
      else for (const [name] of rowsOf(text)) assert.isTrue(declared.all.has(plain(name!)), `${title}.${name}`)
    }
  })

  it("has each limit with its value in each preset", () => {
    const rows = rowsOf(sections.find(({ title }) => title === "Limits.LimitsShape")!.text)
    const shown = (value: number | undefined) => value?.toLocaleString("en") ?? "none"
    assert.sameDeepMembers(
      rows.map(([name, standard, agent]) => [plain(name!), standard!, agent!]),
      Object.keys(Limits.standard).map((name) => [
        name,
        shown(Limits.standard[name as keyof Limits.LimitsShape]),
        shown(Limits.agent[name as keyof Limits.LimitsShape])
      ])
    )
  })

  it("has the defaults of the tool settings", () => {
    const { text } = sections.find(({ title }) => title === "ToolSettings.ToolSettingsShape")!
    assert.include(text, ToolSettings.defaults.budget.toLocaleString("en"))
  })

  it("has each setting of a journal leaf with its default", () => {
    const section = sections.find(({ title }) => title.startsWith("Leaf: settings"))!
    const rows = new Map(
      rowsOf(section.text).flatMap(([names, values]) => {
        const told = codeIn(values!)
        return codeIn(names!).map((name, i) => [name, told[i] ?? told[0] ?? values!] as const)
      })
    )
    const fields = {
      ...Leaf.PosixFS.fields,
      useLongPaths: Leaf.WindowsFS.fields.useLongPaths,
      ...Leaf.MockFS.fields,
      ...Leaf.S3FS.fields,
      ...Leaf.SftpFS.fields
    }
    const required = { rootPath: "/", bucket: "bucket", host: "host", username: "me" }
    const decoded: Readonly<Record<string, unknown>> = Schema.decodeUnknownSync(Schema.Struct(fields))(required)
    for (const name of Object.keys(fields)) {
      const value = decoded[name]
      const told =
        name in required
          ? "required"
          : value === undefined
            ? "none"
            : typeof value === "string" || Array.isArray(value)
              ? JSON.stringify(value)
              : String(value)
      assert.strictEqual(rows.get(name), told, name)
    }
    assert.strictEqual(rows.size, Object.keys(fields).length)
  })

  it("has each environment variable that the command line reads", () => {
    const sources = ["cli/bin.ts", "cli/start.ts", "runtime/privateDirectory.ts"]
      .map((file) => readFileSync(join(root, "src", file), "utf8"))
      .join("\n")
    const read = new Set([...sources.matchAll(/\b(?:env|environment)(?:\["(\w+)"\]|\.([A-Z]\w+))/g)].map(([, a, b]) => a ?? b!))
    const configured = ["openRoot.ts", "stores.ts", "variables.ts"]
      .map((file) => readFileSync(join(root, "src/cli", file), "utf8"))
      .join("\n")
    for (const [, name] of configured.matchAll(/Config\.\w+\("([A-Z_\d]+)"\)/g)) read.add(name!)
    assert.isAbove(read.size, 10)
    const told = rowsOf(sections.find(({ title }) => title === "Environment variables")!.text).flatMap(([name]) =>
      codeIn(name!)
    )
    assert.sameMembers(told, [...read])
  })
})

describe("the guide to the command line", () => {
  const document = "src/guides/command-line.md"
  const named = new Map(sectionsOf(document).map(({ text, title }) => [title, text] as const))
  const flagsIn = (text: string) =>
    new Set(
      rowsOf(text)
        .flatMap(([first]) => codeIn(first!))
        .flatMap((code) => code.match(/(?<![\w-])--?[a-z][\w-]*/g) ?? [])
    )

  interface Leaf {
    readonly name: string
    readonly flags: ReadonlyArray<string>
  }
  const shared = new Set(Completions.fromCommand(command).flags.map(({ name }) => `--${name}`))
  const leaves = (at: Completions.CommandDescriptor, above: string): ReadonlyArray<Leaf> => {
    const name = `${above}${at.name}`
    const flags = at.flags.map((flag) => `--${flag.name}`).filter((flag) => !shared.has(flag))
    return [{ name, flags }, ...at.subcommands.flatMap((below) => leaves(below, `${name} `))]
  }
  const all = Completions.fromCommand(command).subcommands.flatMap((each) => leaves(each, ""))

  it("has the flags that all commands share", () => {
    assert.isAbove(shared.size, 5)
    const told = flagsIn(named.get("Flags of every command")!)
    for (const flag of shared) assert.isTrue(told.has(flag), flag)
  })

  for (const { flags, name } of all) {
    it(`has exactly the flags of ${name}`, () => {
      const text = named.get(name)
      assert.isDefined(text, name)
      const told = [...flagsIn(text!)].filter((flag) => flag.startsWith("--") && !shared.has(flag))
      assert.sameMembers(told, [...flags])
    })
  }

  it("has exactly the supported flags of other tools", () => {
    const written = (name: string) => (name.length === 1 ? `-${name}` : `--${name}`)
    const told = new Map(rowsOf(named.get("Habits")!).map(([name, ...cells]) => [plain(name!), cells.join(" ")] as const))
    const known = new Map([["all", sharedForeignFlags], ...Object.entries(foreignFlags)] as const)
    assert.sameMembers([...told.keys()], [...known.keys()])
    for (const [name, flags] of known) {
      for (const [other, meaning] of Object.entries(flags)) {
        const text = ["v", "h"].includes(other) && meaning !== "" ? textOf(document) : told.get(name)!
        assert.match(text, new RegExp(`(?<![\\w-])${written(other)}\``), `${name} ${other}`)
        if (meaning !== "" && text === told.get(name)) assert.include(text, written(meaning))
      }
    }
  })

  it("has no command that does not exist", () => {
    const known = new Set(all.map(({ name }) => name))
    for (const { depth, title } of sectionsOf(document)) if (depth >= 3) assert.isTrue(known.has(title), title)
  })

  it("shows examples of each command", () => {
    const text = textOf(document)
    for (const { name } of all) assert.match(text, new RegExp(`^fs-algebra ${name}\\b`, "m"))
  })
})

describe("the guide to the debug view", () => {
  const document = "src/guides/debug.md"
  const firstsOf = (title: string, nth = 0) =>
    rowsOf(
      sectionsOf(document)
        .find((section) => section.title === title)!
        .text.split(/\n\n(?=\|)/)[nth + 1]!
    ).flatMap(([first]) => codeIn(first!))

  it("has each route of the API", () => {
    const { paths } = OpenApi.fromApi(Api.Api) as { readonly paths: Record<string, object> }
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
    )
    assert.sameMembers(firstsOf("The API"), routes)
  })

  it("has each key of the page", () => {
    const page = join(root, "src/debug/page")
    const sources = readdirSync(page, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".tsx") && !file.startsWith("code"))
      .map((file) => readFileSync(join(page, file), "utf8"))
      .filter((text) => text.includes("useKeys"))
    const bound = new Set(sources.flatMap((text) => [...text.matchAll(/\bkey: "([^"]+)"/g)].map(([, key]) => key!)))
    assert.isAbove(bound.size, 10)
    const told = firstsOf("The page", 1).map((key) => (key === "Esc" ? "Escape" : key))
    assert.sameMembers(
      told.filter((key) => !/^\d$/.test(key)),
      [...bound]
    )
    const [, views] = /export const views = \[(.*?)\]/.exec(readFileSync(join(page, "store.ts"), "utf8"))!
    assert.strictEqual(told.filter((key) => /^\d$/.test(key)).length, views!.split(",").length)
  })

  it("has each function that reads dumps", () => {
    const readers = Object.entries(Dump).filter(([name, value]) => typeof value === "function" && /^[a-z]/.test(name))
    assert.sameMembers(
      firstsOf("As a library"),
      readers.map(([name]) => `Dump.${name}`)
    )
  })
})
