/**
 * The list of all laws of a filesystem. The laws were derived from the specification, not from an implementation.
 *
 * @since 0.1.0
 */
import type { Law } from "./Law.ts"
import { absoluteLinkLaws, linkLaws } from "./laws/links.ts"
import { accelerationLaws } from "./laws/accelerations.ts"
import { atomicityLaws, concurrencyLaws, wholeChangeLaws } from "./laws/concurrency.ts"
import { editLaws } from "./laws/edit.ts"
import { grepLaws } from "./laws/grep.ts"
import { errorLaws, limitLaws } from "./laws/limits.ts"
import { otherLaws } from "./laws/others.ts"
import { pathLaws } from "./laws/paths.ts"
import { portAbilityLaws } from "./laws/portAbilities.ts"
import { portNameLaws } from "./laws/portNames.ts"
import { portReadingLaws } from "./laws/portReading.ts"
import { portWritingLaws } from "./laws/portWriting.ts"
import { lookingLaws, readingLaws } from "./laws/reading.ts"
import { gitignoreLaws, globLaws, walkLaws } from "./laws/search.ts"
import { sinkLaws, streamLaws } from "./laws/streams.ts"
import { deleteLaws, mkdirLaws, transferLaws } from "./laws/trees.ts"
import { attributeLaws, preconditionLaws, writingLaws } from "./laws/writing.ts"

/**
 * All laws of a filesystem.
 *
 * @category testing
 * @since 0.1.0
 */
export const laws: ReadonlyArray<Law> = [
  ...portReadingLaws,
  ...portWritingLaws,
  ...portNameLaws,
  ...portAbilityLaws,
  ...pathLaws,
  ...lookingLaws,
  ...readingLaws,
  ...streamLaws,
  ...sinkLaws,
  ...writingLaws,
  ...preconditionLaws,
  ...attributeLaws,
  ...editLaws,
  ...mkdirLaws,
  ...deleteLaws,
  ...transferLaws,
  ...linkLaws,
  ...absoluteLinkLaws,
  ...walkLaws,
  ...globLaws,
  ...gitignoreLaws,
  ...grepLaws,
  ...limitLaws,
  ...errorLaws,
  ...otherLaws,
  ...concurrencyLaws,
  ...atomicityLaws,
  ...accelerationLaws,
  ...wholeChangeLaws
]
