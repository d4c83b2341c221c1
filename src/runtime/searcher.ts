/**
 * Searches many files, one after another, with synchronous calls and one reused buffer. On a thread or in a process of
 * its own, this is the fastest way.
 *
 * The bytes of a file are searched first, and only lines that may match are decoded. The result equals that of `scan` on
 * the whole text. A file is binary if its first 8 KiB contain a NUL, or if it has a match and is not UTF-8. All code is in
 * one function without outside references, so that its source can run in a worker.
 */
import type * as Fs from "node:fs"
import type { acrossLines } from "./acrossLines.ts"
import type { Kernel } from "./kernel.ts"
import type { LineFinder, makeLineFinder } from "./lineFinder.ts"
import type { PackedMatches } from "./packed.ts"
import type { Query } from "../model/search.ts"
import type { scan } from "./scan.ts"

export type Batch = Paths | Contents | WorkingDirectory

/**
 * Files of the working directory, by name. The caller may append names during the search. After all files in the list are
 * searched, the process may enter another directory and append its files. The caller has listed the names as files, so
 * the kind of a small file is not checked again.
 */
export interface WorkingDirectory {
  readonly files: ReadonlyArray<string>
  readonly refuseHardlinks: boolean
}

/**
 * Files to search: the first `counts[0]` names are in the directory `bases[0]`, the next `counts[1]` in `bases[1]`, and
 * so on.
 */
export interface Paths {
  readonly bases: ReadonlyArray<string>
  readonly counts: ReadonlyArray<number>
  readonly names: string
  readonly from: number
  /** True if a file with several hard links counts as "unreadable". */
  readonly refuseHardlinks?: boolean
}

export interface Contents {
  readonly contents: ReadonlyArray<Uint8Array>
  readonly from: number
}

export interface Search {
  /**
   * Searches the next file. Returns false after the last file, if the answer is large enough, or if no descriptor is
   * free.
   */
  readonly next: () => boolean
  /**
   * Searches the next contents. Searches several small contents together, which is faster. Returns false like `next`.
   */
  readonly nextTogether: () => boolean
  /** Returns the number of files searched so far. */
  readonly done: () => number
  /** Returns the number of matches found so far. */
  readonly matches: () => number
  /** Returns the number of searched files that have matches or were skipped. */
  readonly found: () => number
  /** Returns the number of files that no longer existed. */
  readonly gone: () => number
  /** Tests whether a searched file has no match and was not skipped. */
  readonly isWithoutMatch: (file: number) => boolean
  /**
   * Returns the results of the files searched so far. Must be called only once, because the caller may transfer the
   * buffers of the results to another thread.
   */
  readonly answer: () => PackedMatches
}

export interface Searcher {
  readonly begin: (query: Query, batch: Batch) => Search
}

export interface Tools {
  readonly fs: Pick<typeof Fs, "openSync" | "readSync" | "closeSync" | "fstatSync" | "constants">
  readonly isAscii: (bytes: Uint8Array) => boolean
  readonly isUtf8: (bytes: Uint8Array) => boolean
  readonly kernel: Kernel
  readonly scan: typeof scan
  readonly acrossLines: typeof acrossLines
  readonly makeLineFinder: typeof makeLineFinder
  readonly now: () => number
}

