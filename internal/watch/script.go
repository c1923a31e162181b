package watch

import (
	"path"
	"slices"
	"strings"
)

// interpreter says how an interpreter's arguments name the program that it runs.
type interpreter struct {
	names     []string
	withValue []string // options whose value is the next argument
	module    []string // options whose value is the name of a module or an archive to run
	inline    []string // options whose value is the program's text
}

var interpreters = []interpreter{
	{names: []string{"python", "pypy"}, withValue: []string{"-W", "-X", "--check-hash-based-pycs"},
		module: []string{"-m"}, inline: []string{"-c"}},
	{names: []string{"perl"}, withValue: []string{"-I"}, inline: []string{"-e", "-E"}},
	{names: []string{"ruby"}, withValue: []string{"-I", "-r", "-C", "-E"}, inline: []string{"-e"}},
	{names: []string{"node", "nodejs", "bun", "deno"}, withValue: []string{"-r", "--require", "--import", "--loader"},
		inline: []string{"-e", "--eval", "-p", "--fingerprint"}},
	{names: []string{"java"}, withValue: []string{"-cp", "-classpath", "--class-path", "-p", "--module-path",
		"--add-modules", "--add-opens", "--add-exports", "--add-reads"}, module: []string{"-jar", "-m", "--module"}},
	{names: []string{"php"}, withValue: []string{"-c", "-d", "-z"}, module: []string{"-f"}, inline: []string{"-r"}},
	{names: []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, withValue: []string{"-o", "-O"}, inline: []string{"-c"}},
	{names: []string{"lua", "luajit"}, withValue: []string{"-l"}, inline: []string{"-e"}},
	{names: []string{"tclsh", "expect", "Rscript"}, inline: []string{"-c", "-e"}},
	{names: []string{"dotnet", "mono"}},
}

// scriptOf returns the name of the script, module or class that a command line runs, as it is written and without its
// directories or packages: "org.apache.kafka.Kafka" and "Kafka". Both are "" for what is no interpreter.
func scriptOf(args []string) (written, short string) {
	program := path.Base(args[0])
	at := slices.IndexFunc(interpreters, func(i interpreter) bool {
		return slices.ContainsFunc(i.names, func(name string) bool {
			return program == name || strings.HasPrefix(program, name) &&
				strings.Trim(program[len(name):], "0123456789.-") == "" // python3.12
		})
	})
	if at < 0 {
		return "", ""
	}
	kind := &interpreters[at]
	isModule := program == "java" // its argument is a class
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case slices.Contains(kind.inline, arg):
			return "", ""
		case slices.Contains(kind.module, arg) && i+1 < len(args):
			return args[i+1], shortName(args[i+1], isModule)
		case slices.Contains(kind.withValue, arg):
			i++
		case arg == "" || arg[0] == '-' || kind.names[0] == "node" && arg == "run": // deno run, bun run
		default:
			return arg, shortName(arg, isModule)
		}
	}
	return "", ""
}

// shortName returns the last part of a path, and of a Java class's name the class alone.
func shortName(name string, isClass bool) string {
	name = path.Base(name)
	if isClass && !strings.HasSuffix(name, ".jar") && !strings.HasSuffix(name, ".java") {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	return name
}
