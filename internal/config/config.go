// Package config parses the configuration file: named far ends and defaults of flags. An unknown key is an error
// with its line.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// File is a configuration; its zero value changes nothing.
type File struct {
	// Far are the far ends by name.
	Far map[string]Far `toml:"far"`
	// Defaults are default values of flags, for every command or in a table with a command's name. See Default.
	Defaults map[string]any `toml:"defaults"`
	// History sets the store of results and its limits.
	History History `toml:"history"`
	// Recheck sets the paths that recheck tests by default.
	Recheck Recheck `toml:"recheck"`
}

// Recheck are far ends to test periodically: names of Far, or PEERs.
type Recheck struct {
	Peers []string `toml:"peers"`
}

// History sets the store and its limits; a zero field is the program's default.
type History struct {
	Store       string `toml:"store"` // a URL, postgres://…; "" is a file on this host
	Most        string `toml:"most"`  // as in 512MiB
	SamplesDays int    `toml:"samples-days"`
	RunsDays    int    `toml:"runs-days"`
	MostResults int    `toml:"most-results"`
	// ClientResultsADay limits the results stored per client of serve --web in 24 hours.
	ClientResultsADay int `toml:"client-results-a-day"`

	MostBytes int64 `toml:"-"` // Most in bytes
}

func (h *History) check() error {
	const mostDays = 36500
	for name, days := range map[string]int{"samples-days": h.SamplesDays, "runs-days": h.RunsDays} {
		if days < 0 || days > mostDays {
			return fmt.Errorf("history.%s: %d is not between 1 and %d", name, days, mostDays)
		}
	}
	for name, results := range map[string]int{"most-results": h.MostResults, "client-results-a-day": h.ClientResultsADay} {
		if results < 0 {
			return fmt.Errorf("history.%s: %d is less than 1", name, results)
		}
	}
	if h.Most == "" {
		return nil
	}
	size, err := units.ParseSize(h.Most)
	if err != nil {
		return fmt.Errorf("history.most: %w", err)
	}
	h.MostBytes = int64(size)
	if h.MostBytes < 1<<20 {
		return fmt.Errorf("history.most: %s is too little to keep a history in (1MiB or more)", h.Most)
	}
	return nil
}

// Far is a far end and its connection.
type Far struct {
	Peer    string `toml:"peer"`     // as on the command line, except lab
	KeyFile string `toml:"key-file"` // absolute, or relative to the configuration file
	Bind    string `toml:"bind"`
	IPv4    bool   `toml:"ipv4"`
	IPv6    bool   `toml:"ipv6"`
}

// Most is the file's largest size in bytes.
const Most = 1 << 20

// farName matches valid names: no address matches.
var farName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// Parse parses a configuration. dir is the file's directory and home the user's, for paths of key files. allowed
// lists by command the flags that may have a default.
func Parse(text []byte, dir, home string, allowed map[string][]string) (*File, error) {
	f := &File{}
	if err := Decode(bytes.NewReader(text), f, []string{"far", "defaults", "history", "peer", "key-file", "bind", "ipv4",
		"ipv6", "most", "samples-days", "runs-days", "most-results", "client-results-a-day",
		"store", "recheck", "peers"}); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Far)) {
		far, err := f.Far[name].check(dir, home)
		if err == nil && !farName.MatchString(name) {
			err = errors.New("a name is letters, digits, - and _, and begins with a letter")
		}
		if err != nil {
			return nil, fmt.Errorf("far.%s: %w", name, err)
		}
		f.Far[name] = far
	}
	if err := f.History.check(); err != nil {
		return nil, err
	}
	return f, f.checkDefaults(allowed)
}

// Decode decodes TOML into a value. It rejects unknown keys: the error has the line and the nearest of the known keys.
func Decode(from io.Reader, into any, names []string) error {
	err := toml.NewDecoder(from).DisallowUnknownFields().Decode(into)
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		e := &unknown.Errors[0]
		line, _ := e.Position()
		key := e.Key()
		suggestion := ""
		for _, part := range key { // a table or a setting in it is misspelt
			if !slices.Contains(names, part) {
				suggestion = cmp.Or(meant(part, names), suggestion)
			}
		}
		return fmt.Errorf("line %d: there is no setting %s%s", line, strings.Join(key, "."), suggestion)
	case errors.As(err, &bad):
		line, _ := bad.Position()
		return fmt.Errorf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return err
}

func (f Far) check(dir, home string) (Far, error) {
	switch {
	case f.Peer == "":
		return f, errors.New("peer is missing: how it is reached, as in fullpipe://server.example.net")
	case strings.HasPrefix(f.Peer, "lab:"):
		return f, errors.New("peer is a lab, which needs no name")
	case f.IPv4 && f.IPv6:
		return f, errors.New("ipv4 and ipv6 leave no address together")
	}
	if rest, ok := strings.CutPrefix(f.KeyFile, "~/"); ok {
		f.KeyFile = filepath.Join(home, rest)
	} else if f.KeyFile != "" && !filepath.IsAbs(f.KeyFile) {
		f.KeyFile = filepath.Join(dir, f.KeyFile)
	}
	return f, nil
}

// checkDefaults checks that every default is of an allowed flag.
func (f *File) checkDefaults(allowed map[string][]string) error {
	var all []string
	for _, flags := range allowed {
		all = append(all, flags...)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Defaults)) {
		table, isTable := f.Defaults[name].(map[string]any)
		if !isTable {
			if err := checkDefault("defaults."+name, name, f.Defaults[name], all); err != nil {
				return err
			}
			continue
		}
		flags, known := allowed[name]
		if !known {
			return fmt.Errorf("defaults.%s: no command with defaults is called so%s", name, meant(name,
				slices.Collect(maps.Keys(allowed))))
		}
		for _, flag := range slices.Sorted(maps.Keys(table)) {
			if err := checkDefault("defaults."+name+"."+flag, flag, table[flag], flags); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDefault(where, flag string, value any, flags []string) error {
	if !slices.Contains(flags, flag) {
		return fmt.Errorf("%s: no flag that may have a default is called so%s", where, meant(flag, flags))
	}
	switch value.(type) {
	case string, bool, int64, float64:
		return nil
	}
	return fmt.Errorf("%s: a text, a number or a truth value is needed", where)
}

func meant(name string, candidates []string) string {
	slices.Sort(candidates)
	if near := didyoumean.Nearest(name, candidates); near != "" {
		return fmt.Sprintf(" (%s?)", near)
	}
	return ""
}

// Default returns a flag's default for a command. The command's table has priority over common values.
func (f *File) Default(command, flag string) (string, bool) {
	if table, ok := f.Defaults[command].(map[string]any); ok {
		if value, ok := table[flag]; ok {
			return fmt.Sprint(value), true
		}
	}
	value, ok := f.Defaults[flag]
	if _, isTable := value.(map[string]any); !ok || isTable {
		return "", false
	}
	return fmt.Sprint(value), true
}

// Names returns the far ends' names, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Far)) }
