package diagnose

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// places are the captures that were named: parts of one, or near and far.
type places struct {
	names []string // parts of the near capture
	near  *capture.Analysis
	far   *capture.Analysis // nil: one place
	notes []verdict.Note
}

// separate reads the far capture of --far. Otherwise it leaves out copies of files, and separates two captures of the
// same connections that were read as parts of one.
func (f *flags) separate(cmd *cobra.Command, p places, cfg capture.Config) (_ places, err error) {
	if f.far != "" {
		p.far, err = analyzeFar(cmd, f.far)
		return p, err
	}
	again := exit.Usage("-", "another file has the same packets, and standard input cannot be read again",
		"write it to a file")
	for copies := diagnose.Copies(p.near); len(copies) > 0; copies = diagnose.Copies(p.near) {
		if f.once(p.names) {
			return p, again
		}
		note := copies[0] // without this file the others may be copies of each other
		at := slices.Index(p.names, note.Words[0])
		if at < 0 || len(p.names) < 2 {
			break
		}
		p.notes = append(p.notes, note)
		p.names = slices.Delete(slices.Clone(p.names), at, at+1)
		p.near, err = analyzeFiles(cmd, p.names, cfg)
		if err != nil {
			return p, err
		}
	}
	shared := diagnose.MayBeTwoPlaces(p.near)
	if shared == nil {
		return p, nil
	}
	if f.once(p.names) {
		return p, again
	}
	near := shared.First
	far := shared.Second
	if slices.Index(p.names, far) < slices.Index(p.names, near) {
		near, far = far, near
	}
	cfg.Flow.Passes = diagnose.Passes
	nearAlone, err := analyzeFiles(cmd, []string{near}, cfg)
	if err != nil {
		return p, err
	}
	farAlone, err := analyzeFar(cmd, far)
	if err != nil || !diagnose.TwoPlaces(shared, nearAlone, farAlone) {
		return p, err
	}
	if len(p.names) > 2 {
		return p, exit.Usage(far, fmt.Sprintf("%s has the same packets, captured at another place", near),
			fmt.Sprintf("--near %s --far %s", near, far))
	}
	p.names = []string{near}
	p.near = nearAlone
	p.far = farAlone
	p.notes = append(p.notes, verdict.Note{Code: verdict.TwoPlaces, Words: []string{near, far}})
	return p, nil
}

// analyzeFar follows all that the far capture has: behind address translation the connections that are wanted have
// other addresses.
func analyzeFar(cmd *cobra.Command, name string) (*capture.Analysis, error) {
	return analyzeFiles(cmd, []string{name}, capture.Config{Flow: flow.Config{Passes: diagnose.Passes}})
}
