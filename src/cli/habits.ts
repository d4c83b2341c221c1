/**
 * Flags that people type because another tool has them. A command that does so anyway drops the flag; one that has it under another name
 * takes it for that one. The letter is replaced in clusters too, so that `-v` never prints the version and `-h` never the help there.
 */

/** The flags of other tools by command: `""` where nothing changes, or the name of the flag that is meant. */
export const habits: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ls: { a: "", all: "", A: "", "almost-all": "", h: "", "human-readable": "", "1": "" },
  tree: { a: "" },
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
    // No command has it: the error names the flag that was meant.
    v: "invert-match"
  },
  mkdir: { v: "", verbose: "" },
  cp: { r: "", R: "", recursive: "", force: "overwrite", v: "", verbose: "" },
  mv: { force: "overwrite", v: "", verbose: "" },
  rm: { R: "recursive", force: "missing-ok", v: "", verbose: "" }
}

/** The same for every command. */
export const sharedHabits: Readonly<Record<string, string>> = { "no-color": "color=never" }

/** The commands of other tools, and the arguments of ours that do the same. */
export const counterparts: ReadonlyMap<string, string> = new Map([
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
