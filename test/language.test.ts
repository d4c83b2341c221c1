/**
 * Comments in src are plain English. No doc comment begins with a pronoun or a clause, and the doc comment of a
 * function begins with a verb in the third person. No sentence is too long. The rules and the words are in
 * src/guides/glossary.md.
 */
import { assert, describe, it } from "@effect/vitest"
import type { ts as compiler } from "@ts-morph/common"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./documentation/markdown.ts"
import { type SourceFile, ts } from "./documentation/typescript.ts"

/** The largest number of words in a sentence. */
const maxWords = 30

/** The first words of a comment that refer to a noun elsewhere. */
const banned =
  /^(?:What|Whatever|Who|Whoever|Whose|Where|Wherever|How|Why|Which|Whichever|That|Those|These|This|They|Them|It|Its|All that|All of|As|So|Such|None|Nothing|One that|One of|Both|Neither|Same|The same|Ones)\b/

const verb = /^(?:Re-)?[A-Z][a-z-]+s\b/

interface Comment {
  /** The text without comment signs and tags. */
  readonly prose: string
  /** The line in the file, from 1. */
  readonly line: number
  readonly isDoc: boolean
  /** True if the comment is the doc comment of a function. */
  readonly isOfFunction: boolean
}

const unwrapped = (node: compiler.Expression): compiler.Expression =>
  ts.isAsExpression(node) || ts.isParenthesizedExpression(node) || ts.isSatisfiesExpression(node)
    ? unwrapped(node.expression)
    : node

const isFunctionValue = (node: compiler.Expression, source: SourceFile): boolean => {
  const value = unwrapped(node)
  if (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) return true
  if (!ts.isCallExpression(value)) return false
  const { expression: called } = value
  return /^(?:dual|Effect\.fn\w*)$/.test((ts.isCallExpression(called) ? called.expression : called).getText(source))
}

const isFunction = (node: compiler.Node, source: SourceFile): boolean =>
  ts.isFunctionDeclaration(node) ||
  ts.isMethodDeclaration(node) ||
  (ts.isVariableStatement(node) &&
    node.declarationList.declarations.some(
      ({ initializer }) => initializer !== undefined && isFunctionValue(initializer, source)
    ))

const textOf = (raw: string): string =>
  raw.startsWith("//")
    ? raw.replace(/^[ \t]*\/\/\/?\s?/gm, "")
    : raw
        .replace(/^\/\*+|\*+\/$/g, "")
        .replace(/^\s*\* ?/gm, "")
        .trim()

const proseOf = (text: string): string => text.split(/(?:^|\n|\s)@[a-z]\w*\b/i)[0]!.replace(/```[^]*?```/g, " ")

/** Returns the comments of a file in order. Neighbouring line comments count as one. */
const commentsOf = (file: string, text: string): ReadonlyArray<Comment> => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2024, false)
  /** The positions of the doc comments of functions. */
  const ofFunctions = new Set<number>()
  // Literals may contain comment signs, so blank them out.
  let code = ""
  const visit = (node: compiler.Node): void => {
    if (isFunction(node, source)) {
      const last = ts.getLeadingCommentRanges(text, node.pos)?.at(-1)
      if (last !== undefined) ofFunctions.add(last.pos)
    }
    const isLiteral =
      ts.isStringLiteral(node) || ts.isRegularExpressionLiteral(node) || ts.isTemplateLiteralToken(node) || ts.isJsxText(node)
    if (isLiteral) {
      const start = node.getStart(source)
      code += text.slice(code.length, start) + "x".repeat(node.end - start)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  code += text.slice(code.length)
  return [...code.matchAll(/\/\*[^]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*/g)]
    .map(({ 0: { length }, index }): Comment => {
      const raw = text.slice(index, index + length)
      return {
        prose: proseOf(textOf(raw)),
        line: source.getLineAndCharacterOfPosition(index).line + 1,
        isDoc: raw.startsWith("/**"),
        isOfFunction: raw.startsWith("/**") && ofFunctions.has(index)
      }
    })
    .filter(({ prose }) => prose !== "" && !/^(?:oxlint|oxfmt|eslint|v8)\b|^@|^#|^!/.test(prose))
}

const sentencesOf = (prose: string): ReadonlyArray<string> =>
  prose.replace(/`[^`]*`/g, "X").split(/(?<=[.!?:;])\s+|\n\s*[-*|]\s|\n\s*\n/)

const wordsOf = (sentence: string): number => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length

const marksOf = (file: string, text: string): ReadonlyArray<string> =>
  commentsOf(file, text).flatMap(({ isDoc, isOfFunction, line, prose }) => {
    const at = `${file}:${line}`
    const start = JSON.stringify(prose.slice(0, 60))
    return [
      ...(isDoc && banned.test(prose) ? [`${at}: begin with a noun or a verb: ${start}`] : []),
      ...(isOfFunction && !verb.test(prose) ? [`${at}: begin with a verb, such as "Returns": ${start}`] : []),
      ...sentencesOf(prose)
        .filter((sentence) => wordsOf(sentence) > maxWords)
        .map((sentence) => `${at}: ${wordsOf(sentence)} words in a sentence: ${JSON.stringify(sentence.trim().slice(0, 60))}`)
    ]
  })

describe("the comments of src", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => `src/${file}`)
    .sort()

  it("begin as the glossary says, and have no long sentences", () => {
    const marks = files.flatMap((file) => marksOf(file, readFileSync(join(root, file), "utf8")))
    assert.deepStrictEqual(marks, [])
  })

  it("are found by the check, each with its line", () => {
    const long = `// ${"word ".repeat(maxWords + 1)}`
    const text = [
      "/** What is returned. */",
      "const name = 1",
      "",
      "/** The sum. */",
      "export const add = (a: number, b: number) => a + b",
      "",
      "class Sum {",
      "  /** Adds a number. */",
      "  add() {",
      `    ${long}`,
      "    return `/** What a text holds. */`",
      "  }",
      "}"
    ].join("\n")
    assert.deepStrictEqual(
      marksOf("a.ts", text).map((mark) => mark.split(" ").slice(0, 3).join(" ")),
      ["a.ts:1: begin with", "a.ts:4: begin with", "a.ts:10: 31 words"]
    )
  })
})
