// Package cmdflag has the values of flags that several commands have, and the errors of flags.
package cmdflag

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Period is how long something lasts, on the command line: a bare number is seconds, as
// everywhere else. A round trip is no period: there a bare number could be milliseconds.
type Period time.Duration

func (p *Period) Set(s string) error {
	v, err := units.ParseTime(WithSeconds(s))
	*p = Period(v)
	return err
}

// WithSeconds is a time's text with its unit: a bare number's is seconds.
func WithSeconds(s string) string {
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
		return strings.TrimSpace(s) + "s"
	}
	return s
}

func (p *Period) String() string {
	if *p == 0 {
		return ""
	}
	return units.Time(time.Duration(*p))
}

func (p *Period) Type() string { return "time" }

// Duration is a time on the command line, read by units.
type Duration time.Duration

func (d *Duration) Set(s string) error {
	v, err := units.ParseTime(s)
	*d = Duration(v)
	return err
}

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return units.Time(time.Duration(*d))
}

func (d *Duration) Type() string { return "time" }

// MaxRTT is the longest round trip, in seconds, that is taken from a file.
const MaxRTT = 3600

// Share is a share on the command line, written as 5%. A bare number other than 0 may be
// meant as a share or in percent, so it is refused with both meanings.
type Share float64

func (p *Share) Set(text string) error {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return errors.New("not a share (write it as 5%)")
	}
	if !isPercent && v > 0 {
		return fmt.Errorf("%s is %g %% as a share, or meant as %s %%: write %s%% or %g%%", number, 100*v, number, number,
			100*v)
	}
	if isPercent {
		v /= 100
	}
	*p = Share(v)
	return nil
}

func (p *Share) String() string {
	if *p == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*float64(*p))
}

func (p *Share) Type() string { return "share" }

// DSCPNames are DSCPs by name (RFC 2474, 2597, 3246, 5865; the last three are RFC 1349's, as
// iperf3 has them).
var DSCPNames = map[string]int{"af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20, "af23": 22, "af31": 26,
	"af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38, "cs0": 0, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32,
	"cs5": 40, "cs6": 48, "cs7": 56, "ef": 46, "va": 44, "lowdelay": 4, "throughput": 2, "reliability": 1}

// DSCP is a DSCP, by its number (as C reads it) or its name.
type DSCP int

func (d *DSCP) String() string { return strconv.Itoa(int(*d)) }

func (d *DSCP) Type() string { return "class" }

func (d *DSCP) Set(text string) error {
	if v, known := DSCPNames[strings.ToLower(text)]; known {
		*d = DSCP(v)
		return nil
	}
	n, err := strconv.ParseInt(text, 0, 32)
	if err != nil || n < 0 || n > 63 {
		return fmt.Errorf("%q is no class: 0 to 63, or a name as af11, cs1 or ef", text)
	}
	*d = DSCP(n)
	return nil
}

// LimiterNames returns the names of all limiters.
func LimiterNames() (all []string) {
	for _, n := range verdict.Names() {
		all = append(all, string(n))
	}
	return all
}

// LossPlaces returns the places of loss that a criterion may name.
func LossPlaces() []string {
	all := []string{record.SenderHost, record.ReceiverHost, record.BetweenHosts}
	for _, kind := range lost.Kinds() {
		all = append(all, string(kind))
	}
	return all
}

// FindProgram is the program of --app; the zero one if none was asked for.
func FindProgram(name string) (catalog.Program, error) {
	program, ok := catalog.FindProgram(name)
	if name != "" && !ok {
		return program, exit.Usage("--app", fmt.Sprintf("%q is no program that is known", name),
			strings.Join(catalog.ProgramNames(), ", ")+"; no --app for others, which have no limit that is known")
	}
	return program, nil
}

// StackNames returns the names of all stacks that a lab can imitate.
func StackNames() (names []string) {
	for _, s := range link.Stacks() {
		names = append(names, s.Name)
	}
	return names
}

// Complaints are pflag's messages about options with getopt's, which iperf3 prints, and this program's.
var Complaints = []struct {
	Match         *regexp.Regexp
	Getopt, words string
}{
	{regexp.MustCompile(`unknown flag: (--[^ =]+)`), "unrecognized option '%s'", noSuchOption},
	{regexp.MustCompile(`unknown shorthand flag: '(.)'`), "invalid option -- '%s'", noSuchOption},
	{regexp.MustCompile(`flag needs an argument: (--[^ =]+)`), "option '%s' requires an argument", "needs a value"},
	{regexp.MustCompile(`flag needs an argument: '(.)'`), "option requires an argument -- '%s'", "needs a value"},
}

// Complain returns the error of an option: a plain message for pflag's known ones, otherwise pflag's. For a misspelt
// option it suggests the nearest one.
func Complain(cmd *cobra.Command, said string) *exit.UsageError {
	help := cmd.CommandPath() + " --help"
	for _, one := range Complaints {
		if m := one.Match.FindStringSubmatch(said); m != nil {
			option := m[1]
			if len(option) == 1 {
				option = "-" + option
			}
			if near := nearestFlag(cmd, option); near != "" && one.words == noSuchOption {
				help = near + " (" + help + " lists all)"
			}
			return exit.Usage(option, one.words, help)
		}
	}
	return exit.Usage(cmd.Name(), said, help)
}

const noSuchOption = "no such option"

// nearestFlag returns the option of a command that is spelt like one that it has not, "" for none.
func nearestFlag(cmd *cobra.Command, option string) string {
	name, long := strings.CutPrefix(option, "--")
	if !long {
		return ""
	}
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	slices.Sort(names)
	if near := didyoumean.Nearest(name, names); near != "" {
		return "--" + near
	}
	return ""
}

// Error returns the usage error of a flag that pflag refuses.
func Error(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return exit.Usage("--"+value.GetFlag().Name, exit.PlainFlag(value), cmd.CommandPath()+" --help")
	}
	return Complain(cmd, err.Error())
}

// If returns a row of a command's table of flags: the usage error of flag if bad is true, because flags conflict or a
// value is out of range; otherwise nil.
func If(bad bool, flag, message, try string) *exit.UsageError {
	if !bad {
		return nil
	}
	return exit.Usage(flag, message, try)
}

// Check returns the first error of a table, or nil.
func Check(rows ...*exit.UsageError) error {
	for _, row := range rows {
		if row != nil {
			return row
		}
	}
	return nil
}
