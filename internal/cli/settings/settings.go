// Package settings reads the user's configuration and fills in the flags that were not given.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// Variable names another configuration file; set and empty it is none.
const Variable = "FULLPIPE_CONFIG"

// MayDefault are the flags that the configuration may give values, by command. None of
// them changes a host, names a file that is written, or says in which form something is
// printed.
var MayDefault = map[string][]string{
	"measure": {"time", "interval", "direction", "parallel", "congestion", "mss", "no-delay", "dscp", "rounds",
		"no-history"},
	"tune":  {"direction", "budget", "max-bytes", "goal", "target", "far-target", "no-history"},
	"sweep": {"time", "direction", "congestion", "budget", "precision", "repeats", "no-history"},
	"rfc6349": {"time", "direction", "budget", "cir", "cir-up", "cir-down", "tolerance", "frame-time", "least-efficiency",
		"most-buffer-delay", "no-history"},
	"recheck": {"every", "time", "direction", "day-bytes", "day-time", "quiet-hours", "zone"},
	"exec":    {"budget"},
	"serve": {"max-clients", "max-tests", "max-tests-per-host", "max-streams", "max-time", "max-bytes", "max-rate",
		"max-buffers"},
}

// Read reads the user's configuration; without a file it is empty.
func Read(cmd *cobra.Command) (*config.File, string, error) {
	name, named := os.LookupEnv(Variable)
	if !named {
		name = configPath()
	}
	if name == "" {
		return &config.File{}, "", nil
	}
	file, err := input.OpenFile(cmd.Context(), name)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return &config.File{}, "", nil
	}
	if err != nil {
		return nil, name, err
	}
	text, err := input.ReadAll(file, name, config.Most)
	if err != nil {
		return nil, name, err
	}
	home, _ := os.UserHomeDir() // "" leaves "~/" where it cannot be found, which says so
	full, err := filepath.Abs(name)
	if err != nil {
		return nil, name, err
	}
	parsed, err := config.Parse(text, filepath.Dir(full), home, MayDefault)
	return parsed, name, err
}

// configPath returns the default path of the file, the same on every Unix.
func configPath() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); !filepath.IsAbs(dir) && err == nil {
		dir = filepath.Join(home, ".config")
	}
	if runtime.GOOS == "windows" {
		dir, _ = os.UserConfigDir()
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "fullpipe", "config.toml")
}

// Apply sets flags that were not given, without marking them as changed, and replaces names of far ends by their
// addresses.
func Apply(cmd *cobra.Command, file *config.File, args []string) ([]string, error) {
	for _, name := range MayDefault[cmd.Name()] {
		f := cmd.Flags().Lookup(name)
		value, ok := file.Default(cmd.Name(), name)
		if !ok || f.Changed {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return nil, fmt.Errorf("defaults: --%s of %s: %w", name, cmd.Name(), err)
		}
	}
	if cmd.Flags().Lookup("key-file") == nil || cmd.Flags().Lookup("bind") == nil {
		return args, nil
	}
	for i := range args {
		if cmd.Name() == "exec" || cmd.Name() == "recheck" {
			break // its arguments are CMD's; each far end of recheck has its own key
		}
		address, err := applyFar(cmd, file, args[i])
		if err != nil {
			return nil, err
		}
		args[i] = address
	}
	for _, name := range []string{"client", "to"} {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		address, err := applyFar(cmd, file, f.Value.String())
		if err == nil {
			err = f.Value.Set(address)
		}
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

// applyFar returns the PEER of a name and sets how it is reached, unless a flag or the environment does.
func applyFar(cmd *cobra.Command, file *config.File, name string) (string, error) {
	far, ok := file.Far[name]
	if !ok {
		return name, nil
	}
	fl := cmd.Flags()
	if far.KeyFile != "" && !fl.Changed("key") && !fl.Changed("key-file") && os.Getenv(secret.Key) == "" {
		if err := fl.Lookup("key-file").Value.Set(far.KeyFile); err != nil {
			return "", err
		}
	}
	set := map[string]string{"bind": far.Bind}
	if !fl.Changed("ipv4") && !fl.Changed("ipv6") {
		set["ipv4"] = fmt.Sprint(far.IPv4)
		set["ipv6"] = fmt.Sprint(far.IPv6)
	}
	for flag, value := range set {
		if value != "" && !fl.Changed(flag) {
			if err := fl.Lookup(flag).Value.Set(value); err != nil {
				return "", err
			}
		}
	}
	return far.Peer, nil
}
