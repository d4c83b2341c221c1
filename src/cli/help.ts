import * as CliOutput from "effect/cli/CliOutput"
import { exitCodes } from "./exit.ts"
import { styleFor } from "./look.ts"
import type { ScreenShape } from "./screen.ts"
import { program } from "./settings.ts"

export const formatter = (screen: ScreenShape): CliOutput.Formatter => {
  const { bold, green } = styleFor(screen)
  const base = CliOutput.defaultFormatter({ colors: screen.colors, inheritedFlags: "full", globalFlags: "none" })
  const codes = exitCodes.map(({ code, meaning }) => `  ${green(`${code}`.padStart(3))}  ${meaning}`).join("\n")
  return {
    ...base,
    formatHelpDoc: (doc) =>
      doc.commandPath?.length === 1 && doc.commandPath[0] === program
        ? `${base.formatHelpDoc(doc)}\n\n${bold("EXIT CODES")}\n${codes}`
        : base.formatHelpDoc(doc)
  }
}
