package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// series returns the path that a command line's documents belong to, from the values of its options. It is called after
// the command line and the configuration were read.
type series func(hostID, far string) record.Path

// addHistoryFlags adds the flags that say whether a measuring command's record is kept, which by default it is if
// always is set. The records belong to the series of.
func addHistoryFlags(cmd *cobra.Command, always bool, of series) {
	fl := cmd.Flags()
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		sessionOf(cmd.Context()).series = of
		// These are the command line's: no configuration is read yet.
		if always && flagged(cmd, "record") && flagged(cmd, "no-history") {
			return &usageError{"--record", "--no-history says the opposite", "one of the two"}
		}
		return nil
	}
	if always {
		fl.Bool("no-history", false, "do not keep the result in the history")
		fl.Bool("record", false, "keep the result in the history although it was measured in a lab")
	} else {
		fl.Bool("record", false, "keep the result in the history")
	}
	fl.StringToString("label", nil, "`name=value`, kept with the result")
	addStoreFlag(fl)
}

func flagged(cmd *cobra.Command, name string) bool {
	is, err := cmd.Flags().GetBool(name)
	return err == nil && is
}

// begun is when this process began, with the monotonic clock.
var begun = time.Now()

// seal fills in what measured documents carry beside their figures.
func seal(cmd *cobra.Command, doc record.Document) {
	if cmd.Flags().Lookup("record") == nil {
		return
	}
	elapsed := time.Since(begun) // a wall clock that was set meanwhile does not matter
	took := elapsed.Seconds()
	s := sessionOf(cmd.Context())
	e := &record.Envelope{ID: newID(), TestID: s.testID, FarClock: s.farClock(), Origin: record.Manual,
		Outcome: record.OutcomeOf(doc), EndedAt: record.NsTime(begun.Add(elapsed).UnixNano()), TookS: &took,
		ClockSynchronised: host.ClockSynchronised(), InForce: host.SettingsInForce(), Commit: thisBuild().Commit}
	if labels, err := cmd.Flags().GetStringToString("label"); err == nil && len(labels) > 0 {
		e.Labels = labels
	}
	h := doc.Head()
	h.Envelope = e
	h.StartedAt = begun.UTC()
	var err error
	if e.HostID, err = hostID(cmd); err != nil && wanted(cmd) {
		note(cmd, "this host has no name in records: %v", err)
	}
	if s.series != nil {
		e.PathKey = s.series(e.HostID, record.Summarize(doc).Far).Key()
	}
}

// hostID is this host's name in records, made where there is none yet and the record is
// kept; else "". Under sudo it is the one that the user keeps, who makes it.
func hostID(cmd *cobra.Command) (string, error) {
	uid := behindSudo()
	if uid == "" {
		dir, err := store.Dir()
		if err != nil {
			return "", err
		}
		if wanted(cmd) {
			return store.HostID(dir)
		}
		id, _ := store.ReadHostID(dir)
		return id, nil
	}
	if !wanted(cmd) {
		return "", nil
	}
	who, err := user.LookupId(uid)
	if err != nil {
		return "", err
	}
	dir := store.DirIn(who.HomeDir)
	if id, err := store.ReadHostID(dir); err == nil {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 5*time.Second)
	defer cancel()
	if err := asBehindSudo(ctx, cmd, uid, nil); err != nil {
		return "", err
	}
	return store.ReadHostID(dir)
}

// behindSudo is the uid of the user who started this with sudo; "" is nobody.
func behindSudo() string {
	if uid := os.Getenv("SUDO_UID"); uid != "0" && os.Geteuid() == 0 && os.Getenv(store.Variable) == "" &&
		os.Getenv("FULLPIPE_STATE") == "" {
		return uid
	}
	return ""
}

// asCaller leaves root's rights where who called sudo has the history that a command reads or
// writes by itself: neither it nor what stands beside it becomes root's.
func asCaller(cmd *cobra.Command) error {
	uid := behindSudo()
	if top := topLevel(cmd); uid == "" || top != "history" && top != "recheck" && top != "ui" {
		return nil
	}
	who, err := user.LookupId(uid)
	if err == nil {
		err = become(who)
	}
	if err != nil {
		return fmt.Errorf("the history of who called sudo, SUDO_UID=%s: %w", uid, err)
	}
	for _, name := range []string{"SUDO_UID", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		os.Unsetenv(name)
	}
	return os.Setenv("HOME", who.HomeDir)
}

// topLevel is the name of the command below the root that this one is, or belongs to.
func topLevel(cmd *cobra.Command) string {
	for ; cmd.HasParent() && cmd.Parent().HasParent(); cmd = cmd.Parent() {
	}
	return cmd.Name()
}

