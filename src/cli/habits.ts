/**
 * Replaces or drops flags that users know from other tools, also in clusters of letters. `-v` and `-h` print the version and
 * the help only if the tool of the same name has no other use for them: help in place of an answer would reach the next command
 * of a pipe.
 */

/** The flags of other tools by command: `""` if the flag changes nothing, or the name of our flag. */
export const foreignFlags: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ls: { a: "", all: "", A: "", "almost-all": "", h: "", "human-readable": "", "1": "" },
  tree: { a: "", h: "" },
  grep: {
    n: "",
    "line-number": "",
    r: "",
    R: "",
    recursive: "",
    E: "",
    "extended-regexp": "",
    P: "",
    "perl-regexp": "",
    H: "",
    "with-filename": "",
    I: "",
    include: "glob",
    "exclude-dir": "exclude",
    "fixed-strings": "literal",
    "word-regexp": "word",
    "files-with-matches": "files",
    "max-count": "max",
    // No command has these flags; the error suggests the tool's long name for the flag.
    v: "invert-match",
    h: "no-filename"
  },
  mkdir: { v: "", verbose: "" },
  cp: { r: "", R: "", recursive: "", force: "overwrite", v: "", verbose: "" },
  mv: { force: "overwrite", v: "", verbose: "" },
  rm: { R: "recursive", force: "missing-ok", v: "", verbose: "" }
}

export const sharedForeignFlags: Readonly<Record<string, string>> = { "no-color": "color=never" }

export const foreignCommands: ReadonlyMap<string, string> = new Map([
  ["dir", "ls"],
  ["ll", "ls --long"],
  ["less", "cat FILE"],
  ["more", "cat FILE"],
  ["head", "cat --lines :10 FILE"],
  ["tail", "cat FILE | tail"],
  ["find", "glob '*.ts'"],
  ["fd", "glob '*.ts'"],
  ["rg", "grep PATTERN"],
  ["touch", "write FILE --mode append --text ''"],
  ["sed", "edit FILE --old TEXT --new TEXT"],
  ["rename", "mv FROM TO"],
  ["rmdir", "rm DIR"],
  ["undo", "restore"]
])
