// Package host changes this machine's settings so that they can be taken back: the
// journal is on the disk before a value changes, every value is read back, a change
// that fails leaves nothing behind, and undo touches only what is still ours. It also
// reads the machine's present state for an audit (Snapshot).
//
// Values are text, named as the system names them, in stores: sysctls, routes and shapers
// on Linux, the registry on Windows, and one file of sysctl.d. docs/undo.md lists what is promised
// and the test of each promise.
package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Kind says which store holds a value.
type Kind = record.SettingKind

const (
	Sysctl   Kind = "sysctl"   // "net.ipv4.tcp_rmem"
	Route    Kind = "route"    // "10.2.0.0/16 initcwnd", one attribute of a route of the main table
	Qdisc    Kind = "qdisc"    // "eth0 to 192.0.2.7/32", what a device sends there at most, bit/s
	Registry Kind = "registry" // `HKEY_LOCAL_MACHINE\…\Parameters\TcpWindowSize`
	File     Kind = "file"     // PersistFile, no other; the value is the file's content
	NetTCP   Kind = "nettcp"   // "Internet/AutoTuningLevelLocal", a parameter of Set-NetTCPSetting
)

// Change asks for one value. What it becomes is decided when it is made, under the lock,
// from the value that holds then.
type Change struct {
	Kind Kind
	Name string
	// Value is what is asked for; nil removes what is there.
	Value *string
	// Raise takes Value's numbers for least ones: a larger number that is there stays.
	Raise bool
	// Persist makes the value a line for each sysctl among the changes, in a file whose
	// other lines stay. Value is not looked at.
	Persist bool
}

// Set asks for a value.
func Set(kind Kind, name, value string) Change { return Change{Kind: kind, Name: name, Value: &value} }

// Config says where the journal lives and how long to wait for another fullpipe. The
// zero value is right for everything but tests.
type Config struct {
	// StateDir holds the journals. Empty chooses /var/lib/fullpipe for root of the
	// first user namespace, the user's state directory else; FULLPIPE_STATE overrides.
	StateDir string
	// Wait is how long to wait for another fullpipe that is changing this host; 0 is
	// ten seconds.
	Wait time.Duration
	// Check is asked by Apply under the lock, with what would change, before anything is
	// written: its error changes nothing. nil: nothing is checked.
	Check func(would []Did) error

	stores map[Kind]store        // nil: the system's own
	step   func(what step) error // called before each step that a crash could follow
}

// step names the moments between which a crash may come.
type step string

const (
	stepLocked   step = "locked"
	stepJournal  step = "before the journal"
	stepWrite    step = "before a value"
	stepReadBack step = "before reading back"
	stepRollBack step = "before rolling back"
	stepDone     step = "before the journal's end"
)

// store reads and writes values of one kind by name. A nil value is an absent one.
// What read answers can be given to write, and compares equal with what was written.
type store interface {
	read(name string) (*string, error)
	write(name string, value *string) error
	// normal is value as read would answer it.
	normal(value string) string
}

// Did is one change with its outcome.
type Did = record.HostChange

// Outcome is the outcome of a change.
type Outcome = record.ChangeOutcome

const (
	Unchanged  Outcome = "unchanged"   // it was so already
	Planned    Outcome = "planned"     // a dry run
	Changed    Outcome = "changed"     // written and read back
	Refused    Outcome = "refused"     // the system would not have it
	Clipped    Outcome = "clipped"     // the system took another value; rolled back
	RolledBack Outcome = "rolled-back" // written, and taken back because another failed
	Stuck      Outcome = "stuck"       // written, and could not be taken back: undo later
	Restored   Outcome = "restored"    // undone
	Conflict   Outcome = "conflict"    // somebody else changed it later: left alone
	Gone       Outcome = "gone"        // a restart took it back already
)

// ErrRefused is what a failed Apply is: nothing stays changed unless a Did says Stuck.
var ErrRefused = errors.New("the host did not take the change")

// ErrBusy says that another fullpipe is changing this host.
var ErrBusy = errors.New("another fullpipe is changing this host")

func notSupported(feature string) error {
	return fmt.Errorf("%s: %w", feature, socket.ErrNotSupported)
}

// Preview reads what Apply would change; it writes nothing.
func Preview(cfg Config, changes []Change) ([]Did, error) {
	cfg = cfg.complete()
	dids, err := cfg.look(changes)
	for i := range dids {
		if dids[i].Outcome == "" {
			dids[i].Outcome = Planned
		}
	}
	return dids, err
}

// Ready says whether this process may change the host at all, before much time is spent
// on what to change.
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

// Apply makes the changes, all or none. The journal is on the disk first; each value is
// read back. When one is refused or clipped, or the context ends, all that were written
// are rolled back. The Dids say what became of each, also with an error.
func Apply(ctx context.Context, cfg Config, changes []Change) ([]Did, error) {
	cfg = cfg.complete()
	lock, err := cfg.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return cfg.apply(ctx, changes)
}

// Undo puts back what was there before the first change of each name, where the present
// value is still ours; else the Did says Conflict and the journal keeps it. No names is
// all. It goes on after an error, so that as much as can be is restored.
func Undo(ctx context.Context, cfg Config, names ...string) ([]Did, error) {
	cfg = cfg.complete()
	lock, err := cfg.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return cfg.undo(ctx, names)
}

// Revert takes an Apply back: each value returns to what it was before that Apply, where
// it is still what that Apply wrote. Earlier changes of ours stay, and stay undoable.
func Revert(ctx context.Context, cfg Config, applied []Did) ([]Did, error) {
	cfg = cfg.complete()
	lock, err := cfg.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return cfg.revert(ctx, applied)
}

// Forget drops names from the journal without touching their values: for conflicts that
// the user has settled.
func Forget(ctx context.Context, cfg Config, names ...string) error {
	cfg = cfg.complete()
	lock, err := cfg.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return cfg.forget(names)
}

// State is a setting that fullpipe changed, with its present value.
type State = record.HostSetting

// Status says what of this host's settings is ours. It takes no lock and writes nothing.
func Status(cfg Config) ([]State, error) {
	cfg = cfg.complete()
	return cfg.status()
}