// wanted says whether this run's result is kept: by default what was not measured in a lab.
func wanted(cmd *cobra.Command) bool {
	switch {
	case flagged(cmd, "record"):
		return true
	case cmd.Flags().Lookup("no-history") == nil || flagged(cmd, "no-history"):
		return false
	}
	_, in, _ := lab.Around()
	return !in
}

// keep adds a measured document to the history, and says how it compares with the path's
// own past. What cannot be kept is a note, since the result was printed; where --record asked for
// it, it is the error.
func keep(cmd *cobra.Command, doc record.Document) error {
	if doc.Head().Envelope == nil || !wanted(cmd) {
		return nil
	}
	ctx, cancel := toKeep(cmd)
	defer cancel()
	switch err := keepNow(ctx, cmd, doc); {
	case isWaiting(err):
		noteWaiting(cmd, err)
	case err != nil && flagged(cmd, "record"):
		return &unkeptError{err}
	case err != nil:
		note(cmd, "%v", &unkeptError{err})
	}
	return nil
}

// first is how a command ends that failed, and also could not keep what it had.
func first(cmd *cobra.Command, failed, unkept error) error {
	if failed != nil && unkept != nil {
		note(cmd, "%v", unkept)
	}
	return cmp.Or(failed, unkept)
}

// unkeptError is why something is not in the history.
type unkeptError struct{ err error }

func (e *unkeptError) Error() string { return "not kept in the history: " + e.err.Error() }

func (e *unkeptError) Unwrap() error { return e.err }

func keepNow(ctx context.Context, cmd *cobra.Command, doc record.Document) error {
	encoded, err := record.Encode(doc)
	if err != nil {
		return err
	}
	samples, err := record.EncodeSamples(doc)
	if err != nil {
		return err
	}
	if uid := behindSudo(); uid != "" {
		return keepAs(ctx, cmd, uid, encoded, samples)
	}
	s, err := openHistory(ctx, cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	if os.Getenv(labVariable) != "" { // no server is in reach: the command around this one delivers
		if left, err := s.Leave(encoded, samples); left || err != nil {
			return err
		}
	}
	if err := s.Keep(ctx, encoded, samples); err != nil {
		return err
	}
	if !wantsJSON(cmd) {
		switch line := against(ctx, s, doc); {
		case line == "":
		case outputTaken(cmd) || flagged(cmd, "csv"):
			note(cmd, "%s", line)
		default: // the report's last line
			fmt.Fprintln(cmd.OutOrStdout(), render.Line(line))
		}
	}
	if err := trim(ctx, cmd, s); err != nil {
		note(cmd, "kept in the history, which could not be shortened: %v", err)
	}
	return nil
}

// keepAs lets the user behind sudo keep the record.
func keepAs(ctx context.Context, cmd *cobra.Command, uid string, doc, samples []byte) error {
	var one map[string]json.RawMessage
	if err := json.Unmarshal(doc, &one); err != nil {
		return err
	}
	if len(samples) > 0 {
		one["samples"] = samples
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return asBehindSudo(ctx, cmd, uid, line)
}

// asBehindSudo imports documents as a process of the user's: no file of root's is made in
// a home, and no link there leads root anywhere.
func asBehindSudo(ctx context.Context, cmd *cobra.Command, uid string, documents []byte) error {
	who, err := user.LookupId(uid)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, program, "history", "import", "--own", "-")
	child.Stdin = bytes.NewReader(documents)
	child.Env = []string{"HOME=" + who.HomeDir, "PATH=" + os.Getenv("PATH")}
	if url, says := storeURL(cmd, &config.File{}); says != "history.store" { // that is the user's own configuration's
		child.Env = append(child.Env, store.URLVariable+"="+url)
	}
	child.Dir = "/"
	if err := asUser(child, who); err != nil {
		return err
	}
	out, err := child.CombinedOutput()
	out = bytes.TrimSpace(out)
	if err != nil {
		return fmt.Errorf("as %s: %w: %s", who.Username, err, out)
	}
	if len(out) > 0 {
		note(cmd, "%s", out)
	}
	return nil
}

// against compares each direction with the last 30 days of its path.
func against(ctx context.Context, s *store.Store, doc record.Document) string {
	h := doc.Head()
	var lines []string
	for _, f := range record.Summarize(doc).Figures {
		past, err := s.Past(ctx, h.PathKey, f.Direction, h.StartedAt.AddDate(0, 0, -30), h.StartedAt)
		if err != nil {
			return ""
		}
		if line := text.Against(f, past); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
