/**
 * The test projects, each a list of files.
 *
 * `unit` has every file that no other project lists. Its files share a module cache, start no program and wait for no time.
 */

/** Files that start an S3 server. */
export const buckets = [
  "test/agent/everywhere.buckets.test.ts",
  "test/backends/bucket/{faults,laws,store,trees}.test.ts",
  "test/journal/leafBucket.test.ts",
  "test/repository/killed.bucket.test.ts",
  "test/repository/stores/bucket.test.ts"
]

/** Files that start podman, Wine, NATS, Postgres, sshd, Chromium or another JavaScript runtime. */
export const engines = [
  "test/backends/container/{docker,hostile,killed,life,overlay,sandbox}.test.ts",
  "test/cli/{container,sftpRoot}.test.ts",
  "test/conformance/{containerExec,containerOverlay}.test.ts",
  "test/adapters/httpStaticFiles.browser.test.ts",
  "test/debug/browser/{accessible,files,large,live,panels,shell,unusual}.test.ts",
  "test/agent/{everywhere.servers,section.podman}.test.ts",
  "test/backends/sftp/{cut,faults,hosts,laws,many,pipelined}.test.ts",
  "test/history/containers.test.ts",
  "test/integration/endToEnd.test.ts",
  "test/journal/{jetStream,jetStreamBranch,jetStreamProcesses,leafSftp}.test.ts",
  "test/repository/stores/{jetStream,postgres}.test.ts",
  "test/repository/{agents.processes,killed.stores,workspaces.processes}.test.ts",
  "test/cli/workspaces.{nats,postgres}.test.ts",
  "test/runtimes/**/*.test.ts",
  "test/windows/**/*.test.ts"
]

/** Files that attack, kill, interrupt or starve the product, or give it forged input. */
export const adversarial = [
  "test/{concurrency,durability,faults,interruption,security}/**/*.test.ts",
  "test/adapters/McpFilesystem.hostile.test.ts",
  "test/agent/{adapter.faults,changes.faults,changes.processes}.test.ts",
  "test/conformance/{adversarial,mutants}.test.ts",
  "test/history/{badInput.*,concurrent,concurrentProcesses,transaction.faults,transaction.recover,planted,restoreKilled}.test.ts",
  "test/history/git/{collect,hostile}.test.ts",
  "test/repository/{commits,linearizable}.test.ts",
  "test/journal/{fileJournalFaults,fileJournalProcesses,forged,leafCrash,leafHostile,leafKill}.test.ts",
  "test/workspace/{checkpoint.faults,hostMount.bad,hostMount.faults,session.crash}.test.ts"
]

/** Files that need a disk, a child process, git or the command line, and the longest files of the laws. */
export const host = [
  "test/{cli,differential,history,packaging,remote,scoreboard}/**/*.test.ts",
  "test/adapters/AnthropicTools.sdk.test.ts",
  "test/adapters/NodeFs.{git,random,bundlers}.test.ts",
  "test/adapters/{DeepAgents,JustBash,Mastra}.test.ts",
  "test/documentation/{configuration,examples,guides}.test.ts",
  "test/adapters/McpFilesystem{,.laws}.test.ts",
  "test/agent/{everywhere,everywhere.sessions,mcp.processes,patchOracle,section.awkward,snapshotTools}.test.ts",
  "test/backends/PosixHost*.test.ts",
  "test/conformance/{branch,posixHostRoots,variants,vfsState,wholeChanges}.test.ts",
  "test/backends/windows/{WindowsHost,behaviour}.test.ts",
  "test/backends/internal/memoryExplorer.test.ts",
  "test/debug/dump.test.ts",
  "test/journal/branch.test.ts",
  "test/backends/shell/**/*.test.ts",
  "test/debug/{live,server,store}.test.ts",
  "test/engine/{braces,edit,grep,ignore}.test.ts",
  "test/repository/{git,maintenance,workspaces.laws}.test.ts",
  "test/repository/stores/{directory,faults,laws,memory,sqlite}.test.ts",
  "test/examples/{sqlite,vfs_tools_example}.test.ts",
  "test/journal/{branchSnapshots,contentStore,endToEnd,fileJournal,leafCheckpoints,leafOrder}.test.ts",
  "test/filesystem/absoluteLinks.test.ts",
  "test/runtime/{directories,installation,kernel,matching,searcher,searchMemory,searchProcesses,workerPool}.test.ts",
  "test/workspace/{checkpoint,hostMount,session.dump,vfsStateSession}.test.ts"
]

/** Files of `host` that `npm test` runs too: a disk, git, the command line and a journal, each once. */
export const smoke = [
  "test/backends/PosixHost.test.ts",
  "test/cli/{commands,habits,mcp}.test.ts",
  "test/history/{archive,storeExamples}.test.ts",
  "test/journal/fileJournal.test.ts"
]