export const makeSearcher = ({ acrossLines, fs, isAscii, isUtf8, kernel, makeLineFinder, now, scan }: Tools): Searcher => {
  /** The methods of Buffer that @types/node does not declare. `toString` is slower. */
  interface Slices {
    readonly latin1Slice: (from: number, to: number) => string
    readonly utf8Slice: (from: number, to: number) => string
  }

  /** The codes of skipped files. `noDescriptor` means that the file was not opened, because no descriptor was free. */
  const [binary, tooLarge, unreadable, gone, noDescriptor] = [-1, -2, -3, -4, -5]

  const pieceBytes = 2 ** 20
  /** The number of bytes decoded at a time when every line is tested. Creating longer strings is many times slower. */
  const maxDecodedBytes = 2 ** 16
  /** The number of bytes for which each of two methods is timed before the faster method is chosen. */
  const trialBytes = 2 ** 17
  const binaryCheckBytes = 8192
  /**
   * The maximum numbers of contents and bytes that are searched together. Even with a match in each line, this search
   * takes only a few milliseconds.
   */
  const maxTogether = 1024
  const maxTogetherBytes = 2 ** 15
  /** The size in bytes at which an answer is sent; the other files are left to another job. */
  const maxAnswerBytes = 2 ** 22
  const maxStringLength = 2 ** 29 - 24
  /** A length, in UTF-16 units, up to which V8 finds a needle with `indexOf` in linear time. */
  const maxLinearLength = 200

  const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  const base = kernel.data
  let memory = kernel.memory()

  interface Prepared {
    readonly query: Query
    readonly isWhole: boolean
    readonly needles: ReadonlyArray<Uint8Array> | undefined
    readonly regex: RegExp | undefined
    readonly finder: LineFinder | undefined
    /** The methods for a query without needles: a search of the whole text, if possible, and a search line by line. */
    readonly methods: Array<SearchMethod>
    readonly maxBytes: number
  }
  /**
   * Tests the candidate lines in the first `end` numbers of `triples`. Returns false if no more candidates are wanted.
   */
  type TestCandidates = (triples: Int32Array, end: number, stop: number) => boolean
  interface SearchMethod {
    readonly multiLineRegex: RegExp | undefined
    bytes: number
    milliseconds: number
  }

  const needlesOf = ({ needles, pattern: { literal, multiline } }: Query): ReadonlyArray<Uint8Array> | undefined => {
    const texts = needles?.texts ?? (literal === undefined ? [] : [literal])
    // U+FFFD in a text stands for invalid bytes, a lone surrogate has no bytes, and a line feed is in no line.
    const isUsable = (text: string) =>
      text !== "" && text.isWellFormed() && !text.includes("\ufffd") && !(multiline && text.includes("\n"))
    if (texts.length === 0 || texts.length > 16 || !texts.every(isUsable)) return undefined
    return texts.map((text) => Buffer.from(text))
  }

  const makeMethod = (multiLineRegex: RegExp | undefined): SearchMethod => ({
    multiLineRegex,
    bytes: -trialBytes,
    milliseconds: 0
  })
  const makeMethods = (multiLineRegex: RegExp | undefined): Array<SearchMethod> =>
    multiLineRegex === undefined ? [makeMethod(undefined)] : [makeMethod(multiLineRegex), makeMethod(undefined)]
  /**
   * Chooses the faster method, which depends on the expression and the text.
   *
   * A search line by line can stop earlier in each line, but calls the expression a hundred times as often. So both
   * methods are timed. The first bytes of each method do not count, because they include the compilation.
   */
  const chooseFasterMethod = (methods: Array<SearchMethod>): SearchMethod => {
    if (methods.length === 1) return methods[0]!
    const [first, second] = methods as [SearchMethod, SearchMethod]
    if (Math.min(first.bytes, second.bytes) < trialBytes) return first.bytes <= second.bytes ? first : second
    const slower = first.milliseconds * second.bytes > second.milliseconds * first.bytes ? 0 : 1
    methods.splice(slower, 1)
    return methods[0]!
  }
  const runTimed = (method: SearchMethod, bytes: number, run: () => void): void => {
    const start = now()
    run()
    if (method.bytes >= 0) method.milliseconds += now() - start
    method.bytes += bytes
  }

  const prepare = (query: Query): Prepared => {
    const { pattern: question } = query
    const isWhole = question.multiline || question.literal === ""
    const needles = needlesOf(query)
    return {
      query,
      isWhole,
      needles,
      regex: isWhole || question.literal !== undefined ? undefined : new RegExp(question.source, question.flags),
      finder: isWhole || needles === undefined ? undefined : makeLineFinder(question),
      methods: makeMethods(
        isWhole || needles !== undefined || question.literal !== undefined ? undefined : acrossLines(question)
      ),
      maxBytes: Math.min(query.maxBytes, maxStringLength)
    }
  }

  let loadedQuery: Prepared | undefined
  const loadNeedles = (prepared: Prepared): void => {
    if (loadedQuery === prepared) return
    loadedQuery = prepared
    if (prepared.needles !== undefined) kernel.needles(prepared.needles, prepared.query.needles?.fold === true)
  }
  const preparedQueries = new WeakMap<Query, Prepared>()
  const preparedOf = (query: Query): Prepared => {
    const prepared = preparedQueries.get(query) ?? prepare(query)
    preparedQueries.set(query, prepared)
    return prepared
  }

  /** Returns a view of the bytes. `subarray` takes several times as long. */
  const bytesOf = (start: number, end: number): Uint8Array =>
    new Uint8Array(memory.buffer, memory.byteOffset + base + start, end - start)
  const latin1 = (start: number, end: number): string => (memory as unknown as Slices).latin1Slice(base + start, base + end)
  const utf8 = (start: number, end: number): string => (memory as unknown as Slices).utf8Slice(base + start, base + end)
  const growMemory = (bytes: number): void => {
    kernel.grow(bytes)
    memory = kernel.memory()
  }
  const byteOrderMarkLength = (size: number, start = 0): number => {
    const at = base + start
    return size >= 3 && memory[at] === 0xef && memory[at + 1] === 0xbb && memory[at + 2] === 0xbf ? 3 : 0
  }
  /** The starts of contents that are searched together, and the end of the last content. */
  const starts = new Int32Array(maxTogether + 1)

  const begin = (query: Query, batch: Batch): Search => {
    const prepared = preparedOf(query)
    const { finder, isWhole, maxBytes, needles, regex, methods } = prepared
    const { maxMatches: most, pattern: question, includesText: withText } = query
    const { literal } = question

    const names = "contents" in batch ? [] : "files" in batch ? batch.files : batch.names === "" ? [] : batch.names.split("/")
    let files = new Int32Array("contents" in batch ? batch.contents.length : Math.max(names.length, 64))
    const texts: Array<string> = []
    let textLength = 0
    let bytes = Buffer.allocUnsafeSlow(2 ** 10)
    let bytesLength = 0
    let meta = new Int32Array(2 ** 8)
    let metaLength = 0

    let count = 0
    let from = 1
    let matchStart = 0
    let matchEnd = 0

    const isEnough = (): boolean => count >= most

    const reserve = (size: number): void => {
      if (bytesLength + size <= bytes.length) return
      const larger = Buffer.allocUnsafeSlow(Math.max(bytes.length * 2, bytesLength + size))
      bytes.copy(larger, 0, 0, bytesLength)
      bytes = larger
    }
    const addMatch = (line: number): void => {
      if (metaLength === meta.length) {
        const larger = new Int32Array(meta.length * 2)
        larger.set(meta)
        meta = larger
      }
      meta[metaLength++] = line
      meta[metaLength++] = matchStart
      meta[metaLength++] = matchEnd
      meta[metaLength++] = bytesLength
      count++
    }
    const addBytes = (line: number, start: number, end: number): void => {
      reserve(end - start)
      // The loop uses constants, because reading the variables of the closure for each byte would take twice as long.
      const [source, target, shift] = [memory, bytes, bytesLength - base - start]
      if (end - start < 64) for (let i = base + start; i < base + end; i++) target[shift + i] = source[i]!
      else source.copy(target, bytesLength, base + start, base + end)
      bytesLength += end - start
      addMatch(line)
    }
    const addText = (line: number, text: string): void => {
      reserve(text.length * 3)
      bytesLength += bytes.write(text, bytesLength)
      addMatch(line)
    }

    const first = (line: string): boolean => {
      if (regex !== undefined) {
        const match = regex.exec(line)
        if (match === null) return false
        matchStart = match.index
        matchEnd = matchStart + match[0].length
        return true
      }
      if (literal!.length > maxLinearLength) {
        // `scan` skips a leading byte order mark. Prepend a mark, so that `scan` keeps a mark of the line itself.
        const match = scan(question, `\ufeff${line}`, 1, 1)[0]
        if (match === undefined) return false
        matchStart = match.matchStart
      } else matchStart = line.indexOf(literal!)
      matchEnd = matchStart + literal!.length
      return matchStart !== -1
    }

    const contentEnd = (start: number, end: number, stop: number): number =>
      end < stop && end > start && memory[base + end - 1] === 13 ? end - 1 : end

    /** The candidates before `decodedUpTo` are decoded together if they are ASCII and close to each other. */
    let decodedUpTo = 0
    let decoded: string | undefined
    let origin = 0
    let areAscii = false
    const decodeFrom = (triples: Int32Array, candidate: number, end: number): void => {
      origin = triples[candidate + 1]!
      decodedUpTo = candidate + 3
      while (decodedUpTo < end && triples[decodedUpTo + 2]! - origin <= maxDecodedBytes) decodedUpTo += 3
      const last = triples[decodedUpTo - 1]!
      const count = (decodedUpTo - candidate) / 3
      areAscii = isAscii(bytesOf(origin, last))
      const isDense = count > 2 && last - origin <= Math.min(maxDecodedBytes, count * 1024)
      decoded = areAscii && isDense && finder === undefined ? latin1(origin, last) : undefined
    }
    const testCandidate = (lineNumber: number, start: number, end: number): void => {
      if (finder !== undefined && areAscii) {
        if (!finder.find(memory, base + start, base + end)) return
        matchStart = finder.matchStart
        matchEnd = finder.matchEnd
        return addBytes(lineNumber, start, end)
      }
      const line =
        decoded !== undefined ? decoded.slice(start - origin, end - origin) : areAscii ? latin1(start, end) : utf8(start, end)
      if (first(line)) addBytes(lineNumber, start, end)
    }
    const testAll: TestCandidates = (triples, end, stop) => {
      for (let i = 0; i < end && !isEnough(); i += 3) {
        if (triples[i]! < from) continue
        if (i >= decodedUpTo) decodeFrom(triples, i, end)
        const start = triples[i + 1]!
        testCandidate(triples[i]!, start, contentEnd(start, triples[i + 2]!, stop))
      }
      return !isEnough()
    }
    const candidates = (start: number, stop: number, line: number, test: TestCandidates): void => {
      for (let at = start, number = line; at < stop;) {
        const found = kernel.lines(at, stop, number) * 3
        if (found === 0) return
        const triples = kernel.found()
        decodedUpTo = 0
        if (!test(triples, found, stop) || found < triples.length) return
        number = triples[found - 3]! + 1
        at = triples[found - 1]! + 1
      }
    }

    const testEachLine = (text: string, line: number): void => {
      for (let at = 0; at < text.length && !isEnough(); line++) {
        const lf = text.indexOf("\n", at)
        const end = lf === -1 ? text.length : lf > at && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf
        if (line >= from) {
          const content = text.slice(at, end)
          if (first(content)) addText(line, content)
        }
        at = lf === -1 ? text.length : lf + 1
      }
    }
    /**
     * Tests the lines in which the multi-line expression matches. `start` is the offset of the text in the memory, or
     * `undefined` if the text is not ASCII.
     */
    const testMatchingLines = (expression: RegExp, text: string, start: number | undefined, line: number): void => {
      const isExact = start !== undefined && !text.includes("\r")
      let counted = 0
      expression.lastIndex = 0
      for (let match = expression.exec(text); match !== null; match = expression.exec(text)) {
        const { index } = match
        const begin = index === 0 ? 0 : text.lastIndexOf("\n", index - 1) + 1
        if (begin === text.length) return
        const lf = text.indexOf("\n", index)
        const end = lf === -1 ? text.length : lf > begin && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf
        if (start !== undefined) line += kernel.count(start + counted, start + begin)
        else for (let at = text.indexOf("\n", counted); at !== -1 && at < begin; at = text.indexOf("\n", at + 1)) line++
        counted = begin
        if (line >= from) {
          matchStart = index - begin
          matchEnd = matchStart + match[0].length
          if (isExact || first(text.slice(begin, end))) {
            if (start === undefined) addText(line, text.slice(begin, end))
            else addBytes(line, start + begin, start + end)
          }
        }
        if (lf === -1 || isEnough()) return
        expression.lastIndex = lf + 1
      }
    }
    const testAllLines = (start: number, stop: number, line: number): void => {
      for (let at = start; at < stop && !isEnough();) {
        let end = stop
        if (stop - at > maxDecodedBytes) {
          const last = bytesOf(at, at + maxDecodedBytes).lastIndexOf(10)
          const next = last === -1 ? bytesOf(at + maxDecodedBytes, stop).indexOf(10) + maxDecodedBytes : last
          end = last === -1 && next < maxDecodedBytes ? stop : at + next + 1
        }
        const ascii = isAscii(bytesOf(at, end))
        const text = ascii ? latin1(at, end) : utf8(at, end)
        const method = chooseFasterMethod(methods)
        const go = (): void =>
          method.multiLineRegex === undefined
            ? testEachLine(text, line)
            : testMatchingLines(method.multiLineRegex, text, ascii ? at : undefined, line)
        if (methods.length === 1) go()
        else runTimed(method, end - at, go)
        if (end < stop) line += kernel.count(at, end)
        at = end
      }
    }
    const lines = (start: number, stop: number, line: number): void => {
      if (isEnough()) return
      if (needles !== undefined) candidates(start, stop, line, testAll)
      else testAllLines(start, stop, line)
    }

    const searchWhole = (size: number): void => {
      if (needles !== undefined && kernel.lines(0, size, 1) === 0) return
      const text = isAscii(bytesOf(0, size)) ? latin1(0, size) : utf8(0, size)
      for (const match of scan(question, text, from, most)) {
        matchStart = match.matchStart
        matchEnd = match.matchEnd
        addText(match.lineNumber, match.lineContent)
      }
    }

    const addWholeText = (start: number, end: number): void => {
      if (!withText) return
      texts.push(isAscii(bytesOf(start, end)) ? latin1(start, end) : utf8(start, end))
      textLength += end - start
    }

    const content = (size: number): number => {
      if (kernel.hasNul(0, Math.min(size, binaryCheckBytes))) return binary
      if (isWhole) searchWhole(size)
      else lines(byteOrderMarkLength(size), size, 1)
      if (count === 0) return 0
      if (!isUtf8(bytesOf(0, size))) return binary
      addWholeText(0, size)
      return count
    }

    /** Searches a file whose first piece is in the buffer. Ignores bytes that are appended during the search. */
    const searchLarge = (bytes: number, read: (at: number, length: number, from: number) => number): number => {
      if (bytes > maxBytes) return tooLarge
      const needsWholeText = isWhole || withText
      let size = bytes
      let bufferedBytes = pieceBytes
      let done = pieceBytes
      const readMore = (target: number): void => {
        target = Math.min(target, bufferedBytes + size - done)
        growMemory(target)
        while (bufferedBytes < target && done < size) {
          const length = read(base + bufferedBytes, Math.min(target - bufferedBytes, size - done), done)
          if (length === 0) size = done
          bufferedBytes += length
          done += length
        }
      }
      if (kernel.hasNul(0, binaryCheckBytes)) return binary
      if (needsWholeText) {
        readMore(size)
        return content(bufferedBytes)
      }
      let start = byteOrderMarkLength(bufferedBytes)
      let line = 1
      let isText = true
      for (;;) {
        const isLast = done >= size
        const pieceEnd = isLast ? bufferedBytes : start + bytesOf(start, bufferedBytes).lastIndexOf(10) + 1
        if (isLast || pieceEnd > start) {
          lines(start, pieceEnd, line)
          isText = isText && isUtf8(bytesOf(start, pieceEnd))
          if (count > 0 && !isText) return binary
          if (isLast) return count
          line += kernel.count(start, pieceEnd)
          memory.copyWithin(base, base + pieceEnd, base + bufferedBytes)
          bufferedBytes -= pieceEnd
          start = 0
          readMore(pieceBytes > bufferedBytes ? pieceBytes : bufferedBytes * 2)
        } else readMore(bufferedBytes * 2)
      }
    }

    const refuseHardlinks = "refuseHardlinks" in batch && batch.refuseHardlinks === true
    const isListed = "files" in batch
    const searchOpenFile = (file: number): number => {
      if (refuseHardlinks && fs.fstatSync(file).nlink > 1) return unreadable
      // Read at an explicit position, which fails for pipes and terminals.
      const size = fs.readSync(file, memory, base, pieceBytes, 0)
      if (size === pieceBytes) {
        const stats = fs.fstatSync(file)
        return stats.isFile()
          ? searchLarge(stats.size, (at, length, from) => fs.readSync(file, memory, at, length, from))
          : unreadable
      }
      const found = size > maxBytes ? tooLarge : content(size)
      // A device can return a short read too. Skip the check of the kind if bytes were read and none matched.
      return isListed || (found === 0 && size > 0) || fs.fstatSync(file).isFile() ? found : unreadable
    }

    const searchBytes = (bytes: Uint8Array): number => {
      const read = (at: number, length: number, from: number): number => {
        const part = bytes.subarray(from, from + length)
        memory.set(part, at)
        return part.length
      }
      const size = read(base, pieceBytes, 0)
      if (bytes.length > maxBytes) return tooLarge
      return size === pieceBytes ? searchLarge(bytes.length, read) : content(size)
    }

    /**
     * Copies contents one after another, each with a line feed, so that no line belongs to two contents. Returns the
     * number of contents.
     */
    const gather = (contents: ReadonlyArray<Uint8Array>, before: number): number => {
      let size = 0
      let gathered = 0
      for (; gathered < maxTogether && before + gathered < contents.length; gathered++) {
        const bytes = contents[before + gathered]!
        if (bytes.length > maxBytes || size + bytes.length >= maxTogetherBytes) break
        starts[gathered] = size
        memory.set(bytes, base + size)
        size += bytes.length
        memory[base + size++] = 10
      }
      starts[gathered] = size
      return gathered
    }
    const markBinary = (before: number, gathered: number): void => {
      if (!kernel.hasNul(0, starts[gathered]!)) return
      for (let i = 0; i < gathered; i++) {
        const end = starts[i + 1]! - 1
        if (kernel.hasNul(starts[i]!, Math.min(starts[i]! + binaryCheckBytes, end))) files[before + i] = binary
      }
    }
    /**
     * Searches the contents that are in memory together: first in one pass over all bytes, and then in the lines with a
     * needle.
     */
    const searchGathered = (before: number, gathered: number): void => {
      const size = starts[gathered]!
      markBinary(before, gathered)
      let current = -1
      let isWanted = false
      let isAllText: boolean | undefined
      let linesBefore = 0
      let countedTo = 0
      let bytesBefore = 0
      let metaBefore = 0

      const enter = (candidate: number): void => {
        do current++
        while (starts[current + 1]! <= candidate)
        isWanted = files[before + current] !== binary
        if (!isWanted) return
        linesBefore += kernel.count(countedTo, starts[current]!)
        countedTo = starts[current]!
        bytesBefore = bytesLength
        metaBefore = metaLength
        count = 0
      }
      const leave = (): void => {
        if (!isWanted || count === 0) return
        const [start, end] = [starts[current]!, starts[current + 1]! - 1]
        isAllText ??= isUtf8(bytesOf(0, size))
        if (isAllText || isUtf8(bytesOf(start, end))) {
          files[before + current] = count
          addWholeText(start, end)
        } else {
          files[before + current] = binary
          bytesLength = bytesBefore
          metaLength = metaBefore
        }
      }
      const testGathered: TestCandidates = (triples, end) => {
        for (let i = 0; i < end; i += 3) {
          const start = triples[i + 1]!
          if (start >= starts[current + 1]!) {
            leave()
            enter(start)
          }
          if (!isWanted || isEnough()) continue
          if (i >= decodedUpTo) decodeFrom(triples, i, end)
          const content = start === starts[current] ? start + byteOrderMarkLength(triples[i + 2]! - start, start) : start
          testCandidate(triples[i]! - linesBefore, content, contentEnd(content, triples[i + 2]!, starts[current + 1]! - 1))
        }
        return true
      }
      candidates(0, size, 1, testGathered)
      leave()
    }

    const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown }).code
    const search = (path: string): number => {
      let file: number
      try {
        file = fs.openSync(path, flags)
      } catch (error) {
        const code = codeOf(error)
        if (code === "EMFILE" || code === "ENFILE") return noDescriptor
        return code === "ENOENT" || code === "ENOTDIR" ? gone : unreadable
      }
      try {
        return searchOpenFile(file)
      } catch (error) {
        // A system error makes the file unreadable; any other error is a defect.
        if (typeof (error as { readonly syscall?: unknown }).syscall === "string") return unreadable
        throw error
      } finally {
        fs.closeSync(file)
      }
    }

    let done = 0
    let foundCount = 0
    let goneCount = 0
    let isOutOfDescriptors = false
    let directory = -1
    let left = 0
    const at = ({ bases, counts }: Paths): string => {
      while (left === 0) left = counts[++directory]!
      left--
      return bases[directory]!
    }
    const fileCount = (): number => ("contents" in batch ? batch.contents.length : names.length)
    const isOver = (): boolean =>
      done === fileCount() || isOutOfDescriptors || bytesLength + metaLength * 4 + textLength > maxAnswerBytes
    const next = (): boolean => {
      if (isOver()) return false
      if (done === files.length) {
        const larger = new Int32Array(files.length * 2)
        larger.set(files)
        files = larger
      }
      loadNeedles(prepared)
      const usedBefore = bytesLength
      const filledBefore = metaLength
      count = 0
      from = done === 0 && "from" in batch ? batch.from : 1
      let found = unreadable
      try {
        found =
          "contents" in batch
            ? searchBytes(batch.contents[done]!)
            : search("files" in batch ? names[done]! : `${at(batch)}/${names[done]!}`)
      } finally {
        // After an error too, the matches of this file must not count as matches of the next file.
        if (found < 0) {
          bytesLength = usedBefore
          metaLength = filledBefore
        }
      }
      isOutOfDescriptors = found === noDescriptor
      if (isOutOfDescriptors) return false
      files[done++] = found
      if (found !== 0) foundCount++
      if (found === gone) goneCount++
      return true
    }
    const nextTogether = (): boolean => {
      const isTogether = "contents" in batch && needles !== undefined && !isWhole && (done > 0 || batch.from === 1)
      if (!isTogether || isOver()) return next()
      const gathered = gather(batch.contents, done)
      if (gathered < 2) return next()
      loadNeedles(prepared)
      from = 1
      searchGathered(done, gathered)
      done += gathered
      return true
    }
    return {
      next,
      nextTogether,
      done: () => done,
      matches: () => metaLength >> 2,
      found: () => foundCount,
      gone: () => goneCount,
      isWithoutMatch: (file) => files[file] === 0,
      answer: () => ({
        files: files.subarray(0, done),
        meta: meta.subarray(0, metaLength),
        bytes: new Uint8Array(bytes.buffer, 0, bytesLength),
        isAscii: isAscii(bytes.subarray(0, bytesLength)),
        texts: withText ? texts : undefined
      })
    }
  }

  return { begin }
}
