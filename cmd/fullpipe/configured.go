package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/peer"
)

// configVariable names another configuration file; set and empty it is none.
const configVariable = "FULLPIPE_CONFIG"

// mayDefault are the flags that the configuration may give values, by command. None of
// them changes a host, names a file that is written, or says in which form something is
// printed.
var mayDefault = map[string][]string{
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

// configured lets every command that has a PEER, or flags that may have defaults, read
// the configuration before it runs.
func configured(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		if len(mayDefault[cmd.Name()]) == 0 {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			file, name, err := readConfig(cmd)
			if err == nil {
				args, err = applyConfig(cmd, file, slices.Clone(args))
			}
			if err != nil {
				return &usageError{cmp.Or(name, "configuration"), plain(err), "docs/configuration.md"}
			}
			if err := checkStore(cmd, file); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
	withFars(root)
}

// readConfig reads the user's configuration; without a file it is empty.
func readConfig(cmd *cobra.Command) (*config.File, string, error) {
	name, named := os.LookupEnv(configVariable)
	if !named {
		name = configPath()
	}
	if name == "" {
		return &config.File{}, "", nil
	}
	file, err := openFile(cmd.Context(), name)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return &config.File{}, "", nil
	}
	if err != nil {
		return nil, name, err
	}
	text, err := readAll(file, name, config.Most)
	if err != nil {
		return nil, name, err
	}
	home, _ := os.UserHomeDir() // "" leaves "~/" where it cannot be found, which says so
	full, err := filepath.Abs(name)
	if err != nil {
		return nil, name, err
	}
	parsed, err := config.Parse(text, filepath.Dir(full), home, mayDefault)
	return parsed, name, err
}

// configPath is where the file stands when nothing else is said: the same place on
// every Unix.
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

// applyConfig fills in flags that were not given, which stay not given to whoever asks,
// and puts far ends in the place of their names.
func applyConfig(cmd *cobra.Command, file *config.File, args []string) ([]string, error) {
	for _, name := range mayDefault[cmd.Name()] {
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

// applyFar answers the PEER that a name stands for and fills in how it is reached, where
// neither a flag nor the environment says so.
func applyFar(cmd *cobra.Command, file *config.File, name string) (string, error) {
	far, ok := file.Far[name]
	if !ok {
		return name, nil
	}
	fl := cmd.Flags()
	if far.KeyFile != "" && !fl.Changed("key") && !fl.Changed("key-file") && os.Getenv(peer.KeyVariable) == "" {
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

// withFars offers the far ends of the configuration where a PEER is completed.
func withFars(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		complete := cmd.ValidArgsFunction
		if complete == nil || cmd.Flags().Lookup("key-file") == nil || cmd.Flags().Lookup("bind") == nil {
			continue
		}
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			offered, directive := complete(cmd, args, begun)
			if file, _, err := readConfig(cmd); err == nil && len(args) == 0 {
				offered = append(file.Names(), offered...)
			}
			return offered, directive
		}
	}
}
