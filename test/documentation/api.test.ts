/**
 * Checks the documentation of the API: every exported name of a public module has a comment with a sentence, and a @since
 * tag. Each public module, except a barrel, has an export with a @category.
 */
import { assert, describe, it } from "@effect/vitest"
import { aboutModule, type Node, parse, publicModules, target, ts } from "./typescript.ts"

interface Comment {
  readonly summary: string
  readonly tags: ReadonlyArray<string>
}

const commentOf = (node: Node): Comment => {
  const docs = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  return {
    summary: docs
      .map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? "")
      .join("\n")
      .trim(),
    tags: docs.flatMap((doc) => (doc.tags ?? []).map((tag) => tag.tagName.text))
  }
}

const isExported = (node: Node): boolean =>
  ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)

type Found = ReadonlyMap<string, ReadonlyArray<Comment>>

/** Returns the comments of each exported name, including those of re-exported names. */
const exportsOf = (file: string): Found => {
  const found = new Map<string, Array<Comment>>()
  const add = (name: string, ...comments: ReadonlyArray<Comment>) => found.set(name, [...(found.get(name) ?? []), ...comments])
  const locals = new Map<string, Array<Comment>>()
  for (const statement of parse(file).statements) {
    const comment = commentOf(statement)
    const declare = (name: string) => {
      if (isExported(statement)) add(name, comment)
      locals.set(name, [...(locals.get(name) ?? []), comment])
    }
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) {
        const names = ts.isIdentifier(name)
          ? [name.text]
          : [...name.getText().matchAll(/\w+(?=\s*[,}])/g)].map(([text]) => text)
        for (const text of names) declare(text)
      }
    } else if (
      ts.isFunctionDeclaration(statement) ||
      ts.isClassDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      ts.isModuleDeclaration(statement)
    ) {
      declare(statement.name!.text)
    }
  }
  for (const statement of parse(file).statements) {
    if (!ts.isExportDeclaration(statement)) continue
    const from = statement.moduleSpecifier as { readonly text: string } | undefined
    const there = from?.text.startsWith(".") ? target(file, from.text) : undefined
    const clause = statement.exportClause
    if (clause === undefined) for (const [name, comments] of exportsOf(there!)) add(name, ...comments)
    else if (ts.isNamespaceExport(clause)) {
      add(clause.name.text, { summary: moduleComment(there!).summary, tags: [...commentOf(statement).tags, "since"] })
    } else {
      for (const element of clause.elements) {
        const own = (element.propertyName ?? element.name).text
        const passed = there === undefined ? (locals.get(own) ?? []) : (exportsOf(there).get(own) ?? [])
        add(element.name.text, commentOf(element), ...passed)
      }
    }
  }
  return found
}

/** Returns the first comment of the file, which describes the module. */
const moduleComment = (file: string): Comment => {
  const text = /^\/\*\*([^]*?)\*\//.exec(parse(file).text)?.[1] ?? ""
  return { summary: aboutModule(file), tags: [...text.matchAll(/@(\w+)/g)].map(([, tag]) => tag!) }
}

const hasSentence = ({ summary }: Comment): boolean => /[A-Za-z`].*[.:;)…`]/s.test(summary) && summary.length > 12

describe("the public API", () => {
  it("has more than 45 modules, and the expected names in two of them", () => {
    assert.isAbove(publicModules.length, 45)
    assert.includeMembers([...exportsOf("src/filesystem/Filesystem.ts").keys()], ["make", "Edit", "Filesystem", "decorate"])
    assert.includeMembers([...exportsOf("src/testing/index.ts").keys()], ["suite", "Law", "agreement"])
  })

  it("is checked by a function that finds missing comments in an internal module", () => {
    const bare = exportsOf("src/engine/walk.ts")
    assert.isTrue(bare.size === 0 || ![...bare.values()].flat().every(hasSentence))
  })

  for (const file of publicModules) {
    const modules = [file, ...(file.endsWith("/index.ts") ? namespaces(file) : [])]
    for (const module of modules) {
      it(`of ${module} has a doc comment for the module and for each name`, () => {
        const own = moduleComment(module)
        assert.isTrue(
          hasSentence(own) && own.tags.includes("since"),
          `the module needs a comment with a sentence and @since: ${own.summary}`
        )
        const names = [...exportsOf(module)].filter(([, comments]) => !comments.some(({ tags }) => tags.includes("internal")))
        const bare = names.filter(([, comments]) => !comments.some(hasSentence)).map(([name]) => name)
        assert.deepStrictEqual(bare, [], "without a summary")
        const ageless = names.filter(([, comments]) => !comments.some(({ tags }) => tags.includes("since")))
        assert.deepStrictEqual(
          ageless.map(([name]) => name),
          [],
          "without @since"
        )
      })
    }
    if (!file.endsWith("/index.ts")) {
      it(`of ${file} has a category for at least one export`, () => {
        const tagged = [...exportsOf(file).values()].filter((all) => all.some(({ tags }) => tags.includes("category")))
        assert.isAbove(tagged.length, 0, "no export has @category")
      })
    }
  }
})

/** Returns the modules that a barrel exports as namespaces. */
function namespaces(file: string): ReadonlyArray<string> {
  return parse(file).statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) && statement.exportClause !== undefined && ts.isNamespaceExport(statement.exportClause)
      ? [target(file, (statement.moduleSpecifier as unknown as { readonly text: string }).text)]
      : []
  )
}
