// Package host changes this host's settings reversibly: the journal is on the disk before a value changes, every value
// is read back, a failed Apply rolls back its changes, and undo restores only values that are still ours. It also reads
// the host's present state for an audit (Snapshot).
//
// Values are text under the system's names, in stores: sysctls, routes and shapers on Linux, the registry on Windows,
// and one file of sysctl.d. docs/undo.md lists the guarantees and their tests.
package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Kind names the store of a value.
type Kind = record.SettingKind

const (
	Sysctl   Kind = "sysctl"   // "net.ipv4.tcp_rmem"
	Route    Kind = "route"    // "10.2.0.0/16 initcwnd", one attribute of a route of the main table
	Qdisc    Kind = "qdisc"    // "eth0 to 192.0.2.7/32", the largest rate that a device sends there, in bit/s
	Registry Kind = "registry" // `HKEY_LOCAL_MACHINE\…\Parameters\TcpWindowSize`
	File     Kind = "file"     // PersistFile, no other; the value is the file's content
	NetTCP   Kind = "nettcp"   // "Internet/AutoTuningLevelLocal", a parameter of Set-NetTCPSetting
)

// Change requests one value. Apply computes the new value under the lock, from the value at that time.
type Change struct {
	Kind Kind
	Name string
	// Value is the requested value; nil removes the present one.
	Value *string
	// Raise makes Value's numbers minimums: larger present numbers stay.
	Raise bool
	// Persist makes the value a line for each sysctl among the changes, in a file whose other lines stay. Value is
	// ignored.
	Persist bool
}

// Set returns the Change that sets a value.
func Set(kind Kind, name, value string) Change { return Change{Kind: kind, Name: name, Value: &value} }

// Config sets the place of the journal and the timeout for another fullpipe. Only tests need other than the zero value.
type Config struct {
	// StateDir is the directory of the journals. Empty is /var/lib/fullpipe for root of the initial user namespace,
	// otherwise the user's state directory; FULLPIPE_STATE overrides both.
	StateDir string
	// Wait is the timeout for another fullpipe that is changing this host; 0 is 10 s.
	Wait time.Duration
	// Check is called by Apply under the lock, with the pending changes, before anything is written. Its error stops
	// Apply. nil is no check.
	Check func(pending []Did) error

	stores map[Kind]store        // nil: the system's own
	step   func(next step) error // called before each step after which a crash leaves another state
}

// step names the steps of a change, for tests of crashes between them.
type step string

const (
	stepLocked   step = "locked"
	stepJournal  step = "before the journal"
	stepWrite    step = "before a value"
	stepReadBack step = "before reading back"
	stepRollBack step = "before rolling back"
	stepDone     step = "before the journal's end"
)

// store reads and writes values of one kind by name. A nil value is absent. write accepts the result of read, and read
// returns the written value.
type store interface {
	read(name string) (*string, error)
	write(name string, value *string) error
	// normal returns the value in the form that read returns.
	normal(value string) string
}

// Did is one change with its outcome.
type Did = record.HostChange

// Outcome is the outcome of a change.
type Outcome = record.ChangeOutcome

const (
	Unchanged  Outcome = "unchanged"   // it had the value already
	Planned    Outcome = "planned"     // a dry run
	Changed    Outcome = "changed"     // written and read back
	Refused    Outcome = "refused"     // the system rejected it
	Clipped    Outcome = "clipped"     // the system set another value; rolled back
	RolledBack Outcome = "rolled-back" // written and restored because another change failed
	Stuck      Outcome = "stuck"       // written and could not be restored: undo later
	Restored   Outcome = "restored"    // undone
	Conflict   Outcome = "conflict"    // another program changed it later: not touched
	Gone       Outcome = "gone"        // a reboot restored it already
)

// ErrRefused is the error of a failed Apply. It rolled back all changes except those with the outcome Stuck.
var ErrRefused = errors.New("the host rejected the change")

// ErrBusy reports that another fullpipe is changing this host.
var ErrBusy = errors.New("another fullpipe is changing this host")

func notSupported(feature string) error {
	return fmt.Errorf("%s: %w", feature, socket.ErrNotSupported)
}

// Preview returns the changes that Apply would make. It writes nothing.
func Preview(cfg Config, changes []Change) ([]Did, error) {
	cfg = cfg.complete()
	dids, err := cfg.preview(changes)
	for i := range dids {
		if dids[i].Outcome == "" {
			dids[i].Outcome = Planned
		}
	}
	return dids, err
}

// Ready returns an error if this process may not change the host, before time is spent on measuring.
func Ready(ctx context.Context, cfg Config) error {
	cfg = cfg.complete()
	if len(cfg.stores) == 0 {
		return notSupported("changing this host")
	}
	lock, err := cfg.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := writable(); err != nil {
		return &StateError{err}
	}
	return nil
}

// Apply makes all changes or none. The journal is on the disk first; each value is read back. If a value is refused or
// clipped, or the context ends, Apply rolls back. It returns the outcome of each change, also with an error.
func Apply(ctx context.Context, cfg Config, changes []Change) ([]Did, error) {
	return cfg.locked(ctx, func(c Config) ([]Did, error) { return c.apply(ctx, changes) })
}

// Undo restores the value before the first change of each name, if the present value is still ours; otherwise the
// outcome is Conflict and the journal keeps the record. No names means all. It continues after an error.
func Undo(ctx context.Context, cfg Config, names ...string) ([]Did, error) {
	return cfg.locked(ctx, func(c Config) ([]Did, error) { return c.undo(ctx, names) })
}

// Revert undoes one Apply: it restores each value before that Apply, if the present value is the one that it wrote.
// Earlier changes stay and can still be undone.
func Revert(ctx context.Context, cfg Config, applied []Did) ([]Did, error) {
	return cfg.locked(ctx, func(c Config) ([]Did, error) { return c.revert(ctx, applied) })
}

// Forget removes names from the journal and leaves their values: for conflicts that the user has resolved.
func Forget(ctx context.Context, cfg Config, names ...string) error {
	_, err := cfg.locked(ctx, func(c Config) ([]Did, error) { return nil, c.forget(names) })
	return err
}

// locked locks the journal and calls change with the complete configuration.
func (c Config) locked(ctx context.Context, change func(Config) ([]Did, error)) ([]Did, error) {
	c = c.complete()
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return change(c)
}

// State is a setting that fullpipe changed, with its present value.
type State = record.HostSetting

// Status returns the state of every setting that we changed. It takes no lock and writes nothing.
func Status(cfg Config) ([]State, error) {
	cfg = cfg.complete()
	return cfg.status()
}
